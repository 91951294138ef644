//! `gleaner repair`: an ordinary run that goes on from no cursor that is in doubt, and tries gaps again that were closed
//! without their record. The rules are in the store's `repair`.

use crate::args::collect::{CollectArgs, RepairArgs};
use crate::commands::remove::lease;
use crate::commands::run;
use crate::config::Config;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// The arguments of `gleaner run`, with its own defaults.
#[derive(Parser)]
struct RunArgs {
    #[command(flatten)]
    run: CollectArgs,
}

pub(crate) fn run(args: &RepairArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (home, name) = (Home::find(&args.home)?, args.connection.as_str());
    let mut store = home.store()?;
    let leases = lease(&mut store, name)?;
    let repaired = store.repair(name, &leases);
    store.release(&leases)?;
    let repaired = repaired?;
    drop(store);
    if !args.json {
        out.line(&format!(
            "{}: {} in doubt, listed again from the beginning; {} open again",
            visible(name),
            plural(repaired.cursors, "cursor"),
            plural(repaired.gaps, "gap")
        ))?;
    }
    let mut run = run_args(args)?;
    Config::load(&home)?.fill_run(&mut run)?;
    run::run(&run, out)
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn run_args(args: &RepairArgs) -> Result<CollectArgs, CliError> {
    let mut words = vec![OsString::from("run"), OsString::from(&args.connection)];
    let flags = [(args.now, "--now"), (args.json, "--json"), (args.quiet, "--quiet")];
    words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| OsString::from(flag)));
    if let Some(home) = &args.home.home {
        words.extend([OsString::from("--home"), home.clone().into_os_string()]);
    }
    if !args.command.is_empty() {
        words.push("--".into());
        words.extend(args.command.iter().cloned());
    }
    let read = RunArgs::try_parse_from(words);
    read.map(|read| read.run).map_err(|error| CliError::usage(error.to_string(), "see gleaner run --help"))
}

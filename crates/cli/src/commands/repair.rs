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
use gleaner_store::Repaired;
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
        out.line(&format!("{}: {}", visible(name), sentence(repaired)))?;
    }
    let mut run = run_args(args)?;
    Config::load(&home)?.fill_run(&mut run)?;
    run::run(&run, out)
}

fn sentence(repaired: Repaired) -> String {
    let cursors = format!("{} in doubt, listed again from the beginning", plural(repaired.cursors, "cursor"));
    let gaps = format!("{} open again", plural(repaired.gaps, "gap"));
    match (repaired.cursors, repaired.gaps) {
        (0, 0) => "nothing is in doubt; an ordinary run begins".to_owned(),
        (0, _) => format!("no cursor is in doubt; {gaps}"),
        (_, 0) => cursors,
        (..) => format!("{cursors}; {gaps}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_says_only_what_it_did() {
        let said = |cursors, gaps| sentence(Repaired { cursors, gaps });
        assert_eq!(said(0, 0), "nothing is in doubt; an ordinary run begins");
        assert_eq!(said(1, 0), "1 cursor in doubt, listed again from the beginning");
        assert_eq!(said(0, 2), "no cursor is in doubt; 2 gaps open again");
        assert_eq!(said(2, 1), "2 cursors in doubt, listed again from the beginning; 1 gap open again");
    }
}

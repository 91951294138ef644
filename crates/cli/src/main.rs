//! The program `gleaner`: reads what was asked, runs it, and maps errors to a message, a `hint:` and
//! an exit code. What it can do is one file per command under `commands`; exit codes are in `error`.
//!
//! # Files
//!
//! - `main.rs`: the summary
//! - `args.rs`: what can be typed
//! - `args/serve.rs`, `args/collect.rs`, `args/inspect.rs`, `args/manage.rs`, `args/maintenance.rs`, `args/new.rs`,
//!   `args/author.rs`: the same for collecting; for looking at it; for living with a connection; for taking care of
//!   the data root and the program; for authors
//! - `commands/`: one file per command
//! - `commands/rehearsal/`: how a rehearsal is shown, and which exchange each record came out of
//! - `config.rs`, `config/file.rs`: every option with a name in the file and the environment, and who said its value
//! - `terminal/`: `output` (the one place that writes), `table`, `progress`, `copy_progress`, `live` and `log`;
//!   `run_view` and `run_account` (what a run shows), `prompt` (questions), `stop_signals` (Ctrl-C)
//! - `first_party.rs`, `first_party/tests.rs`: the connectors that come with the program, all on the SDK;
//!   the check that every connector of ours validates what it sends, or is on a list with a reason
//! - `demo.rs`, `demo/`: a provider of the lab over HTTP, and a connector for it
//! - `lab/`: for the laboratory: which runs, with which numbers of the law, running them on all cores in a fixed
//!   order, and one as a line of JSON
//! - `error.rs`: message, hint, exit code

mod args;
mod commands;
mod config;
mod demo;
mod error;
mod first_party;
mod lab;
mod terminal;

use args::maintenance::ConfigCommand;
use args::new::NewCommand;
use args::{Cli, Command, LabCommand};
use clap::{ArgMatches, FromArgMatches};
use error::CliError;
use std::path::PathBuf;
use std::process::ExitCode;
use terminal::output::Output;

fn main() -> ExitCode {
    let typed = args::command().try_get_matches();
    let read = typed.and_then(|typed| Ok((Cli::from_arg_matches(&typed)?, home_of(&typed))));
    let (cli, home) = match read {
        Ok(read) => read,
        Err(error) => return error::usage(&error),
    };
    match run(cli, home) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}

/// The data root, if it was typed: each command has the option, below its own name.
fn home_of(typed: &ArgMatches) -> Option<PathBuf> {
    match typed.subcommand() {
        Some((_, below)) => home_of(below),
        None => typed.try_get_one::<PathBuf>("home").ok().flatten().cloned(),
    }
}

fn run(cli: Cli, home: Option<PathBuf>) -> Result<ExitCode, CliError> {
    // These write by themselves, from several threads, so nobody may hold the output.
    let command = match cli.command {
        Command::Connector { name } => return Ok(first_party::find(&name).map_or(ExitCode::FAILURE, first_party::run)),
        Command::Guard { command } => return Ok(process_code(gleaner_runtime::guard_main(&command))),
        Command::GuardExec { command } => return Ok(process_code(gleaner_runtime::exec_main(&command))),
        command => command,
    };
    let mut out = Output::stdout(config::colour(cli.colour, home));
    match command {
        Command::Lab(LabCommand::Run(args)) => match (&args.sweep, args.random) {
            (Some(sweep), _) => commands::lab_sweep::run(&args, sweep, &mut out).map(complete),
            (None, Some(count)) => commands::lab_random::run(&args, count, &mut out).map(complete),
            (None, None) => commands::lab_run::run(&args, &mut out),
        },
        Command::Lab(LabCommand::List(args)) => commands::lab_list::run(&args, &mut out).map(complete),
        Command::Lab(LabCommand::Show(args)) => commands::lab_show::run(&args, &mut out).map(complete),
        Command::Lab(LabCommand::Tuning(args)) => commands::lab_tuning::run(&args, &mut out).map(complete),
        Command::Proxy(args) => commands::proxy::run(args),
        Command::Fetch(args) => commands::fetch::run(args, &mut out),
        Command::Demo(args) => commands::demo::run(&args, &mut out).map(complete),
        Command::Add(args) => commands::add::run(&args, &mut out).map(complete),
        Command::Run(args) => commands::run::run(&args, &mut out),
        Command::Serve(args) => {
            drop(out);
            commands::serve::run(args).map(complete)
        }
        Command::Schedule(args) => commands::schedule::run(&args, &mut out).map(complete),
        Command::Service(command) => commands::service::run(&command, &mut out).map(complete),
        Command::ScheduledRun(args) => commands::serve::scheduled_run(&args, &mut out),
        Command::Status(args) => commands::status::run(&args, &mut out).map(complete),
        Command::Runs(args) => commands::runs::run(&args, &mut out).map(complete),
        Command::Gaps(args) => commands::gaps::run(&args, &mut out).map(complete),
        Command::Coverage(args) => commands::coverage::run(&args, &mut out).map(complete),
        Command::Records(args) => commands::records::run(&args, &mut out),
        Command::Export(args) => commands::export::run(&args, &mut out),
        Command::Query(args) => commands::query::run(&args, &mut out),
        Command::Why(args) => commands::why::run(&args, &mut out).map(complete),
        Command::Conformance(args) => commands::conformance::run(&args, &mut out),
        Command::Check(args) => commands::check::run(&args, &mut out).map(complete),
        Command::Answer(args) => commands::answer::run(&args, &mut out).map(complete),
        Command::Pause(args) => commands::pause::run(&args, &mut out).map(complete),
        Command::Resume(args) => commands::resume::run(&args, &mut out).map(complete),
        Command::Cancel(args) => commands::cancel::run(&args, &mut out).map(complete),
        Command::Remove(args) => commands::remove::run(&args, &mut out).map(complete),
        Command::New(NewCommand::Connector(args)) => commands::new::run(&args, &mut out).map(complete),
        Command::Verify(args) => commands::verify::run(&args, &mut out),
        Command::Repair(args) => commands::repair::run(&args, &mut out),
        Command::Init(args) => commands::init::run(&args, &mut out).map(complete),
        Command::Connectors(args) => commands::connectors::run(&args, &mut out).map(complete),
        Command::Config(ConfigCommand::Show(args)) => {
            commands::config_show::run(&args, cli.colour, &mut out).map(complete)
        }
        Command::Backup(args) => commands::backup::run(&args, &mut out).map(complete),
        Command::Restore(args) => commands::restore::run(&args, &mut out).map(complete),
        Command::Doctor(args) => commands::doctor::run(&args, &mut out),
        Command::Completions(args) => commands::completions::run(&args, &mut out).map(complete),
        Command::Man(args) => commands::man::run(&args, &mut out).map(complete),
        Command::ExitCodes => out.line(args::COLLECT_EXIT_CODES).map(complete).map_err(Into::into),
        Command::Connector { .. } | Command::Guard { .. } | Command::GuardExec { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// A command that has nothing more to say is complete.
const fn complete((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn process_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

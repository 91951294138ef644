//! The program `gleaner`: reads what was asked, runs it, and maps errors to a message, a `hint:` and
//! an exit code. What it can do is one file per command under `commands`; exit codes are in `error`.

mod args;
mod builtin;
mod collect_view;
mod commands;
mod connection;
mod dates;
mod demo;
mod error;
mod home;
mod live;
mod log;
mod output;
mod plan;
mod progress;
mod prompt;
mod row;
mod runner;
mod scope;
mod stop_signals;
mod table;

use args::new::NewCommand;
use args::{Cli, Command, ConnectorName, LabCommand};
use clap::Parser;
use error::CliError;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return error::usage(&error),
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}

fn run(cli: Cli) -> Result<ExitCode, CliError> {
    // These write by themselves, from several threads, so nobody may hold the output.
    let command = match cli.command {
        Command::Connector { name: ConnectorName::Demo } => return Ok(demo::connector::run()),
        Command::Guard { command } => return Ok(process_code(gleaner_runtime::guard_main(&command))),
        Command::GuardExec { command } => return Ok(process_code(gleaner_runtime::exec_main(&command))),
        command => command,
    };
    let mut out = Output::stdout();
    match command {
        Command::Lab(LabCommand::Run(args)) => match args.random {
            Some(count) => commands::lab_random::run(&args, count, &mut out),
            None => commands::lab_run::run(&args, &mut out),
        },
        Command::Lab(LabCommand::List(args)) => commands::lab_list::run(&args, &mut out),
        Command::Lab(LabCommand::Show(args)) => commands::lab_show::run(&args, &mut out),
        Command::Proxy(args) => commands::proxy::run(&args),
        Command::Demo(args) => commands::demo::run(&args, &mut out),
        Command::Add(args) => commands::add::run(&args, &mut out),
        Command::Run(args) => commands::run::run(&args, &mut out),
        Command::Status(args) => commands::status::run(&args, &mut out),
        Command::Runs(args) => commands::runs::run(&args, &mut out),
        Command::Gaps(args) => commands::gaps::run(&args, &mut out),
        Command::Records(args) => commands::records::run(&args, &mut out),
        Command::Conformance(args) => commands::conformance::run(&args, &mut out),
        Command::New(NewCommand::Connector(args)) => commands::new::run(&args, &mut out),
        Command::Verify(args) => commands::verify::run(&args, &mut out),
        Command::Connector { .. } | Command::Guard { .. } | Command::GuardExec { .. } => Ok(ExitCode::SUCCESS),
    }
}

fn process_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

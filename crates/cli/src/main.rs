//! The program `gleaner`: reads what was asked, runs it, and maps errors to a message, a `hint:` and
//! an exit code. What it can do is one file per command under `commands`; exit codes are in `error`.

mod args;
mod builtin;
mod commands;
mod error;
mod live;
mod log;
mod output;
mod plan;
mod progress;
mod row;
mod runner;
mod table;

use args::{Cli, Command, LabCommand};
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
    let mut out = Output::stdout();
    match cli.command {
        Command::Lab(LabCommand::Run(args)) => match args.random {
            Some(count) => commands::lab_random::run(&args, count, &mut out),
            None => commands::lab_run::run(&args, &mut out),
        },
        Command::Lab(LabCommand::List(args)) => commands::lab_list::run(&args, &mut out),
        Command::Lab(LabCommand::Show(args)) => commands::lab_show::run(&args, &mut out),
        Command::Proxy(args) => commands::proxy::run(&args),
    }
}

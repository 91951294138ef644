//! `gleaner pause`: holds a connection back until it is resumed. A run that goes on is left to its end.

use crate::args::manage::PauseArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_base::outside::one_line;
use std::process::ExitCode;

pub(crate) fn run(args: &PauseArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    args.home.app()?.pause(&args.connection)?;
    let name = one_line(&args.connection);
    out.line(&format!("{name} is paused; a run that goes on is left to its end, `gleaner cancel {name}` stops it"))?;
    Ok(ExitCode::SUCCESS)
}

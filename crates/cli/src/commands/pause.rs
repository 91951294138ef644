//! `gleaner pause`: holds a connection back until it is resumed. A run that goes on is left to its end.

use crate::args::manage::PauseArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_base::outside::one_line;

pub(crate) fn run(args: &PauseArgs, out: &mut Output) -> Result<(), CliError> {
    args.home.app()?.pause(&args.connection)?;
    let name = one_line(&args.connection);
    Ok(out.line(&format!("{name} is paused; its current run finishes, `gleaner cancel {name}` stops it"))?)
}

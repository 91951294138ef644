//! `gleaner pause`: holds a connection back until it is resumed. A run that goes on is left to its end.

use crate::args::manage::PauseArgs;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_store::ConnectionState;
use std::process::ExitCode;

pub(crate) fn run(args: &PauseArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    if home.reader()?.connection(&args.connection)?.state == ConnectionState::Removed {
        let message = format!("{} is removed, and does not run", visible(&args.connection));
        return Err(CliError::NeedsOwner { message, hint: "`gleaner add` adds it again".to_owned() });
    }
    home.store()?.set_paused(&args.connection, true)?;
    let name = visible(&args.connection);
    out.line(&format!("{name} is paused; a run that goes on is left to its end, `gleaner cancel {name}` stops it"))?;
    Ok(ExitCode::SUCCESS)
}

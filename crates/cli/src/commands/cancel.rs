//! `gleaner cancel`: stops a run that goes on, wherever it was started.

use crate::args::manage::CancelArgs;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_runtime::{Control, ControlError};
use gleaner_store::{Holder, LeaseOn, StoreError};
use std::process::ExitCode;

pub(crate) fn run(args: &CancelArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let (reader, name) = (home.reader()?, visible(&args.connection));
    reader.connection(&args.connection)?;
    let ourselves = Holder::current().map_err(StoreError::Holder)?;
    let holder = reader.held_by(LeaseOn::Connection(&args.connection), &ourselves, dates::now())?;
    let Some(holder) = holder else {
        out.line(&format!("{name} does not run"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let order = if args.now { Control::CancelNow } else { Control::Cancel };
    let pid = holder.pid;
    match gleaner_runtime::tell(&home.control_folder(), holder.epoch, &order) {
        Ok(_) => {
            let how = if args.now { "ends now" } else { "ends after the slice that is under way" };
            out.line(&format!("the run of {name} in process {pid} {how}"))?;
            Ok(ExitCode::SUCCESS)
        }
        // Between our two looks it may have come to its end by itself.
        Err(ControlError::HungUp) => {
            out.line(&format!("the run of {name} in process {pid} is over"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(CliError::Failed {
            message: format!("process {pid} works on {name}, and {error}"),
            hint: format!("a check is over soon; otherwise end the process: kill {pid}"),
        }),
    }
}

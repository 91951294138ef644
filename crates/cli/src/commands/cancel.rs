//! `gleaner cancel`: stops a run that goes on, wherever it was started.

use crate::args::manage::CancelArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_app::{Stop, Stopped};
use gleaner_base::outside::one_line;

pub(crate) fn run(args: &CancelArgs, out: &mut Output) -> Result<(), CliError> {
    let (how, ends) = match args.now {
        true => (Stop::Now, "ends now"),
        false => (Stop::InOrder, "ends after the slice that is under way"),
    };
    let name = one_line(&args.connection);
    out.line(&match args.home.app()?.cancel(&args.connection, how)? {
        Stopped::Told(pid) => format!("the run of {name} in process {pid} {ends}"),
        Stopped::Over(pid) => format!("the run of {name} in process {pid} is over"),
        Stopped::NotRunning => format!("{name} does not run"),
    })?;
    Ok(())
}

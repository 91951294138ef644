//! `gleaner resume`: lets a connection run again, and renews the owner's permission if it says until when.

use crate::args::manage::ResumeArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_app::dates;
use gleaner_base::outside::one_line;

pub(crate) fn run(args: &ResumeArgs, out: &mut Output) -> Result<(), CliError> {
    let end = args.home.app()?.resume(&args.connection, args.expires)?;
    let (name, until) = (one_line(&args.connection), end.map(|end| format!(" until {}", dates::rfc3339(end))));
    Ok(out.line(&format!("{name} may run{}; collect with: gleaner run {name}", until.unwrap_or_default()))?)
}

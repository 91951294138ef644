//! `gleaner add`: a connector with one account becomes a connection.
//!
//! Credentials are tried before anything is stored: whoever mistypes one hears so here, and not from a run
//! at night.

use super::run::warn;
use crate::args::collect::AddArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, counted, report_to_stderr};
use crate::terminal::prompt;
use gleaner_app::{AddSpec, how_to_give};
use gleaner_base::outside::one_line;
use std::time::Duration;

/// How long a service may take to answer the trial.
const TRIAL_MAX: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &AddArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let mut new = app.new_connection(AddSpec {
        connector: args.connector.clone(),
        manifest: args.manifest.clone(),
        name: args.name.clone(),
        settings: args.settings.clone(),
        expires: args.expires,
        command: args.command.clone(),
    })?;
    let name = one_line(new.name());
    warn(&new.manifest().warnings.iter().map(ToString::to_string).collect::<Vec<_>>());
    warn(&new.credentials.warnings);
    new.credentials.ask_for_missing(&mut prompt::secret);
    if !args.no_check && new.can_be_tried() {
        let said = format!("{name} was not added");
        let verdict = app.try_new(&new, TRIAL_MAX)?;
        verdict.into_result(&said, "add it again with others".to_owned(), "; --no-check adds it all the same")?;
    }
    prompt::say_where(app.add(&new)?.as_deref());
    let streams = counted(new.manifest().streams.len() as u64, "stream", "streams");
    out.line(&format!("added {name} with {streams}; collect with: gleaner run {name}"))?;
    let missing = new.credentials.missing_names();
    if !missing.is_empty() {
        let how = how_to_give(new.name(), &missing);
        report_to_stderr(&one_line(&format!("{} is missing; {how}", missing.join(", "))));
    }
    Ok(())
}

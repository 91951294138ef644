//! `gleaner add`: a connector with one account becomes a connection.
//!
//! Credentials are tried before anything is stored: whoever mistypes one hears so here, and not from a run
//! at night.

use crate::args::collect::AddArgs;
use crate::connection::{Settings, read_manifest};
use crate::connectors::{Catalogue, Origin};
use crate::credentials::{how_to_give, say_where};
use crate::error::CliError;
use crate::home::Home;
use crate::new_connection::{NewConnection, start_from};
use crate::output::{Output, report_to_stderr, visible};
use crate::setting_name;
use crate::trial;
use gleaner_protocol::Manifest;
use std::process::ExitCode;
use std::time::Duration;

/// How long a service may take to answer the trial.
const TRIAL_MAX: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &AddArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let (text, manifest, origin) = find_connector(args, &home)?;
    let mut settings = Settings::new(&args.command, &args.settings)?;
    let is_ours = matches!(origin, Some(Origin::Program(_)));
    settings.set = setting_name::resolve(settings.set, &manifest, is_ours)?;
    start_from(&mut settings, origin);
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    let mut new = NewConnection::new(&home, name, (text, manifest), settings, args.expires)?;
    let name = visible(&new.name);
    for warning in &new.manifest.warnings {
        report_to_stderr(&format!("warning: {}", visible(&warning.to_string())));
    }
    new.credentials.ask_for_missing();
    // What it can do without is no reason to ask the service: a browser may have to be started for that.
    let signs_in = new.manifest.auth.as_ref().is_some_and(|auth| !auth.required.is_empty());
    if !args.no_check && signs_in && new.credentials.missing.is_empty() {
        let verdict = new.check(&home, TRIAL_MAX)?;
        let said = format!("{name} was not added");
        trial::into_result(verdict, &said, "add it again with others".to_owned(), "; --no-check adds it all the same")?;
    }
    say_where(new.keep(&home)?);
    let streams = new.manifest.streams.len();
    out.line(&format!("added {name} with {streams} streams; collect with: gleaner run {name}"))?;
    let missing = new.credentials.missing_names();
    if !missing.is_empty() {
        report_to_stderr(&visible(&format!("{} is missing; {}", missing.join(", "), how_to_give(&new.name, &missing))));
    }
    Ok(ExitCode::SUCCESS)
}

/// The manifest, and where a connector with a name is.
fn find_connector(args: &AddArgs, home: &Home) -> Result<(String, Manifest, Option<Origin>), CliError> {
    let name = args.connector.as_deref();
    let Some(file) = &args.manifest else {
        let found = Catalogue::read(home).find(name.unwrap_or_default(), home)?;
        return Ok((found.text, found.manifest, Some(found.origin)));
    };
    let (text, manifest) = read_manifest(file)?;
    match name {
        Some(name) if name != manifest.connector_key => {
            let message = format!("{} is the manifest of {}, not of {name}", file.display(), manifest.connector_key);
            Err(CliError::usage(message, "leave the name out, or give --name NAME to call the connection so"))
        }
        Some(_) | None => Ok((text, manifest, None)),
    }
}

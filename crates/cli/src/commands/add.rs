//! `gleaner add`: a connector with one account becomes a connection.
//!
//! Credentials are tried before anything is stored: whoever mistypes one hears so here, and not from a run
//! at night.

use crate::args::collect::AddArgs;
use crate::args::manage::Expires;
use crate::connection::{Settings, read_manifest};
use crate::connectors::{Catalogue, Origin};
use crate::credentials::{Credentials, how_to_give};
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use crate::setting_name;
use crate::trial::Trial;
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
    match origin {
        _ if !settings.command.is_empty() => {}
        Some(Origin::Program(known)) => settings.first_party = Some(known.name.to_owned()),
        // It may be started from anywhere.
        Some(Origin::Folder(folder)) => settings.folder = Some(folder.canonicalize().unwrap_or(folder)),
        None => {}
    }
    if settings.start_words(&manifest).is_none() {
        let hint = "say how it is started, after two dashes: gleaner add … -- COMMAND";
        return Err(CliError::usage("the manifest does not say how to start the connector", hint));
    }
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    let mut store = home.store()?;
    let before = home.reader()?.settings(&name).map(|text| Settings::from_json(&text)).unwrap_or_default();
    // Who adds it once more does not lift the end of the permission by the way.
    let kept = before.expires_at().map_or(Expires::Never, Expires::At);
    settings.set_expires(args.expires.unwrap_or(kept));
    for warning in &manifest.warnings {
        report_to_stderr(&format!("warning: {}", visible(&warning.to_string())));
    }
    let mut credentials = Credentials::find(&manifest, &home, &name)?;
    credentials.ask_for_missing();
    if !args.no_check && !credentials.known.is_empty() && credentials.missing.is_empty() {
        let trial = Trial {
            home: &home,
            name: &name,
            manifest_text: &text,
            manifest: &manifest,
            settings: &settings,
            credentials: &credentials,
            max: TRIAL_MAX,
        };
        let said = format!("{} was not added", visible(&name));
        trial.run()?.into_result(&said, "add it again with others".to_owned(), "; --no-check adds it all the same")?;
    }
    store.register(&name, &text, &manifest, dates::now())?;
    store.set_settings(&name, &settings.to_json())?;
    credentials.store_new(&home, &name)?;
    let streams = manifest.streams.len();
    out.line(&format!(
        "added {} with {streams} streams; collect with: gleaner run {}",
        visible(&name),
        visible(&name)
    ))?;
    if !credentials.missing.is_empty() {
        let missing = credentials.missing_names();
        report_to_stderr(&visible(&format!("{} is missing; {}", missing.join(", "), how_to_give(&name, &missing))));
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

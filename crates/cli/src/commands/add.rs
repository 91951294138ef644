//! `gleaner add`: a connector with one account becomes a connection.

use crate::args::collect::AddArgs;
use crate::connection::{Settings, read_manifest};
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use std::process::ExitCode;

pub(crate) fn run(args: &AddArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (text, manifest) = read_manifest(&args.manifest)?;
    let settings = Settings::new(&args.command, &args.settings)?;
    if settings.command.is_empty() && manifest.command.is_none() {
        let hint = "say how it is started: gleaner add --manifest FILE -- COMMAND";
        return Err(CliError::usage("the manifest does not say how to start the connector", hint));
    }
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    let mut store = Home::find(&args.home)?.store()?;
    store.register(&name, &text, &manifest, dates::now())?;
    store.set_settings(&name, &settings.to_json())?;
    for warning in &manifest.warnings {
        crate::output::report_to_stderr(&format!("warning: {}", visible(&warning.to_string())));
    }
    let streams = manifest.streams.len();
    out.line(&format!(
        "added {} with {streams} streams; collect with: gleaner run {}",
        visible(&name),
        visible(&name)
    ))?;
    Ok(ExitCode::SUCCESS)
}

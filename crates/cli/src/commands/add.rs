//! `gleaner add`: a connector with one account becomes a connection.

use crate::args::collect::AddArgs;
use crate::connection::{Settings, read_manifest};
use crate::connectors::Catalogue;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use crate::prompt;
use gleaner_protocol::{Auth, Manifest};
use gleaner_vault::{Secret, Vault};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn run(args: &AddArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let (text, manifest, folder) = find_connector(args, &home)?;
    let mut settings = Settings::new(&args.command, &args.settings)?;
    if settings.command.is_empty() {
        settings.folder = folder;
    }
    if settings.command.is_empty() && manifest.command.is_none() {
        let hint = "say how it is started, after two dashes: gleaner add … -- COMMAND";
        return Err(CliError::usage("the manifest does not say how to start the connector", hint));
    }
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    let mut store = home.store()?;
    store.register(&name, &text, &manifest, dates::now())?;
    store.set_settings(&name, &settings.to_json())?;
    if let Some(auth) = &manifest.auth {
        ask_for_credentials(auth, &home, &name)?;
    }
    for warning in &manifest.warnings {
        report_to_stderr(&format!("warning: {}", visible(&warning.to_string())));
    }
    let streams = manifest.streams.len();
    out.line(&format!(
        "added {} with {streams} streams; collect with: gleaner run {}",
        visible(&name),
        visible(&name)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The manifest, and the folder in which its own command is started: that of a connector with a name.
fn find_connector(args: &AddArgs, home: &Home) -> Result<(String, Manifest, Option<PathBuf>), CliError> {
    let name = args.connector.as_deref();
    let Some(file) = &args.manifest else {
        let found = Catalogue::read(home).find(name.unwrap_or_default(), home)?;
        // It may be started from anywhere.
        let folder = found.folder.canonicalize().unwrap_or(found.folder);
        return Ok((found.text, found.manifest, Some(folder)));
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

/// Asks once for what the connector signs in with and neither the environment nor the vault has. Without a
/// terminal nothing is asked; the first run then says what is missing.
fn ask_for_credentials(auth: &Auth, home: &Home, name: &str) -> Result<(), CliError> {
    let vault = Vault::open(home.root())?;
    let missing = gleaner_vault::resolve(auth, name, &vault, &|name| std::env::var_os(name))?.missing;
    let mut stored = false;
    for group in missing {
        let Some(variable) = group.first() else { continue };
        let Some(value) = prompt::secret(variable) else { continue };
        vault.set(name, variable, Secret::new(value))?;
        stored = true;
    }
    if stored {
        report_to_stderr(&format!("stored encrypted under the data root; {}", vault.key_place()));
    }
    Ok(())
}

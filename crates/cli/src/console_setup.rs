//! What the console may ask of the whole program: connectors that can be added, trying and adding one, and the doctor.
//!
//! **What a page may not do: say which program runs.** A connector is one that comes with the program, or one whose
//! manifest its owner put into the data root. A setting is one that the manifest declares and that carries the
//! connector's own name: so it cannot be a path of interpreters, of a browser, or anything else that would start another
//! program. Everything else is a matter of `gleaner add`, for whoever has a terminal can start programs anyway.

use crate::connection::Settings;
use crate::connectors::{Catalogue, Connector};
use crate::doctor;
use crate::error::CliError;
use crate::home::Home;
use crate::new_connection::{NewConnection, start_from};
use gleaner_app::{Check, NotOffered, Nudge, Offer, OfferedField, Setup, SetupError, SetupErrorKind, Verdict, Wish};
use gleaner_protocol::{Auth, Manifest};
use gleaner_store::ConnectionState;
use gleaner_vault::Secret;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a service may take to answer a trial: a page waits no longer than forty seconds for anything.
const TRIAL_MAX: Duration = Duration::from_secs(25);
/// Longest values: longer than any path or address, and far below what an environment holds.
const SETTING_BYTES_MAX: usize = 4096;
const SECRET_BYTES_MAX: usize = 16 * 1024;

/// The program as the console sees it.
pub(crate) struct ConsoleSetup {
    pub(crate) home: Home,
    pub(crate) nudge: Nudge,
}

impl Setup for ConsoleSetup {
    fn offers(&self) -> Result<(Vec<Offer>, Vec<NotOffered>), SetupError> {
        let catalogue = Catalogue::read(&self.home);
        let faulty = catalogue.faulty.into_iter();
        let faulty = faulty.map(|one| {
            let file = one.file.display().to_string();
            // What is wrong inside of a file begins with its name.
            let what = one.what.strip_prefix(&format!("{file}: ")).unwrap_or(&one.what).to_owned();
            NotOffered { file, what }
        });
        Ok((catalogue.connectors.iter().map(offer).collect(), faulty.collect()))
    }

    fn check(&self, wish: &Wish) -> Result<Verdict, SetupError> {
        self.put_together(wish)?.check(&self.home, TRIAL_MAX).map_err(told)
    }

    fn add(&self, wish: &Wish) -> Result<String, SetupError> {
        let new = self.put_together(wish)?;
        // What is new among its credentials is encrypted under the data root; that it is, is all there is to say.
        let _key_place = new.keep(&self.home).map_err(told)?;
        (self.nudge)();
        Ok(new.name)
    }

    fn examine(&self) -> Result<Vec<Check>, SetupError> {
        Ok(doctor::look(&self.home))
    }
}

impl ConsoleSetup {
    fn put_together(&self, wish: &Wish) -> Result<NewConnection, SetupError> {
        let connector = Catalogue::read(&self.home).find(&wish.connector, &self.home).map_err(|error| {
            let SetupError { message, hint, .. } = told(error);
            SetupError { kind: SetupErrorKind::NotThere, message, hint }
        })?;
        let name = if wish.name.is_empty() { connector.manifest.connector_key.clone() } else { wish.name.clone() };
        self.check_name(&name)?;
        let mut settings = Settings::new(&[], &[]).map_err(told)?;
        settings.set = known_settings(&connector.manifest, &wish.settings)?;
        start_from(&mut settings, Some(connector.origin));
        let secrets = known_credentials(&connector.manifest, &wish.credentials)?;
        let manifest = (connector.text, connector.manifest);
        let mut new = NewConnection::new(&self.home, name, manifest, settings, None).map_err(told)?;
        new.credentials.take(secrets);
        Ok(new)
    }

    /// One that is there is changed in the terminal: a page that adds replaces nothing.
    fn check_name(&self, name: &str) -> Result<(), SetupError> {
        let reader = self.home.store().and_then(|_| self.home.reader()).map_err(told)?;
        match reader.connection(name) {
            Ok(known) if known.state != ConnectionState::Removed => Err(SetupError {
                kind: SetupErrorKind::NotNow,
                message: format!("there is a connection {name:?} already"),
                hint: "give this one another name".to_owned(),
            }),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn offer(connector: &Connector) -> Offer {
    let manifest = &connector.manifest;
    let required = manifest.auth.iter().flat_map(|auth| &auth.required).filter_map(|group| group.first());
    let credentials = required.chain(manifest.auth.iter().flat_map(|auth| &auth.optional));
    Offer {
        connector: manifest.connector_key.clone(),
        connector_id: manifest.connector_id.clone(),
        display_name: manifest.display_name.clone(),
        version: manifest.version.clone(),
        needs: connector.needs(),
        is_ours: matches!(connector.origin, crate::connectors::Origin::Program(_)),
        streams: manifest.streams.iter().map(|stream| stream.name.clone()).collect(),
        settings: settable(manifest).map(|name| field(manifest, name)).collect(),
        credentials: credentials.map(|name| field(manifest, name)).collect(),
    }
}

fn field(manifest: &Manifest, name: &str) -> OfferedField {
    let text = manifest.variable_texts.iter().find(|text| text.name == name);
    OfferedField {
        name: name.to_owned(),
        label: text.and_then(|text| text.label.clone()),
        description: text.and_then(|text| text.description.clone()),
    }
}

/// The variables that a page may set.
fn settable(manifest: &Manifest) -> impl Iterator<Item = &String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let own = manifest.connector_key.chars().map(plain).chain(['_']).collect::<String>();
    let is_credential = |name: &String| manifest.auth.iter().flat_map(Auth::names).any(|known| known == name);
    manifest.environment_variables.iter().filter(move |name| {
        let rest = name.strip_prefix("PDPP_").unwrap_or(name).strip_prefix(&own);
        rest.is_some_and(|rest| !rest.is_empty() && !is_secret(rest)) && !is_credential(name)
    })
}

/// Settings are stored as they are, so what sounds like a secret is none. A connector asks for it when it needs it.
fn is_secret(name: &str) -> bool {
    ["PASSWORD", "TOKEN", "SECRET", "PASSPHRASE", "API_KEY", "COOKIE"].iter().any(|word| name.contains(word))
}

fn known_settings(
    manifest: &Manifest,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, SetupError> {
    let mut settings = BTreeMap::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        if !settable(manifest).any(|known| known == name) {
            let hint = "`gleaner add` in a terminal can set more";
            return Err(wrong(format!("{} has no setting {name:?} that a page may set", manifest.connector_key), hint));
        }
        usable(name, value, SETTING_BYTES_MAX)?;
        settings.insert(name.clone(), value.clone());
    }
    Ok(settings)
}

fn known_credentials(
    manifest: &Manifest,
    given: &BTreeMap<String, String>,
) -> Result<Vec<(String, Secret)>, SetupError> {
    let mut secrets = Vec::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        let known = manifest.auth.iter().flat_map(Auth::names).any(|known| known == name);
        if !known {
            let message = format!("{} does not sign in with {name:?}", manifest.connector_key);
            return Err(wrong(message, "leave it out"));
        }
        usable(name, value, SECRET_BYTES_MAX)?;
        secrets.push((name.clone(), Secret::new(value.clone())));
    }
    Ok(secrets)
}

/// Whether an environment can hold it. The value is in no message.
fn usable(name: &str, value: &str, bytes_max: usize) -> Result<(), SetupError> {
    if value.len() > bytes_max {
        return Err(wrong(format!("{name} is longer than {bytes_max} bytes"), "give a shorter one"));
    }
    if value.contains('\0') {
        return Err(wrong(format!("{name} holds a character that no value can have"), "type it again"));
    }
    Ok(())
}

fn wrong(message: String, hint: &str) -> SetupError {
    SetupError { kind: SetupErrorKind::Wrong, message, hint: hint.to_owned() }
}

/// The errors of commands, as a page says them.
fn told(error: CliError) -> SetupError {
    let (kind, message, hint) = match error {
        CliError::Usage { message, hint } | CliError::CredentialsRefused { message, hint } => {
            (SetupErrorKind::Wrong, message, hint)
        }
        CliError::Held { message, hint }
        | CliError::NeedsOwner { message, hint }
        | CliError::Resting { message, hint, .. } => (SetupErrorKind::NotNow, message, hint),
        CliError::Failed { message, hint } | CliError::NotInitialised { message, hint } => {
            (SetupErrorKind::Failed, message, hint)
        }
        CliError::BrokenPipe => (SetupErrorKind::Failed, "it was cut off".to_owned(), "try again".to_owned()),
    };
    SetupError { kind, message, hint }
}

//! A connection as its owner describes it on a page: tried and added.
//!
//! **What a page may not do: say which program runs.** A connector is one that comes with the program, or one whose
//! manifest its owner put into the data root. A setting is one that the manifest declares and that carries the
//! connector's own name: so it cannot be a path of interpreters, of a browser, or anything else that would start another
//! program. Everything else is a matter of `gleaner add`: a user with a terminal can start programs anyway.

use super::connector_form::settable;
use super::new_connection::NewConnection;
use super::settings::{Connection, Settings};
use crate::app::App;
use crate::error::{AppError, ErrorKind};
use crate::run::trial::Verdict;
use gleaner_protocol::{Auth, Manifest};
use gleaner_store::ConnectionState;
use gleaner_vault::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a provider may take to answer a trial: a page waits no longer than forty seconds for anything.
const TRIAL_MAX: Duration = Duration::from_secs(25);
/// Longest values: longer than any path or address, and far below what an environment holds.
const SETTING_BYTES_MAX: usize = 4096;
const SECRET_BYTES_MAX: usize = 16 * 1024;

/// A connection as its owner wants it.
#[derive(Clone, Default)]
pub struct AddRequest {
    /// The connector.
    pub connector: String,
    /// What the connection is called; nothing is the connector's own name.
    pub name: String,
    /// Values of settings, by name. What is empty is not set.
    pub settings: BTreeMap<String, String>,
    /// Secrets, by name. They go into the vault and to the connector, and nowhere else.
    pub credentials: BTreeMap<String, String>,
}

/// Without the secrets.
impl fmt::Debug for AddRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddRequest")
            .field("connector", &self.connector)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What came of a wish.
#[derive(Debug)]
pub enum Added {
    /// It is there, under this name.
    Yes(String),
    /// It does not work, and was not added.
    No(Verdict),
}

impl App {
    /// Tries a connection with one request. Nothing is kept.
    ///
    /// # Errors
    ///
    /// When there is nothing to try.
    pub fn try_request(&self, wish: &AddRequest) -> Result<Verdict, AppError> {
        self.try_new(&self.wished(wish)?, TRIAL_MAX)
    }

    /// Adds a connection if it works, or without a trial.
    ///
    /// # Errors
    ///
    /// When there is one of this name, or it cannot be one.
    pub fn add_requested(&self, wish: &AddRequest, unchecked: bool) -> Result<Added, AppError> {
        let new = self.wished(wish)?;
        let verdict = if unchecked { Verdict::Works } else { self.try_new(&new, TRIAL_MAX)? };
        if verdict != Verdict::Works {
            return Ok(Added::No(verdict));
        }
        // New credentials are encrypted under the data root; that they are, is all there is to say.
        let _key_place = self.add(&new)?;
        Ok(Added::Yes(new.name().to_owned()))
    }

    fn wished(&self, wish: &AddRequest) -> Result<NewConnection, AppError> {
        let connector = self.catalog().find(&wish.connector)?;
        let name = if wish.name.is_empty() { connector.manifest.connector_key.clone() } else { wish.name.clone() };
        self.check_name(&name)?;
        let mut settings = Settings::new(&[], &[])?;
        settings.set = known_settings(&connector.manifest, &wish.settings)?;
        settings.start_from(Some(connector.origin));
        let secrets = known_credentials(&connector.manifest, &wish.credentials)?;
        let connection = Connection { name, text: connector.text, manifest: connector.manifest, settings };
        let mut new = self.put_together(connection, None)?;
        new.credentials.take(secrets);
        Ok(new)
    }

    /// One that is there is changed in the terminal: a page that adds replaces nothing.
    fn check_name(&self, name: &str) -> Result<(), AppError> {
        let reader = self.store().and_then(|_| self.reader())?;
        match reader.connection(name) {
            Ok(known) if known.state != ConnectionState::Removed => {
                let message = format!("there is a connection {name:?} already");
                Err(AppError::new(ErrorKind::Conflict, message, "give this one another name"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn known_settings(manifest: &Manifest, given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, AppError> {
    let mut settings = BTreeMap::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        if !settable(manifest).any(|known| known == name) {
            let hint = "`gleaner add` in a terminal can set more";
            return Err(AppError::usage(
                format!("{} has no setting {name:?} that a page may set", manifest.connector_key),
                hint,
            ));
        }
        usable(name, value, SETTING_BYTES_MAX)?;
        settings.insert(name.clone(), value.clone());
    }
    Ok(settings)
}

fn known_credentials(manifest: &Manifest, given: &BTreeMap<String, String>) -> Result<Vec<(String, Secret)>, AppError> {
    let mut secrets = Vec::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
        let known = manifest.auth.iter().flat_map(Auth::names).any(|known| known == name);
        if !known {
            let message = format!("{} does not sign in with {name:?}", manifest.connector_key);
            return Err(AppError::usage(message, "leave it out"));
        }
        usable(name, value, SECRET_BYTES_MAX)?;
        secrets.push((name.clone(), Secret::new(value.clone())));
    }
    Ok(secrets)
}

/// Whether an environment can hold it. The value is in no message.
fn usable(name: &str, value: &str, bytes_max: usize) -> Result<(), AppError> {
    if value.len() > bytes_max {
        return Err(AppError::usage(format!("{name} is longer than {bytes_max} bytes"), "give a shorter one"));
    }
    if value.contains('\0') {
        return Err(AppError::usage(format!("{name} holds a character that no value can have"), "type it again"));
    }
    Ok(())
}

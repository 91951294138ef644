//! A connection before it is one: a connector, a name, settings and credentials, which are tried and then kept.
//!
//! The one way to add a connection, for terminal and console. It asks nobody and prints nothing.

use super::catalog::Origin;
use super::credentials::Credentials;
use super::setting_name;
use super::settings::{Connection, Expires, Settings, read_manifest};
use crate::app::App;
use crate::dates;
use crate::error::AppError;
use crate::run::trial::{Trial, Verdict};
use gleaner_protocol::Manifest;
use gleaner_store::StoreError;
use gleaner_vault::Vault;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A connection as it is described at a terminal.
#[derive(Clone, Debug, Default)]
pub struct AddSpec {
    /// A connector that the catalog has.
    pub connector: Option<String>,
    /// Any other connector: its manifest.
    pub manifest: Option<PathBuf>,
    /// What it is called; `None` is the connector's own name.
    pub name: Option<String>,
    /// `KEY=VALUE`
    pub settings: Vec<String>,
    /// Until when it may be collected; `None` is as before.
    pub expires: Option<Expires>,
    /// How it is started; empty is what the manifest says.
    pub command: Vec<OsString>,
}

/// What may become a connection.
#[derive(Debug)]
pub struct NewConnection {
    connection: Connection,
    pub credentials: Credentials,
}

impl NewConnection {
    /// What it will be called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// Its connector.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.connection.manifest
    }

    /// Whether its credentials can be tried: it needs some, and all are there. What it can do without is no reason to
    /// ask the provider: a browser may have to be started for that.
    #[must_use]
    pub fn can_be_tried(&self) -> bool {
        let signs_in = self.manifest().auth.as_ref().is_some_and(|auth| !auth.required.is_empty());
        signs_in && self.credentials.missing.is_empty()
    }
}

impl App {
    /// Puts a connection together, with the credentials that are found for it. Nothing is kept.
    ///
    /// # Errors
    ///
    /// When it cannot be one.
    pub fn new_connection(&self, spec: AddSpec) -> Result<NewConnection, AppError> {
        let (text, manifest, origin) = self.find_connector(spec.connector.as_deref(), spec.manifest)?;
        let mut settings = Settings::new(&spec.command, &spec.settings)?;
        let is_ours = matches!(origin, Some(Origin::Program(_)));
        settings.set = setting_name::resolve(settings.set, &manifest, is_ours)?;
        settings.start_from(origin);
        let name = spec.name.unwrap_or_else(|| manifest.connector_key.clone());
        self.put_together(Connection { name, text, manifest, settings }, spec.expires)
    }

    /// The manifest, and where a connector with a name is.
    fn find_connector(
        &self,
        name: Option<&str>,
        manifest: Option<PathBuf>,
    ) -> Result<(String, Manifest, Option<Origin>), AppError> {
        let Some(file) = manifest else {
            let found = self.catalog().find(name.unwrap_or_default())?;
            return Ok((found.text, found.manifest, Some(found.origin)));
        };
        let (text, manifest) = read_manifest(&file)?;
        match name {
            Some(name) if name != manifest.connector_key => {
                let key = &manifest.connector_key;
                let message = format!("{} is the manifest of {key}, not of {name}", file.display());
                Err(AppError::usage(message, "leave the name out, or give --name NAME to call the connection so"))
            }
            Some(_) | None => Ok((text, manifest, None)),
        }
    }

    pub(super) fn put_together(
        &self,
        mut connection: Connection,
        expires: Option<Expires>,
    ) -> Result<NewConnection, AppError> {
        let Connection { name, manifest, settings, .. } = &mut connection;
        if settings.start_words(manifest, self.program.executable.as_deref()).is_none() {
            let hint = "say how it is started, after two dashes: gleaner add … -- COMMAND";
            return Err(AppError::usage("the manifest does not say how to start the connector", hint));
        }
        let reader = self.store().and_then(|_| self.reader())?;
        let before = reader.settings(name).map(|text| Settings::from_json(&text)).unwrap_or_default();
        // Adding it once more does not lift the end of the permission.
        let kept = before.expires_at().map_or(Expires::Never, Expires::At);
        settings.set_expires(expires.unwrap_or(kept));
        let credentials = Credentials::find(manifest, self, name)?;
        Ok(NewConnection { connection, credentials })
    }

    /// Whether a new connection works, found out with one request. Nothing is kept.
    ///
    /// # Errors
    ///
    /// When there is nothing to try.
    pub fn try_new(&self, new: &NewConnection, max: Duration) -> Result<Verdict, AppError> {
        Trial { app: self, connection: &new.connection, credentials: &new.credentials, max }.run()
    }

    /// Keeps a new connection, and says where the key of its new credentials is. These come first: a service may begin
    /// with a connection as soon as it is there.
    ///
    /// # Errors
    ///
    /// When it cannot be stored.
    pub fn add(&self, new: &NewConnection) -> Result<Option<String>, AppError> {
        let Connection { name, text, manifest, settings } = &new.connection;
        let mut store = self.store()?;
        let is_new = matches!(self.reader()?.connection(name), Err(StoreError::UnknownConnection(_)));
        let key_place = new.credentials.store_new(self, name)?;
        let added = store.add(name, text, manifest, Some(&settings.to_json()), dates::now());
        if let (Err(_), true, true) = (&added, is_new, key_place.is_some()) {
            // Secrets of something that is not there help nobody.
            Vault::open(self.root())?.remove(name)?;
        }
        added?;
        self.nudge();
        Ok(key_place)
    }
}

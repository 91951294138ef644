//! A connection before it is one: a connector, a name, settings and credentials, which are tried and then kept.
//!
//! The one way to add a connection, for terminal and console. It asks nobody and prints nothing.

use crate::args::manage::Expires;
use crate::connection::Settings;
use crate::connectors::Origin;
use crate::credentials::Credentials;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::trial::Trial;
use gleaner_app::Verdict;
use gleaner_protocol::Manifest;
use gleaner_store::StoreError;
use gleaner_vault::Vault;
use std::time::Duration;

/// What may become a connection.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) name: String,
    pub(crate) manifest: Manifest,
    text: String,
    settings: Settings,
    pub(crate) credentials: Credentials,
}

impl NewConnection {
    /// Puts it together, with the credentials that are found for it.
    pub(crate) fn new(
        home: &Home,
        name: String,
        (text, manifest): (String, Manifest),
        mut settings: Settings,
        expires: Option<Expires>,
    ) -> Result<Self, CliError> {
        if settings.start_words(&manifest).is_none() {
            let hint = "say how it is started, after two dashes: gleaner add … -- COMMAND";
            return Err(CliError::usage("the manifest does not say how to start the connector", hint));
        }
        let reader = home.store().and_then(|_| home.reader())?;
        let before = reader.settings(&name).map(|text| Settings::from_json(&text)).unwrap_or_default();
        // Who adds it once more does not lift the end of the permission by the way.
        let kept = before.expires_at().map_or(Expires::Never, Expires::At);
        settings.set_expires(expires.unwrap_or(kept));
        let credentials = Credentials::find(&manifest, home, &name)?;
        Ok(Self { name, manifest, text, settings, credentials })
    }

    /// Whether it works, found out with one request. Nothing is kept.
    pub(crate) fn check(&self, home: &Home, max: Duration) -> Result<Verdict, CliError> {
        let trial = Trial {
            home,
            name: &self.name,
            manifest_text: &self.text,
            manifest: &self.manifest,
            settings: &self.settings,
            credentials: &self.credentials,
            max,
        };
        trial.run()
    }

    /// Keeps it, and answers where the key of new credentials is. They come first: a service may begin with a connection
    /// as soon as it is there.
    pub(crate) fn keep(&self, home: &Home) -> Result<Option<String>, CliError> {
        let mut store = home.store()?;
        let is_new = matches!(home.reader()?.connection(&self.name), Err(StoreError::UnknownConnection(_)));
        let key_place = self.credentials.store_new(home, &self.name)?;
        let added = store.add(&self.name, &self.text, &self.manifest, &self.settings.to_json(), dates::now());
        if let (Err(_), true, true) = (&added, is_new, key_place.is_some()) {
            // Secrets of something that is not there help nobody.
            Vault::open(home.root())?.remove(&self.name)?;
        }
        added?;
        Ok(key_place)
    }
}

/// A connector with a name is started where it is; what was typed says more.
pub(crate) fn start_from(settings: &mut Settings, origin: Option<Origin>) {
    match origin {
        _ if !settings.command.is_empty() => {}
        Some(Origin::Program(known)) => settings.first_party = Some(known.name.to_owned()),
        // It may be started from anywhere.
        Some(Origin::Folder(folder)) => settings.folder = Some(folder.canonicalize().unwrap_or(folder)),
        None => {}
    }
}

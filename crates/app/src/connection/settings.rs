//! How a connection is started: its manifest, its command, its settings.

use super::catalog::Origin;
use crate::app::App;
use crate::error::AppError;
use gleaner_engine::WallTime;
use gleaner_protocol::{MANIFEST_BYTES_MAX, Manifest, ManifestOrigin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Until when a connection may be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    At(WallTime),
    Never,
}

/// What is stored with a connection. Never a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The program and its arguments; empty means what the manifest says.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// The name of the connector that comes with the program, if it is one and nothing else was said.
    #[serde(default)]
    pub(crate) first_party: Option<String>,
    /// Where it is started.
    #[serde(default)]
    pub(crate) folder: Option<PathBuf>,
    /// Environment variables of its own.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// The end of the owner's permission, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    expires_at_ms: Option<u64>,
}

impl Settings {
    /// Settings from what was typed. A command is started where it was typed.
    pub(crate) fn new(command: &[OsString], set: &[String]) -> Result<Self, AppError> {
        let text = |word: &OsString| {
            word.clone().into_string().map_err(|word| {
                let hint = "rename the file, or start it through a script";
                AppError::usage(format!("the command has a word that is no text: {}", word.to_string_lossy()), hint)
            })
        };
        let command = command.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let pair = |pair: &String| match pair.split_once('=') {
            Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
            Some(_) | None => {
                let hint = "give it as KEY=VALUE; a key has letters, digits and _";
                Err(AppError::usage(format!("--set {pair} is no setting"), hint))
            }
        };
        let set = set.iter().map(pair).collect::<Result<BTreeMap<_, _>, _>>()?;
        let folder = if command.is_empty() { None } else { std::env::current_dir().ok() };
        Ok(Self { command, first_party: None, folder, set, expires_at_ms: None })
    }

    /// The words that start it, if anything says so: what was typed, the program itself, or the manifest.
    /// `executable` is this program; where it is may change with each version of it.
    pub(crate) fn start_words(&self, manifest: &Manifest, executable: Option<&Path>) -> Option<Vec<OsString>> {
        let words = |command: &Vec<String>| command.iter().map(OsString::from).collect::<Vec<_>>();
        if !self.command.is_empty() {
            return Some(words(&self.command));
        }
        if let Some(name) = &self.first_party {
            return Some(vec![executable?.as_os_str().to_owned(), "connector".into(), name.into()]);
        }
        manifest.command.as_ref().map(words)
    }

    /// A connector with a name is started where it is; what was typed says more.
    pub(crate) fn start_from(&mut self, origin: Option<Origin>) {
        match origin {
            _ if !self.command.is_empty() => {}
            Some(Origin::Program(known)) => self.first_party = Some(known.name.to_owned()),
            // It may be started from anywhere.
            Some(Origin::Folder(folder)) => self.folder = Some(folder.canonicalize().unwrap_or(folder)),
            None => {}
        }
    }

    /// Until when the owner allows it.
    pub(crate) fn expires_at(&self) -> Option<WallTime> {
        self.expires_at_ms.map(WallTime::from_unix_millis)
    }

    /// The owner says until when.
    pub(crate) fn set_expires(&mut self, expires: Expires) {
        self.expires_at_ms = match expires {
            Expires::At(time) => Some(time.as_unix_millis()),
            Expires::Never => None,
        };
    }

    /// The same with another command, if there is one.
    pub(crate) fn started_by(self, command: &[OsString]) -> Result<Self, AppError> {
        if command.is_empty() {
            return Ok(self);
        }
        let Self { command, folder, .. } = Self::new(command, &[])?;
        Ok(Self { command, folder, ..self })
    }

    pub(crate) fn to_json(&self) -> String {
        // Texts and lists of them can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part) && !name.as_bytes()[0].is_ascii_digit()
}

/// Reads a manifest, and says everything that is wrong with it at once.
///
/// # Errors
///
/// When it cannot be read, or is not valid.
pub fn read_manifest(path: &Path) -> Result<(String, Manifest), AppError> {
    let unreadable = |error: std::io::Error| {
        AppError::usage(
            format!("{}: {error}", path.display()),
            "give the manifest.json of a connector: --manifest FILE",
        )
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than is allowed shows that there is more.
    file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    let manifest = parse_manifest(&text).map_err(|faults| {
        AppError::usage(format!("{}: {faults}", path.display()), "correct these, or ask the connector's author to")
    })?;
    Ok((text, manifest))
}

/// A connection as it is started: what it is called, its connector, and its settings.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) name: String,
    /// The manifest as it was written.
    pub(crate) text: String,
    pub(crate) manifest: Manifest,
    pub(crate) settings: Settings,
}

impl App {
    /// A connection that was added.
    pub(crate) fn connection(&self, name: &str) -> Result<Connection, AppError> {
        let reader = self.reader()?;
        let settings = Settings::from_json(&reader.settings(name)?);
        // What comes with the program describes itself, and may do so anew with each version.
        let ours = settings.first_party.as_deref();
        let ours = ours.and_then(|name| gleaner_connectors::ALL.iter().find(|known| known.name == name));
        let text = match ours {
            Some(known) => known.manifest.to_owned(),
            None => reader.manifest_text(name)?,
        };
        let manifest = parse_manifest(&text).map_err(|faults| {
            let message = format!("the stored manifest of {name:?} is no longer valid: {faults}");
            AppError::failed(message, "add the connector again with `gleaner add`")
        })?;
        Ok(Connection { name: name.to_owned(), text, manifest, settings })
    }
}

/// Reads a manifest that is a text.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse_manifest(text: &str) -> Result<Manifest, String> {
    Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).map_err(|rejected| rejected.to_string())
}

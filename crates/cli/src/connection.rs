//! How a connection is started: its manifest, its command, its settings.

use crate::args::manage::Expires;
use crate::error::CliError;
use crate::first_party;
use crate::home::Home;
use gleaner_engine::WallTime;
use gleaner_protocol::{MANIFEST_BYTES_MAX, Manifest, ManifestOrigin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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
    pub(crate) fn new(command: &[OsString], set: &[String]) -> Result<Self, CliError> {
        let text = |word: &OsString| {
            word.clone().into_string().map_err(|word| {
                let hint = "rename the file, or start it through a script";
                CliError::usage(format!("the command has a word that is no text: {}", word.to_string_lossy()), hint)
            })
        };
        let command = command.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let pair = |pair: &String| match pair.split_once('=') {
            Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
            Some(_) | None => {
                let hint = "give it as KEY=VALUE; a key has letters, digits and _";
                Err(CliError::usage(format!("--set {pair} is no setting"), hint))
            }
        };
        let set = set.iter().map(pair).collect::<Result<BTreeMap<_, _>, _>>()?;
        let folder = if command.is_empty() { None } else { std::env::current_dir().ok() };
        Ok(Self { command, first_party: None, folder, set, expires_at_ms: None })
    }

    /// The words that start it, if anything says so: what was typed, the program itself, or the manifest.
    pub(crate) fn start_words(&self, manifest: &Manifest) -> Option<Vec<OsString>> {
        let words = |command: &Vec<String>| command.iter().map(OsString::from).collect::<Vec<_>>();
        if !self.command.is_empty() {
            return Some(words(&self.command));
        }
        if let Some(name) = &self.first_party {
            // Where the program is may change with each version of it.
            let ourselves = std::env::current_exe().ok()?;
            return Some(vec![ourselves.into_os_string(), "connector".into(), name.into()]);
        }
        manifest.command.as_ref().map(words)
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
    pub(crate) fn started_by(self, command: &[OsString]) -> Result<Self, CliError> {
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
pub(crate) fn read_manifest(path: &Path) -> Result<(String, Manifest), CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage(
            format!("{}: {error}", path.display()),
            "give the manifest.json of a connector: --manifest FILE",
        )
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than is allowed shows that there is more.
    file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    let manifest = parse_manifest(&text).map_err(|faults| {
        CliError::usage(format!("{}: {faults}", path.display()), "correct these, or ask the connector's author to")
    })?;
    Ok((text, manifest))
}

/// A connection that was added: the text of its manifest, the manifest, its settings.
pub(crate) fn stored(home: &Home, name: &str) -> Result<(String, Manifest, Settings), CliError> {
    let reader = home.reader()?;
    let settings = Settings::from_json(&reader.settings(name)?);
    // What comes with the program describes itself, and may do so anew with each version.
    let ours = settings.first_party.as_deref().and_then(first_party::find);
    let text = match ours {
        Some(known) => known.manifest.to_owned(),
        None => reader.manifest_text(name)?,
    };
    let manifest = parse_manifest(&text).map_err(|faults| CliError::Failed {
        message: format!("the stored manifest of {name:?} is no longer valid: {faults}"),
        hint: "add the connector again with `gleaner add`".to_owned(),
    })?;
    Ok((text, manifest, settings))
}

/// Reads a manifest that is a text.
pub(crate) fn parse_manifest(text: &str) -> Result<Manifest, String> {
    Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).map_err(|rejected| rejected.to_string())
}

//! How a connection is started: its manifest, its command, its settings.

use crate::error::CliError;
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
    /// Where it is started.
    #[serde(default)]
    pub(crate) folder: Option<PathBuf>,
    /// Environment variables of its own.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
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
        Ok(Self { command, folder, set })
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

/// Reads a manifest that is a text.
pub(crate) fn parse_manifest(text: &str) -> Result<Manifest, String> {
    Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).map_err(|rejected| rejected.to_string())
}

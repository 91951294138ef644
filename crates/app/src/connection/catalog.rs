//! The connectors that can be added by name: those that come with the program, and those in the folder `connectors` of
//! the data root.
//!
//! The one of `gleaner demo` is not among them: what it collects from is there only while that runs. A manifest with
//! faults is named and left out; the others are still of use.

use super::settings::{parse_manifest, read_manifest};
use crate::app::App;
use crate::error::{AppError, ErrorKind, nearest};
use gleaner_connectors::FirstParty;
use gleaner_protocol::Manifest;
use std::fs;
use std::path::PathBuf;

/// More than anybody has; a folder of something else is not read to its end.
const FOLDERS_MAX: usize = 1000;

/// One that can be added.
#[derive(Debug)]
pub struct Connector {
    pub origin: Origin,
    pub text: String,
    pub manifest: Manifest,
}

impl Connector {
    /// What is said for people, or: variables for signing in, and what the runtime has to have.
    pub fn needs(&self) -> String {
        if let Origin::Program(known) = &self.origin {
            return known.needs.to_owned();
        }
        let groups = self.manifest.auth.iter().flat_map(|auth| &auth.required).map(|group| group.join(" or "));
        let bindings = self.manifest.bindings.iter().map(|binding| {
            let optional = if binding.required { "" } else { " (if there is one)" };
            format!("{}{optional}", binding.name)
        });
        groups.chain(bindings).collect::<Vec<_>>().join(", ")
    }
}

/// Where it is.
#[derive(Clone, Debug)]
pub enum Origin {
    /// In the program.
    Program(&'static FirstParty),
    /// In this folder.
    Folder(PathBuf),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(_) => f.write_str("one that comes with the program"),
            Self::Folder(folder) => write!(f, "{}", folder.display()),
        }
    }
}

/// One that cannot, and why.
#[derive(Debug)]
pub struct Faulty {
    pub file: PathBuf,
    pub what: String,
}

impl Faulty {
    /// What is wrong, without the name of the file.
    #[must_use]
    pub fn cause(&self) -> &str {
        self.what.strip_prefix(&format!("{}: ", self.file.display())).unwrap_or(&self.what)
    }
}

/// What is there.
#[derive(Debug)]
pub struct Catalog {
    pub connectors: Vec<Connector>,
    pub faulty: Vec<Faulty>,
    folder: PathBuf,
}

impl App {
    /// The connectors that can be added by name.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        Catalog::read(self.connectors_path())
    }
}

impl Catalog {
    /// Those of the program, and every `connectors/*/manifest.json`, in the order of their names.
    fn read(folder: PathBuf) -> Self {
        let mut folders = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join(FILE).exists())
            .take(FOLDERS_MAX + 1)
            .collect::<Vec<_>>();
        folders.sort();
        let mut catalog = Self { connectors: Vec::new(), faulty: Vec::new(), folder };
        for known in gleaner_connectors::ALL {
            // A test reads each of them; one that had faults would be no connector.
            if let Ok(manifest) = parse_manifest(known.manifest) {
                let (origin, text) = (Origin::Program(known), known.manifest.to_owned());
                catalog.connectors.push(Connector { origin, text, manifest });
            }
        }
        if folders.len() > FOLDERS_MAX {
            folders.truncate(FOLDERS_MAX);
            let what = format!("there are more than {FOLDERS_MAX} connectors; the rest is not looked at");
            catalog.faulty.push(Faulty { file: catalog.folder.clone(), what });
        }
        for folder in folders {
            catalog.take(folder);
        }
        catalog
    }

    fn take(&mut self, folder: PathBuf) {
        let file = folder.join(FILE);
        let (text, manifest) = match read_manifest(&file) {
            Ok(read) => read,
            Err(error) => return self.faulty.push(Faulty { file, what: error.message }),
        };
        let same = self.connectors.iter().find(|known| known.manifest.connector_key == manifest.connector_key);
        if let Some(known) = same {
            let what = format!("its connector_key is that of {}", known.origin);
            return self.faulty.push(Faulty { file, what });
        }
        self.connectors.push(Connector { origin: Origin::Folder(folder), text, manifest });
    }

    /// The one of this name.
    pub(crate) fn find(self, name: &str) -> Result<Connector, AppError> {
        let keys = self.connectors.iter().map(|connector| connector.manifest.connector_key.as_str());
        let hint = match nearest(name, keys) {
            Some(near) => format!("did you mean {near}? `gleaner connectors` lists them"),
            None => format!(
                "`gleaner connectors` lists them; put one into {}, or give --manifest FILE",
                self.folder.display()
            ),
        };
        let unknown = || AppError::new(ErrorKind::NotFound, format!("there is no connector {name:?}"), hint);
        self.connectors.into_iter().find(|connector| connector.manifest.connector_key == name).ok_or_else(unknown)
    }
}

/// What makes a folder a connector's.
const FILE: &str = "manifest.json";

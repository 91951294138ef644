//! The data root: one folder for everything of a user's, which only its owner may look into.

use crate::args::collect::HomeArgs;
use crate::error::CliError;
use gleaner_store::{Reader, Store, StoreError};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Below the home of the user.
const NAME: &str = ".pdpp";

/// A data root that is known.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    /// What was typed, `GLEANER_HOME`, or a folder in the home of the user.
    pub(crate) fn find(args: &HomeArgs) -> Result<Self, CliError> {
        let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
        let root =
            args.home.clone().or_else(|| set("GLEANER_HOME")).or_else(|| set("HOME").map(|home| home.join(NAME)));
        let nowhere = || CliError::usage("there is no data root", "give --home DIR or set GLEANER_HOME");
        Ok(Self { root: root.ok_or_else(nowhere)? })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the pace, the gates and the refusals of each account are kept, one file per provider and credential. A
    /// whole path: connectors may run in another folder.
    pub(crate) fn pacing_folder(&self) -> PathBuf {
        let folder = self.root.join("pacing");
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// Where runs can be reached.
    pub(crate) fn control_folder(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.root.join("store.db")
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Where the service writes down what it does.
    pub(crate) fn logs_path(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Where browsers keep what their owners signed in with, a folder for each connection.
    pub(crate) fn profiles_path(&self) -> PathBuf {
        self.root.join("profiles")
    }

    /// Where connectors are that can be added by name.
    pub(crate) fn connectors_path(&self) -> PathBuf {
        self.root.join("connectors")
    }

    /// Opens the store for writing, and makes it if need be.
    pub(crate) fn store(&self) -> Result<Store, CliError> {
        self.make_root()?;
        Ok(Store::open(&self.store_path())?)
    }

    /// Makes the folder if need be. One that others may look into is not used.
    pub(crate) fn make_root(&self) -> Result<(), CliError> {
        let cannot = |error: std::io::Error| CliError::Failed {
            message: format!("{}: {error}", self.root.display()),
            hint: "give a folder that you may write to: --home DIR, or GLEANER_HOME".to_owned(),
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root).map_err(cannot)?;
        let mode = fs::metadata(&self.root).map_err(cannot)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(CliError::Failed {
                message: format!("{} can be looked into by others", self.root.display()),
                hint: format!("run: chmod 700 '{}'", self.root.display()),
            });
        }
        Ok(())
    }

    /// Opens a store that is there for reading.
    pub(crate) fn reader(&self) -> Result<Reader, CliError> {
        if !self.store_path().exists() {
            return Err(CliError::NotInitialised {
                message: format!("there is no store in {} yet", self.root.display()),
                hint: "add a connector with `gleaner add`, or run one with `gleaner run --manifest FILE -- COMMAND`"
                    .to_owned(),
            });
        }
        match Reader::open(&self.store_path()) {
            // An earlier version wrote it. Only a writer may bring it up to date, as the next run would.
            Err(StoreError::OlderSchema { .. }) => {
                drop(Store::open(&self.store_path())?);
                Ok(Reader::open(&self.store_path())?)
            }
            opened => Ok(opened?),
        }
    }
}

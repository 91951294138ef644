//! The application on one data root: the folder with everything of a user's, which only its owner may look into.
//!
//! [`App`] is built once per process. What an owner can do with it is one method each, in the files of `actions/`,
//! `connection/`, `run/` and `doctor/`.

use crate::dates;
use crate::error::{AppError, ErrorKind};
use gleaner_base::private;
use gleaner_store::{HeldBy, Holder, LeaseOn, Reader, Store, StoreError};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Below the home of the user.
const NAME: &str = ".pdpp";

/// What the application has to know of the program that it is part of.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program itself: connectors that come with it, their guard and scheduled runs are processes of it.
    pub executable: Option<PathBuf>,
    /// Says what is wrong with a configuration file.
    pub check_config: fn(&Path) -> Result<(), AppError>,
}

/// Wakes a service of the same process.
pub type Nudge = Arc<dyn Fn() + Send + Sync>;

/// Everything that an owner can do on a data root.
#[derive(Clone)]
pub struct App {
    root: PathBuf,
    pub(crate) program: Program,
    nudge: Option<Nudge>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("root", &self.root).field("program", &self.program).finish_non_exhaustive()
    }
}

impl App {
    /// On this data root.
    #[must_use]
    pub fn new(root: PathBuf, program: Program) -> Self {
        Self { root, program, nudge: None }
    }

    /// On the data root that was typed, on `GLEANER_HOME`, or on a folder in the home of the user.
    ///
    /// # Errors
    ///
    /// When none of them is known.
    pub fn find(typed: Option<PathBuf>, program: Program) -> Result<Self, AppError> {
        let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
        let root = typed.or_else(|| set("GLEANER_HOME")).or_else(|| set("HOME").map(|home| home.join(NAME)));
        let nowhere = || AppError::usage("there is no data root", "give --home DIR or set GLEANER_HOME");
        Ok(Self::new(root.ok_or_else(nowhere)?, program))
    }

    /// The same, which wakes a service of this process after each change.
    #[must_use]
    pub fn with_nudge(self, nudge: Nudge) -> Self {
        Self { nudge: Some(nudge), ..self }
    }

    pub(crate) fn nudge(&self) {
        if let Some(nudge) = &self.nudge {
            nudge();
        }
    }

    /// The data root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the pace, the gates and the refusals of each account are kept, one file per provider and credential. A
    /// whole path: connectors may run in another folder.
    #[must_use]
    pub fn pacing_folder(&self) -> PathBuf {
        let folder = self.root.join("pacing");
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// Where runs can be reached.
    pub(crate) fn control_folder(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The store.
    #[must_use]
    pub fn store_path(&self) -> PathBuf {
        self.root.join("store.db")
    }

    /// The configuration file.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Where the service writes down what it does.
    #[must_use]
    pub fn logs_path(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Where browsers keep what their owners signed in with, a folder for each connection.
    pub(crate) fn profiles_path(&self) -> PathBuf {
        self.root.join("profiles")
    }

    /// Where connectors are that can be added by name.
    #[must_use]
    pub fn connectors_path(&self) -> PathBuf {
        self.root.join("connectors")
    }

    /// This program, for processes of ours.
    ///
    /// # Errors
    ///
    /// When the system does not tell where it is.
    pub fn executable(&self) -> Result<&Path, AppError> {
        let unknown = || AppError::failed("cannot find this program", "start gleaner by its full path");
        self.program.executable.as_deref().ok_or_else(unknown)
    }

    /// Opens the store for writing, and makes it if need be.
    ///
    /// # Errors
    ///
    /// When the data root is not private, or the store cannot be used.
    pub fn store(&self) -> Result<Store, AppError> {
        self.make_root()?;
        Ok(Store::open(&self.store_path())?)
    }

    /// Makes the folder if need be. One that others may look into is not used.
    ///
    /// # Errors
    ///
    /// When it cannot be made, or is not private.
    pub fn make_root(&self) -> Result<(), AppError> {
        let cannot = |error: std::io::Error| {
            let hint = "give a folder that you may write to: --home DIR, or GLEANER_HOME";
            AppError::failed(format!("{}: {error}", self.root.display()), hint)
        };
        private::make_folders(&self.root).map_err(cannot)?;
        let mode = fs::metadata(&self.root).map_err(cannot)?.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!("{} can be looked into by others", self.root.display());
            return Err(AppError::failed(message, format!("run: chmod 700 '{}'", self.root.display())));
        }
        Ok(())
    }

    /// Opens a store that is there for reading.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be used.
    pub fn reader(&self) -> Result<Reader, AppError> {
        if !self.store_path().exists() {
            return Err(AppError::new(
                ErrorKind::NotInitialized,
                format!("there is no store in {} yet", self.root.display()),
                "add a connector with `gleaner add`, or run one with `gleaner run --manifest FILE -- COMMAND`",
            ));
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

    /// The service of this data root, if one runs.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn serving(&self) -> Result<Option<HeldBy>, AppError> {
        Ok(self.reader()?.held_by(LeaseOn::Serve, &ourselves()?, dates::now())?)
    }
}

/// This process, for judging leases.
pub(crate) fn ourselves() -> Result<Holder, StoreError> {
    Holder::current().map_err(StoreError::Holder)
}

//! Care for the data root and for what a connection left in it: init, backup, restore, remove, repair.

use crate::app::{App, ourselves};
use crate::dates;
use crate::error::{AppError, ErrorKind};
use crate::run::collect::lease;
use gleaner_base::outside::one_line;
use gleaner_base::private;
use gleaner_store::{ConnectionState, CopyStep, Repaired, RestoreOutcome, StoreError};
use gleaner_vault::Vault;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Which parts of a data root were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialized {
    pub made_store: bool,
    pub made_config: bool,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    pub bytes: u64,
    /// Whether the configuration file is in it. One with a fault is left out: it may hold anything, also a secret.
    pub has_config: bool,
    pub left_config_out: bool,
}

/// A store that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where the store before it is kept.
    pub kept: Option<PathBuf>,
    /// Whether it is older than what was here.
    pub was_older: bool,
    /// Whether the configuration file came with it.
    pub put_config_back: bool,
}

/// What is left of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Everything that it collected: so many records.
    Kept { records: u64 },
    /// Nothing; so many rows are gone.
    Purged { rows: u64 },
}

impl App {
    /// Makes the data root, the store and a configuration file with this text; leaves alone what is there.
    ///
    /// # Errors
    ///
    /// When one of them cannot be made.
    pub fn init(&self, config: &str) -> Result<Initialized, AppError> {
        let made_store = !self.store_path().exists();
        drop(self.store()?);
        let hint = "give a folder that you may write to: --home DIR, or GLEANER_HOME";
        Ok(Initialized { made_store, made_config: self.write_config(config, "", hint)? })
    }

    /// Whether it was written: one that is there is its owner's.
    fn write_config(&self, text: &str, before: &str, hint: &str) -> Result<bool, AppError> {
        let path = self.config_path();
        match private::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(AppError::failed(format!("{before}{}: {error}", path.display()), hint)),
        }
    }

    /// Writes the store and the configuration into one file, also while a run goes on, and reads it back.
    ///
    /// # Errors
    ///
    /// When the file is there, or cannot be written.
    pub fn backup(&self, file: &Path, show: impl FnMut(CopyStep, u64, u64)) -> Result<Backup, AppError> {
        let reader = self.reader()?;
        let path = self.config_path();
        let is_there = path.exists();
        let is_right = is_there && (self.program.check_config)(&path).is_ok();
        let config = if is_right { fs::read_to_string(&path).ok() } else { None };
        let bytes = reader.backup(file, config.as_deref(), show)?;
        Ok(Backup { bytes, has_config: config.is_some(), left_config_out: is_there && config.is_none() })
    }

    /// Puts a backup in the place of the store, which is kept under another name.
    ///
    /// # Errors
    ///
    /// When it is no backup, or a process is at work.
    pub fn restore(&self, file: &Path, show: impl FnMut(CopyStep, u64, u64)) -> Result<Restored, AppError> {
        let store = self.store_path();
        if let (Ok(one), Ok(other)) = (fs::canonicalize(file), fs::canonicalize(&store))
            && one == other
        {
            let hint = "give a file that `gleaner backup` wrote";
            return Err(AppError::usage(format!("{} is the store itself", file.display()), hint));
        }
        self.make_root()?;
        let now = dates::now();
        // As a part of a file name, without colons.
        let stamp = dates::rfc3339(now).replace([':', '-'], "");
        match gleaner_store::restore(file, &store, &ourselves()?, now, &stamp, show)? {
            RestoreOutcome::Restored { kept, was_older, settings } => {
                let hint = "check that the data root is yours and has space";
                let put_back = |text: &str| self.write_config(text, "the store was restored, but ", hint);
                let put_config_back = settings.as_deref().map(put_back).transpose()?.unwrap_or(false);
                Ok(Restored { kept, was_older, put_config_back })
            }
            RestoreOutcome::Held(by) => {
                let since = dates::rfc3339(by.since);
                let message =
                    format!("process {} is at work ({}), since {since}: nothing was restored", by.pid, by.lease);
                Err(AppError::new(ErrorKind::Held, one_line(&message), "wait for it, or end that process"))
            }
        }
    }

    /// The owner says that the store is the one to go on with, although it may be older than what was here: whether it
    /// is.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn accept_restored(&self) -> Result<bool, AppError> {
        // Where there is none, nothing is made.
        let was_older = self.reader()?.check_not_restored().is_err();
        self.store()?.accept_restored()?;
        Ok(was_older)
    }

    /// Removes a connection and its credentials, and with `purge` everything that it collected.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or a process works on it.
    pub fn remove(&self, name: &str, purge: bool) -> Result<Removed, AppError> {
        let summary = self.reader()?.connection(name)?;
        if !purge && summary.state == ConnectionState::Purging {
            return Err(StoreError::Purging(name.to_owned()).into());
        }
        let mut store = self.store()?;
        let leases = lease(&mut store, name, None)?;
        Vault::open(self.root())?.remove(name)?;
        let removed = if purge {
            Removed::Purged { rows: store.purge(name, &leases)? }
        } else {
            let removed = store.set_removed(name, &leases);
            store.release(&leases)?;
            removed?;
            Removed::Kept { records: summary.totals.records }
        };
        self.nudge();
        Ok(removed)
    }

    /// Forgets cursors that are in doubt and opens gaps that were closed without their record: the next run lists them
    /// again.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or a process works on it.
    pub fn repair(&self, name: &str) -> Result<Repaired, AppError> {
        let mut store = self.store()?;
        let leases = lease(&mut store, name, None)?;
        let repaired = store.repair(name, &leases);
        store.release(&leases)?;
        Ok(repaired?)
    }
}

//! The writer: one connection to the file, and the one way in which anything is changed.
//!
//! Every change goes through [`Store::write`]: a transaction that takes the write lock first, then
//! looks whether the caller still holds its leases, then works, then commits and syncs. Who lost a
//! lease changes nothing, because the look and the change are one transaction. After a failure of the
//! device it writes no more, and does not even tidy up: a second sync would report success for pages
//! that are gone. It reads no clock; dates are arguments.

use crate::error::{Failure, StoreError, from_sql, to_sql};
use crate::lease::Lease;
use crate::lease::seen::SeenNote;
use crate::open::{LogLength, move_log, no_sync_on_close};
use crate::sql::{execute, first};
use gleaner_engine::Epoch;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};

/// A store that can be written.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    log: LogLength,
    path: PathBuf,
    pub(crate) seen: SeenNote,
    stopped: bool,
}

impl Store {
    /// Opens the store at this path, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// When the file cannot be used; see [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (connection, log) = crate::open::writer(path)?;
        let id = meta_text(&connection, "store_id").map_err(|failure| failure.at(path))?;
        let seen = SeenNote::beside(path, id);
        seen.clear_leftovers();
        Ok(Self { connection, log, path: path.to_owned(), seen, stopped: false })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The highest epoch that any holder of this store had.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn epoch(&self) -> Result<Epoch, StoreError> {
        meta_number(&self.connection, "epoch").map(Epoch::new).map_err(|failure| failure.at(&self.path))
    }

    /// Changes something as the holder of these leases, or nothing at all.
    pub(crate) fn write<R>(
        &mut self,
        leases: &[Lease],
        change: impl FnOnce(&Transaction<'_>) -> Result<R, Failure>,
    ) -> Result<R, StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped(self.path.clone()));
        }
        let done = transact(&mut self.connection, leases, change).and_then(|result| {
            move_log(&self.connection, &self.log)?;
            Ok(result)
        });
        let done = done.map_err(|failure| failure.at(&self.path));
        self.heed(done)
    }

    /// After a failure of the device no sync is tried again, also not the one that closing would bring.
    pub(crate) fn heed<R>(&mut self, done: Result<R, StoreError>) -> Result<R, StoreError> {
        if done.as_ref().is_err_and(StoreError::ends_writing) {
            self.stopped = true;
            no_sync_on_close(&self.connection);
        }
        done
    }

    /// Reads something, with the path in the error.
    pub(crate) fn read<R>(&self, ask: impl FnOnce(&Connection) -> Result<R, Failure>) -> Result<R, StoreError> {
        ask(&self.connection).map_err(|failure| failure.at(&self.path))
    }
}

fn transact<R>(
    connection: &mut Connection,
    leases: &[Lease],
    change: impl FnOnce(&Transaction<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for lease in leases {
        lease.check(&transaction)?;
    }
    let result = change(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

pub(crate) fn meta_number(connection: &Connection, name: &str) -> Result<u64, Failure> {
    let sql = "SELECT value FROM meta WHERE name = ?1";
    let value = first(connection, sql, [name], |row| row.get::<_, i64>(0))?;
    Ok(value.map_or(0, from_sql))
}

pub(crate) fn set_meta_number(connection: &Connection, name: &str, value: u64) -> Result<(), Failure> {
    let sql = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    execute(connection, sql, (name, to_sql(value)))
}

pub(crate) fn meta_text(connection: &Connection, name: &str) -> Result<String, Failure> {
    let value = connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()?;
    Ok(value.unwrap_or_default())
}

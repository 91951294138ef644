//! What connectors say about their lists, as numbers: how many records there are, and what became of them.
//!
//! The keys themselves are gone with their run (see `coverage_keys`). Without the numbers nobody could tell
//! a stream that is complete from one about which nothing is known. The last report about a list counts.

use crate::error::{Failure, to_sql};
use rusqlite::Connection;

/// One report that waits to be written with the next slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingListing {
    pub(crate) stream: i64,
    pub(crate) parent: String,
    pub(crate) required: u64,
    pub(crate) hydrated: u64,
    pub(crate) gaps: u64,
    pub(crate) skipped: u64,
    pub(crate) unaccounted: u64,
}

impl PendingListing {
    /// A report that named no records.
    pub(crate) fn of_nothing(stream: i64, parent: &str) -> Self {
        Self { stream, parent: parent.to_owned(), ..Self::default() }
    }

    pub(crate) fn is_of(&self, stream: i64, parent: &str) -> bool {
        self.stream == stream && self.parent == parent
    }

    pub(crate) fn write(&self, connection: &Connection, run: i64) -> Result<(), Failure> {
        let sql = "INSERT OR REPLACE INTO listings VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let counts = [self.required, self.hydrated, self.gaps, self.skipped, self.unaccounted].map(to_sql);
        let [required, hydrated, gaps, skipped, unaccounted] = counts;
        let values = (self.stream, &self.parent, run, required, hydrated, gaps, skipped, unaccounted);
        connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}

/// What a report left without an outcome is written as gaps now.
pub(crate) fn nothing_unaccounted(connection: &Connection, stream: i64, parent: &str) -> Result<(), Failure> {
    let sql = "UPDATE listings SET unaccounted = 0 WHERE stream = ?1 AND parent = ?2";
    connection.prepare_cached(sql)?.execute((stream, parent))?;
    Ok(())
}

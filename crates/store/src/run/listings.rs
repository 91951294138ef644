//! What connectors say about their lists, as numbers: how many records there are, and what became of them.
//!
//! The keys themselves are gone with their run (see `coverage_keys`). Without the numbers nobody could tell
//! a stream that is complete from one about which nothing is known. The last report about a list counts.

use crate::account::reach::note_report;
use crate::error::{Failure, to_sql};
use crate::sql::execute;
use gleaner_engine::ReportedKeys;
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
    /// Of those, called hydrated.
    pub(crate) unconfirmed: u64,
    pub(crate) empty: u64,
    /// The first keys that the checkpoint waits for.
    pub(crate) waiting: Vec<String>,
    /// Whether it is of an ordinary run. Of any other only that there was a report is kept: its numbers are about a
    /// part of the list.
    pub(crate) is_whole: bool,
    /// Whether its keys are those of the list's records.
    pub(crate) keys: ReportedKeys,
}

impl PendingListing {
    /// A report that named no records.
    pub(crate) fn of_nothing(stream: i64, parent: &str) -> Self {
        Self { stream, parent: parent.to_owned(), is_whole: true, ..Self::default() }
    }

    pub(crate) fn is_of(&self, stream: i64, parent: &str) -> bool {
        self.stream == stream && self.parent == parent
    }

    pub(crate) fn write(&self, connection: &Connection, run: i64) -> Result<(), Failure> {
        note_report(connection, self.stream, &self.parent, self.keys)?;
        if !self.is_whole {
            return Ok(());
        }
        let sql =
            "INSERT OR REPLACE INTO listings (stream, parent, run, required, hydrated, gaps, skipped, unaccounted,
                   unconfirmed, empty, waiting) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let counts = [self.required, self.hydrated, self.gaps, self.skipped, self.unaccounted].map(to_sql);
        let [required, hydrated, gaps, skipped, unaccounted] = counts;
        let [unconfirmed, empty] = [self.unconfirmed, self.empty].map(to_sql);
        // Texts can always be written.
        let waiting = (!self.waiting.is_empty()).then(|| serde_json::to_string(&self.waiting).unwrap_or_default());
        let of = (self.stream, &self.parent);
        let values = (of.0, of.1, run, required, hydrated, gaps, skipped, unaccounted, unconfirmed, empty, waiting);
        execute(connection, sql, values)
    }

    /// What the checkpoint waited for is written as gaps now.
    pub(crate) fn nothing_waits(&mut self) {
        (self.unaccounted, self.unconfirmed) = (0, 0);
        self.waiting.clear();
    }
}

/// What a report left without an outcome is written as gaps now.
pub(crate) fn nothing_unaccounted(connection: &Connection, stream: i64, parent: &str) -> Result<(), Failure> {
    let sql = "UPDATE listings SET unaccounted = 0, unconfirmed = 0, waiting = NULL WHERE stream = ?1 AND parent = ?2";
    execute(connection, sql, (stream, parent))
}

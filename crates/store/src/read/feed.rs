//! Following the changes of one stream, also when the file under it is replaced.
//!
//! Asking whether there is something new costs one row of counters. Versions have no index by stream: they
//! are gone through in their order, which is why nobody asks for them before the counter has moved.

use super::records::{VERSION, read_version, size_of};
use super::{Reader, StoredRecord, page, sized_rows};
use crate::error::{StoreError, from_sql, to_sql};
use crate::sql::first;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file a path leads to; nothing when it leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(Option<(u64, u64)>);

impl FileId {
    pub(super) fn of(path: &Path) -> Self {
        Self(path.metadata().ok().map(|file| (file.dev(), file.ino())))
    }
}

impl Reader {
    /// A page of the changes of one stream after `since`, tombstones included, in the order in which they
    /// became durable.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn changes_of(
        &self,
        connection_name: &str,
        stream: &str,
        since: u64,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let sql =
                format!("SELECT {VERSION} FROM versions v WHERE v.seq > ?1 AND v.stream = ?2 ORDER BY v.seq LIMIT ?3");
            sized_rows(connection, &sql, (to_sql(since), id, page(limit)), read_version, size_of)
        })
    }

    /// The newest change of a stream, from its counter; 0 when there is none.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn last_change_of(&self, connection_name: &str, stream: &str) -> Result<u64, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let sql = "SELECT ifnull(last_seq, 0) FROM streams WHERE id = ?1";
            Ok(from_sql(connection.prepare_cached(sql)?.query_row([id], |row| row.get(0))?))
        })
    }

    /// A number that stands for the content of a change: whether it is still the one that was read.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn change_mark(&self, seq: u64) -> Result<Option<i64>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT hash FROM versions WHERE seq = ?1";
            first(connection, sql, [to_sql(seq)], |row| row.get(0))
        })
    }

    /// A number that is another one after somebody else has changed anything in the file. It means something for this
    /// reader alone.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn change_number(&self) -> Result<i64, StoreError> {
        self.ask(|connection| Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?))
    }

    /// Whether the path still leads to the file that was opened.
    #[must_use]
    pub fn is_current(&self) -> bool {
        FileId::of(&self.path) == self.file
    }
}

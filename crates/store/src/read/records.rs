//! Records, their history, and the feed of changes.

use super::{PAGE_BYTES_MAX, Reader, length, page, sized_rows};
use crate::error::{Failure, StoreError, date_from_sql, from_sql, to_sql};
use crate::registry;
use crate::sql::{first, rows};
use gleaner_engine::WallTime;
use rusqlite::{Connection, Row};

/// One version of a record.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the feed of changes.
    pub seq: u64,
    /// The key as one text; several parts as minified JSON.
    pub key: String,
    /// The body, byte for byte.
    pub body: Option<String>,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// When the connector wrote it, in its own words.
    pub emitted_at: Option<String>,
    /// When it was stored.
    pub stored_at: WallTime,
}

/// Only where it is: records are private.
impl std::fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredRecord({}, {} bytes)", self.seq, self.body.as_ref().map_or(0, String::len))
    }
}

/// One entry of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The connection.
    pub connection: String,
    /// The stream.
    pub stream: String,
    /// The version that was stored.
    pub record: StoredRecord,
}

pub(super) const VERSION: &str = "v.seq, v.key, v.body, v.deleted, v.emitted_at, v.stored_at";

pub(super) fn read_version(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        seq: from_sql(row.get(0)?),
        key: row.get(1)?,
        body: row.get(2)?,
        deleted: row.get(3)?,
        emitted_at: row.get(4)?,
        stored_at: date_from_sql(row.get(5)?),
    })
}

pub(super) fn size_of(record: &StoredRecord) -> usize {
    length(record.body.as_ref()) + record.key.len()
}

impl Reader {
    /// A page of a stream's present records, tombstones included, by key after `after`.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn records(
        &self,
        connection_name: &str,
        stream: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let from = if after.is_some() { "AND r.key > ?2" } else { "AND ?2 IS NULL" };
            let sql = format!(
                "SELECT {VERSION} FROM records r JOIN versions v ON v.seq = r.seq \
                 WHERE r.stream = ?1 {from} ORDER BY r.key LIMIT ?3"
            );
            sized_rows(connection, &sql, (id, after, page(limit)), read_version, size_of)
        })
    }

    /// A page of a stream's present records that a run with a time range stored although their time could not be read,
    /// in the order in which they were stored, after the version `after`.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn records_without_time(
        &self,
        connection_name: &str,
        stream: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let sql = format!(
                "SELECT {VERSION} FROM unreadable_times t JOIN versions v ON v.seq = t.seq \
                 WHERE t.stream = ?1 AND t.seq > ?2 ORDER BY t.seq LIMIT ?3"
            );
            sized_rows(connection, &sql, (id, to_sql(after), page(limit)), read_version, size_of)
        })
    }

    /// The present version of one record.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn record(&self, connection_name: &str, stream: &str, key: &str) -> Result<Option<StoredRecord>, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let sql = format!(
                "SELECT {VERSION} FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = ?1 AND r.key = ?2"
            );
            first(connection, &sql, (id, key), read_version)
        })
    }

    /// A page of the versions of one record, the newest first; of those before `before` if it is given.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn history(
        &self,
        connection_name: &str,
        stream: &str,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let sql = "WITH RECURSIVE chain (seq, nth) AS (SELECT seq, 1 FROM records WHERE stream = ?1 AND key = ?2
                       UNION ALL SELECT o.previous, nth + (o.seq < ifnull(?3, o.seq + 1)) FROM chain c
                       JOIN versions o ON o.seq = c.seq
                       WHERE o.previous IS NOT NULL AND nth + (o.seq < ifnull(?3, o.seq + 1)) <= ?4)
                       SELECT seq FROM chain WHERE seq < ifnull(?3, seq + 1)";
            let values = (id, key, before.map(to_sql), page(limit));
            let chain = rows(connection, sql, values, |row| row.get::<_, i64>(0))?;
            // One after the other and not sorted with their bodies, which may be large.
            let sql = format!("SELECT {VERSION} FROM versions v WHERE v.seq = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            let (mut history, mut bytes) = (Vec::new(), 0);
            for seq in chain {
                if bytes >= PAGE_BYTES_MAX {
                    break;
                }
                let version = statement.query_row([seq], read_version)?;
                bytes += size_of(&version);
                history.push(version);
            }
            Ok(history)
        })
    }

    /// A page of changes after `since`, in the order in which they became durable. A change that was
    /// not there when a later one was read never comes after it: there is one writer at a time.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn changes(&self, since: u64, limit: usize) -> Result<Vec<Change>, StoreError> {
        self.ask(|connection| {
            let sql = format!(
                "SELECT {VERSION}, c.name, s.name FROM versions v JOIN streams s ON s.id = v.stream \
                 JOIN connections c ON c.id = s.connection WHERE v.seq > ?1 ORDER BY v.seq LIMIT ?2"
            );
            let read =
                |row: &Row<'_>| Ok(Change { connection: row.get(6)?, stream: row.get(7)?, record: read_version(row)? });
            let size = |change: &Change| size_of(&change.record);
            sized_rows(connection, &sql, (to_sql(since), page(limit)), read, size)
        })
    }
}

pub(crate) fn stream_id(connection: &Connection, of: &str, stream: &str) -> Result<i64, Failure> {
    let id = registry::find(connection, of)?;
    let sql = "SELECT id FROM streams WHERE connection = ?1 AND name = ?2";
    let found = first(connection, sql, (id, stream), |row| row.get(0))?;
    let unknown = || StoreError::UnknownStream { connection: of.to_owned(), stream: stream.to_owned() };
    found.ok_or_else(|| unknown().into())
}

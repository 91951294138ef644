//! All records of streams as they were at one moment, one row in memory at a time.
//!
//! One transaction for all of it: what comes out belongs together, however long it takes and whatever is
//! written meanwhile. As long as it goes on, the log of the store cannot be cut back, so nothing here is
//! for looking around.

use super::Reader;
use super::records::stream_id;
use crate::error::{Failure, StoreError, date_from_sql, from_sql};
use gleaner_engine::WallTime;
use rusqlite::{OptionalExtension, Row, Transaction};

/// A store at one moment. Nothing that is written later is seen through it.
#[derive(Debug)]
pub struct Snapshot<'r> {
    reader: &'r Reader,
    // Ends with it.
    _transaction: Transaction<'r>,
}

/// The present version of one record, as it lies in the store.
#[derive(Clone, Copy)]
pub struct RecordRow<'a> {
    /// Its place in the feed of changes.
    pub seq: u64,
    /// The key as one text; several parts as minified JSON.
    pub key: &'a str,
    /// The body, byte for byte.
    pub body: Option<&'a str>,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// When the connector wrote it, in its own words.
    pub emitted_at: Option<&'a str>,
    /// When it was stored.
    pub stored_at: WallTime,
}

/// Only where it is: records are private.
impl std::fmt::Debug for RecordRow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordRow({}, {} bytes)", self.seq, self.body.map_or(0, str::len))
    }
}

impl<'a> RecordRow<'a> {
    fn read(row: &'a Row<'_>) -> Result<Self, Failure> {
        let text = |at: usize| Ok::<_, Failure>(row.get_ref(at)?.as_str_or_null().map_err(rusqlite::Error::from)?);
        Ok(Self {
            seq: from_sql(row.get(0)?),
            key: text(1)?.unwrap_or_default(),
            body: text(2)?,
            deleted: row.get(3)?,
            emitted_at: text(4)?,
            stored_at: date_from_sql(row.get(5)?),
        })
    }
}

impl Reader {
    /// Holds on to the present moment.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        let failed = |error: rusqlite::Error| StoreError::of(error, &self.path);
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        // The moment is that of the first read.
        transaction.query_row("SELECT 1 FROM meta LIMIT 1", [], |_| Ok(())).optional().map_err(failed)?;
        Ok(Snapshot { reader: self, _transaction: transaction })
    }
}

impl Snapshot<'_> {
    /// Calls with each present record of a stream, by key.
    ///
    /// # Errors
    ///
    /// When there is no such stream, the store cannot be read, or `call` fails.
    pub fn each_record<E: From<StoreError>>(
        &self,
        connection_name: &str,
        stream: &str,
        tombstones_too: bool,
        mut call: impl FnMut(RecordRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |failure: Failure| E::from(failure.at(&self.reader.path));
        let sql_failed = |error: rusqlite::Error| failed(error.into());
        let connection = &self.reader.connection;
        let id = stream_id(connection, connection_name, stream).map_err(failed)?;
        let sql = "SELECT v.seq, r.key, v.body, v.deleted, v.emitted_at, v.stored_at FROM records r
                   JOIN versions v ON v.seq = r.seq WHERE r.stream = ?1 AND v.deleted <= ?2 ORDER BY r.key";
        let mut statement = connection.prepare_cached(sql).map_err(sql_failed)?;
        let mut rows = statement.query((id, tombstones_too)).map_err(sql_failed)?;
        while let Some(row) = rows.next().map_err(sql_failed)? {
            call(RecordRow::read(row).map_err(failed)?)?;
        }
        Ok(())
    }

    /// The properties that the schema of a stream names at its top; none when there is no schema.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn columns(&self, connection_name: &str, stream: &str) -> Result<Vec<String>, StoreError> {
        self.reader.ask(|connection| {
            let id = stream_id(connection, connection_name, stream)?;
            let sql = "SELECT schema FROM streams WHERE id = ?1";
            let schema = connection.query_row(sql, [id], |row| row.get::<_, Option<String>>(0))?;
            // A manifest has lines, a message has one. In JSON a line feed is never a part of a value.
            let schema = schema.map(|text| text.replace('\n', " "));
            Ok(crate::views::top_properties(crate::run::session::schema_json(schema)?.as_ref()))
        })
    }
}

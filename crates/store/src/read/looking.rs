//! What somebody who looks for something asks: the end of a run's trace, and records with a word in them.
//!
//! A search has no index, so it goes through a stream in the order of its keys. How much one call looks at is bounded in
//! rows and in bytes; whoever wants more goes on from where it stopped.

use super::folded::Needle;
use super::records::{VERSION, read_version, size_of};
use super::runs::read_event;
use super::{PAGE_BYTES_MAX, Reader, StoredRecord, TracedEvent, page, sized_rows};
use crate::error::StoreError;

/// Records that one call looks at.
const LOOKED_AT_MAX: usize = 50_000;
/// Bytes of records that one call looks at.
const LOOKED_AT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Records whose key, or one of whose values, has the text in it, by key.
    pub records: Vec<StoredRecord>,
    /// The key after which the search goes on; absent at the end of the stream.
    pub goes_on_after: Option<String>,
    /// How many records were looked at.
    pub looked_at: u64,
}

impl Reader {
    /// The last events of a run, the newest first; of those before the event with this number, and of one kind if it
    /// is given.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn last_events(
        &self,
        run_id: &str,
        kind: Option<&str>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TracedEvent>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT e.id, e.at, e.kind, e.message FROM events e
                       WHERE e.run = (SELECT id FROM runs WHERE run_id = ?1) AND e.id < ?2
                       AND (?3 IS NULL OR e.kind = ?3) ORDER BY e.id DESC LIMIT ?4";
            let values = (run_id, before.unwrap_or(i64::MAX), kind, page(limit));
            sized_rows(connection, sql, values, read_event, |event| event.message.len())
        })
    }

    /// Looks for a text in the keys and values of a stream's present records, from after this key on. Escapes are
    /// decoded, and case does not count. Names of fields are not searched.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub fn search(
        &self,
        connection_name: &str,
        stream: &str,
        text: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Found, StoreError> {
        self.ask_stream(connection_name, stream, |connection, id| {
            let from = if after.is_some() { "AND r.key > ?2" } else { "AND ?2 IS NULL" };
            let sql = format!(
                "SELECT {VERSION} FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = ?1 {from} \
                 ORDER BY r.key"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query((id, after))?;
            let limit = usize::try_from(page(limit)).unwrap_or(1);
            let mut needle = Needle::new(text);
            let (mut found, mut looked_at, mut bytes, mut bytes_found) = (Found::default(), 0, 0, 0);
            while let Some(row) = rows.next()? {
                let record = read_version(row)?;
                looked_at += 1;
                bytes += size_of(&record);
                let is_over = looked_at >= LOOKED_AT_MAX || bytes >= LOOKED_AT_BYTES_MAX;
                let key = record.key.clone();
                if needle.is_in(&record.key, record.body.as_deref()) {
                    bytes_found += size_of(&record);
                    found.records.push(record);
                }
                if is_over || found.records.len() >= limit || bytes_found >= PAGE_BYTES_MAX {
                    found.goes_on_after = Some(key);
                    break;
                }
            }
            found.looked_at = looked_at as u64;
            Ok(found)
        })
    }
}

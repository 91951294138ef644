//! What a run may do to the account, as far as the store has to heed it.
//!
//! The rules are the engine's ([`Reach`]); here they meet rows. A run without a reach (a tool, a test) is ordinary.

use crate::error::{Failure, StoreError};
use crate::registry;
use crate::run::session::RunTables;
use crate::sql::{execute, exists, first, rows};
use crate::store::Store;
use gleaner_engine::{Reach, ReportedKeys, Scoped, SeenStreams, SliceRecord, Steady, Track};
use gleaner_protocol::Op;
use rusqlite::{Connection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// How much of the hash of a scope names its track.
const DIGEST_CHARS: usize = 32;
/// Scoped tracks of a connection that are kept. A scope that has a date in it is another one every day.
const SCOPED_TRACKS_KEPT: i64 = 50;

impl Store {
    /// What is known of the streams of a connection: for [`Reach::decide`], under the lease of the connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the store cannot be read.
    pub fn seen_streams(&self, name: &str) -> Result<SeenStreams, StoreError> {
        self.read(|connection| {
            let of = registry::find(connection, name)?;
            let sql = "SELECT s.name, p.parent, p.keys FROM parents p JOIN streams s ON s.id = p.stream
                       WHERE s.connection = ?1";
            let read = |row: &Row<'_>| Ok(((row.get(0)?, row.get(1)?), row.get::<_, Option<String>>(2)?));
            let (mut reported, mut reports) = (BTreeSet::new(), BTreeMap::new());
            for (pair, keys) in rows(connection, sql, [of], read)? {
                if let Some(keys) = keys {
                    reports.insert(pair.clone(), ReportedKeys::from_code(&keys).unwrap_or(ReportedKeys::Other));
                }
                reported.insert(pair);
            }
            let sql = "SELECT s.name FROM cursors c JOIN streams s ON s.id = c.stream
                       WHERE s.connection = ?1 AND c.track = ?2";
            let with_cursor = rows(connection, sql, (of, Steady::NAME), |row| row.get(0))?.into_iter().collect();
            Ok(SeenStreams { reported, with_cursor, reports })
        })
    }
}

/// The name of a run's track.
pub(crate) fn track_name<T: Track>(reach: Option<&Reach>) -> String {
    if T::NAME != Scoped::NAME {
        return T::NAME.to_owned();
    }
    let scope = reach.map(|reach| reach.asked().to_text()).unwrap_or_default();
    format!("{}:{}", T::NAME, &blake3::hash(scope.as_bytes()).to_hex()[..DIGEST_CHARS])
}

/// Notes that records of one stream are found by the list of another.
pub(crate) fn note_parent(connection: &Connection, stream: i64, parent: &str) -> Result<(), Failure> {
    let sql = "INSERT OR IGNORE INTO parents (stream, parent) SELECT id, ?2 FROM streams WHERE id = ?1 AND name != ?2";
    execute(connection, sql, (stream, parent))
}

/// Notes that a report about a list came, and what its keys were. Keys that are not those of the list's records are never forgotten.
pub(crate) fn note_report(connection: &Connection, stream: i64, list: &str, keys: ReportedKeys) -> Result<(), Failure> {
    let sql = "INSERT INTO parents (stream, parent, keys) SELECT id, ?2, ?3 FROM streams WHERE id = ?1
               ON CONFLICT (stream, parent) DO UPDATE SET keys = excluded.keys
               WHERE keys IS NULL OR keys = 'unknown' OR excluded.keys = 'other'";
    execute(connection, sql, (stream, list, keys.code()))
}

/// Forgets the oldest scoped tracks of a connection. A run with such a scope lists all of it again.
pub(crate) fn forget_old_tracks(connection: &Connection, of: i64) -> Result<(), Failure> {
    let old = "SELECT c.track FROM cursors c JOIN streams s ON s.id = c.stream WHERE s.connection = ?1
               AND c.track LIKE 'scope:%' GROUP BY c.track ORDER BY max(c.run) DESC LIMIT -1 OFFSET ?2";
    for table in ["commits", "cursors"] {
        let sql = format!(
            "DELETE FROM {table} WHERE stream IN (SELECT id FROM streams WHERE connection = ?1) AND track IN ({old})"
        );
        execute(connection, &sql, (of, SCOPED_TRACKS_KEPT))?;
    }
    Ok(())
}

impl<T: Track> RunTables<'_, T> {
    /// Whether a record that its connector sent must not change what is stored: a body that lacks fields does not take
    /// the place of a whole one. A deletion always counts: it has no time that a range could be held against.
    pub(crate) fn holds_back(&self, stream: i64, record: &SliceRecord<'_>) -> Result<bool, Failure> {
        Ok(record.op != Op::Delete && self.forgives(stream, record)?)
    }

    /// Whether a record that does not fit its schema is left out of the quarantine: it lacks fields, and a whole one is
    /// here.
    pub(crate) fn forgives(&self, stream: i64, record: &SliceRecord<'_>) -> Result<bool, Failure> {
        let is_partial = self.session.start.about.reach.as_ref().is_some_and(|reach| reach.is_partial(record.stream));
        Ok(is_partial && has_whole(self.connection, stream, record)?)
    }
}

/// Whether the record is stored with all its fields, or in quarantine.
fn has_whole(connection: &Connection, stream: i64, record: &SliceRecord<'_>) -> Result<bool, Failure> {
    let quarantined = "SELECT 1 FROM quarantine WHERE stream = ?1 AND key = ?2";
    if exists(connection, quarantined, (stream, record.key))? {
        return Ok(true);
    }
    // The streams of which its run brought only some fields.
    let sql = "SELECT v.deleted, u.partial FROM records r JOIN versions v ON v.seq = r.seq
               LEFT JOIN runs u ON u.id = v.run WHERE r.stream = ?1 AND r.key = ?2";
    let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?));
    let Some((deleted, partial)) = first(connection, sql, (stream, record.key), read)? else { return Ok(false) };
    let partial = partial.and_then(|text| serde_json::from_str::<Vec<String>>(&text).ok()).unwrap_or_default();
    Ok(!deleted && !partial.iter().any(|name| name == record.stream))
}

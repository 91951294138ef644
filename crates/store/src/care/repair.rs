//! Cursors and gaps that a Gleaner before schema 5 may have got wrong, and the way to set them right.
//!
//! Before schema 5 a run with a narrower scope moved the steady cursor past records that it had not asked for, a
//! connector's word alone closed a gap, and nobody looked whether hydrated keys were stored. The store cannot tell
//! afterwards which cursor was moved that way, because the scope of a run was not on record, so it names every cursor
//! that such a run may have moved. Repairing deletes nothing: the next run lists again what is in doubt, and records
//! that did not change cost nothing.

use crate::error::{Failure, StoreError, from_sql};
use crate::gaps::gap_rows::GapRow;
use crate::gaps::held_gaps::{Sieve, comparable, each_field};
use crate::lease::Lease;
use crate::read::Reader;
use crate::registry;
use crate::sql::rows;
use crate::store::Store;
use gleaner_engine::Gap;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// Something that an earlier version wrote and this one cannot confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The connection.
    pub connection: String,
    /// The stream.
    pub stream: String,
    /// What is in doubt.
    pub about: DoubtAbout,
}

/// What is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoubtAbout {
    /// A run with a narrower scope may have moved the cursor of this track past records.
    Cursor {
        /// `steady` or `catch_up`.
        track: String,
    },
    /// So many gaps were closed, and the store has no record for them.
    ClosedGaps {
        /// How many.
        gaps: u64,
    },
    /// The connector called more keys hydrated than the stream has records.
    Hydrated {
        /// How many it named.
        claimed: u64,
        /// How many records, deleted ones included, there are.
        stored: u64,
    },
}

/// What a repair did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Cursors that the next run does not go on from.
    pub cursors: u64,
    /// Gaps that are open again.
    pub gaps: u64,
}

/// Gaps whose keys are in memory at a time.
const BATCH: usize = 10_000;
/// What a cursor accounts for that is in doubt: nothing. The next run lists the stream again.
pub(crate) const NOTHING: &str = r#"{"streams":[]}"#;

impl Reader {
    /// What an earlier version wrote and this one cannot confirm, by connection and stream.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn doubts(&self) -> Result<Vec<Doubt>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT id, name FROM connections WHERE state != 'purging' ORDER BY name";
            let mut found = Vec::new();
            for (id, name) in rows(connection, sql, [], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))? {
                let doubt = |(stream, about)| Doubt { connection: name.clone(), stream, about };
                let cursors = cursors(connection, id)?;
                let gaps = closed_gaps(connection, id)?.into_iter();
                let gaps = gaps.map(|(stream, ids)| (stream, DoubtAbout::ClosedGaps { gaps: ids.len() as u64 }));
                found.extend(cursors.into_iter().chain(hydrated(connection, id)?).chain(gaps).map(doubt));
            }
            Ok(found)
        })
    }
}

impl Store {
    /// Sees to it that the next run of a connection brings back what is in doubt. Whoever holds its lease may do so.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or the lease is lost. Then nothing was changed.
    pub fn repair(&mut self, name: &str, leases: &[Lease]) -> Result<Repaired, StoreError> {
        Lease::has_connection(leases, name)?;
        self.write(leases, |transaction| {
            let of = registry::find(transaction, name)?;
            let claimed = hydrated(transaction, of)?;
            let sql = "UPDATE cursors SET basis = ?2 WHERE stream IN (SELECT id FROM streams WHERE connection = ?1)
                       AND track IN ('steady', 'catch_up') AND (is_assumed = 1 OR ?3)";
            let cursors = transaction.execute(sql, (of, NOTHING, !claimed.is_empty()))? as u64;
            let mut gaps = 0;
            for id in closed_gaps(transaction, of)?.into_values().flatten() {
                if let Some(mut row) = GapRow::by_id(transaction, id)? {
                    gaps += u64::from(row.change(transaction, Gap::reopen_unconfirmed)?);
                }
            }
            Ok(Repaired { cursors, gaps })
        })
    }
}

fn cursors(connection: &Connection, of: i64) -> Result<Vec<(String, DoubtAbout)>, Failure> {
    let sql = "SELECT s.name, c.track FROM cursors c JOIN streams s ON s.id = c.stream
               WHERE s.connection = ?1 AND c.is_assumed = 1 ORDER BY s.id, c.track";
    rows(connection, sql, [of], |row| Ok((row.get(0)?, DoubtAbout::Cursor { track: row.get(1)? })))
}

/// Only of reports that no check was behind: since schema 5 hydrated keys are confirmed before they count.
fn hydrated(connection: &Connection, of: i64) -> Result<Vec<(String, DoubtAbout)>, Failure> {
    let sql = "SELECT s.name, l.hydrated, s.records + s.tombstones FROM listings l JOIN streams s ON s.id = l.stream
               JOIN runs r ON r.id = l.run
               WHERE s.connection = ?1 AND r.scope IS NULL AND l.hydrated > s.records + s.tombstones + s.quarantined
               ORDER BY s.id";
    rows(connection, sql, [of], |row| {
        let about = DoubtAbout::Hydrated { claimed: from_sql(row.get(1)?), stored: from_sql(row.get(2)?) };
        Ok((row.get(0)?, about))
    })
}

/// The gaps of a connection that were closed on a connector's word and for which the store has nothing, by stream.
fn closed_gaps(connection: &Connection, of: i64) -> Result<BTreeMap<String, Vec<i64>>, Failure> {
    // Nothing with this key; what a field may hold is looked for below.
    let sql = "SELECT g.id, g.stream, s.name, g.record_key FROM gaps g JOIN streams s ON s.id = g.stream
               WHERE g.connection = ?1 AND g.id > ?2 AND g.state = 'recovered' AND g.confirmed_by IS NULL
               AND g.part_of_list = 0 AND g.record_key NOT LIKE 'gleaner:%'
               AND NOT EXISTS (SELECT 1 FROM records r WHERE r.stream = g.stream AND r.key = g.record_key)
               AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.stream = g.stream AND q.key = g.record_key)
               ORDER BY g.id LIMIT ?3";
    let mut found = BTreeMap::<String, Vec<i64>>::new();
    let mut after = 0_i64;
    loop {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query((of, after, BATCH as i64))?;
        let mut batch = BTreeMap::<(i64, String), BTreeMap<String, i64>>::new();
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            let key = comparable(&row.get::<_, String>(3)?).into_owned();
            batch.entry((row.get(1)?, row.get(2)?)).or_default().insert(key, after);
        }
        if batch.is_empty() {
            return Ok(found);
        }
        for ((stream, name), mut keys) in batch {
            forget_those_in_fields(connection, stream, &mut keys)?;
            if !keys.is_empty() {
                found.entry(name).or_default().extend(keys.into_values());
            }
        }
    }
}

/// A gap's key may be a field of the records that it stood for.
fn forget_those_in_fields(
    connection: &Connection,
    stream: i64,
    keys: &mut BTreeMap<String, i64>,
) -> Result<(), Failure> {
    let mut sieve = Sieve::default();
    keys.keys().for_each(|key| sieve.add(key));
    let sql =
        "SELECT v.body FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = ?1 AND v.body IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([stream])?;
    while !keys.is_empty()
        && let Some(row) = rows.next()?
    {
        each_field(&row.get::<_, String>(0)?, |field| {
            if sieve.may_have(field) {
                keys.remove(field);
            }
            Ok(())
        })?;
    }
    Ok(())
}

//! Whether the store has what a coverage report calls hydrated: by key, by field, in quarantine, or nothing.
//!
//! Why in this order: nearly every key is that of a record, which one look into an index shows, and then nothing is
//! written. What is left is marked and looked for in the fields of records: first of those that this run wrote, then
//! of all that the stream has, once, and no further than until nothing is left. So a report with a million keys costs
//! a pass over the stream at most, and no memory. What is nowhere stays marked: the checkpoint waits for it.

use crate::account::coverage_keys::{EMPTY, HYDRATED, MISSING, OUTCOMES, Place, QUARANTINED, REQUIRED, each_key};
use crate::error::{Failure, from_sql, to_sql};
use crate::gaps::held_gaps::{Sieve, each_field};
use crate::run::session::RunTables;
use crate::sql::{execute, exists};
use gleaner_engine::{CoveragePair, ReportedKeys, Track};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// The keys of one report that are looked for.
#[derive(Clone, Copy)]
pub(crate) struct ReportKeys<'a> {
    pub(crate) connection: &'a Connection,
    /// The report.
    pub(crate) place: Place,
    /// The stream that it is about.
    pub(crate) stream: i64,
    /// The stream whose list it was, unless it is the same.
    pub(crate) parent: Option<i64>,
    /// The first number that a version of this run can have.
    pub(crate) first_seq: u64,
}

/// Records of a stream whose keys show whether it shares them with its parent.
const SAMPLE: i64 = 100;

impl<'c, T: Track> RunTables<'c, T> {
    pub(crate) fn keys_of(&self, place: Place, pair: &CoveragePair) -> Result<ReportKeys<'c>, Failure> {
        let Self { connection, session } = *self;
        let stream = session.streams.of(&pair.stream)?;
        let parent = session.streams.of(&pair.state_stream).ok().filter(|&parent| parent != stream);
        Ok(ReportKeys { connection, place, stream, parent, first_seq: session.first_seq })
    }
}

impl ReportKeys<'_> {
    /// Whether the required keys are keys of the list's records.
    pub(crate) fn whose(&self) -> Result<ReportedKeys, Failure> {
        let (run, report) = self.place;
        let has =
            |table: &str| format!("EXISTS (SELECT 1 FROM {table} r WHERE r.stream = ?3 AND r.key IN {STORED_AS})");
        let (records, quarantine) = (has("records"), has("quarantine"));
        let sql = format!(
            "SELECT 1 FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND lists & {REQUIRED} != 0
             AND NOT {records} AND NOT {quarantine} LIMIT 1"
        );
        let is_other = exists(self.connection, &sql, (run, report, self.parent))?;
        Ok(if is_other { ReportedKeys::Other } else { ReportedKeys::OfList })
    }

    /// Marks the keys that are called hydrated and of which the store has nothing. Answers how many.
    pub(crate) fn mark_missing(&self) -> Result<u64, Failure> {
        self.mark_quarantined()?;
        let mut missing = self.count_and_mark()?;
        if missing > 0 {
            let mut sieve = Sieve::default();
            self.each_missing(|key| {
                sieve.add(key);
                Ok(())
            })?;
            let of_run = "SELECT v.body FROM versions v WHERE v.seq >= ?1 AND v.stream = ?2";
            self.look_into_fields(of_run, &[Value::Integer(to_sql(self.first_seq))], &sieve, 0, &mut missing)?;
            let of_stream =
                "SELECT v.body FROM records r JOIN versions v ON v.seq = r.seq WHERE r.stream = ?1 AND v.deleted = 0";
            self.look_into_fields(of_stream, &[], &sieve, 0, &mut missing)?;
            let rejected = "SELECT q.body FROM quarantine q WHERE q.stream = ?1";
            self.look_into_fields(rejected, &[], &sieve, QUARANTINED, &mut missing)?;
        }
        if missing > 0 && self.may_be_empty()? {
            missing -= self.mark_empty()?;
        }
        Ok(missing)
    }

    /// The same once more, from what is there now.
    pub(crate) fn mark_again(&self) -> Result<u64, Failure> {
        self.forget_marks()?;
        self.mark_missing()
    }

    /// Forgets what was found so far.
    pub(crate) fn forget_marks(&self) -> Result<(), Failure> {
        let sql = format!(
            "UPDATE temp.coverage_keys SET lists = lists & ~{} WHERE run = ?1 AND report = ?2",
            MISSING | EMPTY | QUARANTINED
        );
        execute(self.connection, &sql, self.place)
    }

    fn mark_quarantined(&self) -> Result<(), Failure> {
        if exists(self.connection, "SELECT 1 FROM streams WHERE id = ?1 AND quarantined > 0", [self.stream])? {
            let found = format!("EXISTS (SELECT 1 FROM quarantine q WHERE q.stream = ?3 AND q.key IN {STORED_AS})");
            self.set(QUARANTINED, &found)?;
        }
        Ok(())
    }

    /// By the index of records. Where nothing is missing nothing is written.
    fn count_and_mark(&self) -> Result<u64, Failure> {
        let nowhere = format!(
            "lists & {QUARANTINED} = 0 AND NOT EXISTS
             (SELECT 1 FROM records r WHERE r.stream = ?3 AND r.key IN {STORED_AS} AND {})",
            self.counts()?
        );
        let sql = format!("SELECT count(*) FROM temp.coverage_keys WHERE {} AND {nowhere}", hydrated());
        let (run, report) = self.place;
        let counted = self.connection.query_row(&sql, (run, report, self.stream), |row| row.get::<_, i64>(0))?;
        if counted > 0 { self.set(MISSING, &nowhere) } else { Ok(0) }
    }

    /// Which records count. A deletion by an earlier run does not, if the list has a record with that key again.
    fn counts(&self) -> Result<String, Failure> {
        let has_tombstones = "SELECT 1 FROM streams WHERE id = ?1 AND tombstones > 0";
        let parent = match self.parent {
            Some(parent) if exists(self.connection, has_tombstones, [self.stream])? => parent,
            _ => return Ok("1".to_owned()),
        };
        let first = self.first_seq;
        Ok(format!(
            "(r.seq >= {first} OR EXISTS (SELECT 1 FROM versions v WHERE v.seq = r.seq AND v.deleted = 0) OR NOT EXISTS
             (SELECT 1 FROM records l JOIN versions v ON v.seq = l.seq
              WHERE l.stream = {parent} AND l.key = r.key AND v.deleted = 0))"
        ))
    }

    /// Sets a mark on the hydrated keys of which this is true. Answers how many there are.
    fn set(&self, mark: i64, condition: &str) -> Result<u64, Failure> {
        let (run, report) = self.place;
        let sql = format!("UPDATE temp.coverage_keys SET lists = lists | {mark} WHERE {} AND {condition}", hydrated());
        let marked = self.connection.execute(&sql, (run, report, self.stream))?;
        Ok(marked as u64)
    }

    fn each_missing(&self, call: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        each_key(self.connection, self.place, &format!("lists & {MISSING} != 0"), call)
    }

    /// Marks what a field of one of these bodies equals with `mark` instead of as missing, until nothing is missing.
    fn look_into_fields(
        &self,
        sql: &str,
        first: &[Value],
        sieve: &Sieve,
        mark: i64,
        missing: &mut u64,
    ) -> Result<(), Failure> {
        let (run, report) = self.place;
        let unmark = format!(
            "UPDATE temp.coverage_keys SET lists = (lists & ~{MISSING}) | {mark}
             WHERE run = ?1 AND report = ?2 AND key = ?3 AND lists & {MISSING} != 0"
        );
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut bodies = statement.query(params_from_iter(first.iter().chain([&Value::Integer(self.stream)])))?;
        while *missing > 0
            && let Some(row) = bodies.next()?
        {
            let rusqlite::types::ValueRef::Text(body) = row.get_ref(0)? else { continue };
            let Ok(body) = std::str::from_utf8(body) else { continue };
            each_field(body, |field| {
                if sieve.may_have(field) {
                    let found = self.connection.prepare_cached(&unmark)?.execute((run, report, field))?;
                    *missing = missing.saturating_sub(found as u64);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Whether a key that only the parent has can be one for which there is nothing (an empty conversation). Where the
    /// stream has its records under its parent's keys, one that is not there is missing.
    fn may_be_empty(&self) -> Result<bool, Failure> {
        let Some(parent) = self.parent else { return Ok(false) };
        let has_records = "SELECT 1 FROM records WHERE stream = ?1 LIMIT 1";
        let is_filled = exists(self.connection, has_records, [self.stream])?;
        Ok(is_filled && !shares_keys(self.connection, self.stream, parent)?)
    }

    fn mark_empty(&self) -> Result<u64, Failure> {
        let (run, report) = self.place;
        let sql = format!(
            "UPDATE temp.coverage_keys SET lists = (lists & ~{MISSING}) | {EMPTY} WHERE run = ?1 AND report = ?2
             AND lists & {MISSING} != 0 AND EXISTS
             (SELECT 1 FROM records r WHERE r.stream = ?3 AND r.key IN {STORED_AS})"
        );
        Ok(self.connection.execute(&sql, (run, report, self.parent))? as u64)
    }

    /// How many hydrated keys have this mark.
    pub(crate) fn count(&self, mark: i64) -> Result<u64, Failure> {
        let (run, report) = self.place;
        let sql = format!("SELECT count(*) FROM temp.coverage_keys WHERE {} AND lists & {mark} != 0", hydrated());
        Ok(from_sql(self.connection.query_row(&sql, (run, report), |row| row.get(0))?))
    }
}

/// How the key of a report may be stored: as it is, or, where it is a text that is written like a list, as its JSON. See
/// `RecordKey::canonical`.
const STORED_AS: &str = "(coverage_keys.key, CASE WHEN coverage_keys.key >= '[\"' AND coverage_keys.key < '[#'
                         THEN json_quote(coverage_keys.key) END)";

/// The keys of a report that it calls hydrated and nothing else.
fn hydrated() -> String {
    format!("run = ?1 AND report = ?2 AND lists & {OUTCOMES} = {HYDRATED} AND lists & {REQUIRED} != 0")
}

/// Whether records of one stream have keys of another.
pub(crate) fn shares_keys(connection: &Connection, stream: i64, other: i64) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM (SELECT key FROM records WHERE stream = ?1 LIMIT ?3) s
               JOIN records o ON o.stream = ?2 AND o.key = s.key LIMIT 1";
    exists(connection, sql, (stream, other, SAMPLE))
}

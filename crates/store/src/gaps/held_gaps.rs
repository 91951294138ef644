//! What came for the gaps that a run holds: a gap is closed only if the store has what it stood for.
//!
//! Why the keys of held gaps and not those of records: a run writes millions of records and holds the gaps that it was
//! served, whose keys are known. They lie in a temporary table, so that a million of them need no memory, and each
//! record that is written is looked up in it, by its key and by its top-level fields. A sieve of fixed size in front of
//! the table lets most fields pass without a look. A run that holds no gap does none of this. The table is part of the
//! slice's transaction; what a crash takes away of it belongs to a run that the crash took away, too.

use crate::account::hydrated_keys::shares_keys;
use crate::error::{Failure, from_sql, to_sql};
use crate::gaps::gap_rows::GapRow;
use crate::run::session::{RunTables, StreamIds};
use crate::sql::{execute, exists, first};
use gleaner_engine::{Confirmation, Evidence, GapsConfirmed, Recovery, SliceRecord, Track};
use gleaner_protocol::{RawJson, RecordKey};
use rusqlite::Connection;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Nothing came for it.
const NOTHING: i64 = 0;
/// A record of another stream has its key.
const OTHER_STREAM: i64 = 1;
/// A record of its own stream has its key, or a field that equals it.
const OWN_STREAM: i64 = 2;

/// What a run holds, as far as it is in memory.
#[derive(Debug, Default)]
pub(crate) struct HeldGaps {
    sieve: Sieve,
    /// The streams of the gaps that name a record.
    streams: BTreeSet<i64>,
    /// Whether one of them stands for a part of a list.
    lists: bool,
    came: Came,
}

/// What came since the run began to hold gaps, by stream: records and gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Came {
    counted: BTreeMap<i64, [u64; 2]>,
    /// What was already said to have taken the place of a gap.
    attributed: BTreeMap<i64, [u64; 2]>,
    /// Gaps of lists that were called recovered while details were still to come, and what there was for each.
    early: BTreeMap<i64, Evidence>,
}

impl Came {
    fn of(map: &BTreeMap<i64, [u64; 2]>, stream: i64) -> [u64; 2] {
        map.get(&stream).copied().unwrap_or_default()
    }

    fn count(&mut self, stream: i64, which: usize) {
        self.counted.entry(stream).or_default()[which] += 1;
    }

    /// What came in a stream since these numbers, each record and gap once.
    fn attribute(&mut self, stream: i64, since: [u64; 2]) -> [u64; 2] {
        let (now, before) = (Self::of(&self.counted, stream), Self::of(&self.attributed, stream));
        self.attributed.insert(stream, now);
        [0, 1].map(|at| now[at].saturating_sub(since[at].max(before[at])))
    }
}

/// Tells which keys are certainly not held, in 32 KiB however many are.
#[derive(Debug)]
pub(crate) struct Sieve(Vec<u64>);

impl Default for Sieve {
    fn default() -> Self {
        Self(vec![0; 4096])
    }
}

impl Sieve {
    fn place(&self, key: &str) -> (usize, u64) {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        (usize::try_from(hash >> 6).unwrap_or(0) % self.0.len(), 1 << (hash & 63))
    }

    pub(crate) fn add(&mut self, key: &str) {
        let (word, bit) = self.place(key);
        self.0[word] |= bit;
    }

    pub(crate) fn may_have(&self, key: &str) -> bool {
        let (word, bit) = self.place(key);
        self.0[word] & bit != 0
    }
}

/// A key as it is compared: one of several parts that somebody wrote as a text is its minified JSON.
pub(crate) fn comparable(key: &str) -> Cow<'_, str> {
    let parts = || {
        let raw = RawJson::new(key).ok()?;
        let parts =
            raw.elements()?.iter().map(|part| Some(Cow::Owned(part.text()?.into_owned()))).collect::<Option<_>>();
        parts.filter(|parts: &Vec<_>| !parts.is_empty())
    };
    match key.starts_with('[').then(parts).flatten() {
        Some(parts) => Cow::Owned(RecordKey::Compound(parts).canonical().into_owned()),
        None => Cow::Borrowed(key),
    }
}

/// Calls with each top-level field of a body that is a text or a number, as text.
pub(crate) fn each_field(body: &str, mut call: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let Ok(body) = RawJson::new(body) else { return Ok(()) };
    for (_, value) in body.members().unwrap_or_default() {
        let raw = value.as_str();
        match raw.as_bytes().first() {
            Some(b'"') => {
                if let Some(text) = value.text() {
                    call(&text)?;
                }
            }
            Some(b'-' | b'0'..=b'9') => call(raw)?,
            _ => {}
        }
    }
    Ok(())
}

impl<T: Track> RunTables<'_, T> {
    /// Takes note of a gap that was handed to this run.
    pub(crate) fn hold(&self, row: &GapRow) -> Result<(), Failure> {
        let mut held = self.session.held.borrow_mut();
        if held.is_none() {
            self.connection.execute_batch(
                "CREATE TEMP TABLE IF NOT EXISTS held_gaps (run INTEGER NOT NULL, gap INTEGER NOT NULL,
                 stream INTEGER NOT NULL, parent INTEGER, key TEXT, confirmed INTEGER NOT NULL,
                 records_before INTEGER NOT NULL, gaps_before INTEGER NOT NULL, PRIMARY KEY (run, gap)) STRICT, WITHOUT ROWID;
                 CREATE INDEX IF NOT EXISTS temp.held_by_key ON held_gaps (run, key) WHERE key IS NOT NULL",
            )?;
        }
        let held = held.get_or_insert_default();
        held.lists |= row.stands_for_many();
        let key = row.record_key().filter(|_| !row.stands_for_many()).map(comparable);
        if let Some(key) = &key {
            held.sieve.add(key);
            held.streams.insert(row.stream);
        }
        let parent = row.parent_stream().and_then(|parent| self.session.streams.of(parent).ok());
        let [records, gaps] = Came::of(&held.came.counted, row.stream).map(to_sql);
        let sql = "INSERT OR REPLACE INTO temp.held_gaps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        execute(self.connection, sql, (self.session.run, row.id, row.stream, parent, key, NOTHING, records, gaps))
    }

    /// Forgets what a run held.
    pub(crate) fn forget_held(&self) -> Result<(), Failure> {
        if self.session.held.borrow().is_some() {
            self.connection.execute("DELETE FROM temp.held_gaps WHERE run = ?1", [self.session.run])?;
        }
        Ok(())
    }
}

/// What one slice brings for the gaps that its run holds.
pub(crate) struct Brought<'h> {
    connection: &'h Connection,
    run: i64,
    held: Option<&'h HeldGaps>,
    came: Came,
    confirmed: GapsConfirmed,
    /// The streams and keys of the records that this slice puts into quarantine.
    rejected: BTreeSet<(i64, String)>,
}

impl<'h> Brought<'h> {
    pub(crate) fn new(connection: &'h Connection, run: i64, held: Option<&'h HeldGaps>) -> Self {
        let came = held.map(|held| held.came.clone()).unwrap_or_default();
        Self { connection, run, held, came, confirmed: GapsConfirmed::default(), rejected: BTreeSet::new() }
    }

    /// A record goes into quarantine.
    pub(crate) fn reject(&mut self, stream: i64, key: &str) {
        if self.held.is_some_and(|held| held.streams.contains(&stream)) {
            self.rejected.insert((stream, RecordKey::text_of(key).into_owned()));
        }
    }

    /// A record was written, or was there already.
    pub(crate) fn record(&mut self, stream: i64, record: &SliceRecord<'_>) -> Result<(), Failure> {
        let Some(held) = self.held else { return Ok(()) };
        self.came.count(stream, 0);
        let key = RecordKey::text_of(record.key);
        if held.sieve.may_have(&key) {
            let sql = "UPDATE temp.held_gaps SET confirmed = max(confirmed, CASE WHEN stream = ?3 THEN ?4
                       WHEN ifnull(parent, ?3) = ?3 THEN ?5 ELSE ?6 END) WHERE run = ?1 AND key = ?2";
            let values = (self.run, &*key, stream, OWN_STREAM, OTHER_STREAM, NOTHING);
            execute(self.connection, sql, values)?;
        }
        let body = record.body.filter(|_| held.streams.contains(&stream));
        body.map_or(Ok(()), |body| {
            each_field(body, |field| {
                if held.sieve.may_have(field) {
                    let sql = "UPDATE temp.held_gaps SET confirmed = ?4 WHERE run = ?1 AND key = ?2 AND stream = ?3";
                    execute(self.connection, sql, (self.run, field, stream, OWN_STREAM))?;
                }
                Ok(())
            })
        })
    }

    /// A gap was written.
    pub(crate) fn gap(&mut self, stream: i64) {
        if self.held.is_some() {
            self.came.count(stream, 1);
        }
    }

    /// A gap of a list is called recovered, and details of it are still to come: the end of the run decides.
    pub(crate) fn wait(&mut self, row: &GapRow, evidence: Evidence) {
        self.came.early.insert(row.id, evidence);
    }

    /// What there is for a gap that is called recovered in the name of this stream.
    pub(crate) fn evidence(&self, row: &GapRow, named: i64, streams: &StreamIds) -> Result<Evidence, Failure> {
        if named != row.stream || self.held.is_none() {
            return Ok(Evidence::Nothing);
        }
        let Some(key) = row.record_key().filter(|_| !row.stands_for_many()) else { return Ok(Evidence::List) };
        let sql = "SELECT confirmed FROM temp.held_gaps WHERE run = ?1 AND gap = ?2";
        let found = first(self.connection, sql, (self.run, row.id), |row| row.get(0))?;
        Ok(match found {
            Some(OWN_STREAM) => Evidence::Record,
            Some(OTHER_STREAM) if self.may_be_empty(row, key, streams)? => Evidence::OtherStream,
            Some(_) | None => Evidence::Nothing,
        })
    }

    /// Whether there can be nothing under a key that only another stream has. Not if its record is in quarantine, and not
    /// if the stream has its records under the keys of the other one: then a record that is not there is missing.
    fn may_be_empty(&self, row: &GapRow, key: &str, streams: &StreamIds) -> Result<bool, Failure> {
        if self.rejected.contains(&(row.stream, comparable(key).into_owned())) {
            return Ok(false);
        }
        for form in RecordKey::forms_of(&comparable(key)) {
            let sql = "SELECT 1 FROM quarantine WHERE stream = ?1 AND key = ?2";
            if exists(self.connection, sql, (row.stream, &*form))? {
                return Ok(false);
            }
        }
        let parent = row.parent_stream().and_then(|parent| streams.of(parent).ok());
        for (_, other) in streams.all().filter(|&(_, id)| id != row.stream && parent.is_none_or(|parent| parent == id))
        {
            let sql = "SELECT 1 FROM records WHERE stream = ?1 AND key = ?2";
            let mut has_key = false;
            for form in RecordKey::forms_of(&comparable(key)) {
                has_key = has_key || exists(self.connection, sql, (other, &*form))?;
            }
            if has_key && shares_keys(self.connection, row.stream, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts what came of it.
    pub(crate) fn count(&mut self, row: Option<&GapRow>, recovery: Recovery) -> Result<(), Failure> {
        self.confirmed.count(recovery);
        let Some(row) = row.filter(|_| recovery == Recovery::Settled(Confirmation::List)) else { return Ok(()) };
        let sql = "SELECT records_before, gaps_before FROM temp.held_gaps WHERE run = ?1 AND gap = ?2";
        let read = |row: &rusqlite::Row<'_>| Ok([from_sql(row.get(0)?), from_sql(row.get(1)?)]);
        let since = first(self.connection, sql, (self.run, row.id), read)?;
        let [records, gaps] = self.came.attribute(row.stream, since.unwrap_or_default());
        self.confirmed.list_records += records;
        self.confirmed.list_gaps += gaps;
        Ok(())
    }

    pub(crate) fn finish(self) -> (GapsConfirmed, Came) {
        (self.confirmed, self.came)
    }
}

impl HeldGaps {
    /// Whether the run was served a part of a list.
    pub(crate) const fn has_lists(&self) -> bool {
        self.lists
    }

    /// The gaps of lists whose end waits for that of the run.
    pub(crate) fn early(&self) -> impl Iterator<Item = (i64, Evidence)> {
        self.came.early.iter().map(|(&gap, &evidence)| (gap, evidence))
    }

    /// What a slice brought is durable.
    pub(crate) fn written(&mut self, came: Came) {
        self.came = came;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_parts_is_compared_as_minified_json_and_any_other_as_it_is() {
        let cases = [
            (r#"[ "a", "b" ]"#, r#"["a","b"]"#),
            (r#"["a","b"]"#, r#"["a","b"]"#),
            ("[a]", "[a]"),
            ("[1]", "[1]"),
            ("[]", "[]"),
            ("plain", "plain"),
        ];
        for (key, compared) in cases {
            assert_eq!(comparable(key), compared);
        }
    }

    #[test]
    fn fields_are_texts_and_numbers_of_the_top_level() {
        let mut found = Vec::new();
        let body = r#"{"a":"x","b":-1.50,"c":null,"d":["y"],"e":{"f":"z"},"g":true,"h":"\u0041"}"#;
        each_field(body, |field| {
            found.push(field.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["x", "-1.50", "A"]);
    }

    #[test]
    fn the_sieve_never_misses_a_key_that_was_added() {
        let mut sieve = Sieve::default();
        let key = |n: u32| format!("k{n}");
        (0..5000).for_each(|n| sieve.add(&key(n)));
        assert!((0..5000).all(|n| sieve.may_have(&key(n))));
        let passed = (5000..10_000).filter(|&n| sieve.may_have(&key(n))).count();
        assert!(passed < 500, "{passed} of 5000 others pass");
    }
}

//! The details that a run owes: one for each record of a list that it sent, until the detail or a gap came.
//!
//! A slice commits the cursor of a list before the coverage report about the list. The store can do without the report if the
//! run owed nothing when the cursor was committed. Only what this run sent counts. A detail that an earlier run stored may be
//! out of date, and a detail that is not there may be empty or missing: nobody has said which.
//!
//! The keys are in a temporary table, so that a million of them need no memory, and a sieve of fixed size lets most
//! fields pass without a look into the table. A run whose lists have no details does none of this.

use crate::error::Failure;
use crate::gaps::gap_rows::GapRow;
use crate::gaps::held_gaps::{Sieve, comparable, each_field};
use crate::run::session::{RunTables, Session};
use crate::sql::{execute, exists, first};
use gleaner_engine::{CoveragePair, SliceRecord, Track};
use gleaner_protocol::{Op, RecordKey};
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The lists of a run that have details.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    pairs: Vec<Pair>,
    sieve: RefCell<Sieve>,
}

#[derive(Debug)]
struct Pair {
    list: i64,
    detail: i64,
    pair: CoveragePair,
}

const TABLE: &str = "CREATE TEMP TABLE IF NOT EXISTS owed (run INTEGER NOT NULL, detail INTEGER NOT NULL,
                     key TEXT NOT NULL, list INTEGER NOT NULL, reported INTEGER NOT NULL, PRIMARY KEY (run, detail, key, list)) STRICT, WITHOUT ROWID;
                     CREATE INDEX IF NOT EXISTS temp.owed_by_list ON owed (run, list, detail)";

impl Owed {
    /// What a run will owe. A scoped run owes nothing: the other tracks account for what it walks over.
    pub(crate) fn begin<T: Track>(connection: &Connection, session: &Session<T>) -> Result<Self, Failure> {
        let mut owed = Self::default();
        let Some(reach) = session.start.about.reach.as_ref().filter(|_| T::ACCOUNTS) else { return Ok(owed) };
        for (name, list) in session.streams.all() {
            for report in reach.expected_reports(name) {
                let detail = session.streams.of(&report.pair.stream)?;
                // A record that is its own detail came with itself.
                if detail != list {
                    owed.pairs.push(Pair { list, detail, pair: report.pair.clone() });
                }
            }
        }
        if !owed.pairs.is_empty() {
            connection.execute_batch(TABLE)?;
        }
        Ok(owed)
    }

    /// A record came: the detail of some list's record, a record of a list itself, or both.
    pub(crate) fn record(
        &self,
        connection: &Connection,
        run: i64,
        stream: i64,
        record: &SliceRecord<'_>,
    ) -> Result<(), Failure> {
        if self.pairs.iter().any(|pair| pair.detail == stream) {
            self.pay(connection, run, stream, record)?;
        }
        for pair in self.pairs.iter().filter(|pair| pair.list == stream) {
            let sql = match record.op {
                Op::Upsert => "INSERT OR REPLACE INTO temp.owed VALUES (?1, ?2, ?3, ?4, 0)",
                Op::Delete => "DELETE FROM temp.owed WHERE run = ?1 AND detail = ?2 AND key = ?3 AND list = ?4",
            };
            self.sieve.borrow_mut().add(&RecordKey::text_of(record.key));
            execute(connection, sql, (run, pair.detail, record.key, stream))?;
        }
        Ok(())
    }

    /// Strikes out what a detail was owed for: its own key, or one that a field of it equals.
    fn pay(&self, connection: &Connection, run: i64, detail: i64, record: &SliceRecord<'_>) -> Result<(), Failure> {
        let sieve = self.sieve.borrow();
        let strike = |key: &str| -> Result<usize, Failure> {
            let sql = "DELETE FROM temp.owed WHERE run = ?1 AND detail = ?2 AND key = ?3";
            Ok(connection.prepare_cached(sql)?.execute((run, detail, key))?)
        };
        if sieve.may_have(&RecordKey::text_of(record.key)) && strike(record.key)? > 0 {
            return Ok(());
        }
        record.body.map_or(Ok(()), |body| {
            each_field(body, |field| {
                if sieve.may_have(field) {
                    for key in RecordKey::forms_of(field) {
                        strike(&key)?;
                    }
                }
                Ok(())
            })
        })
    }

    /// A report speaks for what came before it, once its run has succeeded: until then the run may be killed, and nobody
    /// hears what the report left open.
    pub(crate) fn reported(&self, connection: &Connection, run: i64, pair: &CoveragePair) -> Result<(), Failure> {
        let sql = "UPDATE temp.owed SET reported = 1 WHERE run = ?1 AND detail = ?2 AND list = ?3";
        for known in self.pairs.iter().filter(|known| known.pair == *pair) {
            execute(connection, sql, (run, known.detail, known.list))?;
        }
        Ok(())
    }

    /// Whether records of the list show what is owed. Of a list that has none only a report can tell.
    pub(crate) fn has_records(&self, connection: &Connection, list: i64) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM streams WHERE id = ?1 AND records + tombstones + quarantined > 0";
        Ok(self.pairs.iter().any(|pair| pair.list == list) && exists(connection, sql, [list])?)
    }

    /// Forgets what a run owed.
    pub(crate) fn forget(&self, connection: &Connection, run: i64) -> Result<(), Failure> {
        if !self.pairs.is_empty() {
            connection.execute("DELETE FROM temp.owed WHERE run = ?1", [run])?;
        }
        Ok(())
    }
}

/// When it is asked what a run owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// While it goes on.
    Meanwhile,
    /// At its end, when it has succeeded: its reports count.
    AtEnd,
}

impl<T: Track> RunTables<'_, T> {
    /// Whether the run owes no detail of this list, nor of the lists that are found by it.
    pub(crate) fn is_paid(&self, list: i64, asked: Asked) -> Result<bool, Failure> {
        let (mut lists, mut waiting) = (BTreeSet::from([list]), vec![list]);
        while let Some(list) = waiting.pop() {
            for pair in self.session.owed.pairs.iter().filter(|pair| pair.list == list) {
                if !self.is_pair_paid(pair, asked)? {
                    return Ok(false);
                }
                if lists.insert(pair.detail) {
                    waiting.push(pair.detail);
                }
            }
        }
        Ok(true)
    }

    /// Whether the run owes no detail of what a gap stood for: of its record, if it was one of a list; of the list, if
    /// the gap was a part of it.
    pub(crate) fn is_expanded(&self, gap: &GapRow, asked: Asked) -> Result<bool, Failure> {
        if !gap.stands_for_many() {
            return self.is_record_paid(gap, asked);
        }
        if !self.is_paid(gap.stream, asked)? {
            return Ok(false);
        }
        let list = gap.parent_stream().and_then(|parent| self.session.streams.of(parent).ok());
        let is_its = |pair: &&Pair| pair.detail == gap.stream && list.is_none_or(|list| list == pair.list);
        for pair in self.session.owed.pairs.iter().filter(is_its) {
            if !self.is_pair_paid(pair, asked)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the run owes no detail of the record of a list that a gap names.
    fn is_record_paid(&self, gap: &GapRow, asked: Asked) -> Result<bool, Failure> {
        let Some(key) = gap.record_key().map(comparable) else { return Ok(true) };
        let sql =
            "SELECT 1 FROM temp.owed WHERE run = ?1 AND list = ?2 AND detail = ?3 AND key = ?4 AND reported <= ?5";
        for Pair { list, detail, pair } in self.session.owed.pairs.iter().filter(|pair| pair.list == gap.stream) {
            for form in RecordKey::forms_of(&key) {
                let values = (self.session.run, list, detail, &*form, i64::from(asked == Asked::Meanwhile));
                if exists(self.connection, sql, values)? && !self.has_durable_gap(pair, &key)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A gap pays, too. It is struck out, so that it is looked for once.
    fn is_pair_paid(&self, Pair { list, detail, pair }: &Pair, asked: Asked) -> Result<bool, Failure> {
        let (run, reported) = (self.session.run, i64::from(asked == Asked::Meanwhile));
        let next = "SELECT key FROM temp.owed WHERE run = ?1 AND list = ?2 AND detail = ?3 AND reported <= ?4 LIMIT 1";
        let strike = "DELETE FROM temp.owed WHERE run = ?1 AND list = ?2 AND detail = ?3 AND key = ?4";
        loop {
            let key = first(self.connection, next, (run, list, detail, reported), |row| row.get::<_, String>(0))?;
            let Some(key) = key else { return Ok(true) };
            if !self.has_durable_gap(pair, &RecordKey::text_of(&key))? {
                return Ok(false);
            }
            execute(self.connection, strike, (run, list, detail, &key))?;
        }
    }
}

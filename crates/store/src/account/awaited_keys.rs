//! Keys that a coverage report required and gave no outcome: kept until a later report accounts for them.
//!
//! Such a report withholds the checkpoint, so the next run lists the same records again and reports about them again. A
//! connector that does not name such a key any more would make it disappear: it becomes a gap instead.

use crate::account::coverage_keys::{
    EMPTY, HYDRATED, MISSING, Place, REQUIRED, create_table, each_key, forget_report, without_outcome,
};
use crate::error::{Failure, to_sql};
use crate::run::session::RunTables;
use crate::sql::execute;
use gleaner_engine::{CoveragePair, RunOutcome, Track, WallTime};
use gleaner_protocol::TerminalReason;

/// No report of a run has this number.
pub(crate) const NO_REPORT: i64 = 0;

impl<T: Track> RunTables<'_, T> {
    /// Settles what earlier reports left open, and keeps what the reports of this run leave open. Reports of other than
    /// ordinary runs are about a part of the list.
    pub(crate) fn settle_awaited_keys(&self, outcome: &RunOutcome, now: WallTime) -> Result<(), Failure> {
        if !self.session.is_ordinary() {
            return Ok(());
        }
        let mut opened = 0;
        for (pair, place) in self.session.reports() {
            create_table(self.connection)?;
            if outcome.reason == TerminalReason::Succeeded {
                opened += self.open_forgotten(pair, place, now)?;
                let sql = "DELETE FROM awaited_keys WHERE stream = ?1 AND parent = ?2";
                let stream = self.session.streams.of(&pair.stream)?;
                execute(self.connection, sql, (stream, &pair.state_stream))?;
            }
            self.keep_awaited(pair, place)?;
        }
        let sql = "UPDATE runs SET unaccounted = unaccounted + ?2 WHERE id = ?1";
        execute(self.connection, sql, (self.session.run, to_sql(opened)))
    }

    /// Opens a gap for each key that an earlier report left open, that this one does not require, and of which the store
    /// has nothing. A record that only the list has is no evidence: no connector said that its detail is empty.
    fn open_forgotten(&self, pair: &CoveragePair, (run, report): Place, now: WallTime) -> Result<u64, Failure> {
        let forgotten = (run, NO_REPORT);
        let sql = format!(
            "INSERT INTO temp.coverage_keys SELECT ?1, {NO_REPORT}, a.key, {} FROM awaited_keys a
             WHERE a.stream = ?2 AND a.parent = ?3 AND NOT EXISTS (SELECT 1 FROM temp.coverage_keys k
             WHERE k.run = ?1 AND k.report = ?4 AND k.key = a.key AND k.lists & {REQUIRED} != 0)",
            REQUIRED | HYDRATED
        );
        let stream = self.session.streams.of(&pair.stream)?;
        if self.connection.prepare_cached(&sql)?.execute((run, stream, &pair.state_stream, report))? == 0 {
            return Ok(0);
        }
        self.keys_of(forgotten, pair)?.mark_missing()?;
        let opened = self.open_unaccounted(pair, forgotten, &format!("lists & {} != 0", MISSING | EMPTY), now)?;
        forget_report(self.connection, forgotten)?;
        Ok(opened)
    }

    fn keep_awaited(&self, pair: &CoveragePair, place: Place) -> Result<(), Failure> {
        let stream = self.session.streams.of(&pair.stream)?;
        each_key(self.connection, place, &without_outcome(), |key| {
            if !self.has_durable_gap(pair, key)? {
                let sql = "INSERT OR IGNORE INTO awaited_keys VALUES (?1, ?2, ?3)";
                execute(self.connection, sql, (stream, &pair.state_stream, key))?;
            }
            Ok(())
        })
    }
}

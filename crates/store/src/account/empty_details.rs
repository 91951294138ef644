//! Keys that a coverage report calls hydrated, that the list has, and under which no record came: they count as empty.
//!
//! An empty conversation looks like this, and so does a conversation whose connector left its messages out. Nobody can tell
//! the two apart, so each such key stays on record as a gap that closed as empty, until a later report shows a record.

use crate::account::coverage_keys::{EMPTY, HYDRATED, MISSING, OUTCOMES, Place, QUARANTINED, create_table, each_key};
use crate::error::Failure;
use crate::gaps::gap_rows::{COLUMNS, read_all};
use crate::run::session::RunTables;
use crate::sql::exists;
use gleaner_engine::{Confirmation, CoveragePair, Track, WallTime};
use rusqlite::Connection;

/// Rows that are in memory at a time.
const BATCH: usize = 500;

impl<T: Track> RunTables<'_, T> {
    /// Keeps the empty keys of this run's reports, and marks those of earlier reports that have a record now.
    pub(crate) fn keep_empty_details(&self, now: WallTime) -> Result<(), Failure> {
        for (pair, place) in self.session.reports() {
            // A report without keys made no table.
            create_table(self.connection)?;
            let stream = self.session.streams.of(&pair.stream)?;
            let has_empty =
                format!("SELECT 1 FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND lists & {EMPTY} != 0");
            let had_empty = "SELECT 1 FROM streams WHERE id = ?1 AND gaps_empty > 0";
            if exists(self.connection, &has_empty, place)? || exists(self.connection, had_empty, [stream])? {
                // Records may have come after a report that was early.
                self.keys_of(place, pair)?.mark_again()?;
                confirm(self.connection, stream, pair, place)?;
                let is_empty = format!("lists & {EMPTY} != 0");
                each_key(self.connection, place, &is_empty, |key| self.open_empty(pair, key, now))?;
            }
        }
        Ok(())
    }
}

/// A record came for a key that was empty before.
fn confirm(connection: &Connection, stream: i64, pair: &CoveragePair, (run, report): Place) -> Result<(), Failure> {
    let came = format!(
        "SELECT {COLUMNS} FROM gaps WHERE stream = ?1 AND parent_stream = ?2 AND confirmed_by = 'empty' AND EXISTS (SELECT 1 FROM temp.coverage_keys k
         WHERE k.run = ?3 AND k.report = ?4 AND k.key = gaps.record_key AND k.lists & {OUTCOMES} = {HYDRATED}
         AND k.lists & {} = 0) LIMIT {BATCH}",
        MISSING | EMPTY | QUARANTINED
    );
    loop {
        let rows = read_all(connection, &came, (stream, &pair.state_stream, run, report))?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            row.change(connection, |gap| gap.confirmed_by = Some(Confirmation::Record))?;
        }
    }
}

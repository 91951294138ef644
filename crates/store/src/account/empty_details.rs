//! Keys that a coverage report calls hydrated, that the list has, and under which no record came: they count as empty.
//!
//! An empty conversation looks like this, and so does a conversation whose connector left its messages out. Nobody can tell
//! the two apart, so each such key stays on record as a gap that closed as empty, until a later report shows a record.

use crate::account::coverage_keys::{EMPTY, HYDRATED, MISSING, OUTCOMES, Place, QUARANTINED, create_table, each_key};
use crate::account::hydrated_keys::Where;
use crate::error::Failure;
use crate::gaps::gap_rows::{COLUMNS, open_empty, read_all};
use crate::run::session::Session;
use crate::sql::exists;
use gleaner_engine::{Confirmation, CoveragePair, Track, WallTime};
use rusqlite::Connection;

/// Rows that are in memory at a time.
const BATCH: usize = 500;

/// Keeps the empty keys of this run's reports, and marks those of earlier reports that have a record now.
pub(crate) fn keep<T: Track>(connection: &Connection, session: &Session<T>, now: WallTime) -> Result<(), Failure> {
    for (pair, place) in session.reports() {
        // A report without keys made no table.
        create_table(connection)?;
        let stream = session.streams.of(&pair.stream)?;
        let has_empty =
            format!("SELECT 1 FROM temp.coverage_keys WHERE run = ?1 AND report = ?2 AND lists & {EMPTY} != 0");
        let had_empty = "SELECT 1 FROM streams WHERE id = ?1 AND gaps_empty > 0";
        if exists(connection, &has_empty, place)? || exists(connection, had_empty, [stream])? {
            // Records may have come after a report that was early.
            Where::of(connection, session, place, pair)?.mark_again()?;
            confirm(connection, stream, pair, place)?;
            each_key(connection, place, &format!("lists & {EMPTY} != 0"), |key| {
                open_empty(connection, session, pair, key, now)
            })?;
        }
    }
    Ok(())
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
            let before = row.gap.state.clone();
            row.gap.confirmed_by = Some(Confirmation::Record);
            row.update(connection, &before)?;
        }
    }
}

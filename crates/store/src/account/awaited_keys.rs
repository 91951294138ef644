//! Keys that a coverage report required and gave no outcome: kept until a later report accounts for them.
//!
//! Such a report withholds the checkpoint, so the next run lists the same records again and reports about them again. A
//! connector that does not name such a key any more would make it disappear: it becomes a gap instead.

use crate::account::coverage_keys::{
    EMPTY, HYDRATED, MISSING, Place, REQUIRED, create_table, each_key, forget_report, has_durable_gap, without_outcome,
};
use crate::account::hydrated_keys::Where;
use crate::error::{Failure, to_sql};
use crate::gaps::gap_rows;
use crate::run::session::Session;
use crate::sql::execute;
use gleaner_engine::{CoveragePair, RunOutcome, Track, WallTime};
use gleaner_protocol::TerminalReason;
use rusqlite::Connection;

/// No report of a run has this number.
pub(crate) const NO_REPORT: i64 = 0;

/// Settles what earlier reports left open, and keeps what the reports of this run leave open. Reports of other than ordinary
/// runs are about a part of the list.
pub(crate) fn settle<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    outcome: &RunOutcome,
    now: WallTime,
) -> Result<(), Failure> {
    if !session.is_ordinary() {
        return Ok(());
    }
    let mut opened = 0;
    for (pair, place) in session.reports() {
        create_table(connection)?;
        if outcome.reason == TerminalReason::Succeeded {
            opened += open_gaps(connection, session, pair, place, now)?;
            let sql = "DELETE FROM awaited_keys WHERE stream = ?1 AND parent = ?2";
            let stream = session.streams.of(&pair.stream)?;
            execute(connection, sql, (stream, &pair.state_stream))?;
        }
        keep(connection, session, pair, place)?;
    }
    let sql = "UPDATE runs SET unaccounted = unaccounted + ?2 WHERE id = ?1";
    execute(connection, sql, (session.run, to_sql(opened)))
}

/// Opens a gap for each key that an earlier report left open, that this one does not require, and of which the store has
/// nothing. A record that only the list has is no evidence: no connector said that its detail is empty.
fn open_gaps<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    pair: &CoveragePair,
    (run, report): Place,
    now: WallTime,
) -> Result<u64, Failure> {
    let forgotten = (run, NO_REPORT);
    let sql = format!(
        "INSERT INTO temp.coverage_keys SELECT ?1, {NO_REPORT}, a.key, {} FROM awaited_keys a
         WHERE a.stream = ?2 AND a.parent = ?3 AND NOT EXISTS (SELECT 1 FROM temp.coverage_keys k
         WHERE k.run = ?1 AND k.report = ?4 AND k.key = a.key AND k.lists & {REQUIRED} != 0)",
        REQUIRED | HYDRATED
    );
    let stream = session.streams.of(&pair.stream)?;
    if connection.prepare_cached(&sql)?.execute((run, stream, &pair.state_stream, report))? == 0 {
        return Ok(0);
    }
    Where::of(connection, session, forgotten, pair)?.mark_missing()?;
    let mut opened = 0;
    each_key(connection, forgotten, &format!("lists & {} != 0", MISSING | EMPTY), |key| {
        if !has_durable_gap(connection, session, pair, key)? {
            gap_rows::open_unaccounted(connection, session, pair, key, now)?;
            opened += 1;
        }
        Ok(())
    })?;
    forget_report(connection, forgotten)?;
    Ok(opened)
}

fn keep<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    pair: &CoveragePair,
    place: Place,
) -> Result<(), Failure> {
    let stream = session.streams.of(&pair.stream)?;
    each_key(connection, place, &without_outcome(), |key| {
        if !has_durable_gap(connection, session, pair, key)? {
            let sql = "INSERT OR IGNORE INTO awaited_keys VALUES (?1, ?2, ?3)";
            execute(connection, sql, (stream, &pair.state_stream, key))?;
        }
        Ok(())
    })
}

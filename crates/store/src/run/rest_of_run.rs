//! What a run had left when its own budget ended it: a gap per stream, and the end of that gap.
//!
//! The runtime writes these gaps, so it also closes them: when a later run of the same track goes to the end of their
//! stream, in the transaction that says so. Nobody else does. An ordinary run accounts for all that its owner allows, so
//! it also closes what scoped runs left of the same streams.

use crate::error::{Failure, StoreError};
use crate::gaps::gap_rows::{self, COLUMNS};
use crate::run::session::Session;
use crate::sql::first;
use crate::store::Store;
use gleaner_engine::{CatchUp, REST_OF_RUN, RunOutcome, RunPurpose, Scoped, Track, WallTime, rest_of_run};
use rusqlite::Connection;

impl Store {
    /// Writes down that these streams were not finished, each with its last durable cursor, and syncs.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. Then none is there.
    pub fn write_rest_of_run<T: Track>(
        &mut self,
        session: &Session<T>,
        streams: &[String],
        now: WallTime,
    ) -> Result<(), StoreError> {
        self.write(&session.leases, |transaction| {
            for stream in streams {
                let sql = "SELECT token FROM cursors WHERE stream = ?1 AND track = ?2";
                let id = session.streams.of(stream)?;
                let token = first(transaction, sql, (id, session.track()), |row| row.get(0))?;
                let cursor = crate::run::session::optional_raw_json(token)?;
                gap_rows::open(transaction, session, &rest_of_run(stream, cursor), now)?;
            }
            Ok(())
        })
    }
}

/// A run went to its end: what earlier ones had left of its streams is no longer missing. Not of those that it skipped or
/// whose checkpoint was withheld, and not if it only recovered gaps.
pub(crate) fn settle<T: Track>(
    connection: &Connection,
    session: &Session<T>,
    outcome: &RunOutcome,
) -> Result<(), Failure> {
    if session.start.about.purpose == RunPurpose::RecoveryOnly {
        return Ok(());
    }
    let is_open = |stream: &str| {
        let skips = &outcome.skips.by_stream;
        let is_withheld = outcome.withheld.iter().any(|withheld| withheld.stream == stream);
        is_withheld || skips.contains_key(stream) || skips.contains_key("")
    };
    let gone_through = session.streams.ids_of(|stream| session.asks_for(stream) && !is_open(stream));
    let own = format!(
        "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state IN ('pending', 'ignored') AND grant_id = ?2 \
         AND record_key = ?3"
    );
    let all_of_grant = format!(
        "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state IN ('pending', 'ignored') \
         AND substr(grant_id, 1, length(?2)) = ?2"
    );
    // At most one per stream of the connection.
    let mut left = gap_rows::read_all(connection, &own, (session.connection, session.gap_grant(true), REST_OF_RUN))?;
    if session.is_ordinary() {
        // What stands for a single record is not under such a grant.
        let grant = format!("{}@{}:", session.start.grant, Scoped::NAME);
        left.extend(gap_rows::read_all(connection, &all_of_grant, (session.connection, grant))?);
    }
    let mut left = left.into_iter().filter(|row| gone_through.contains(&row.stream)).collect::<Vec<_>>();
    if session.is_ordinary() {
        // A list that was gone through from its beginning has no history that is left.
        let from_beginning =
            session.streams.ids_of(|stream| session.asks_for(stream) && session.went_on_after(stream) == 0);
        let history = gap_rows::read_all(
            connection,
            &all_of_grant,
            (session.connection, format!("{}@{}", session.start.grant, CatchUp::NAME)),
        )?;
        let is_done =
            |row: &gap_rows::GapRow| gone_through.contains(&row.stream) && from_beginning.contains(&row.stream);
        left.extend(history.into_iter().filter(is_done));
    }
    for mut row in left {
        let before = row.gap.state.clone();
        row.gap.settle_rest();
        row.update(connection, &before)?;
    }
    Ok(())
}

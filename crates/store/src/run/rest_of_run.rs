//! What a run had left when its own budget ended it: a gap per stream, and the end of that gap.
//!
//! The runtime writes these gaps, so it also closes them: when a later run of the same track goes to the end of their
//! stream, in the transaction that says so. Nobody else does. An ordinary run accounts for all that its owner allows, so
//! it also closes what scoped runs left of the same streams.

use crate::error::{Failure, StoreError};
use crate::gaps::gap_rows::{COLUMNS, GapRow, read_all};
use crate::run::session::{RunTables, Session, optional_raw_json};
use crate::sql::first;
use crate::store::Store;
use gleaner_engine::{CatchUp, Gap, REST_OF_RUN, RunOutcome, RunPurpose, Scoped, Track, WallTime, rest_of_run};

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
                let rest = rest_of_run(stream, optional_raw_json(token)?);
                session.tables(transaction).open_gap(&rest, now)?;
            }
            Ok(())
        })
    }
}

impl<T: Track> RunTables<'_, T> {
    /// A run went to its end: what earlier ones had left of its streams is no longer missing. Not of those that it skipped
    /// or whose checkpoint was withheld, and not if it only recovered gaps.
    pub(crate) fn settle_rest_of_run(&self, outcome: &RunOutcome) -> Result<(), Failure> {
        let Self { connection, session } = *self;
        if session.start.about.purpose == RunPurpose::RecoveryOnly {
            return Ok(());
        }
        let is_open = |stream: &str| {
            let skips = &outcome.skips.by_stream;
            let is_withheld = outcome.withheld.iter().any(|withheld| withheld.stream == stream);
            is_withheld || skips.contains_key(stream) || skips.contains_key("")
        };
        let gone_through = session.streams.ids_of(|stream| session.asks_for(stream) && !is_open(stream));
        let waiting = format!("SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state IN ('pending', 'ignored')");
        let own = format!("{waiting} AND grant_id = ?2 AND record_key = ?3");
        // At most one per stream of the connection.
        let mut left = read_all(connection, &own, (session.connection, session.gap_grant(true), REST_OF_RUN))?;
        if session.is_ordinary() {
            let of_grant = format!("{waiting} AND substr(grant_id, 1, length(?2)) = ?2");
            let of_track = |track: &str| {
                read_all(connection, &of_grant, (session.connection, format!("{}@{track}", session.start.grant)))
            };
            // What stands for a single record is not under such a grant.
            left.extend(of_track(&format!("{}:", Scoped::NAME))?);
            // A list that was gone through from its beginning has no history that is left.
            let from_beginning = session.streams.ids_of(|stream| session.went_on_after(stream) == 0);
            let history = of_track(CatchUp::NAME)?.into_iter();
            left.extend(history.filter(|row| from_beginning.contains(&row.stream)));
        }
        left.retain(|row: &GapRow| gone_through.contains(&row.stream));
        left.iter_mut().try_for_each(|row| row.change(connection, Gap::settle_rest))
    }
}

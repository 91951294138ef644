//! What a run had left when its own budget ended it: a gap per stream, and the end of that gap.
//!
//! The runtime writes these gaps, so it also closes them: when a later run of the same grant goes to
//! its end, in the transaction that says so. Nobody else does.

use crate::error::{Failure, StoreError};
use crate::gap_rows::{self, COLUMNS};
use crate::session::Session;
use crate::store::Store;
use gleaner_engine::{REST_OF_RUN, Track, WallTime, rest_of_run};
use rusqlite::{Connection, OptionalExtension};

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
                let token = transaction.prepare_cached(sql)?.query_row((id, T::NAME), |row| row.get(0)).optional()?;
                let cursor = crate::session::optional_raw_json(token)?;
                gap_rows::open(transaction, session, &rest_of_run(stream, cursor), now)?;
            }
            Ok(())
        })
    }
}

/// A run went to its end: what earlier ones had left of its streams is no longer missing.
pub(crate) fn settle<T: Track>(connection: &Connection, session: &Session<T>) -> Result<(), Failure> {
    let sql = format!(
        "SELECT {COLUMNS} FROM gaps WHERE connection = ?1 AND state IN ('pending', 'ignored') AND record_key = ?2 \
         AND grant_id = ?3"
    );
    // At most one per stream of the connection.
    for mut row in gap_rows::read_all(connection, &sql, (session.connection, REST_OF_RUN, &session.start.grant))? {
        let before = row.gap.state.clone();
        row.gap.settle_rest();
        row.update(connection, &before)?;
    }
    Ok(())
}

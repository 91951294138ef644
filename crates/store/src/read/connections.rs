//! Connections and their streams, with what is known about each.

use super::Reader;
use crate::error::{Failure, StoreError, date_from_sql, from_sql};
use crate::run::finish::read_cooldown;
use crate::run::session::read_with_basis;
use crate::sql::rows;
use gleaner_engine::{Cooldown, Cursor, PressureBacklog, Track, WallTime};
use gleaner_protocol::{Semantics, coded_enum};
use rusqlite::Connection;

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSummary {
    /// Its name.
    pub name: String,
    /// Its connector.
    pub connector_id: String,
    /// Whether it may run.
    pub state: ConnectionState,
    /// Since when it is there.
    pub created_at: WallTime,
    /// Over all streams.
    pub totals: StreamSummary,
    /// Whether a question waits for the owner.
    pub question_open: bool,
}

coded_enum! {
    /// Whether a connection may run.
    pub enum ConnectionState {
        /// It may.
        Active = "active";
        /// The owner holds it back.
        Paused = "paused";
        /// The owner is done with it. What was collected stays.
        Removed = "removed";
        /// It is being forgotten.
        Purging = "purging";
    }
}

/// What is stored of a stream, or of all streams of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Its name; empty in a total.
    pub name: String,
    /// Whether records change; absent in a total.
    pub semantics: Option<Semantics>,
    /// Whether the manifest still has it.
    pub declared: bool,
    /// The view in which its records can be read.
    pub view_name: Option<String>,
    /// Records that are there.
    pub records: u64,
    /// Records that were deleted.
    pub tombstones: u64,
    /// Versions of all of them.
    pub versions: u64,
    /// Records that do not fit their schema.
    pub quarantined: u64,
    /// Gaps that wait.
    pub gaps_pending: u64,
    /// Gaps that a run works on.
    pub gaps_in_progress: u64,
    /// Gaps that were closed.
    pub gaps_recovered: u64,
    /// Gaps that were given up.
    pub gaps_terminal: u64,
    /// Gaps that the owner does without. They are missing, and need nobody.
    pub gaps_ignored: u64,
    /// Of the closed ones, those that were closed as empty: only another stream has their key.
    pub gaps_empty: u64,
    /// The newest change.
    pub last_seq: Option<u64>,
    /// When that was.
    pub last_stored_at: Option<WallTime>,
}

impl StreamSummary {
    /// Gaps that are not closed, but for those that the owner does without.
    #[must_use]
    pub const fn gaps_open(&self) -> u64 {
        self.gaps_pending + self.gaps_in_progress + self.gaps_terminal
    }

    /// Everything that is known of and not here, also what the owner does without.
    #[must_use]
    pub const fn gaps_missing(&self) -> u64 {
        self.gaps_open() + self.gaps_ignored
    }
}

/// In the order in which [`read_counters`] reads them.
const COUNTERS: &str = "records, tombstones, versions, quarantined, gaps_pending, gaps_in_progress, gaps_recovered, \
                        gaps_terminal, gaps_ignored, gaps_empty";
const COUNTER_COUNT: usize = 10;

impl Reader {
    /// All connections, by name.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn connections(&self) -> Result<Vec<ConnectionSummary>, StoreError> {
        self.ask(|connection| summaries(connection, None))
    }

    /// One connection, also one that is being forgotten.
    ///
    /// # Errors
    ///
    /// When there is none with this name.
    pub fn connection(&self, name: &str) -> Result<ConnectionSummary, StoreError> {
        let unknown = || StoreError::UnknownConnection(name.to_owned());
        self.ask(|connection| summaries(connection, Some(name)))?.pop().ok_or_else(unknown)
    }

    /// The manifest of a connection, as its author wrote it.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn manifest_text(&self, name: &str) -> Result<String, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = "SELECT manifest FROM connections WHERE id = ?1";
            Ok(connection.query_row(sql, [id], |row| row.get(0))?)
        })
    }

    /// How a connection is started and what it is told, as JSON.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn settings(&self, name: &str) -> Result<String, StoreError> {
        self.ask_of(name, |connection, id| {
            Ok(connection.query_row("SELECT settings FROM connections WHERE id = ?1", [id], |row| row.get(0))?)
        })
    }

    /// The streams of a connection, in the order in which they were declared.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn streams(&self, name: &str) -> Result<Vec<StreamSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!(
                "SELECT name, semantics, declared, view_name, {COUNTERS}, last_seq, last_stored_at FROM streams \
                 WHERE connection = ?1 ORDER BY id"
            );
            rows(connection, &sql, [id], |row| {
                Ok(StreamSummary {
                    name: row.get(0)?,
                    semantics: Semantics::from_code(&row.get::<_, String>(1)?),
                    declared: row.get(2)?,
                    view_name: row.get(3)?,
                    ..read_counters(row, 4)?
                })
            })
        })
    }

    /// The committed cursors of one track.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn bookmarks<T: Track>(&self, name: &str) -> Result<Vec<Cursor<T>>, StoreError> {
        self.ask_of(name, |connection, id| {
            let bookmarks = read_with_basis(connection, id, T::NAME)?.into_iter();
            Ok(bookmarks.map(|bookmark| bookmark.cursor).collect())
        })
    }

    /// The rest of a connection, if it has one. Whether it still counts is for the engine to say.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn cooldown(&self, name: &str) -> Result<Option<Cooldown>, StoreError> {
        self.ask_of(name, read_cooldown)
    }

    /// How much waits because of source pressure.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn pressure_backlog(&self, name: &str) -> Result<PressureBacklog, StoreError> {
        self.ask_of(name, |connection, id| {
            let (rate_limited, first) = count_pressure(connection, id, "rate_limited")?;
            let (upstream_pressure, second) = count_pressure(connection, id, "upstream_pressure")?;
            let oldest = [first, second].into_iter().flatten().min();
            Ok(PressureBacklog { rate_limited, upstream_pressure, oldest })
        })
    }
}

fn summaries(connection: &Connection, only: Option<&str>) -> Result<Vec<ConnectionSummary>, Failure> {
    let sums =
        COUNTERS.split(", ").map(|counter| format!("ifnull(sum(s.{counter}), 0)")).collect::<Vec<_>>().join(", ");
    let filter = if only.is_some() { "c.name = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "SELECT c.name, c.connector_id, c.state, c.created_at, EXISTS (SELECT 1 FROM interactions i \
         JOIN runs r ON r.id = i.run WHERE i.state = 'open' AND r.connection = c.id), \
         {sums}, max(s.last_seq), max(s.last_stored_at) \
         FROM connections c LEFT JOIN streams s ON s.connection = c.id WHERE {filter} GROUP BY c.id ORDER BY c.name"
    );
    rows(connection, &sql, [only], |row| {
        Ok(ConnectionSummary {
            name: row.get(0)?,
            connector_id: row.get(1)?,
            state: ConnectionState::from_code(&row.get::<_, String>(2)?).unwrap_or(ConnectionState::Active),
            created_at: date_from_sql(row.get(3)?),
            question_open: row.get(4)?,
            totals: read_counters(row, 5)?,
        })
    })
}

fn count_pressure(connection: &Connection, of: i64, reason: &str) -> Result<(u64, Option<WallTime>), Failure> {
    let sql = "SELECT count(*), min(since) FROM gaps INDEXED BY gaps_under_pressure
               WHERE connection = ?1 AND reason = ?2 AND state IN ('pending', 'in_progress')
               AND reason IN ('rate_limited', 'upstream_pressure')";
    let counted = connection
        .prepare_cached(sql)?
        .query_row((of, reason), |row| Ok((from_sql(row.get(0)?), row.get::<_, Option<i64>>(1)?.map(date_from_sql))));
    Ok(counted?)
}

/// The counters, and then the newest change.
fn read_counters(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<StreamSummary> {
    let count = |n: usize| Ok::<_, rusqlite::Error>(from_sql(row.get(at + n)?));
    Ok(StreamSummary {
        records: count(0)?,
        tombstones: count(1)?,
        versions: count(2)?,
        quarantined: count(3)?,
        gaps_pending: count(4)?,
        gaps_in_progress: count(5)?,
        gaps_recovered: count(6)?,
        gaps_terminal: count(7)?,
        gaps_ignored: count(8)?,
        gaps_empty: count(9)?,
        last_seq: row.get::<_, Option<i64>>(at + COUNTER_COUNT)?.map(from_sql),
        last_stored_at: row.get::<_, Option<i64>>(at + COUNTER_COUNT + 1)?.map(date_from_sql),
        ..StreamSummary::default()
    })
}

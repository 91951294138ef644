//! What the owner wants of a schedule, and what the owner was told: rows, without a rule.
//!
//! What a pattern or a zone means is for others to say. A wish for a run outlives the process that noted it, and is gone
//! with the transaction in which a run begins.

use crate::error::{Failure, StoreError, date_from_sql, date_to_sql, from_sql, to_sql};
use crate::read::Reader;
use crate::registry;
use crate::sql::{execute, first, rows};
use crate::store::Store;
use gleaner_engine::WallTime;
use gleaner_protocol::coded_enum;
use rusqlite::Connection;
use std::time::Duration;

/// When a connection runs, as its owner said. What is absent is as its manifest recommends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerSchedule {
    /// `automatic` or `manual`.
    pub mode: Option<String>,
    /// Once in so long.
    pub every: Option<Duration>,
    /// At the times of a pattern.
    pub cron: Option<String>,
    /// Hours in which nothing begins, as `22:00-07:00`.
    pub quiet: Option<String>,
    /// Whose hours those are.
    pub zone: Option<String>,
}

coded_enum! {
    /// Who wants a run before its time.
    pub enum WantedBy {
        /// The owner.
        Owner = "owner";
        /// A service that was stopped in the middle of it.
        HandedOver = "handed_over";
    }
}

/// A run that is wanted before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// By whom.
    pub by: WantedBy,
    /// Since when.
    pub at: WallTime,
}

impl Store {
    /// Keeps when a connection runs.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn set_schedule(&mut self, name: &str, schedule: &OwnerSchedule) -> Result<(), StoreError> {
        self.write(&[], |transaction| {
            let id = registry::find(transaction, name)?;
            let every = schedule.every.map(|every| to_sql(u64::try_from(every.as_millis()).unwrap_or(u64::MAX)));
            let OwnerSchedule { mode, cron, quiet, zone, .. } = schedule;
            let sql = "INSERT OR REPLACE INTO schedules VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            execute(transaction, sql, (id, mode, every, cron, quiet, zone))
        })
    }

    /// A run is wanted before its time. The owner's wish takes the place of any other.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn want_run(&mut self, name: &str, wanted: Wanted) -> Result<(), StoreError> {
        self.write(&[], |transaction| {
            let id = registry::find(transaction, name)?;
            let sql = "INSERT INTO wanted VALUES (?1, ?2, ?3) ON CONFLICT (connection) DO UPDATE
                       SET by = excluded.by, at = excluded.at WHERE by != 'owner'";
            execute(transaction, sql, (id, wanted.by.code(), date_to_sql(wanted.at)))
        })
    }

    /// Notes which of these events the owner has not been told of, and forgets those that are over. Answers the new
    /// ones; whoever asks again gets none.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn note_events(&mut self, name: &str, events: &[String], now: WallTime) -> Result<Vec<String>, StoreError> {
        let known = self.read(|connection| known_events(connection, registry::find(connection, name)?))?;
        if known.iter().all(|event| events.contains(event)) && events.iter().all(|event| known.contains(event)) {
            return Ok(Vec::new());
        }
        self.write(&[], |transaction| {
            let id = registry::find(transaction, name)?;
            for over in known_events(transaction, id)?.iter().filter(|event| !events.contains(event)) {
                transaction.execute("DELETE FROM notices WHERE connection = ?1 AND event = ?2", (id, over))?;
            }
            let mut new = Vec::new();
            for event in events {
                let sql = "INSERT INTO notices VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
                if transaction.execute(sql, (id, event, date_to_sql(now)))? == 1 {
                    new.push(event.clone());
                }
            }
            Ok(new)
        })
    }

    /// A number that is another one whenever somebody else has changed the store. What is written here does not count.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn changes_of_others(&self) -> Result<i64, StoreError> {
        self.read(|connection| Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?))
    }
}

fn known_events(connection: &Connection, of: i64) -> Result<Vec<String>, Failure> {
    rows(connection, "SELECT event FROM notices WHERE connection = ?1", [of], |row| row.get(0))
}

impl Reader {
    /// When a connection runs, as its owner said.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn schedule(&self, name: &str) -> Result<OwnerSchedule, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = "SELECT mode, every_ms, cron, quiet, zone FROM schedules WHERE connection = ?1";
            let row = |row: &rusqlite::Row<'_>| {
                let every = row.get::<_, Option<i64>>(1)?.map(|every| Duration::from_millis(from_sql(every)));
                let [mode, cron, quiet, zone] = [row.get(0)?, row.get(2)?, row.get(3)?, row.get(4)?];
                Ok(OwnerSchedule { mode, every, cron, quiet, zone })
            };
            Ok(first(connection, sql, [id], row)?.unwrap_or_default())
        })
    }

    /// Whether a run is wanted before its time.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn wanted(&self, name: &str) -> Result<Option<Wanted>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = "SELECT by, at FROM wanted WHERE connection = ?1";
            let row = |row: &rusqlite::Row<'_>| {
                let by = WantedBy::from_code(&row.get::<_, String>(0)?).unwrap_or(WantedBy::HandedOver);
                Ok(Wanted { by, at: date_from_sql(row.get(1)?) })
            };
            first(connection, sql, [id], row)
        })
    }
}

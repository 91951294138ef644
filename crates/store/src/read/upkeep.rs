//! What is asked of the store itself and not of what it holds: is it well, and does anybody work in it.

use super::Reader;
use crate::error::{StoreError, date_from_sql};
use crate::lease::holder::Holder;
use crate::lease::seen::SeenNote;
use crate::lease::{HeldBy, Standing, judge};
use crate::open::MIGRATIONS;
use crate::sql::rows;
use crate::store::{meta_number, meta_text};
use gleaner_engine::WallTime;

/// Faults of the quick look that are named.
const FAULTS_MAX: usize = 10;

/// A right that was not given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStanding {
    /// Somebody is at work.
    Held(HeldBy),
    /// Whoever had this is gone; the next one takes it over.
    Abandoned(String),
}

impl Reader {
    /// Every lease that was not given back.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn leases(&self, asking: &Holder, now: WallTime) -> Result<Vec<LeaseStanding>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT name FROM leases WHERE released = 0 ORDER BY name";
            let mut standings = Vec::new();
            for name in rows(connection, sql, [], |row| row.get::<_, String>(0))? {
                standings.push(match judge(connection, &name, asking, now)? {
                    Standing::Held(by) => LeaseStanding::Held(by),
                    Standing::Abandoned | Standing::Free => LeaseStanding::Abandoned(name),
                });
            }
            Ok(standings)
        })
    }

    /// Looks at the structure of every page, and not at what is in them. Answers the first faults.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn quick_check(&self) -> Result<Vec<String>, StoreError> {
        self.ask(|connection| {
            let sql = format!("PRAGMA quick_check({FAULTS_MAX})");
            let lines = rows(connection, &sql, [], |row| row.get::<_, String>(0))?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// When the newest run began or ended, by the clock of that time.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn newest_date(&self) -> Result<Option<WallTime>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT max(max(started_at, ifnull(ended_at, 0))) FROM runs";
            Ok(connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0))?.map(date_from_sql))
        })
    }

    /// # Errors
    ///
    /// [`StoreError::OlderThanSeen`] when this is an older copy of the store that was here before.
    pub fn check_not_restored(&self) -> Result<(), StoreError> {
        self.ask(|connection| {
            let seen = SeenNote::beside(self.path(), meta_text(connection, "store_id")?).epoch();
            let found = meta_number(connection, "epoch")?;
            if found < seen { Err(StoreError::OlderThanSeen { found, seen }.into()) } else { Ok(()) }
        })
    }

    /// The version of the schema that this program writes, and of SQLite.
    #[must_use]
    pub fn versions() -> (usize, &'static str) {
        (MIGRATIONS.len(), rusqlite::version())
    }
}

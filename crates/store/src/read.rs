//! The one read model: what the terminal, the console and scripts are shown comes from here.
//!
//! It reads a snapshot of its own while the writer goes on, and changes nothing: the connection is
//! opened read-only. Numbers come from counters that move with the rows; lists come in pages with a
//! bound, each from an index. Texts are as they came from outside: whoever shows them escapes them.

mod connections;
mod gaps;
mod health;
mod records;
mod runs;
mod upkeep;

pub use connections::{ConnectionState, ConnectionSummary, StreamSummary};
pub use gaps::{GapFilter, GapSummary, QuarantinedRecord};
pub use health::Evidence;
pub use records::{Change, StoredRecord};
pub use runs::{RunSummary, TracedEvent};
pub use upkeep::LeaseStanding;

use crate::error::{Failure, StoreError};
use crate::interactions::{self, OpenQuestion};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// The most rows of one page.
pub const PAGE_ROWS_MAX: usize = 1000;

/// A store that is read.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// Opens a store that is there.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not one of ours.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: crate::open::reader(path)?, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All questions that wait for the owner, the oldest first.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn open_questions(&self) -> Result<Vec<OpenQuestion>, StoreError> {
        self.ask(interactions::open_questions)
    }

    /// One question, if it waits.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn open_question(&self, id: i64) -> Result<Option<OpenQuestion>, StoreError> {
        self.ask(|connection| interactions::open_question(connection, id))
    }

    pub(crate) fn ask<R>(&self, ask: impl FnOnce(&Connection) -> Result<R, Failure>) -> Result<R, StoreError> {
        ask(&self.connection).map_err(|failure| failure.at(&self.path))
    }
}

/// Rows of one page.
fn rows<R>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
) -> Result<Vec<R>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
    Ok(rows)
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit.clamp(1, PAGE_ROWS_MAX)).unwrap_or(1)
}

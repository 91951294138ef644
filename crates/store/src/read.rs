//! The one read model: what the terminal, the console and scripts are shown comes from here.
//!
//! It reads a snapshot of its own while the writer goes on, and changes nothing: the connection is
//! opened read-only. Numbers come from counters that move with the rows; lists come in pages that are
//! bounded in rows and in bytes, each from an index, or row by row. Texts are as they came from outside: whoever shows them escapes them.

mod connections;
mod coverage;
mod export;
mod feed;
mod folded;
mod gap_cause;
mod gaps;
mod health;
mod looking;
mod missing;
mod query;
mod records;
mod runs;
mod upkeep;

pub use connections::{ConnectionState, ConnectionSummary, StreamSummary};
pub use coverage::{Listing, Share, StreamCoverage, WhyUnknown};
pub use export::{RecordRow, Snapshot};
pub use gap_cause::GapCause;
pub use gaps::{GAP_ID_DIGITS_MIN, GapCount, GapFilter, GapSummary, GapsWaiting, Ignored, MeantGap, QuarantinedRecord};
pub use health::Evidence;
pub use looking::Found;
pub use missing::Missing;
pub use query::{Cell, Interrupter, QueryError, QuerySink};
pub(crate) use records::stream_id;
pub use records::{Change, StoredRecord};
pub(crate) use runs::{LeftBy, OTHER_ACCOUNTS_SHORT, SETTLED_BY};
pub use runs::{LeftOpen, LeftOpenKind, RunSummary, Told, TracedEvent};
pub use upkeep::LeaseStanding;

use crate::error::{Failure, StoreError};
use crate::lease::holder::Holder;
use crate::lease::{self, HeldBy, LeaseOn};
use crate::registry;
use crate::run::interactions::OpenQuestion;
use gleaner_engine::WallTime;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// The most rows of one page.
pub const PAGE_ROWS_MAX: usize = 1000;
/// A page ends with the row that makes it longer than this: one record may have 16 MiB, and a thousand of
/// them would be more than a machine has. Ordinary pages are far below it.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A store that is read.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
    file: feed::FileId,
}

impl Reader {
    /// Opens a store that is there.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not one of ours.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = crate::open::reader(path)?;
        Ok(Self { connection, path: path.to_owned(), file: feed::FileId::of(path) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The questions whose run still waits, the oldest first, each with who waits. A run that was killed asks nothing
    /// any more.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn waiting_questions(&self, asking: &Holder, now: WallTime) -> Result<Vec<(OpenQuestion, HeldBy)>, StoreError> {
        let mut waiting = Vec::new();
        for question in self.open_questions()? {
            let holder = self.held_by(LeaseOn::Connection(&question.connection), asking, now)?;
            waiting.extend(holder.map(|holder| (question, holder)));
        }
        Ok(waiting)
    }

    /// Who holds this, if anybody does, seen from the process that asks.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn held_by(&self, on: LeaseOn<'_>, asking: &Holder, now: WallTime) -> Result<Option<HeldBy>, StoreError> {
        self.ask(|connection| lease::held_by(connection, on, asking, now))
    }

    /// Asks about a connection, which must be there.
    pub(crate) fn ask_of<R>(
        &self,
        name: &str,
        ask: impl FnOnce(&Connection, i64) -> Result<R, Failure>,
    ) -> Result<R, StoreError> {
        self.ask(|connection| ask(connection, registry::find(connection, name)?))
    }

    /// Asks about a stream, which must be there.
    fn ask_stream<R>(
        &self,
        name: &str,
        stream: &str,
        ask: impl FnOnce(&Connection, i64) -> Result<R, Failure>,
    ) -> Result<R, StoreError> {
        self.ask(|connection| ask(connection, stream_id(connection, name, stream)?))
    }

    pub(crate) fn ask<R>(&self, ask: impl FnOnce(&Connection) -> Result<R, Failure>) -> Result<R, StoreError> {
        ask(&self.connection).map_err(|failure| failure.at(&self.path))
    }
}

/// Rows of one page, as many as fit.
fn sized_rows<R>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    mut read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
    size: impl Fn(&R) -> usize,
) -> Result<Vec<R>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        let row = read(row)?;
        bytes += size(&row);
        page.push(row);
    }
    Ok(page)
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit.clamp(1, PAGE_ROWS_MAX)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    mod cost;
}

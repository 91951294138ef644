//! What runs left out of a stream, kept until a run goes over the stream again and leaves nothing out.
//!
//! The cursor may be past what was skipped. So a later run that skips nothing proves nothing, unless it began before the
//! skipped part: from a cursor that is older than the run that skipped it, or from none.

use crate::error::{Failure, StoreError, date_from_sql, date_to_sql};
use crate::read::{LeftBy, LeftOpen, LeftOpenKind, Reader, Told};
use crate::run::session::RunTables;
use crate::sql::{execute, rows};
use gleaner_engine::{RunOutcome, RunPurpose, Steady, Track, WallTime};
use gleaner_protocol::TerminalReason;

/// Something that a run left out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSkip {
    /// The stream.
    pub stream: String,
    /// Why, as the connector's code.
    pub reason: Option<String>,
    /// The same in its own words.
    pub message: Option<String>,
    /// The run that skipped it last.
    pub run_id: String,
    /// When that was.
    pub at: WallTime,
    by: LeftBy,
}

impl OpenSkip {
    /// Why, in the connector's words.
    #[must_use]
    pub fn why(&self) -> &str {
        self.message.as_deref().or(self.reason.as_deref()).unwrap_or("the connector does not say why")
    }
}

impl Reader {
    /// What earlier runs left out of the streams of a connection, and no later run has brought.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn open_skips(&self, name: &str) -> Result<Vec<OpenSkip>, StoreError> {
        self.ask_of(name, |connection, of| {
            let sql = "SELECT s.name, k.reason, k.message, r.run_id, k.at, k.track, r.scope, r.grant_scope FROM skips k
                       JOIN streams s ON s.id = k.stream JOIN runs r ON r.id = k.run
                       WHERE s.connection = ?1 AND s.declared = 1
                       ORDER BY s.id, k.reason, k.message, k.track != 'steady', k.track != 'catch_up', k.at DESC";
            let mut skips = rows(connection, sql, [of], |row| {
                Ok(OpenSkip {
                    stream: row.get(0)?,
                    reason: row.get(1)?,
                    message: row.get(2)?,
                    run_id: row.get(3)?,
                    at: date_from_sql(row.get(4)?),
                    by: LeftBy { track: row.get(5)?, scope: row.get(6)?, grant: row.get(7)? },
                })
            })?;
            // Two tracks may have skipped the same part; the owner misses it once.
            skips.dedup_by(|later, first| {
                (&later.stream, &later.reason, &later.message) == (&first.stream, &first.reason, &first.message)
            });
            Ok(skips)
        })
    }

    /// What is open of a connection besides gaps: accounts of the last run of each track that fell short, and what was
    /// skipped.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn left_open(&self, name: &str) -> Result<Vec<LeftOpen>, StoreError> {
        let steady = self.last_account(name, Steady::NAME)?;
        let accounts = steady.into_iter().chain(self.other_accounts_short(name)?);
        let mut open = accounts.flat_map(|run| run.shortfalls_open(name)).collect::<Vec<_>>();
        let skipped = |skip: OpenSkip| {
            let told = Told { stream: Some(skip.stream.clone()), text: skip.why().to_owned() };
            skip.by.left_open(name, LeftOpenKind::Skipped, told)
        };
        open.extend(self.open_skips(name)?.into_iter().map(skipped));
        Ok(open)
    }
}

impl<T: Track> RunTables<'_, T> {
    /// Keeps what a run skipped, and forgets what it went over without skipping anything. A skip of a scoped run stays its
    /// own until a run with the same scope, or an ordinary one from the beginning, goes over that part.
    pub(crate) fn keep_skips(&self, outcome: &RunOutcome, now: WallTime) -> Result<(), Failure> {
        let Self { connection, session } = *self;
        let (by_stream, about) = (&outcome.skips.by_stream, &session.start.about);
        let went_to_end = outcome.reason == TerminalReason::Succeeded && about.purpose != RunPurpose::RecoveryOnly;
        for (stream, id) in session.streams.all().filter(|(stream, _)| session.asks_for(stream)) {
            // What belongs to no stream may be of any.
            let skips = [by_stream.get(stream), by_stream.get("")];
            if let Some(skipped) = skips.into_iter().flatten().next() {
                // The first run that skipped something stays: what it left out is before everything that came later.
                let sql =
                    "INSERT INTO skips VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (stream, track) DO UPDATE
                           SET reason = excluded.reason, message = excluded.message, at = excluded.at,
                           continues = min(continues, excluded.continues)";
                let (version, reason, message) = (&about.connector_version, &skipped.reason, &skipped.message);
                let continues = skips.into_iter().flatten().all(|skip| skip.continues);
                let values = (id, session.track(), session.run, version, reason, message, continues, date_to_sql(now));
                execute(connection, sql, values)?;
            } else if went_to_end {
                let after = session.went_on_after(stream);
                let sql = "DELETE FROM skips WHERE stream = ?1 AND track = ?2 AND (continues = 1 OR run > ?3)";
                execute(connection, sql, (id, session.track(), after))?;
                if after == 0 && session.is_ordinary() {
                    // Its list was gone through from the beginning: that is the history, too.
                    execute(connection, "DELETE FROM skips WHERE stream = ?1", [id])?;
                }
            }
        }
        Ok(())
    }
}

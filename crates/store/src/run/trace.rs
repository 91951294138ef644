//! What a connector says besides data, kept for people and for health.
//!
//! Events wait in memory and are written with the next slice: a line of progress is not worth a sync.
//! The wait, what is kept per run and the runs of which anything is kept are bounded; the oldest go
//! first, and their number is kept.
//! The last word about pace and circuit stands in the run's own row, so nobody searches for it.

use crate::error::{Failure, StoreError, date_to_sql, to_sql};
use crate::run::session::{Pending, Session};
use crate::sql::execute;
use crate::store::Store;
use gleaner_engine::{TraceEvent, Track, WallTime};
use gleaner_protocol::ConnectorMessage;
use rusqlite::Connection;

/// Events that wait. Ordinary ones are some 100 KB.
const WAITING_MAX: usize = 500;
/// The same in bytes: an event may be as long as [`EVENT_BYTES_MAX`].
const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// Runs of a connection of which events are kept. The runs themselves are kept for good: they are small.
const RUNS_WITH_EVENTS: i64 = 200;
/// Events of one kind that are kept per run. Enough to see the last hours of a run.
const KEPT_MAX: u64 = 2000;
/// How many more there may be before the oldest are removed: removing costs less in bulk.
const KEPT_SLACK: u64 = 500;
/// The longest event. A progress message is a sentence; what is longer is not kept.
const EVENT_BYTES_MAX: usize = 64 * 1024;

impl Store {
    /// Keeps an event. It is durable with the next slice, or after [`flush_trace`](Self::flush_trace).
    ///
    /// # Errors
    ///
    /// When so many wait that they had to be written, and could not be.
    pub fn trace<T: Track>(
        &mut self,
        session: &mut Session<T>,
        event: TraceEvent,
        now: WallTime,
    ) -> Result<(), StoreError> {
        session.pending.push(event, now);
        if session.pending.is_long() { self.flush_trace(session) } else { Ok(()) }
    }

    /// Writes the events that wait, and syncs.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. They go on waiting.
    pub fn flush_trace<T: Track>(&mut self, session: &mut Session<T>) -> Result<(), StoreError> {
        if session.pending.is_empty() {
            return Ok(());
        }
        let (leases, run) = (session.leases.clone(), session.run);
        self.write(&leases, |transaction| session.pending.write(transaction, run))?;
        session.pending.written();
        Ok(())
    }
}

impl Pending {
    fn push(&mut self, event: TraceEvent, now: WallTime) {
        let (kind, message) = match event {
            TraceEvent::Progress(progress) => {
                let text = |value: Result<String, _>| value.ok();
                let rate = progress.collection_rate.valid().map(serde_json::to_string).and_then(text);
                let budget = progress.provider_budget.valid().map(serde_json::to_string).and_then(text);
                self.collection_rate = rate.or_else(|| self.collection_rate.take());
                self.provider_budget = budget.or_else(|| self.provider_budget.take());
                ("progress", ConnectorMessage::Progress(progress))
            }
            TraceEvent::Skip(skip) => ("skip", ConnectorMessage::SkipResult(skip)),
            TraceEvent::Assistance(help) => ("assistance", ConnectorMessage::Assistance(help)),
            TraceEvent::AssistanceStatus(status) => ("assistance_status", ConnectorMessage::AssistanceStatus(status)),
        };
        let mut line = Vec::new();
        message.encode(&mut line);
        match String::from_utf8(line) {
            Ok(text) if text.len() <= EVENT_BYTES_MAX => self.events.push((now, kind, text.trim_end().to_owned())),
            Ok(_) | Err(_) => self.dropped += 1,
        }
    }

    fn is_long(&self) -> bool {
        let bytes = self.events.iter().map(|(_, _, message)| message.len()).sum::<usize>();
        self.events.len() >= WAITING_MAX || bytes >= WAITING_BYTES_MAX
    }

    fn is_empty(&self) -> bool {
        let Self { events, collection_rate, provider_budget, dropped, listings, kept: _ } = self;
        let nothing_told = collection_rate.is_none() && provider_budget.is_none() && listings.is_empty();
        events.is_empty() && nothing_told && *dropped == 0
    }

    /// Inside of a transaction; what was written is forgotten when that is durable.
    pub(crate) fn write(&self, connection: &Connection, run: i64) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO events (run, at, kind, message) VALUES (?1, ?2, ?3, ?4)";
        for (at, kind, message) in &self.events {
            execute(connection, sql, (run, date_to_sql(*at), kind, message))?;
        }
        let mut dropped = self.dropped;
        if self.kept + self.events.len() as u64 > KEPT_MAX + KEPT_SLACK {
            dropped += thin_out(connection, run)?;
        }
        let sql = "UPDATE runs SET collection_rate = ifnull(?2, collection_rate),
                   provider_budget = ifnull(?3, provider_budget), events_dropped = events_dropped + ?4 WHERE id = ?1";
        let values = (run, &self.collection_rate, &self.provider_budget, to_sql(dropped));
        execute(connection, sql, values)?;
        self.listings.iter().try_for_each(|listing| listing.write(connection, run))
    }

    /// What waited is durable.
    pub(crate) fn written(&mut self) {
        let kept = self.kept + self.events.len() as u64;
        let kept = if kept > KEPT_MAX + KEPT_SLACK { KEPT_MAX } else { kept };
        *self = Self { kept, ..Self::default() };
    }
}

/// Forgets the events of runs that are long over. It is called once per run, so one run that is too old
/// is all there is; a second is for runs that the bound did not hold for.
pub(crate) fn forget_old(connection: &Connection, of: i64) -> Result<(), Failure> {
    let sql = "DELETE FROM events WHERE run IN
               (SELECT id FROM runs WHERE connection = ?1 ORDER BY id DESC LIMIT 2 OFFSET ?2)";
    execute(connection, sql, (of, RUNS_WITH_EVENTS))
}

/// Keeps the newest of each kind: a thousand lines of progress must not push out the one skip.
fn thin_out(connection: &Connection, run: i64) -> Result<u64, Failure> {
    let sql = "DELETE FROM events WHERE id IN (
                   SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY kind ORDER BY id DESC) AS nth
                                   FROM events WHERE run = ?1) WHERE nth > ?2)";
    let removed = connection.prepare_cached(sql)?.execute((run, to_sql(KEPT_MAX)))?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}

//! Runs and what connectors said during them.

use super::{Reader, page, sized_rows};
use crate::error::{StoreError, date_from_sql, from_sql};
use crate::sql::{first, rows};
use gleaner_engine::{CatchUp, Counts, Ended, Exit, Extent, GapsConfirmed, RunPurpose, Steady, Track, WallTime};
use gleaner_protocol::{PressureReason, RecoveryAction, TerminalReason, coded_enum};
use rusqlite::Row;
use serde_json::Value;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its name.
    pub run_id: String,
    /// `steady`, `catch_up`, or `scope:` and a digest of what the run asked for.
    pub track: String,
    /// What it was for.
    pub purpose: RunPurpose,
    /// With which version of the connector.
    pub connector_version: Option<String>,
    /// With which credential, as a keyed hash.
    pub credential: Option<String>,
    /// Since when.
    pub started_at: WallTime,
    /// Until when; absent while it goes on.
    pub ended_at: Option<WallTime>,
    /// How it ended.
    pub reason: Option<TerminalReason>,
    /// The breach that ended it.
    pub violation: Option<String>,
    /// The connector's code for what went wrong.
    pub error_code: Option<String>,
    /// The same as a sentence. Text from outside.
    pub error_message: Option<String>,
    /// Whether the connector thinks that another run may succeed.
    pub error_retryable: bool,
    /// What it thinks may help.
    pub error_action: Option<RecoveryAction>,
    /// How its process ended, where that is known.
    pub exit: Option<Exit>,
    /// The last lines of the connector's stderr, of a run that did not succeed. Text from outside.
    pub stderr: Option<String>,
    /// What the provider said, if it rate-limited the test.
    pub pressure: Option<PressureReason>,
    /// What it stored, of durable slices alone; also while it goes on, and if it was killed.
    pub counts: Counts,
    /// Whether [`counts`](Self::counts) tells new records from changed ones. Where an older program ran it, both are
    /// in `new`.
    pub tells_new_from_changed: bool,
    /// Slices that are durable.
    pub slices: u64,
    /// Records that came twice in one slice with different content.
    pub repeated: u64,
    /// Cursors that were committed at its end, as JSON pairs of stream and number;
    /// [`Reader::add_slice_commits`] adds those of its slices.
    pub committed: Option<String>,
    /// Checkpoints that stayed where they were, as JSON pairs of stream and reason.
    pub withheld: Option<String>,
    /// What it asked for, and what it was allowed to, as JSON.
    pub(crate) scope: Option<String>,
    pub(crate) grant_scope: Option<String>,
    /// Accounts that fell short, as a JSON list.
    pub shortfalls: Option<String>,
    /// What was left out so that the run is incomplete, as JSON: how often, and the first of it.
    pub skipped: Option<String>,
    /// What the connector did that it should not have, as a JSON list.
    pub warnings: Option<String>,
    /// The last word about the pace, as JSON.
    pub collection_rate: Option<String>,
    /// The last word about the circuit, as JSON.
    pub provider_budget: Option<String>,
    /// Events that were too many to keep.
    pub events_dropped: u64,
}

/// A text that the account of a run holds: which stream, and what to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The stream, if one is meant.
    pub stream: Option<String>,
    /// The sentence. It may hold text from outside.
    pub text: String,
}

/// Something that a run left open besides gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOpen {
    /// What.
    pub kind: LeftOpenKind,
    /// The stream, if one is meant.
    pub stream: Option<String>,
    /// The sentence. It may hold text from outside.
    pub text: String,
    /// The options of the run that left it open, if it asked for less than everything.
    pub asked_for: Option<String>,
    /// The command after which it is closed, if it leaves nothing out.
    pub helps: String,
}

coded_enum! {
    /// What a run left open.
    pub enum LeftOpenKind {
        /// A checkpoint stayed where it was, because its account falls short.
        Withheld = "withheld";
        /// An account falls short, and a slice had committed the checkpoint before.
        Short = "coverage_short";
        /// The connector skipped something.
        Skipped = "skipped";
    }
}

impl std::fmt::Display for LeftOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind, &self.stream) {
            (LeftOpenKind::Withheld | LeftOpenKind::Short, _) => f.write_str(&self.text)?,
            (LeftOpenKind::Skipped, Some(stream)) => write!(f, "skipped: {stream}: {}", self.text)?,
            (LeftOpenKind::Skipped, None) => write!(f, "skipped: {}", self.text)?,
        }
        match &self.asked_for {
            Some(options) => write!(f, " (by the run with {options}; `{}` lists it again)", self.helps),
            None => Ok(()),
        }
    }
}

/// Which run left something open, as far as that decides what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftBy {
    pub(crate) track: String,
    pub(crate) scope: Option<String>,
    pub(crate) grant: Option<String>,
}

impl LeftBy {
    /// The options of the run, if it asked for less than everything.
    fn options(&self) -> Option<String> {
        if self.track == Steady::NAME {
            return None;
        }
        if self.track == CatchUp::NAME {
            return Some("--catch-up".to_owned());
        }
        let extent = |text: &Option<String>| text.as_deref().and_then(Extent::from_text).unwrap_or_default();
        let options = extent(&self.scope).options(&extent(&self.grant));
        Some(options.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
    }

    /// Something that the run left open. A withheld checkpoint is listed again by the same command. The cursor is past what
    /// was skipped, so that needs a run from the beginning; there is none of history alone.
    pub(crate) fn left_open(&self, name: &str, kind: LeftOpenKind, told: Told) -> LeftOpen {
        let (asked_for, name) = (self.options(), shell_word(name));
        let options = asked_for.as_ref().map(|options| format!(" {options}")).unwrap_or_default();
        let helps = match kind {
            LeftOpenKind::Withheld | LeftOpenKind::Short => format!("gleaner run {name}{options}"),
            LeftOpenKind::Skipped if self.track == CatchUp::NAME => format!("gleaner run {name} --full-refresh"),
            LeftOpenKind::Skipped => format!("gleaner run {name}{options} --full-refresh"),
        };
        LeftOpen { kind, stream: told.stream, text: told.text, asked_for, helps }
    }
}

/// A word as it is typed into a shell.
fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:=/@+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// In a shortfall of a run that did not collect everything: the later run after which nothing of it is missing.
pub(crate) const SETTLED_BY: &str = "settled_by";
/// In place of an account that is damaged.
const UNREADABLE: &str = "what the run left open cannot be read; `gleaner verify` says more";

impl RunSummary {
    /// The accounts that fell short although the run succeeded, and whether their checkpoint was withheld.
    #[must_use]
    pub fn shortfalls_told(&self) -> Vec<Told> {
        let withheld = list(self.withheld.as_deref());
        let told = |short: &Value| {
            let text = |name: &str| short[name].as_str().unwrap_or_default();
            let (stream, message) = (text("state_stream").to_owned(), text("message"));
            let text = match withheld.iter().any(|pair| pair[0] == stream) {
                true => format!("checkpoint of {stream} withheld: {message}"),
                // A slice had committed it before the report came.
                false => format!("coverage of {stream} falls short: {message}"),
            };
            Told { stream: Some(stream), text }
        };
        match self.shortfalls.as_deref().map(serde_json::from_str::<Vec<Value>>) {
            None => Vec::new(),
            Some(Ok(all)) => all.iter().map(told).collect(),
            Some(Err(_)) => vec![Told { stream: None, text: UNREADABLE.to_owned() }],
        }
    }

    /// How many checkpoints wait for an account that fell short.
    pub(crate) fn shortfall_count(&self) -> u64 {
        let withheld = self.withheld.as_deref().unwrap_or("[]");
        let withheld = serde_json::from_str::<Vec<(String, String)>>(withheld).unwrap_or_default();
        let short = withheld.iter().filter(|(_, why)| why == "coverage_shortfall").count();
        short.max(self.shortfalls_told().len()) as u64
    }

    /// What was left out so that the run is incomplete: how often, and the first of it.
    #[must_use]
    pub fn skips_told(&self) -> (u64, Vec<Told>) {
        let skips = match self.skipped.as_deref().map(serde_json::from_str::<Value>) {
            None => Value::Null,
            Some(Ok(skips)) => skips,
            Some(Err(_)) => return (1, vec![Told { stream: None, text: UNREADABLE.to_owned() }]),
        };
        let told = |skip: &Value| {
            let text = |name: &str| skip[name].as_str().map(str::to_owned);
            let why = text("message").or_else(|| text("reason"));
            let why = why.unwrap_or_else(|| "the connector does not say why".to_owned());
            Told { stream: text("stream"), text: why }
        };
        let first = skips["first"].as_array().map(|first| first.iter().map(told).collect());
        (skips["count"].as_u64().unwrap_or(0), first.unwrap_or_default())
    }

    /// The accounts that fell short and that no later run has settled, each with what became of its checkpoint.
    pub(crate) fn shortfalls_open(&self, name: &str) -> Vec<LeftOpen> {
        let pairs = list(self.withheld.as_deref());
        let by = LeftBy { track: self.track.clone(), scope: self.scope.clone(), grant: self.grant_scope.clone() };
        let open = |told: Told| {
            let is_withheld = pairs.iter().any(|pair| pair[0].as_str() == told.stream.as_deref());
            let kind = if is_withheld { LeftOpenKind::Withheld } else { LeftOpenKind::Short };
            by.left_open(name, kind, told)
        };
        let all = list(self.shortfalls.as_deref());
        let is_settled = |at: usize| all.get(at).is_some_and(|short| short.get(SETTLED_BY).is_some());
        let told = self.shortfalls_told().into_iter().enumerate();
        told.filter(|(at, _)| !is_settled(*at)).map(|(_, told)| open(told)).collect()
    }

    /// What the connector did that it should not have.
    #[must_use]
    pub fn warnings_told(&self) -> Vec<Told> {
        let text = |warning: &Value, name: &str| warning[name].as_str().map(str::to_owned);
        let told = |warning: &Value| Told {
            stream: text(warning, "stream"),
            text: text(warning, "message").unwrap_or_default(),
        };
        list(self.warnings.as_deref()).iter().map(told).collect()
    }

    /// Whether it goes on, has ended, or was interrupted: its process is gone, and the next run will say so. The caller
    /// knows whether somebody is at work on the connection.
    #[must_use]
    pub const fn state(&self, is_at_work: bool) -> &'static str {
        match (self.ended_at, is_at_work) {
            (Some(_), _) => "ended",
            (None, true) => "running",
            (None, false) => "interrupted",
        }
    }
}

fn list(text: Option<&str>) -> Vec<Value> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Something that a connector said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedEvent {
    /// Its place, for the next page.
    pub id: i64,
    /// When.
    pub at: WallTime,
    /// What kind of message: `progress`, `skip`, `assistance`, `assistance_status`.
    pub kind: String,
    /// The message, as JSON.
    pub message: String,
}

/// The last account of each track that is not the steady one, if it fell short. SQLite takes the columns of the row with
/// the greatest id.
pub(crate) const OTHER_ACCOUNTS_SHORT: &str = "SELECT id FROM (SELECT max(id) AS id, shortfalls FROM runs
    WHERE connection = ?1 AND track != 'steady' AND reason IN ('succeeded', 'stream_collection_failed')
    AND purpose != 'recovery_only' GROUP BY track) WHERE shortfalls IS NOT NULL";

const RUN: &str = "run_id, track, started_at, ended_at, reason, violation, pressure, seen, collected, deleted, \
                   rejected, gaps, recovered, unaccounted, slices, unchanged, repeated, committed, withheld, \
                   collection_rate, provider_budget, events_dropped, error_code, error_message, purpose, \
                   connector_version, credential, error_retryable, error_action, new_records, changed_records, \
                   recovered_by_record, recovered_empty, recovered_unconfirmed, recovered_lists, list_records, list_gaps, \
                   exit_code, exit_signal, stderr_tail, times_unreadable, shortfalls, skipped, warnings, scope, grant_scope";

fn read_run(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let count = |at: usize| Ok::<_, rusqlite::Error>(from_sql(row.get(at)?));
    let code = |at: usize| row.get::<_, Option<String>>(at);
    let (exit, signal) = (row.get::<_, Option<i32>>(37)?, row.get::<_, Option<i32>>(38)?);
    let (new, unchanged) = (row.get::<_, Option<i64>>(29)?, count(15)?);
    Ok(RunSummary {
        run_id: row.get(0)?,
        track: row.get(1)?,
        started_at: date_from_sql(row.get(2)?),
        ended_at: row.get::<_, Option<i64>>(3)?.map(date_from_sql),
        reason: code(4)?.as_deref().and_then(TerminalReason::from_code),
        violation: row.get(5)?,
        pressure: code(6)?.as_deref().and_then(PressureReason::from_code),
        counts: Counts {
            seen: count(7)?,
            new: new.map_or_else(|| count(8).map(|all| all.saturating_sub(unchanged)), |new| Ok(from_sql(new)))?,
            changed: row.get::<_, Option<i64>>(30)?.map_or(0, from_sql),
            unchanged,
            deleted: count(9)?,
            rejected: count(10)?,
            gaps: count(11)?,
            recovered: count(12)?,
            unaccounted: count(13)?,
            times_unreadable: count(40)?,
            confirmed: GapsConfirmed {
                by_record: count(31)?,
                empty: count(32)?,
                unconfirmed: count(33)?,
                lists: count(34)?,
                list_records: count(35)?,
                list_gaps: count(36)?,
            },
        },
        tells_new_from_changed: new.is_some() || count(8)? == 0,
        slices: count(14)?,
        repeated: count(16)?,
        committed: row.get(17)?,
        withheld: row.get(18)?,
        shortfalls: row.get(41)?,
        skipped: row.get(42)?,
        warnings: row.get(43)?,
        scope: row.get(44)?,
        grant_scope: row.get(45)?,
        collection_rate: row.get(19)?,
        provider_budget: row.get(20)?,
        events_dropped: count(21)?,
        error_code: row.get(22)?,
        error_message: row.get(23)?,
        purpose: code(24)?.as_deref().and_then(RunPurpose::from_code).unwrap_or_default(),
        connector_version: row.get(25)?,
        credential: row.get(26)?,
        error_retryable: row.get::<_, Option<bool>>(27)?.unwrap_or(false),
        exit: exit.map(Exit::Code).or_else(|| signal.map(Exit::Signal)),
        stderr: row.get(39)?,
        error_action: code(28)?.as_deref().and_then(RecoveryAction::from_code),
    })
}

impl RunSummary {
    /// What is known about its end; absent while it has none.
    #[must_use]
    pub fn ended(&self) -> Option<Ended<'_>> {
        let reason = self.reason.filter(|_| self.ended_at.is_some())?;
        let (violation, message) = (self.violation.as_deref(), self.error_message.as_deref());
        Some(Ended { reason, violation, message, exit: self.exit, stderr: self.stderr.as_deref(), runtime_error: None })
    }

    /// Its records as a person is told of them.
    #[must_use]
    pub fn records_words(&self) -> String {
        let words = self.counts.words();
        if self.tells_new_from_changed { words } else { words.replacen(" new", " new or changed", 1) }
    }
}

impl Reader {
    /// The last runs of a connection, the newest first.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn runs(&self, name: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!("SELECT {RUN} FROM runs WHERE connection = ?1 ORDER BY id DESC LIMIT ?2");
            rows(connection, &sql, (id, page(limit)), read_run)
        })
    }

    /// A page of a connection's runs, the newest first; of those before the run with this name.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn runs_before(&self, name: &str, before: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!(
                "SELECT {RUN} FROM runs WHERE connection = ?1 AND id < (SELECT id FROM runs WHERE run_id = ?2) \
                 ORDER BY id DESC LIMIT ?3"
            );
            rows(connection, &sql, (id, before, page(limit)), read_run)
        })
    }

    /// The newest run of a track that succeeded or whose connector certified which streams failed: the account is its.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn last_account(&self, name: &str, track: &str) -> Result<Option<RunSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!(
                "SELECT {RUN} FROM runs WHERE connection = ?1 AND track = ?2 AND reason IN (?3, ?4) AND purpose != ?5 \
                 ORDER BY id DESC LIMIT 1"
            );
            let ends = (TerminalReason::Succeeded.code(), TerminalReason::StreamCollectionFailed.code());
            let values = (id, track, ends.0, ends.1, RunPurpose::RecoveryOnly.code());
            Ok(rows(connection, &sql, values, read_run)?.pop())
        })
    }

    /// The newest such run of each other track, if its account fell short.
    pub(crate) fn other_accounts_short(&self, name: &str) -> Result<Vec<RunSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!("SELECT {RUN} FROM runs WHERE id IN ({OTHER_ACCOUNTS_SHORT}) ORDER BY id");
            rows(connection, &sql, [id], read_run)
        })
    }

    /// The connection of a run, by the name of the run.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn connection_of_run(&self, run_id: &str) -> Result<Option<String>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT c.name FROM runs r JOIN connections c ON c.id = r.connection WHERE r.run_id = ?1";
            first(connection, sql, [run_id], |row| row.get(0))
        })
    }

    /// The last run of one track.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn last_run_of<T: Track>(&self, name: &str) -> Result<Option<RunSummary>, StoreError> {
        self.ask_of(name, |connection, id| {
            let sql = format!("SELECT {RUN} FROM runs WHERE connection = ?1 AND track = ?2 ORDER BY id DESC LIMIT 1");
            first(connection, &sql, (id, T::NAME), read_run)
        })
    }

    /// One run, by its name.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn run(&self, run_id: &str) -> Result<Option<RunSummary>, StoreError> {
        self.ask(|connection| {
            let sql = format!("SELECT {RUN} FROM runs WHERE run_id = ?1");
            first(connection, &sql, [run_id], read_run)
        })
    }

    /// When an ordinary run of this connection last succeeded. Not one that asked for less than the owner allows, or for
    /// history alone: it says nothing about the rest.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn last_success(&self, name: &str) -> Result<Option<WallTime>, StoreError> {
        self.ask_of(name, |connection, id| {
            // The reason stands in the text, so that the index for it is used.
            let sql = format!(
                "SELECT ended_at FROM runs WHERE connection = ?1 AND reason = '{}' AND track = '{}' \
                 ORDER BY id DESC LIMIT 1",
                TerminalReason::Succeeded.code(),
                Steady::NAME
            );
            let ended = first(connection, &sql, [id], |row| row.get::<_, i64>(0))?;
            Ok(ended.map(date_from_sql))
        })
    }

    /// When the first ordinary run of a connection began that succeeded or moved a cursor: what is older is for catch-up runs.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn first_run(&self, name: &str) -> Result<Option<WallTime>, StoreError> {
        self.ask_of(name, |connection, id| {
            // A run that moved no cursor is repeated by the next one, which may begin at its own time.
            let sql = "SELECT started_at FROM runs r WHERE connection = ?1 AND track = ?2 AND (reason = ?3
                       OR EXISTS (SELECT 1 FROM commits c WHERE c.run = r.id)) ORDER BY id LIMIT 1";
            let succeeded = TerminalReason::Succeeded.code();
            let began = first(connection, sql, (id, Steady::NAME, succeeded), |row| row.get::<_, i64>(0))?;
            Ok(began.map(date_from_sql))
        })
    }

    /// Adds the cursors that the slices of these runs of a connection committed to those of their ends.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn add_slice_commits(&self, name: &str, runs: &mut [RunSummary]) -> Result<(), StoreError> {
        let all = self.ask_of(name, |connection, id| {
            let sql = "SELECT r.run_id, s.name, max(c.seq) FROM commits c JOIN streams s ON s.id = c.stream
                       JOIN runs r ON r.id = c.run WHERE s.connection = ?1 GROUP BY c.run, c.stream ORDER BY s.id";
            let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?));
            rows(connection, sql, [id], read)
        })?;
        for run in runs {
            let mut committed = list(run.committed.as_deref());
            for (_, stream, seq) in all.iter().filter(|(run_id, ..)| *run_id == run.run_id) {
                if !committed.iter().any(|pair| pair[0] == *stream) {
                    committed.push(serde_json::json!([stream, seq]));
                }
            }
            run.committed = Some(Value::Array(committed).to_string());
        }
        Ok(())
    }

    /// The streams whose cursor a run committed, with its slices or at its end.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn committed_streams(&self, run_id: &str) -> Result<Vec<String>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT DISTINCT s.name FROM commits c JOIN streams s ON s.id = c.stream
                       JOIN runs r ON r.id = c.run WHERE r.run_id = ?1 ORDER BY s.id";
            rows(connection, sql, [run_id], |row| row.get(0))
        })
    }

    /// A page of what a connector said during a run, in order, after the event with this number.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn events(&self, run_id: &str, after: i64, limit: usize) -> Result<Vec<TracedEvent>, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT e.id, e.at, e.kind, e.message FROM events e JOIN runs r ON r.id = e.run
                       WHERE r.run_id = ?1 AND e.id > ?2 ORDER BY e.id LIMIT ?3";
            sized_rows(connection, sql, (run_id, after, page(limit)), read_event, |event| event.message.len())
        })
    }

    /// The last messages of a run of these kinds, the newest first. `which` is a condition of ours on an event `e`.
    pub(super) fn last_said(
        &self,
        run_id: &str,
        which: &str,
        limit: usize,
    ) -> Result<Vec<(WallTime, String)>, StoreError> {
        self.ask(|connection| {
            let sql = format!(
                "SELECT e.at, e.message FROM events e JOIN runs r ON r.id = e.run \
                 WHERE r.run_id = ?1 AND {which} ORDER BY e.id DESC LIMIT ?2"
            );
            rows(connection, &sql, (run_id, page(limit)), |row| Ok((date_from_sql(row.get(0)?), row.get(1)?)))
        })
    }
}

pub(super) fn read_event(row: &Row<'_>) -> rusqlite::Result<TracedEvent> {
    Ok(TracedEvent { id: row.get(0)?, at: date_from_sql(row.get(1)?), kind: row.get(2)?, message: row.get(3)? })
}

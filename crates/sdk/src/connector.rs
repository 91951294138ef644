//! A connector from its START to its exit code.
//!
//! Every fault of an author's code ends in an honest last message: an error, a budget, a panic, a forbidden message.
//! The exit code is zero exactly when the run succeeded.

pub(crate) mod credentials;
mod panics;

use crate::budget::Budget;
use crate::budget::caps::Caps;
use crate::clock::{Clock, JumpClock, SystemClock, rfc3339};
use crate::collect::{Collect, Variables};
use crate::emit::{Cursor, Emitter};
use crate::exchanges::{RecordReplay, Recording};
use crate::gaps::GapPages;
use crate::pace::waits::Waits;
use crate::pace::warm_start::take_learned;
use crate::stop::{Failure, Stop};
use crate::wire::Wire;
use crate::wire::stdio::Stdio;
use credentials::Credentials;
use gleaner_engine::{Schemas, ScopeFilter};
use gleaner_http::Governors;
use gleaner_http::governor::Learned;
use gleaner_protocol::{
    ConnectorMessage, Done, DoneError, DoneStatus, Manifest, ManifestOrigin, RecoveryHint, RuntimeMessage, Start,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The trait that an author implements.
pub trait Connector {
    /// Collects the requested data. Everything sent before an error is kept.
    ///
    /// # Errors
    ///
    /// Why it ended early; use `?` on any error of the framework and the client.
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop>;
}

/// Longest wait at the end for a runtime that does not read. Together with the rest of an exit this is below the
/// three seconds of the contract.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Longest wait for the acknowledgement of the last message, from the contract.
const ACKNOWLEDGE_MAX: Duration = Duration::from_secs(30 * 60);
/// Maximum length of an error message for people.
const MESSAGE_BYTES_MAX: usize = 2000;

/// Environment of a connector.
pub struct Surroundings<'s> {
    /// Environment variables by name.
    pub variable: &'s dyn Fn(&str) -> Option<String>,
    /// The clock.
    pub clock: &'s dyn Clock,
}

gleaner_base::debug_only!(Surroundings<'_>);

/// Runs a connector on standard input and output: the whole `main` of a connector.
///
/// ```no_run
/// use gleaner_sdk::{Collect, Connector, Page, Stop, run_connector};
/// use std::process::ExitCode;
///
/// struct Notes;
///
/// impl Connector for Notes {
///     fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
///         let api = run.client()?;
///         run.pages("folders", |at| {
///             let from = at.and_then(|at| at["from"].as_u64()).unwrap_or(0);
///             let url = format!("https://notes.example/folders?from={from}");
///             let folders: Vec<serde_json::Value> = api.get(url).send()?.error_for_status()?.json()?;
///             let next = serde_json::json!({"from": from + folders.len() as u64});
///             let page = if folders.len() < 100 { Page::last(next) } else { Page::then(next) };
///             Ok(folders.iter().fold(page, |page, folder| page.record(folder["id"].as_str().unwrap_or_default(), folder)))
///         })?;
///         Ok(())
///     }
/// }
///
/// fn main() -> ExitCode {
///     run_connector(r#"{"connector_id":"notes"}"#, &Notes)
/// }
/// ```
pub fn run_connector(manifest: &str, connector: &dyn Connector) -> ExitCode {
    panics::note_places();
    let mut wire = match Stdio::open() {
        Ok(wire) => wire,
        Err(error) => {
            // Without a connection to the runtime, stderr is all that the owner sees.
            drop(writeln!(io::stderr(), "the connector cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let clock = SystemClock::default();
    let variable = |name: &str| std::env::var(name).ok();
    run_on(&mut wire, manifest, connector, &Surroundings { variable: &variable, clock: &clock })
}

/// The same on any wire: for tests, which break it at any point.
pub fn run_on(
    wire: &mut dyn Wire,
    manifest: &str,
    connector: &dyn Connector,
    surroundings: &Surroundings<'_>,
) -> ExitCode {
    run_with(wire, manifest, connector, surroundings, None)
}

/// The same with answers from a recording.
pub(crate) fn run_with(
    wire: &mut dyn Wire,
    manifest: &str,
    connector: &dyn Connector,
    surroundings: &Surroundings<'_>,
    answers: Option<Recording>,
) -> ExitCode {
    let status = match prepare(wire, manifest) {
        Ok(prepared) => prepared.run(wire, connector, surroundings, answers),
        Err(stop) => say_done(wire, &done(&Err(stop), 0, ToOwned::to_owned)),
    };
    let is_drained = status.is_some() && wire.drain(DRAIN_MAX).is_ok();
    if is_drained {
        // The acknowledgement changes nothing: durable data stays durable.
        let _: bool = wire.wait_for_end(ACKNOWLEDGE_MAX);
    }
    match status {
        Some(DoneStatus::Succeeded) if is_drained => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Inputs of a run, before any message.
struct Prepared {
    manifest: Manifest,
    schemas: Schemas,
    filter: ScopeFilter,
    start: Start,
}

fn prepare(wire: &mut dyn Wire, manifest: &str) -> Result<Prepared, Stop> {
    // START is read first: nothing may be sent before it.
    let start = match wire.read()? {
        Some(RuntimeMessage::Start(start)) => *start,
        Some(_) => return Err(Stop::failed("the first message was not START")),
        None => return Err(Stop::failed("the input ended before a START")),
    };
    let manifest = Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign).map_err(|rejected| {
        let first = rejected.faults.first().map_or_else(String::new, |fault| format!(": {fault}"));
        Stop::of_author(format!("the manifest built into this connector has {} errors{first}", rejected.faults.len()))
    })?;
    let schemas = Schemas::new(&manifest).map_err(|fault| Stop::of_author(fault.to_string()))?;
    let filter = ScopeFilter::new(&manifest, &start.scope).map_err(|refusal| Stop::of_author(refusal.to_string()))?;
    Ok(Prepared { manifest, schemas, filter, start })
}

impl Prepared {
    /// Collects, and sends the last message. `None` when it could not be sent.
    fn run(
        self,
        wire: &mut dyn Wire,
        connector: &dyn Connector,
        around: &Surroundings<'_>,
        answers: Option<Recording>,
    ) -> Option<DoneStatus> {
        let Self { manifest, schemas, filter, start } = self;
        let now = rfc3339(around.clock.wall());
        let record_replay = match RecordReplay::open(around.variable, answers, &manifest.connector_key, &now) {
            Ok(record_replay) => record_replay,
            Err(stop) => return say_done(wire, &done(&Err(stop), 0, ToOwned::to_owned)),
        };
        let (jumping, is_playing) = (JumpClock::new(around.clock), record_replay.is_playing());
        let clock: &dyn Clock = if is_playing { &jumping } else { around.clock };
        let around = &Surroundings { variable: around.variable, clock };
        let started = clock.now();
        let aside = wire.aside();
        let mut emitter = Emitter::new(wire, &manifest, &schemas, clock, filter);
        let credentials = credentials::obtain(&mut emitter, &manifest, around.variable, can_ask(&start), is_playing);
        let (governors, trouble) = governors(around.variable, is_playing);
        let mut run = collect(&manifest, emitter, start, started, around, record_replay, governors);
        let _telling = aside.map(|aside| run.waits.tell(aside));
        let result = credentials.and_then(|credentials| {
            trouble.map_or(Ok(()), |trouble| run.say(trouble))?;
            run.take_credentials(credentials);
            collect_without_panic(connector, &mut run)
        });
        let result = run.close(result);
        // Saves once more: the last save may be a second old, and a write in progress must finish.
        run.governors.save();
        let done = done(&result, run.emitter.counts().sent, |text| run.emitter.masked(text));
        run.emitter.done(done.clone()).is_ok().then_some(done.status)
    }
}

/// Folder for the pace, gates and refusals of each account, which survives a run, also a killed one. Set by the
/// runtime.
pub const PACING_VARIABLE: &str = "GLEANER_PACING_DIR";

/// Account name for pacing when a connector has no credentials, set by the runtime. Stored as a keyed hash.
pub const ACCOUNT_VARIABLE: &str = "GLEANER_PACING_ACCOUNT";

/// Send governors that save their state in the runtime's folder, or why they do not, for people. A replay has none.
fn governors(variable: &dyn Fn(&str) -> Option<String>, is_playing: bool) -> (Governors, Option<String>) {
    let Some(folder) = variable(PACING_VARIABLE).filter(|folder| !folder.is_empty() && !is_playing) else {
        return (Governors::new(), None);
    };
    match Governors::remembering(Path::new(&folder)) {
        Ok(governors) => (governors, None),
        Err(error) => {
            let message = format!("learned rate limits are lost if this run is killed: {error}");
            (Governors::new(), Some(message))
        }
    }
}

/// Whether somebody can answer questions.
fn can_ask(start: &Start) -> bool {
    start.bindings.iter().any(|(name, _)| name == "interactive")
}

fn collect<'r>(
    manifest: &'r Manifest,
    mut emitter: Emitter<'r>,
    start: Start,
    started: gleaner_engine::Time,
    around: &Surroundings<'r>,
    record_replay: RecordReplay,
    governors: Governors,
) -> Collect<'r> {
    let caps = Caps::read(&manifest.connector_key, around.variable, start.run_budget);
    let someone_can_answer = can_ask(&start);
    let (mut cursors, mut learned) = (BTreeMap::new(), None::<Learned>);
    for (stream, text) in start.state.unwrap_or_default() {
        // A cursor that is not an object is `null`: nothing is stored.
        let Ok(mut cursor) = serde_json::from_str::<Cursor>(text.as_str()) else { continue };
        learned = learned.into_iter().chain(take_learned(&mut cursor)).max_by_key(|learned| learned.recorded_at);
        emitter.know_cursor(&stream, cursor.clone());
        cursors.insert(stream, cursor);
    }
    // An invalid descriptor counts as empty, but the binding is there.
    let descriptor = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let bindings = start.bindings.into_iter().map(|(name, text)| (name, descriptor(text.as_str()))).collect();
    Collect {
        run_id: start.run_id,
        bindings,
        manifest,
        clock: around.clock,
        emitter,
        gaps: GapPages::new(start.detail_gaps),
        budget: Budget::new(&caps, started),
        caps,
        credentials: Credentials::default(),
        scope: start.scope.streams().to_vec(),
        mode: start.collection_mode,
        recovery_only: start.recovery_only,
        someone_can_answer,
        variable: Variables(around.variable),
        cursors,
        started,
        learned,
        governors,
        client: None,
        governor: None,
        accounted_for: BTreeSet::new(),
        last_readout: None,
        record_replay,
        waits: Waits::default(),
    }
}

/// A panic of the author's code ends the run, not its account.
fn collect_without_panic(connector: &dyn Connector, run: &mut Collect<'_>) -> Result<(), Stop> {
    catch_unwind(AssertUnwindSafe(|| connector.collect(run))).unwrap_or_else(|_| {
        // The text of a panic may quote a record, so only its location is reported.
        let place = panics::last_place().map_or_else(String::new, |place| format!(" at {place}"));
        Err(Stop::of_author(format!("the connector's code panicked{place}; see its stderr")))
    })
}

impl Collect<'_> {
    fn take_credentials(&mut self, credentials: Credentials) {
        let secrets = credentials.values.values().cloned().collect::<Vec<_>>();
        self.record_replay.keep_secret(&secrets);
        self.emitter.keep_secret(secrets);
        self.credentials = credentials;
    }

    /// Sends the remaining messages before the last one.
    fn close(&mut self, result: Result<(), Stop>) -> Result<(), Stop> {
        // A request that is not in the recording invalidates the whole run.
        let result = self.record_replay.missed().map_or(result, Err);
        let result = match result {
            Err(Stop::Deferred(reason)) if !self.recovery_only => self.leave_all(reason),
            // Items that recovery did not reach have gaps already.
            Err(Stop::Deferred(_)) => Ok(()),
            other => other,
        };
        if matches!(result, Err(Stop::Disconnected)) {
            return result;
        }
        self.emitter.report_rejections()?;
        if let Some(trouble) = self.record_replay.trouble() {
            self.say(trouble)?;
        }
        self.report_rate()?;
        if result != Err(Stop::Cancelled) {
            self.emitter.keep_pace()?;
        }
        result
    }
}

/// The last message for this result.
fn done(result: &Result<(), Stop>, records_emitted: u64, mask: impl Fn(&str) -> String) -> Done {
    let (status, error) = match result {
        Ok(()) => (DoneStatus::Succeeded, None),
        Err(Stop::Cancelled) => (DoneStatus::Cancelled, None),
        // Nobody will read this; it is a failure all the same.
        Err(Stop::Disconnected | Stop::Deferred(_)) => (DoneStatus::Failed, None),
        Err(Stop::Failed(failure)) => (DoneStatus::Failed, Some(done_error(failure, mask))),
    };
    Done { status, records_emitted, error }
}

fn done_error(failure: &Failure, mask: impl Fn(&str) -> String) -> DoneError {
    let mut message = mask(&failure.message);
    let mut end = MESSAGE_BYTES_MAX.min(message.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    if message.trim().is_empty() {
        "the connector gave no reason".clone_into(&mut message);
    }
    DoneError {
        message,
        retryable: failure.retryable,
        code: failure.code.clone().filter(|code| is_code(code)),
        recovery_hint: failure.action.map(|action| RecoveryHint { action, retryable: Some(failure.retryable) }),
    }
}

/// Whether the contract allows this code.
fn is_code(code: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    code.len() <= 64 && code.starts_with(|first: char| first.is_ascii_lowercase()) && code.bytes().all(plain)
}

/// For a run that never began.
fn say_done(wire: &mut dyn Wire, done: &Done) -> Option<DoneStatus> {
    let mut line = Vec::new();
    ConnectorMessage::Done(done.clone()).encode(&mut line);
    wire.write(&line).is_ok().then_some(done.status)
}

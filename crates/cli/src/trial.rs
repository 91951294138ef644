//! One cheap call: whether a connector works with its credentials. Nothing that it says is kept.
//!
//! The connector runs against a scratch store, is allowed one request, asked for one stream, and told that
//! nobody can answer. It is stopped at the first sign that its service answered. Meanwhile we hold the
//! connection and the account, so that a trial and a run never ask at once.

use crate::bindings;
use crate::commands::run::{launch, refused};
use crate::connection::Settings;
use crate::credentials::Credentials;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use gleaner_app::Verdict;
use gleaner_engine::{Counts, RunScope, TraceEvent};
use gleaner_protocol::{
    CollectionMode, CoveragePolicy, Manifest, RecoveryAction, RunBudget, Scope, StreamScope, TerminalReason,
};
use gleaner_runtime::{Control, Observer, Redactor, RunError, RunReport, RunRequest, Saved};
use gleaner_store::{Acquired, HEARTBEAT, Holder, Lease, LeaseOn, Reader, Store, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long a connector that was asked to stop may take: there is no slice that would be lost.
const STOP_MAX: Duration = Duration::from_secs(3);
/// How long it may go on after its time.
const OVERRUN: Duration = Duration::from_secs(1);

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    pub(crate) home: &'a Home,
    pub(crate) name: &'a str,
    pub(crate) manifest_text: &'a str,
    pub(crate) manifest: &'a Manifest,
    pub(crate) settings: &'a Settings,
    pub(crate) credentials: &'a Credentials,
    pub(crate) max: Duration,
}

/// What came of it as an error, unless it works: `said` is what does not, `for_owner` and `otherwise` what to do about it.
pub(crate) fn into_result(verdict: Verdict, said: &str, for_owner: String, otherwise: &str) -> Result<(), CliError> {
    match verdict {
        Verdict::Works => Ok(()),
        Verdict::Refused(detail) => Err(CliError::CredentialsRefused {
            message: format!("{said}, it needs you: the credentials were refused: {detail}"),
            hint: for_owner,
        }),
        Verdict::Missing(detail) => {
            Err(CliError::NeedsOwner { message: format!("{said}, it needs you: {detail}"), hint: for_owner })
        }
        Verdict::Trouble(detail) => Err(CliError::Resting {
            until: None,
            message: format!("{said}: its service gave no answer that tells: {detail}"),
            hint: format!("try again later{otherwise}"),
        }),
        Verdict::Broken(detail) => Err(CliError::Failed {
            message: format!("{said}: its connector does not work: {detail}"),
            hint: format!("`gleaner conformance` says what is wrong with a connector{otherwise}"),
        }),
    }
}

impl Trial<'_> {
    /// Makes the call.
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if !self.credentials.missing.is_empty() {
            let names = self.credentials.missing_names().join(", ");
            return Ok(Verdict::Missing(format!("{names} is missing")));
        }
        let account = self.credentials.account(self.manifest, self.home)?;
        let mut store = self.home.store()?;
        let leases = hold(&mut store, self.name, account.as_ref())?;
        let (over, is_over) = channel();
        thread::scope(|scope| {
            start_keeping(scope, move || keep(&mut store, &leases, &is_over))?;
            let verdict = self.call();
            drop::<Sender<()>>(over);
            verdict
        })
    }

    fn call(&self) -> Result<Verdict, CliError> {
        let scratch = scratch_folder()?;
        let path = scratch.path().join("store.db");
        let mut store = Store::open(&path)?;
        store.register(self.name, self.manifest_text, self.manifest, dates::now())?;
        let (orders, control) = channel();
        let mut watcher = Watcher { orders, answered: false };
        let report = gleaner_runtime::run(&mut store, self.request()?, control, &mut watcher);
        drop(store);
        match report {
            Ok(report) => judge(&report, watcher.answered, &path, self.name),
            Err(error) => Err(refused(error, self.name)),
        }
    }

    fn request(&self) -> Result<RunRequest, CliError> {
        let max_duration_ms = u64::try_from(self.max.as_millis()).ok();
        let budget = RunBudget { max_requests: Some(1), max_duration_ms };
        let stream = cheapest_stream(self.manifest).ok_or_else(|| {
            CliError::usage("the manifest has no stream that can be collected", "ask the connector's author")
        })?;
        let scope = Scope::new(vec![StreamScope::all_of(stream)])
            .map_err(|fault| CliError::usage(fault.to_string(), "ask the connector's author"))?;
        Ok(RunRequest {
            connection: self.name.to_owned(),
            manifest: Arc::new(self.manifest.clone()),
            scope: RunScope::ordinary(scope),
            mode: CollectionMode::FullRefresh,
            purpose: gleaner_engine::RunPurpose::Full,
            grant: "check".to_owned(),
            grant_expires_at: None,
            launch: launch(self.home, self.name, self.manifest, self.settings, self.credentials, budget)?,
            bindings: bindings::offered(self.home, self.name, self.manifest, false)?,
            budget: Some(budget),
            overrun: OVERRUN,
            credential: None,
            redactor: Redactor::new(self.credentials.secrets()),
            interval: None,
            silence_max: None,
            control: None,
        })
    }
}

/// Takes what a run would take, so that none goes on beside what is tried.
pub(crate) fn hold(store: &mut Store, name: &str, account: Option<&(String, String)>) -> Result<Vec<Lease>, CliError> {
    let mut on = vec![LeaseOn::Connection(name)];
    on.extend(account.map(|(provider, hash)| LeaseOn::Credential { provider, hash }));
    let holder = Holder::current().map_err(StoreError::Holder)?;
    match store.acquire(&on, &holder, dates::now())? {
        Acquired::Yes { leases, .. } => Ok(leases),
        Acquired::Held(by) => Err(refused(RunError::Held(by), name)),
    }
}

/// A place for a store that nobody keeps.
pub(crate) fn scratch_folder() -> Result<TempDir, CliError> {
    tempfile::tempdir().map_err(|error| CliError::Failed {
        message: format!("cannot make a temporary folder: {error}"),
        hint: "set TMPDIR to a folder that you may write to".to_owned(),
    })
}

/// The first stream that needs no other one.
fn cheapest_stream(manifest: &Manifest) -> Option<&str> {
    let collects = |policy| matches!(policy, CoveragePolicy::Collect | CoveragePolicy::Deferred);
    let mut streams = manifest.streams.iter().filter(|stream| collects(stream.coverage_policy));
    let alone = streams.clone().find(|stream| stream.checkpoint.parents().is_empty());
    alone.or_else(|| streams.next()).map(|stream| stream.name.as_str())
}

/// Starts the thread that keeps the leases. Without it another process would take them for those of a dead one.
pub(crate) fn start_keeping<'s>(
    scope: &'s thread::Scope<'s, '_>,
    keep: impl FnOnce() + Send + 's,
) -> Result<(), CliError> {
    let started = thread::Builder::new().name("leases".to_owned()).spawn_scoped(scope, keep);
    let refused = |error| CliError::Failed {
        message: format!("the system gives no thread: {error}"),
        hint: "end other programs or raise the limit on processes, then try again".to_owned(),
    };
    started.map(drop).map_err(refused)
}

/// Gives signs of life until the trial is over, then gives everything back.
pub(crate) fn keep(store: &mut Store, leases: &[Lease], is_over: &Receiver<()>) {
    while is_over.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
        if store.heartbeat(leases).is_err() {
            return;
        }
    }
    // What is not given back ends with this process.
    drop(store.release(leases));
}

/// Stops the connector at the first sign that its service answered.
#[derive(Debug)]
struct Watcher {
    orders: Sender<Control>,
    answered: bool,
}

impl Watcher {
    fn notice(&mut self, is_answer: bool) {
        if !is_answer || std::mem::replace(&mut self.answered, true) {
            return;
        }
        // A run that is over needs no order.
        drop(self.orders.send(Control::Cancel));
        let at_last = self.orders.clone();
        let started = thread::Builder::new().spawn(move || {
            thread::sleep(STOP_MAX);
            drop(at_last.send(Control::CancelNow));
        });
        // Without a thread that could wait it gets no time to end by itself.
        if started.is_err() {
            drop(self.orders.send(Control::CancelNow));
        }
    }
}

impl Observer for Watcher {
    fn heard(&mut self, counts: Counts) {
        self.notice(counts.seen > 0);
    }

    /// A cursor came. Gaps alone say what is not there.
    fn saved(&mut self, saved: Saved) {
        self.notice(saved.counts.gaps == 0);
    }

    fn said(&mut self, event: &TraceEvent) {
        // What is said before anything was fetched counts nothing.
        self.notice(matches!(event, TraceEvent::Progress(progress) if progress.count.is_some_and(|count| count > 0)));
    }
}

fn judge(report: &RunReport, answered: bool, store: &Path, name: &str) -> Result<Verdict, CliError> {
    let outcome = &report.outcome;
    let error = outcome.error.as_ref();
    let said = error.map_or_else(|| outcome.reason.wording().what.to_owned(), |error| error.message.clone());
    let asks_for = Reader::open(store)?.evidence(name)?.hints;
    Ok(match outcome.reason {
        TerminalReason::ProtocolViolation | TerminalReason::ConnectorCrashed => {
            let violation = outcome.violation.as_ref().map(ToString::to_string);
            Verdict::Broken(outcome.ended(violation.as_deref(), None).cause())
        }
        TerminalReason::CredentialsRefused => Verdict::Refused(said),
        TerminalReason::CredentialsMissing => Verdict::Missing(said),
        _ if asks_for.contains(&RecoveryAction::RefreshCredentials) => {
            Verdict::Refused("the connector asks for new ones".to_owned())
        }
        _ if answered => Verdict::Works,
        _ if outcome.pressure.is_some() => Verdict::Trouble("it pushed back".to_owned()),
        TerminalReason::Succeeded => Verdict::Works,
        TerminalReason::BudgetReached => Verdict::Trouble("it took too long".to_owned()),
        TerminalReason::ConnectorFailed | TerminalReason::StreamCollectionFailed
            if error.is_some_and(|error| error.retryable) =>
        {
            Verdict::Trouble(said)
        }
        _ => Verdict::Broken(said),
    })
}

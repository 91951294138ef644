//! One cheap call: whether a connector works with its credentials. Nothing that it says is kept.
//!
//! The connector runs against a scratch store, is allowed one request, asked for one stream, and told that
//! nobody can answer. It is stopped at the first sign that its provider answered. Meanwhile we hold the
//! connection and the account, so that a trial and a run never ask at once.

use super::collect::{refused, resting};
use super::scratch::Scratch;
use super::spec::{BudgetSpec, Purpose, RunSpec, ScopeSpec};
use crate::app::App;
use crate::connection::credentials::{AskSecret, Credentials};
use crate::connection::settings::Connection;
use crate::dates;
use crate::error::{AppError, ErrorKind};
use gleaner_engine::{CooldownPolicy, Counts, Rest, TraceEvent};
use gleaner_protocol::{CoveragePolicy, Manifest, RecoveryAction, TerminalReason};
use gleaner_runtime::{Control, Observer, RunReport, Saved};
use gleaner_store::Reader;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a connector that was asked to stop may take: there is no slice that would be lost.
const STOP_MAX: Duration = Duration::from_secs(3);

/// What one cheap call to a service showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its service answered.
    Works,
    /// Its service did not accept the credentials.
    Refused(String),
    /// Some credentials are not there.
    Missing(String),
    /// Its service did not answer, or not with what was asked for.
    Trouble(String),
    /// The connector does not keep to the protocol, or gave up.
    Broken(String),
}

impl Verdict {
    /// For programs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Refused(_) => "credentials_refused",
            Self::Missing(_) => "credentials_missing",
            Self::Trouble(_) => "service_trouble",
            Self::Broken(_) => "connector_broken",
        }
    }

    /// More than the word says.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Works => None,
            Self::Refused(detail) | Self::Missing(detail) | Self::Trouble(detail) | Self::Broken(detail) => {
                Some(detail)
            }
        }
    }

    /// What was found, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Works => "It works: the service answered.".to_owned(),
            Self::Refused(detail) => format!("The service did not accept the credentials: {detail}."),
            Self::Missing(detail) => format!("It cannot sign in: {detail}."),
            Self::Trouble(detail) => format!("The service gave no answer that tells: {detail}."),
            Self::Broken(detail) => format!("The connector does not work like this: {detail}."),
        }
    }

    /// What to do next.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Works => "Add it; its first run starts on schedule, or when you start it.",
            Self::Refused(_) => {
                "See whether they are complete and still hold, make new ones at the service if need be, and try again."
            }
            Self::Missing(_) => {
                "Fill in what is missing. What there is no field for is asked for in the inbox, when it runs."
            }
            Self::Trouble(_) => "See whether the address is right and the service is up, and try again later.",
            Self::Broken(_) => "See whether what you filled in is right; if it is, ask the connector's author.",
        }
    }

    /// The verdict as an error, unless it works: `said` is what does not, `for_owner` and `otherwise` what to do about
    /// it.
    ///
    /// # Errors
    ///
    /// Unless it works.
    pub fn into_result(self, said: &str, for_owner: String, otherwise: &str) -> Result<(), AppError> {
        Err(match self {
            Self::Works => return Ok(()),
            Self::Refused(detail) => {
                let message = format!("{said}, it needs you: the credentials were refused: {detail}");
                AppError::new(ErrorKind::CredentialsRefused, message, for_owner)
            }
            Self::Missing(detail) => AppError::needs_owner(format!("{said}, it needs you: {detail}"), for_owner),
            Self::Trouble(detail) => {
                let message = format!("{said}: its service gave no answer that tells: {detail}");
                AppError::new(ErrorKind::Resting(None), message, format!("try again later{otherwise}"))
            }
            Self::Broken(detail) => AppError::failed(
                format!("{said}: its connector does not work: {detail}"),
                format!("`gleaner conformance` says what is wrong with a connector{otherwise}"),
            ),
        })
    }
}

/// A connection that was checked.
#[derive(Debug)]
pub struct Checked {
    pub verdict: Verdict,
    pub credentials: Credentials,
    /// Where the key of new credentials is, if they work and were stored.
    pub key_place: Option<String>,
}

impl App {
    /// Whether a connection works, found out with one call. With `ask` the owner is asked for the credentials first, and
    /// they are stored if they work.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or it cannot be tried now.
    pub fn check(&self, name: &str, max: Duration, ask: Option<AskSecret<'_>>) -> Result<Checked, AppError> {
        let connection = self.connection(name)?;
        let credentials = match ask {
            Some(ask) => Credentials::ask_for_all(&connection.manifest, ask),
            None => Credentials::find(&connection.manifest, self, name)?,
        };
        // A provider that rate-limited us is left alone, by a check too.
        let policy = CooldownPolicy::of(None, connection.manifest.refresh_policy.as_ref());
        let rest = self.store()?.rest(name, policy, dates::now())?;
        if matches!(rest, Rest::Until { .. }) {
            return Err(resting(name, rest, "check it then"));
        }
        let verdict = Trial { app: self, connection: &connection, credentials: &credentials, max }.run()?;
        let key_place = if verdict == Verdict::Works { credentials.store_new(self, name)? } else { None };
        Ok(Checked { verdict, credentials, key_place })
    }

    /// What an owner should know about the manifest of a connection.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn manifest_warnings(&self, name: &str) -> Result<Vec<String>, AppError> {
        Ok(self.connection(name)?.manifest.warnings.iter().map(ToString::to_string).collect())
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    pub(crate) app: &'a App,
    pub(crate) connection: &'a Connection,
    pub(crate) credentials: &'a Credentials,
    pub(crate) max: Duration,
}

impl Trial<'_> {
    /// Makes the call.
    pub(crate) fn run(&self) -> Result<Verdict, AppError> {
        if !self.credentials.missing.is_empty() {
            let names = self.credentials.missing_names().join(", ");
            return Ok(Verdict::Missing(format!("{names} is missing")));
        }
        self.app.alone(self.connection, self.credentials, || self.call())
    }

    fn call(&self) -> Result<Verdict, AppError> {
        let Connection { name, manifest, .. } = self.connection;
        let stream = cheapest_stream(manifest).ok_or_else(|| {
            AppError::usage("the manifest has no stream that can be collected", "ask the connector's author")
        })?;
        let spec = RunSpec {
            scope: ScopeSpec { streams: vec![stream.to_owned()], ..ScopeSpec::default() },
            budget: BudgetSpec { max_requests: Some(1), max_duration: Some(self.max) },
            ..RunSpec::new(name, Purpose::Check)
        };
        let request = self.app.request(&spec, self.connection, self.credentials, None)?;
        let Scratch { mut store, folder } = Scratch::new(self.connection)?;
        let (orders, control) = channel();
        let mut watcher = Watcher { orders, answered: false };
        let report = gleaner_runtime::run(&mut store, request, control, &mut watcher);
        let report = report.map_err(|error| refused(error, name))?;
        drop(store);
        judge(&report, watcher.answered, &folder.path().join("store.db"), name)
    }
}

/// The first stream that needs no other one.
fn cheapest_stream(manifest: &Manifest) -> Option<&str> {
    let collects = |policy| matches!(policy, CoveragePolicy::Collect | CoveragePolicy::Deferred);
    let mut streams = manifest.streams.iter().filter(|stream| collects(stream.coverage_policy));
    let alone = streams.clone().find(|stream| stream.checkpoint.parents().is_empty());
    alone.or_else(|| streams.next()).map(|stream| stream.name.as_str())
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

fn judge(report: &RunReport, answered: bool, store: &Path, name: &str) -> Result<Verdict, AppError> {
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
        _ if outcome.pressure.is_some() => Verdict::Trouble("it rate-limited the test".to_owned()),
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

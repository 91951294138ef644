//! A run that nobody keeps, for the author of a connector: `gleaner run --limit N` and `--replay FILE`.
//!
//! The connector runs against a scratch store, so nothing is stored and no cursor moves. With a limit it is stopped
//! after so many records. Against a real provider it takes the same leases as a run and respects its cooldowns. Answered
//! from a recording it needs no provider: then it touches no lease, no cooldown, no credential, and not even the data
//! root.

mod watch;

pub use watch::{Item, ItemKind, Sums};

use super::collect::refused;
use super::recording::{self, Recorded};
use super::scratch::Scratch;
use super::spec::{Purpose, RunOf, RunSpec};
use crate::app::App;
use crate::connection::credentials::{Credentials, how_to_give};
use crate::connection::settings::{Connection, Expires, Settings, read_manifest};
use crate::error::AppError;
use gleaner_base::outside::one_line;
use gleaner_runtime::{Control, Redactor, RunReport};
use gleaner_sdk::exchanges::{Exchange, RECORD_VARIABLE, REPLAY_VARIABLE, Recording};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use watch::Watcher;

/// Requests beyond one per record: lists, sign-ins, and what is refused.
const REQUESTS_BESIDE_RECORDS: u64 = 20;
/// How long a limited run may take. A page with its details at one request a second, before the pace is found.
const TIME_MAX: Duration = Duration::from_secs(600);

/// What is rehearsed.
#[derive(Clone, Debug)]
pub struct RehearsalSpec {
    /// Its purpose is [`Purpose::Rehearsal`](super::spec::Purpose::Rehearsal).
    pub run: RunSpec,
    /// How many records are wanted; `None` for all, and then none is kept.
    pub limit: Option<u32>,
    /// Where its HTTP exchanges go.
    pub record: Option<PathBuf>,
    /// Where answers come from, if not from the provider.
    pub replay: Option<PathBuf>,
    /// Even during a cooldown or a pause.
    pub now: bool,
}

/// A rehearsal that may begin.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    app: &'a App,
    spec: RehearsalSpec,
    connection: Connection,
    pub credentials: Credentials,
}

/// What came of it.
#[derive(Debug)]
pub struct Rehearsed {
    pub report: RunReport,
    pub items: Vec<Item>,
    /// How much came of each stream.
    pub sums: BTreeMap<String, Sums>,
    /// Whether it was stopped because there were enough records.
    pub had_enough: bool,
    /// What was asked; `None` when it was not recorded.
    pub exchanges: Option<Vec<Exchange>>,
    pub secrets: Redactor,
}

impl Rehearsed {
    /// Looks at what was recorded; `None` if nothing was.
    ///
    /// # Errors
    ///
    /// When there is a credential in it, or it cannot be read.
    pub fn check_recording(&self, file: &Path) -> Result<Option<Recorded>, AppError> {
        recording::check(file, &self.secrets)
    }
}

/// A recording that can be replayed, by its whole path: a connector may be started in another folder.
fn readable(file: &Path) -> Result<PathBuf, AppError> {
    let hint = "give a file that `gleaner run --record FILE` made; docs/connectors.md describes the format";
    let unreadable = |fault: String| AppError::usage(format!("{}: {fault}", file.display()), hint);
    Recording::read(file).map_err(|fault| unreadable(fault.to_string()))?;
    std::path::absolute(file).map_err(|error| unreadable(error.to_string()))
}

impl App {
    /// Finds everything that a rehearsal needs.
    ///
    /// # Errors
    ///
    /// When there is no such connection, a file cannot be used, or credentials are missing.
    pub fn rehearse(&self, mut spec: RehearsalSpec) -> Result<Rehearsal<'_>, AppError> {
        spec.replay = spec.replay.as_deref().map(readable).transpose()?;
        let mut connection = self.connection_to_rehearse(&spec.run)?;
        if spec.replay.is_some() {
            // A recording may be looked at whenever one likes.
            connection.settings.set_expires(Expires::Never);
            return Ok(Rehearsal { app: self, spec, connection, credentials: Credentials::default() });
        }
        self.make_root()?;
        let credentials = Credentials::find(&connection.manifest, self, &connection.name)?;
        let missing = credentials.missing_names();
        if missing.is_empty() {
            return Ok(Rehearsal { app: self, spec, connection, credentials });
        }
        let message = format!("{} is missing, so nothing can be asked", one_line(&missing.join(", ")));
        let how = how_to_give(&one_line(&connection.name), &missing);
        Err(AppError::needs_owner(message, format!("{how}; --replay FILE needs none")))
    }

    /// A connection that was added, or one that is described. Neither is changed.
    fn connection_to_rehearse(&self, spec: &RunSpec) -> Result<Connection, AppError> {
        let (file, name) = match &spec.connection {
            RunOf::Described { manifest, name } => (manifest, name.clone()),
            RunOf::Added(name) => {
                let connection = self.connection(name)?;
                let settings = connection.settings.started_by(&spec.command)?;
                return Ok(Connection { settings, ..connection });
            }
        };
        let (text, manifest) = read_manifest(file)?;
        let name = name.unwrap_or_else(|| manifest.connector_key.clone());
        // What its owner set for it before still holds.
        let known = self.reader().ok().and_then(|reader| reader.settings(&name).ok());
        let settings = known.map(|text| Settings::from_json(&text)).unwrap_or_default();
        Ok(Connection { name, text, manifest, settings: settings.started_by(&spec.command)? })
    }
}

impl Rehearsal<'_> {
    /// The connection.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// Runs it to its end. `orders` are what `control` hears.
    ///
    /// # Errors
    ///
    /// When it may not run now, or nothing was started.
    pub fn run(self, orders: Sender<Control>, control: Receiver<Control>) -> Result<Rehearsed, AppError> {
        if self.spec.replay.is_some() {
            return self.perform(orders, control);
        }
        let name = &self.connection.name;
        let mut store = self.app.store()?;
        if self.app.reader()?.connection(name).is_ok() {
            let purpose = if self.spec.now { Purpose::OwnerNow } else { Purpose::Owner };
            self.app.check_state(purpose, name)?;
            let policy = self.app.policy(name, &self.connection.manifest)?;
            self.app.permission(purpose, &mut store, name, policy)?;
        }
        drop(store);
        self.app.alone(&self.connection, &self.credentials, || self.perform(orders, control))
    }

    fn perform(&self, orders: Sender<Control>, control: Receiver<Control>) -> Result<Rehearsed, AppError> {
        let Scratch { mut store, folder } = Scratch::new(&self.connection)?;
        let unnamed = || folder.path().join("exchanges.jsonl");
        let record = self.spec.record.clone().unwrap_or_else(unnamed);
        let mut watcher = Watcher::new(&self.connection.manifest, self.spec.limit, orders)?;
        let mut request = self.app.request(&self.limited(), &self.connection, &self.credentials)?;
        if self.spec.limit.is_some() {
            request.launch.environment.set(RECORD_VARIABLE, &record);
        }
        if let Some(file) = &self.spec.replay {
            request.launch.environment.set(REPLAY_VARIABLE, file);
        }
        let report = gleaner_runtime::run(&mut store, request, control, &mut watcher);
        let report = report.map_err(|error| refused(error, &self.connection.name))?;
        let recording = if record.exists() { Recording::read(&record).ok() } else { None };
        let exchanges = recording.map(|recording| recording.exchanges).filter(|exchanges| !exchanges.is_empty());
        let secrets = Redactor::new(self.credentials.secrets());
        let Watcher { items, sums, had_enough, .. } = watcher;
        Ok(Rehearsed { report, items, sums, had_enough, exchanges, secrets })
    }

    /// A limit on records also limits requests and time.
    fn limited(&self) -> RunSpec {
        let mut run = self.spec.run.clone();
        let requests = self.spec.limit.map(|records| u64::from(records) + REQUESTS_BESIDE_RECORDS);
        run.budget.max_requests = run.budget.max_requests.into_iter().chain(requests).min();
        run.budget.max_duration = run.budget.max_duration.or_else(|| self.spec.limit.map(|_| TIME_MAX));
        run
    }
}

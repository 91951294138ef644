//! A run that nobody keeps, for the author of a connector: `gleaner run --limit N` and `--replay FILE`.
//!
//! The connector runs against a scratch store, so nothing is stored and no cursor moves. With a limit it is stopped
//! after so many records. Against a real provider it takes the same leases as a run and respects its cooldowns. Answered
//! from a recording it needs no provider: then it touches no lease, no cooldown, no credential, and not even the data
//! root.

mod watch;

pub use watch::{Item, ItemKind, Sums};

use super::collect::{Permitted, refused};
use super::recording::{self, Recorded};
use super::scratch::Scratch;
use super::spec::{Purpose, RunSpec};
use crate::app::App;
use crate::connection::credentials::{Credentials, how_to_give};
use crate::connection::settings::{Connection, Expires};
use crate::error::AppError;
use gleaner_base::outside::one_line;
use gleaner_runtime::{Control, Redactor, RunReport};
use gleaner_sdk::exchanges::{Exchange, Recording};
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
        spec.run.replay = spec.run.replay.as_deref().map(readable).transpose()?;
        let mut connection = self.connection_of(&spec.run)?;
        if spec.run.replay.is_some() {
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
        if self.spec.run.replay.is_some() {
            return self.perform(orders, control);
        }
        let name = &self.connection.name;
        let mut store = self.app.store()?;
        let reader = self.app.reader()?;
        if reader.connection(name).is_ok() {
            let purpose = if self.spec.now { Purpose::OwnerNow } else { Purpose::Owner };
            Permitted::find(&reader, &mut store, purpose, name)?;
        }
        drop((store, reader));
        self.app.alone(&self.connection, &self.credentials, || self.perform(orders, control))
    }

    fn perform(&self, orders: Sender<Control>, control: Receiver<Control>) -> Result<Rehearsed, AppError> {
        let Scratch { mut store, folder } = Scratch::new(&self.connection)?;
        let unnamed = || folder.path().join("exchanges.jsonl");
        let record = self.spec.run.record.clone().unwrap_or_else(unnamed);
        let mut watcher = Watcher::new(&self.connection.manifest, self.spec.limit, orders)?;
        let request = self.app.request(&self.limited(&record), &self.connection, &self.credentials, None)?;
        let report = gleaner_runtime::run(&mut store, request, control, &mut watcher);
        let report = report.map_err(|error| refused(error, &self.connection.name))?;
        let recording = if record.exists() { Recording::read(&record).ok() } else { None };
        let exchanges = recording.map(|recording| recording.exchanges).filter(|exchanges| !exchanges.is_empty());
        let secrets = Redactor::new(self.credentials.secrets());
        let Watcher { items, sums, had_enough, .. } = watcher;
        Ok(Rehearsed { report, items, sums, had_enough, exchanges, secrets })
    }

    /// A limit on records also limits requests and time, and what was asked is shown beside them.
    fn limited(&self, record: &Path) -> RunSpec {
        let mut run = self.spec.run.clone();
        run.record = self.spec.limit.map(|_| record.to_owned());
        let requests = self.spec.limit.map(|records| u64::from(records) + REQUESTS_BESIDE_RECORDS);
        run.budget.max_requests = run.budget.max_requests.into_iter().chain(requests).min();
        run.budget.max_duration = run.budget.max_duration.or_else(|| self.spec.limit.map(|_| TIME_MAX));
        run
    }
}

//! A run that nobody keeps, for whoever writes the connector: `gleaner run --limit N` and `--replay FILE`.
//!
//! The connector runs against a scratch store, so nothing is stored and no cursor moves. With a limit it is stopped
//! after so many records, and what was asked, what came back and what came out of it are shown side by side. Against
//! a real service it takes the same leases as a run and respects its rests. Answered from a recording it needs no
//! service: then it touches no lease, no rest, no credential, and not even the data root.

mod page;
mod pairing;
mod pretty;
mod watch;

use crate::args::collect::CollectArgs;
use crate::bindings;
use crate::commands::run::{check_state, launch, purpose, refused};
use crate::connection::{Settings, read_manifest, stored};
use crate::credentials::{Credentials, how_to_give};
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use crate::recorded;
use crate::scope;
use crate::stop_signals;
use crate::trial::{hold, keep, scratch_folder, start_keeping};
use gleaner_engine::CooldownPolicy;
use gleaner_protocol::{CollectionMode, Manifest, RunBudget};
use gleaner_runtime::{Redactor, RunReport, RunRequest};
use gleaner_sdk::exchanges::{Exchange, RECORD_VARIABLE, REPLAY_VARIABLE, Recording};
use gleaner_store::Store;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use watch::Watcher;

/// Requests beyond one per record: lists, sign-ins, and what is refused.
const REQUESTS_BESIDE_RECORDS: u64 = 20;
/// How long a limited run may take. A page with its details at one request a second, before the pace is found.
const TIME_MAX: Duration = Duration::from_secs(600);
/// How long it may go on after its time.
const OVERRUN: Duration = Duration::from_secs(1);

/// What is rehearsed.
struct Rehearsal<'a> {
    args: &'a CollectArgs,
    home: Home,
    name: String,
    manifest_text: String,
    manifest: Manifest,
    settings: Settings,
    credentials: Credentials,
    /// Where answers come from, if not from the service.
    replay: Option<PathBuf>,
}

/// What came of it.
struct Rehearsed {
    report: RunReport,
    watcher: Watcher,
    /// What was asked; `None` when it was not recorded.
    exchanges: Option<Vec<Exchange>>,
}

pub(crate) fn run(args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let record = args.author.record.as_deref().map(recorded::place).transpose()?;
    let replay = args.author.replay.as_deref().map(readable).transpose()?;
    let home = Home::find(&args.home)?;
    let (name, manifest_text, manifest, settings) = find_connection(args, &home)?;
    let is_replay = replay.is_some();
    let credentials = if is_replay { Credentials::default() } else { credentials(&home, &name, &manifest)? };
    let secrets = Redactor::new(credentials.secrets());
    let rehearsal =
        Rehearsal { args, home: home.clone(), name, manifest_text, manifest, settings, credentials, replay };
    rehearsal.announce();
    let rehearsed = if is_replay {
        rehearsal.perform(record.as_deref())
    } else {
        rehearsal.perform_alone(&home, record.as_deref())
    };
    let rehearsed = rehearsed?;
    let code = page::show(&rehearsal, &rehearsed, &secrets, out)?;
    if let Some(file) = &record {
        recorded::check(file, &secrets, args.quiet)?;
    }
    Ok(code)
}

/// A recording that can be replayed, by its whole path: a connector may be started in another folder.
fn readable(file: &Path) -> Result<PathBuf, CliError> {
    let hint = "give a file that `gleaner run --record FILE` made; docs/connectors.md describes the format";
    let unreadable = |fault: String| CliError::usage(format!("{}: {fault}", file.display()), hint);
    Recording::read(file).map_err(|fault| unreadable(fault.to_string()))?;
    std::path::absolute(file).map_err(|error| unreadable(error.to_string()))
}

/// A connection that was added, or one that is described on the command line. Neither is changed.
fn find_connection(args: &CollectArgs, home: &Home) -> Result<(String, String, Manifest, Settings), CliError> {
    let Some(file) = &args.manifest else {
        let name = args.connection.clone().unwrap_or_default();
        let (text, manifest, settings) = stored(home, &name)?;
        return Ok((name, text, manifest, settings.started_by(&args.command)?));
    };
    let (text, manifest) = read_manifest(file)?;
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    // What its owner set for it before still holds.
    let known = home.reader().ok().and_then(|reader| reader.settings(&name).ok());
    let settings = known.map(|text| Settings::from_json(&text)).unwrap_or_default();
    Ok((name, text, manifest, settings.started_by(&args.command)?))
}

fn credentials(home: &Home, name: &str, manifest: &Manifest) -> Result<Credentials, CliError> {
    home.make_root()?;
    let credentials = Credentials::find(manifest, home, name)?;
    let missing = credentials.missing_names();
    if missing.is_empty() {
        return Ok(credentials);
    }
    Err(CliError::NeedsOwner {
        message: format!("{} is missing, so nothing can be asked", visible(&missing.join(", "))),
        hint: format!("{}; --replay FILE needs none", how_to_give(&visible(name), &missing)),
    })
}

impl Rehearsal<'_> {
    fn announce(&self) {
        if self.args.quiet || self.args.json {
            return;
        }
        let asked = match &self.replay {
            Some(_) => "answered from a recording",
            None => "asking the service",
        };
        report_to_stderr(&format!("{}: {asked}; nothing will be stored", visible(&self.name)));
    }

    /// Runs it as the only one who asks this service for this account.
    fn perform_alone(&self, home: &Home, record: Option<&Path>) -> Result<Rehearsed, CliError> {
        let mut store = home.store()?;
        if home.reader()?.connection(&self.name).is_ok() {
            check_state(self.args, home, &self.name)?;
            let policy = CooldownPolicy::of(None, self.manifest.refresh_policy.as_ref());
            purpose(self.args, home, &mut store, &self.name, policy)?;
        }
        let account = self.credentials.account(&self.manifest, home)?;
        let leases = hold(&mut store, &self.name, account.as_ref())?;
        let (over, is_over) = channel();
        thread::scope(|scope| {
            start_keeping(scope, move || keep(&mut store, &leases, &is_over))?;
            let rehearsed = self.perform(record);
            drop::<Sender<()>>(over);
            rehearsed
        })
    }

    fn perform(&self, record: Option<&Path>) -> Result<Rehearsed, CliError> {
        let scratch = scratch_folder()?;
        let record = record.map_or_else(|| scratch.path().join("exchanges.jsonl"), Path::to_owned);
        let mut store = Store::open(&scratch.path().join("store.db"))?;
        store.register(&self.name, &self.manifest_text, &self.manifest, dates::now())?;
        let (orders, control) = channel();
        stop_signals::forward(&orders);
        let mut watcher = Watcher::new(&self.manifest, self.args.author.limit, orders)?;
        let request = self.request(&record)?;
        let report = gleaner_runtime::run(&mut store, request, control, &mut watcher);
        let report = report.map_err(|error| refused(error, &self.name))?;
        let recording = if record.exists() { Recording::read(&record).ok() } else { None };
        let exchanges = recording.map(|recording| recording.exchanges).filter(|exchanges| !exchanges.is_empty());
        Ok(Rehearsed { report, watcher, exchanges })
    }

    fn request(&self, record: &Path) -> Result<RunRequest, CliError> {
        let limit = self.args.author.limit;
        let max_requests = limit.map(|records| u64::from(records) + REQUESTS_BESIDE_RECORDS);
        let max_duration = self.args.max_duration.or_else(|| limit.map(|_| TIME_MAX));
        let budget = RunBudget {
            max_requests: self.args.max_requests.into_iter().chain(max_requests).min(),
            max_duration_ms: max_duration.and_then(|duration| u64::try_from(duration.as_millis()).ok()),
        };
        let mut launch = launch(&self.home, &self.name, &self.manifest, &self.settings, &self.credentials, budget)?;
        if limit.is_some() {
            launch.environment.set(RECORD_VARIABLE, record);
        }
        if let Some(file) = &self.replay {
            launch.environment.set(REPLAY_VARIABLE, file);
        }
        Ok(RunRequest {
            connection: self.name.clone(),
            scope: scope::of(self.args, &self.manifest, None)?,
            mode: CollectionMode::FullRefresh,
            purpose: gleaner_engine::RunPurpose::Full,
            grant: "rehearsal".to_owned(),
            // A recording may be looked at whenever one likes.
            grant_expires_at: self.settings.expires_at().filter(|_| self.replay.is_none()),
            launch,
            bindings: bindings::offered(&self.home, &self.name, &self.manifest, false)?,
            budget: (budget != RunBudget::default()).then_some(budget),
            overrun: OVERRUN,
            credential: None,
            redactor: Redactor::new(self.credentials.secrets()),
            interval: None,
            silence_max: None,
            control: None,
            manifest: Arc::new(self.manifest.clone()),
        })
    }
}

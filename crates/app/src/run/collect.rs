//! One run of one connection: whether it may begin, with what, and what came of it.

use super::recording::{self, Recorded};
use super::spec::{Purpose, RunOf, RunSpec};
use crate::app::{App, ourselves};
use crate::connection::credentials::Credentials;
use crate::connection::settings::{Connection, Settings, read_manifest};
use crate::dates;
use crate::error::{AppError, ErrorKind};
use crate::view::connection_view::{ConnectionView, Look};
use gleaner_base::outside::one_line;
use gleaner_engine::{CooldownPolicy, Permission, Refusal, Rest, RunPurpose, Trigger, WallTime};
use gleaner_runtime::{Control, Observer, Redactor, RunError, RunReport, RunRequest};
use gleaner_store::{Acquired, ConnectionState, HeldBy, Lease, LeaseOn, Reader, Store};
use std::path::Path;
use std::sync::mpsc::Receiver;

/// A run that may begin.
#[derive(Debug)]
pub struct PreparedRun {
    pub connection: String,
    /// The credentials that are not there.
    pub missing: Vec<String>,
    /// What the owner should know about the others.
    pub warnings: Vec<String>,
    store: Store,
    request: RunRequest,
    policy: CooldownPolicy,
    rest: Rest,
    secrets: Redactor,
}

/// A run that is over.
#[derive(Debug)]
pub struct EndedRun {
    pub connection: String,
    pub missing: Vec<String>,
    pub report: RunReport,
    /// The cooldown because of which the run was not for everything.
    pub rest_before: Rest,
    /// The one that lasts now: the run may have begun it, made it longer or ended it.
    pub rest_after: Rest,
    secrets: Redactor,
}

impl EndedRun {
    /// Looks at what was recorded; `None` if nothing was.
    ///
    /// # Errors
    ///
    /// When there is a credential in it, or it cannot be read.
    pub fn check_recording(&self, file: &Path) -> Result<Option<Recorded>, AppError> {
        recording::check(file, &self.secrets)
    }
}

impl App {
    /// Finds everything that a run needs, and refuses one that may not begin.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or it may not run now.
    pub fn prepare(&self, spec: &RunSpec) -> Result<PreparedRun, AppError> {
        let mut store = self.store()?;
        let connection = self.connection_of(spec)?;
        let Connection { name, text, manifest, settings } = &connection;
        let reader = self.reader()?;
        let is_described = matches!(spec.connection, RunOf::Described { .. });
        if is_described || settings.first_party.is_some() && reader.manifest_text(name)? != *text {
            store.register(name, text, manifest, dates::now())?;
        }
        if is_described {
            store.set_settings(name, &settings.to_json())?;
        }
        let permitted = Permitted::find(&reader, &mut store, spec.purpose, name)?;
        let credentials = Credentials::find(manifest, self, name)?;
        let request = self.request(spec, &connection, &credentials, Some(&permitted))?;
        let missing = credentials.missing_names();
        let secrets = Redactor::new(credentials.secrets());
        let (connection, warnings) = (connection.name, credentials.warnings);
        let Permitted { policy, rest, .. } = permitted;
        Ok(PreparedRun { connection, missing, warnings, store, request, policy, rest, secrets })
    }

    /// A connection that was added, or one that is described. Neither is changed.
    pub(super) fn connection_of(&self, spec: &RunSpec) -> Result<Connection, AppError> {
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
        // What its owner said about it before still holds, the end of the permission above all.
        let known = self.reader().ok().and_then(|reader| reader.settings(&name).ok());
        let settings = known.map(|text| Settings::from_json(&text)).unwrap_or_default();
        Ok(Connection { name, text, manifest, settings: settings.started_by(&spec.command)? })
    }
}

/// A connection with its permission to run now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permitted {
    pub(super) purpose: RunPurpose,
    /// How its cooldowns are counted: by how often it runs automatically, if it does.
    pub(super) policy: CooldownPolicy,
    /// The cooldown because of which an owner's run is not for everything.
    rest: Rest,
}

impl Permitted {
    /// Whether its owner wants it to run, and what for. During a cooldown, gaps that are not pressure may be recovered.
    pub(super) fn find(reader: &Reader, store: &mut Store, purpose: Purpose, name: &str) -> Result<Self, AppError> {
        let view = ConnectionView::load(reader, &mut Look::new(reader)?, name)?;
        let refused = |what, hint| Err(AppError::needs_owner(format!("{} is {what}", one_line(name)), hint));
        match view.evidence.summary.state {
            ConnectionState::Paused if purpose != Purpose::OwnerNow => {
                return refused("paused", "`gleaner resume` lets it run again; --now runs it once all the same");
            }
            ConnectionState::Removed => {
                return refused("removed", "`gleaner add` adds it again; the next run resumes");
            }
            ConnectionState::Active | ConnectionState::Paused | ConnectionState::Purging => {}
        }
        let policy = view.facts.cooldown_policy;
        let may = |purpose, rest| Ok(Self { purpose, policy, rest });
        let trigger = match purpose {
            Purpose::ScheduledProbe => return may(RunPurpose::Probe, Rest::No),
            Purpose::ScheduledRecovery => return may(RunPurpose::RecoveryOnly, Rest::No),
            Purpose::Scheduled => Trigger::Schedule,
            Purpose::OwnerNow => Trigger::OwnerNow,
            Purpose::Owner | Purpose::Check | Purpose::Rehearsal => Trigger::Owner,
        };
        let rest = store.rest(name, policy, view.now)?;
        match rest.permits(trigger, view.facts.other_gaps) {
            Permission::Full => may(RunPurpose::Full, Rest::No),
            Permission::RecoveryOnly => may(RunPurpose::RecoveryOnly, rest),
            Permission::Refused => Err(resting(name, rest, "wait, or say --now to ask all the same")),
        }
    }
}

/// Takes what a run would take, so that none goes on beside what is done under these leases.
pub(crate) fn lease(store: &mut Store, name: &str, account: Option<&(String, String)>) -> Result<Vec<Lease>, AppError> {
    let mut on = vec![LeaseOn::Connection(name)];
    on.extend(account.map(|(provider, hash)| LeaseOn::Credential { provider, hash }));
    match store.acquire(&on, &ourselves()?, dates::now())? {
        Acquired::Yes { leases, .. } => Ok(leases),
        Acquired::Held(by) => Err(held(&by, name)),
    }
}

impl PreparedRun {
    /// Runs it to its end. Blocks; `control` may be used from other threads meanwhile.
    ///
    /// # Errors
    ///
    /// When nothing was started.
    pub fn run(self, control: Receiver<Control>, observer: &mut dyn Observer) -> Result<EndedRun, AppError> {
        let Self { connection, missing, mut store, request, policy, rest, secrets, .. } = self;
        let report = gleaner_runtime::run(&mut store, request, control, observer);
        let report = report.map_err(|error| refused(error, &connection))?;
        let rest_after = store.rest(&connection, policy, dates::now())?;
        Ok(EndedRun { connection, missing, report, rest_before: rest, rest_after, secrets })
    }
}

/// When a cooldown ends, where that is known.
#[must_use]
pub const fn end_of_rest(rest: Rest) -> Option<WallTime> {
    match rest {
        Rest::Until { until, .. } => Some(until),
        Rest::NeedsAttention { .. } | Rest::No => None,
    }
}

/// How long a cooldown lasts, for people; `None` without one.
#[must_use]
pub fn rest_text(rest: Rest) -> Option<String> {
    match rest {
        Rest::Until { until, .. } => Some(format!("until {}", dates::rfc3339(until))),
        Rest::NeedsAttention { cycles, .. } => Some(format!("after {cycles} cooldowns in a row")),
        Rest::No => None,
    }
}

/// Nothing is asked of a provider that rate-limited us.
pub(super) fn resting(name: &str, rest: Rest, hint: &str) -> AppError {
    let message = format!(
        "{} is in a cooldown {}: its provider rate-limited it",
        one_line(name),
        rest_text(rest).unwrap_or_default()
    );
    AppError::new(ErrorKind::Resting(end_of_rest(rest)), message, hint)
}

/// Why the runtime did not begin.
pub(super) fn refused(error: RunError, name: &str) -> AppError {
    match error {
        RunError::Held(by) => held(&by, name),
        RunError::Refused(Refusal::GrantExpired) => {
            AppError::needs_owner(format!("the permission to collect {} is over", one_line(name)), renew(name))
        }
        RunError::Control { .. } => {
            AppError::failed(error.to_string(), "the folder must be yours alone, on a file system that has sockets")
        }
        RunError::Store(error) => error.into(),
        RunError::Refused(refusal @ Refusal::UnreadableTime { .. }) => {
            AppError::usage(refusal.to_string(), "give a date or a time, as in 2031-01-31 or 2031-01-31T12:00:00Z")
        }
        RunError::Refused(refusal) => AppError::usage(refusal.to_string(), refusal.reason().wording().next),
        RunError::Schema(fault) => AppError::usage(fault.to_string(), "correct the manifest, or ask its author to"),
        RunError::Launch(error) => AppError::usage(error.to_string(), "check the command after `--`"),
    }
}

/// Which process is at work: on this connection, or on another one that signs in with the same account.
fn held(by: &HeldBy, name: &str) -> AppError {
    let (is_itself, name) = (by.is_on(LeaseOn::Connection(name)), one_line(name));
    let what = if is_itself { "is being collected" } else { "shares its account with what is being collected" };
    let (pid, since, until) = (by.pid, dates::rfc3339(by.since), dates::rfc3339(by.until));
    let message = format!("{name} {what} by process {pid}, since {since} and until {until} if it gives no sign");
    let hint = if is_itself {
        format!("wait for it, or stop it with `gleaner cancel {name}`")
    } else {
        "wait for it; `gleaner status` shows which connection is at work".to_owned()
    };
    AppError::new(ErrorKind::Held, message, hint)
}

/// How a permission that is over is renewed.
#[must_use]
pub fn renew(name: &str) -> String {
    format!("renew it with `gleaner resume {} --expires TIME`, or --expires never", one_line(name))
}

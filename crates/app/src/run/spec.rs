//! What is asked of a run, and the one way from there to what the runtime is given.
//!
//! A [`RunSpec`] is a value: the terminal builds it from arguments, the service sends it to the process of a scheduled
//! run, a check and a rehearsal fill it in themselves. It never holds a secret.

use super::collect::Permitted;
use super::{bindings, scope};
use crate::app::App;
use crate::connection::credentials::Credentials;
use crate::connection::settings::Connection;
use crate::error::AppError;
use gleaner_engine::RunPurpose;
use gleaner_protocol::{CollectionMode, RunBudget};
use gleaner_runtime::{Environment, Launch, Redactor, RunRequest};
use gleaner_schedule::Kind;
use gleaner_sdk::exchanges::{RECORD_VARIABLE, REPLAY_VARIABLE};
use gleaner_sdk::{ACCOUNT_VARIABLE, PACING_VARIABLE};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a connector may go on after its time: what one request may take.
const OVERRUN: Duration = Duration::from_secs(30);
/// The same where nothing is kept.
const SCRATCH_OVERRUN: Duration = Duration::from_secs(1);
/// After so long without any news a connector that nobody watches is taken for stuck. Nobody is asked to wait longer
/// than five minutes, and nothing that is worth waiting for takes an hour for one request.
const SILENCE_MAX: Duration = Duration::from_secs(3600);

/// What is asked of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSpec {
    pub connection: RunOf,
    /// How to start the connector; empty is as it was added, or what its manifest says.
    #[serde(default)]
    pub command: Vec<OsString>,
    #[serde(default)]
    pub scope: ScopeSpec,
    /// From the beginning, and not from where the last run ended.
    #[serde(default)]
    pub full_refresh: bool,
    #[serde(default)]
    pub budget: BudgetSpec,
    pub purpose: Purpose,
    /// Whether somebody can answer what the connector asks.
    #[serde(default)]
    pub interactive: bool,
    /// Where its HTTP exchanges go; [`place_of_recording`](super::recording::place_of_recording) has checked the file.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Where answers come from, if not from the provider.
    #[serde(default)]
    pub replay: Option<PathBuf>,
}

/// Which connection runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOf {
    /// One that was added, by its name.
    Added(String),
    /// One that is described here: a manifest, and what to call the connection.
    Described { manifest: PathBuf, name: Option<String> },
}

/// What is collected.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScopeSpec {
    /// Only these streams; none is all.
    pub streams: Vec<String>,
    /// Only these records: `STREAM=KEY`.
    pub resources: Vec<String>,
    /// Only what is not older.
    pub since: Option<String>,
    /// What is older than the first run, with cursors of its own.
    pub history: bool,
}

/// How much it may do.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct BudgetSpec {
    pub max_requests: Option<u64>,
    pub max_duration: Option<Duration>,
}

/// What a run is for, and who wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Its owner wants it.
    Owner,
    /// Its owner wants it even during a cooldown or a pause.
    OwnerNow,
    /// It is scheduled.
    Scheduled,
    /// The service recovers gaps that have nothing to do with a cooldown.
    ScheduledRecovery,
    /// The service asks with one request whether the provider is back.
    ScheduledProbe,
    /// Whether it works; nothing is kept.
    Check,
    /// What its author looks at; nothing is kept.
    Rehearsal,
}

impl Purpose {
    pub(super) const fn is_scheduled(self) -> bool {
        matches!(self, Self::Scheduled | Self::ScheduledRecovery | Self::ScheduledProbe)
    }

    /// Whether the run has a store of its own, which is thrown away.
    const fn is_scratch(self) -> bool {
        matches!(self, Self::Check | Self::Rehearsal)
    }

    /// The permission under which it collects, until a connection has several.
    const fn grant(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Rehearsal => "rehearsal",
            _ => "owner",
        }
    }
}

impl RunSpec {
    /// A run of a connection that was added, with nothing special.
    #[must_use]
    pub fn new(connection: impl Into<String>, purpose: Purpose) -> Self {
        Self {
            connection: RunOf::Added(connection.into()),
            command: Vec::new(),
            scope: ScopeSpec::default(),
            full_refresh: false,
            budget: BudgetSpec::default(),
            purpose,
            interactive: false,
            record: None,
            replay: None,
        }
    }

    /// A run that the service starts. Its questions wait for `gleaner answer`.
    pub(crate) fn scheduled(connection: &str, kind: Kind) -> Self {
        let purpose = match kind {
            Kind::Full | Kind::CatchUp => Purpose::Scheduled,
            Kind::RecoveryOnly => Purpose::ScheduledRecovery,
            Kind::Probe => Purpose::ScheduledProbe,
        };
        let scope = ScopeSpec { history: kind == Kind::CatchUp, ..ScopeSpec::default() };
        let max_requests = (kind == Kind::Probe).then_some(1);
        let budget = BudgetSpec { max_requests, max_duration: None };
        Self { scope, budget, interactive: true, ..Self::new(connection, purpose) }
    }
}

impl BudgetSpec {
    /// What the run may use: by option or setting, and by the variables that connectors know. The least counts.
    fn least(self, variable: impl Fn(&str) -> Option<String>) -> RunBudget {
        let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|&number| number > 0);
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let duration = self.max_duration.and_then(|duration| u64::try_from(duration.as_millis()).ok());
        RunBudget {
            max_requests: least(self.max_requests, number("GLEANER_MAX_REQUESTS")),
            max_duration_ms: least(duration, number("GLEANER_MAX_DURATION_MS")),
        }
    }
}

impl App {
    /// From what is asked to what is run: the only place that builds a [`RunRequest`] of the application. What nobody
    /// keeps needs no permission here.
    pub(super) fn request(
        &self,
        spec: &RunSpec,
        connection: &Connection,
        credentials: &Credentials,
        permitted: Option<&Permitted>,
    ) -> Result<RunRequest, AppError> {
        let Connection { name, manifest, settings, .. } = connection;
        let is_scratch = spec.purpose.is_scratch();
        let budget = spec.budget.least(|name| std::env::var(name).ok());
        let history_ends = if spec.scope.history { self.reader()?.first_run(name)? } else { None };
        let is_from_start = spec.full_refresh || is_scratch;
        let scope = scope::of(spec, manifest, history_ends)?;
        let launch = self.launch(spec, connection, credentials, budget)?;
        Ok(RunRequest {
            mode: if is_from_start { CollectionMode::FullRefresh } else { CollectionMode::Incremental },
            purpose: permitted.map_or(RunPurpose::Full, |permitted| permitted.purpose),
            interval: permitted.map(|permitted| permitted.policy.base),
            grant: spec.purpose.grant().to_owned(),
            grant_expires_at: settings.expires_at().filter(|_| spec.purpose != Purpose::Check),
            bindings: bindings::offered(self, name, manifest, spec.interactive)?,
            budget: (budget != RunBudget::default()).then_some(budget),
            overrun: if is_scratch { SCRATCH_OVERRUN } else { OVERRUN },
            // Where nothing is kept, the leases are held outside of the scratch store.
            credential: if is_scratch { None } else { credentials.account(manifest, self)? },
            redactor: Redactor::new(credentials.secrets()),
            silence_max: spec.purpose.is_scheduled().then_some(SILENCE_MAX),
            control: (!is_scratch).then(|| self.control_folder()),
            ..RunRequest::new(name, Arc::new(manifest.clone()), scope, launch)
        })
    }

    /// How the connector is started, and what it finds around it.
    fn launch(
        &self,
        spec: &RunSpec,
        connection: &Connection,
        credentials: &Credentials,
        budget: RunBudget,
    ) -> Result<Launch, AppError> {
        let Connection { name, manifest, settings, .. } = connection;
        let executable = self.executable()?;
        let guard = |word: &str| vec![executable.as_os_str().to_owned(), OsString::from(word)];
        let mut environment = Environment::for_connector(std::env::vars_os(), &manifest.environment_variables);
        // What an owner may bound needs no leave of the connector's.
        for name in gleaner_sdk::variable_names(&manifest.connector_key) {
            if let Some(value) = std::env::var_os(&name) {
                environment.set(name, value);
            }
        }
        for (name, value) in &settings.set {
            environment.set(name, value);
        }
        if let Some(requests) = budget.max_requests {
            environment.set("GLEANER_MAX_REQUESTS", requests.to_string());
        }
        if let Some(millis) = budget.max_duration_ms {
            environment.set("GLEANER_MAX_DURATION_MS", millis.to_string());
        }
        environment.set(PACING_VARIABLE, self.pacing_folder());
        environment.set(ACCOUNT_VARIABLE, name);
        credentials.put_into(&mut environment);
        for (variable, file) in [(RECORD_VARIABLE, &spec.record), (REPLAY_VARIABLE, &spec.replay)] {
            if let Some(file) = file {
                environment.set(variable, file);
            }
        }
        Ok(Launch {
            command: settings.start_words(manifest, Some(executable)).unwrap_or_default(),
            environment,
            folder: settings.folder.clone(),
            guard: guard("guard"),
            exec: guard("guard-exec"),
        })
    }
}

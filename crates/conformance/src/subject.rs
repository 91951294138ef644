//! What is checked, and within which limits.

use gleaner_runtime::Environment;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A connector to be checked. Prints how many secrets it has, never which.
#[derive(Clone)]
pub struct Subject {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The text of its manifest. Without one, `streams` is needed, and what only a manifest says is
    /// not checked.
    pub manifest: Option<String>,
    /// The streams to ask for. Empty means all of the manifest.
    pub streams: Vec<String>,
    /// Its environment, all of it, with the credentials that it needs.
    pub environment: Environment,
    /// What must not be seen, besides the variables that the manifest names as credentials.
    pub secrets: Vec<String>,
    /// The variable from which it takes the address of its provider. Without it nobody can stand in for the provider,
    /// and what it does when it is refused is not checked.
    pub provider_variable: Option<String>,
    /// Where it runs.
    pub folder: Option<PathBuf>,
    /// Where scratch stores are made. `None` means the system's temporary folder.
    pub scratch: Option<PathBuf>,
    /// How to start this program as a guard: see [`gleaner_runtime::guard_main`].
    pub guard: Vec<OsString>,
    /// How to start it as what becomes the connector: see [`gleaner_runtime::exec_main`].
    pub exec: Vec<OsString>,
    /// How long things may take.
    pub limits: Limits,
    /// Chooses the points of kill. The same number chooses the same points.
    pub seed: u64,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("command", &self.command)
            .field("streams", &self.streams)
            .field("environment", &self.environment)
            .field("secrets", &self.secrets.len())
            .field("limits", &self.limits)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All of it. What comes later is skipped.
    pub total: Duration,
    /// One run of the connector.
    pub start: Duration,
    /// Until its first line.
    pub first_line: Duration,
    /// Until it ends after SIGTERM.
    pub after_term: Duration,
    /// Until it ends after the end of its input.
    pub after_ack: Duration,
    /// For how long its output is read slowly.
    pub slow: Duration,
    /// For how long it is watched whether it waits for the end of its input.
    pub linger: Duration,
    /// How often it is killed.
    pub kills: u32,
    /// For how long it is watched whether it asks a provider again that told it to wait.
    pub refusal: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(120),
            start: Duration::from_secs(30),
            first_line: Duration::from_secs(15),
            after_term: Duration::from_secs(7),
            after_ack: Duration::from_secs(10),
            slow: Duration::from_secs(3),
            linger: Duration::from_millis(500),
            kills: 5,
            refusal: Duration::from_secs(4),
        }
    }
}

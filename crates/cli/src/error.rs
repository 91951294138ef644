//! What can go wrong, as a user meets it: a message, a hint, an exit code.
//!
//! Libraries below return their own errors; only here do they get a kind and advice.

use crate::output::{report_to_stderr, visible_lines};
use gleaner_engine::WallTime;
use gleaner_lab::scenario::ScenarioError;
use std::io;
use std::process::ExitCode;

/// An `[expect]` was missed, or something could not be written.
pub(crate) const EXIT_FAILED: u8 = 1;
/// What was asked for makes no sense.
const EXIT_USAGE: u8 = 2;
/// Finished, and something is missing.
pub(crate) const EXIT_GAPS: u8 = 3;
/// Only the owner can help.
pub(crate) const EXIT_NEEDS_OWNER: u8 = 4;
/// The service pushed back.
pub(crate) const EXIT_PROVIDER: u8 = 5;
/// There is no store.
const EXIT_NOT_INITIALISED: u8 = 10;
/// Another run is at work.
const EXIT_HELD: u8 = 11;
/// The credentials were refused.
pub(crate) const EXIT_CREDENTIALS: u8 = 12;
/// Ended by Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum CliError {
    /// What was typed, or a file that was named, is wrong.
    Usage { message: String, hint: String },
    /// The machine said no.
    Failed { message: String, hint: String },
    /// There is no store.
    NotInitialised { message: String, hint: String },
    /// Another run is at work.
    Held { message: String, hint: String },
    /// Only the owner can help.
    NeedsOwner { message: String, hint: String },
    /// The service did not accept the credentials.
    CredentialsRefused { message: String, hint: String },
    /// The service pushed back or did not answer; later it may, and where that is known, then.
    Resting { message: String, hint: String, until: Option<WallTime> },
    /// Whoever read our output has left; nobody wants to hear about it.
    BrokenPipe,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    /// Its exit code, and the word for it that programs get.
    pub(crate) const fn kind(&self) -> (u8, &'static str) {
        match self {
            Self::Usage { .. } => (EXIT_USAGE, "usage"),
            Self::Failed { .. } => (EXIT_FAILED, "failed"),
            Self::NotInitialised { .. } => (EXIT_NOT_INITIALISED, "not_initialised"),
            Self::Held { .. } => (EXIT_HELD, "held"),
            Self::Resting { .. } => (EXIT_PROVIDER, "resting"),
            Self::NeedsOwner { .. } => (EXIT_NEEDS_OWNER, "needs_owner"),
            Self::CredentialsRefused { .. } => (EXIT_CREDENTIALS, "credentials_refused"),
            Self::BrokenPipe => (0, "broken_pipe"),
        }
    }

    /// What it says, for programs; the hint is for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Usage { message, .. }
            | Self::Failed { message, .. }
            | Self::NotInitialised { message, .. }
            | Self::Held { message, .. }
            | Self::Resting { message, .. }
            | Self::NeedsOwner { message, .. }
            | Self::CredentialsRefused { message, .. } => message,
            Self::BrokenPipe => "nobody reads the output",
        }
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage { message, hint }
            | Self::Failed { message, hint }
            | Self::NotInitialised { message, hint }
            | Self::Held { message, hint }
            | Self::Resting { message, hint, .. }
            | Self::NeedsOwner { message, hint }
            | Self::CredentialsRefused { message, hint } => say(message, hint),
            Self::BrokenPipe => {}
        }
        ExitCode::from(self.kind().0)
    }
}

impl From<gleaner_vault::VaultError> for CliError {
    fn from(error: gleaner_vault::VaultError) -> Self {
        let hint = "the message says what to do; `gleaner add` asks for credentials again".to_owned();
        Self::Failed { message: error.to_string(), hint }
    }
}

impl From<gleaner_vault::ResolveError> for CliError {
    fn from(error: gleaner_vault::ResolveError) -> Self {
        Self::usage(error.to_string(), "correct the variable, or unset it to use what is stored")
    }
}

impl From<gleaner_store::StoreError> for CliError {
    /// These say themselves what to do; the hint is where to look.
    fn from(error: gleaner_store::StoreError) -> Self {
        use gleaner_store::StoreError;
        let hint = match &error {
            StoreError::UnknownConnection(_) => "`gleaner status` lists the connections",
            StoreError::UnknownStream { .. } => "`gleaner coverage CONNECTION` lists the streams",
            StoreError::BadName(_) => "give another --name",
            StoreError::StandsForMany(_) => "it is collected by and by; `gleaner pause` stops that",
            _ => "docs/store.md says what each of these means",
        };
        match error {
            StoreError::UnknownConnection(_)
            | StoreError::UnknownStream { .. }
            | StoreError::StandsForMany(_)
            | StoreError::BadName(_) => Self::usage(error.to_string(), hint),
            _ => Self::Failed { message: error.to_string(), hint: hint.to_owned() },
        }
    }
}

impl From<gleaner_store::QueryError> for CliError {
    fn from(error: gleaner_store::QueryError) -> Self {
        use gleaner_store::QueryError;
        let hint = match error {
            QueryError::Store(error) => return error.into(),
            QueryError::Refused(_) => "ask with one SELECT; `gleaner export` writes files",
            QueryError::Sql(_) => "docs/store.md lists the tables; names with a dot are quoted: \"shop.orders\"",
            QueryError::Interrupted => "ask for less, or wait longer",
        };
        Self::usage(error.to_string(), hint)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Failed {
                message: format!("cannot write the output: {error}"),
                hint: "see where stdout goes: a full disk or a closed file stops the run".to_owned(),
            },
        }
    }
}

impl From<ScenarioError> for CliError {
    fn from(error: ScenarioError) -> Self {
        let hint = match &error {
            ScenarioError::Read { .. } => {
                "give a scenario file, a folder with .toml files, or a name that `gleaner lab list` prints".to_owned()
            }
            ScenarioError::Format { file, .. } => format!("correct {file}; docs/lab.md describes every key"),
            ScenarioError::Value { file, key, .. } => {
                format!("correct {key} in {file}; docs/lab.md describes every key")
            }
        };
        let message = match &error {
            ScenarioError::Value { file, key, value, allowed } => {
                format!("{file}: {key} = {value} is not allowed\nallowed: {allowed}")
            }
            other => other.to_string(),
        };
        Self::usage(message, hint)
    }
}

/// What clap has to say: help and version go to stdout and are no errors.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE)),
        Err(error) => CliError::from(error).report(),
    }
}

fn say(message: &str, hint: &str) {
    report_to_stderr(&format!("error: {}\nhint: {}", visible_lines(message), visible_lines(hint)));
}

/// The nearest of `names` to what was typed, when it is near enough to have been meant.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(typed, name), name));
    scored.filter(|&(score, _)| score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

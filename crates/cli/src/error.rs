//! Errors as a user of the program meets them: a message, a hint, an exit code.

use crate::terminal::output::report_to_stderr;
use gleaner_app::{AppError, ErrorKind};
use gleaner_base::outside;
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
    App(AppError),
    /// Whoever read our output has left; nobody wants to hear about it.
    BrokenPipe,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::App(AppError::usage(message, hint))
    }

    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::App(AppError::failed(message, hint))
    }

    /// Its exit code, and the word for it that programs get.
    pub(crate) const fn kind(&self) -> (u8, &'static str) {
        let Self::App(error) = self else { return (0, "broken_pipe") };
        match error.kind {
            ErrorKind::Usage | ErrorKind::NotFound | ErrorKind::Conflict => (EXIT_USAGE, "usage"),
            ErrorKind::Failed | ErrorKind::Store | ErrorKind::Unreachable | ErrorKind::NoSuchQuestion => {
                (EXIT_FAILED, "failed")
            }
            ErrorKind::NotInitialized => (EXIT_NOT_INITIALISED, "not_initialised"),
            ErrorKind::Held => (EXIT_HELD, "held"),
            ErrorKind::Resting(_) => (EXIT_PROVIDER, "resting"),
            ErrorKind::NeedsOwner => (EXIT_NEEDS_OWNER, "needs_owner"),
            ErrorKind::CredentialsRefused => (EXIT_CREDENTIALS, "credentials_refused"),
        }
    }

    /// What it says, for programs; the hint is for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::App(error) => &error.message,
            Self::BrokenPipe => "nobody reads the output",
        }
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::App(AppError { message, hint, .. }) = self {
            report_to_stderr(&format!("error: {}\nhint: {}", outside::lines(message), outside::lines(hint)));
        }
        ExitCode::from(self.kind().0)
    }
}

impl From<AppError> for CliError {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

impl From<gleaner_store::StoreError> for CliError {
    fn from(error: gleaner_store::StoreError) -> Self {
        Self::App(error.into())
    }
}

impl From<gleaner_store::QueryError> for CliError {
    fn from(error: gleaner_store::QueryError) -> Self {
        Self::App(error.into())
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::failed(
                format!("cannot write the output: {error}"),
                "see where stdout goes: a full disk or a closed file stops the run",
            ),
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

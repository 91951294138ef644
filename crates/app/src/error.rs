//! What can go wrong, as an owner meets it: a kind, a message, and what to do about it.
//!
//! Libraries below return their own errors; only here do they get a kind and advice. The program maps the kind to an
//! exit code, the console to a status.

use gleaner_engine::WallTime;
use gleaner_store::{QueryError, StoreError};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    pub kind: ErrorKind,
    /// What happened. May hold text from outside.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// Kinds of errors: what a caller does differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request makes no sense, or a file that it names is wrong.
    Usage,
    /// It names something that is not there.
    NotFound,
    /// The question was answered, or its run has ended.
    NoSuchQuestion,
    /// It cannot be done as things are.
    Conflict,
    /// The run that is meant does not listen.
    Unreachable,
    /// The machine refused.
    Failed,
    /// The store cannot be used.
    Store,
    /// There is no store yet.
    NotInitialized,
    /// Another process is at work.
    Held,
    /// Only the owner can help.
    NeedsOwner,
    /// The provider refused the credentials.
    CredentialsRefused,
    /// The provider rate-limited us or did not answer; where it is known, until when.
    Resting(Option<WallTime>),
}

impl AppError {
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
    }

    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message, hint)
    }

    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message, hint)
    }

    pub fn needs_owner(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::NeedsOwner, message, hint)
    }

    pub(crate) fn no_connection(name: &str) -> Self {
        StoreError::UnknownConnection(name.to_owned()).into()
    }
}

impl From<gleaner_vault::VaultError> for AppError {
    fn from(error: gleaner_vault::VaultError) -> Self {
        Self::failed(error.to_string(), "the message says what to do; `gleaner add` asks for credentials again")
    }
}

impl From<gleaner_vault::ResolveError> for AppError {
    fn from(error: gleaner_vault::ResolveError) -> Self {
        Self::usage(error.to_string(), "correct the variable, or unset it to use what is stored")
    }
}

impl From<StoreError> for AppError {
    /// These say themselves what to do; the hint is where to look.
    fn from(error: StoreError) -> Self {
        let (kind, hint) = match &error {
            StoreError::UnknownConnection(_) => (ErrorKind::NotFound, "`gleaner status` lists the connections"),
            StoreError::UnknownStream { .. } => {
                (ErrorKind::NotFound, "`gleaner coverage CONNECTION` lists the streams")
            }
            StoreError::BadName(_) => (ErrorKind::Usage, "give another --name"),
            StoreError::StandsForMany(_) => {
                (ErrorKind::Conflict, "it is collected by and by; `gleaner pause` stops that")
            }
            _ => (ErrorKind::Store, "docs/store.md says what each of these means"),
        };
        Self::new(kind, error.to_string(), hint)
    }
}

impl From<QueryError> for AppError {
    fn from(error: QueryError) -> Self {
        let hint = match error {
            QueryError::Store(error) => return error.into(),
            QueryError::Refused(_) => "ask with one SELECT; `gleaner export` writes files",
            QueryError::Sql(_) => "docs/store.md lists the tables; names with a dot are quoted: \"shop.orders\"",
            QueryError::Interrupted => "ask for less, or wait longer",
        };
        Self::usage(error.to_string(), hint)
    }
}

/// The nearest of `names` to what was typed, when it is near enough to have been meant.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(typed, name), name));
    scored.filter(|&(score, _)| score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

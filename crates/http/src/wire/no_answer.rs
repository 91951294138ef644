//! Why a request has no answer: as an outcome for a governor and as text for a person.

use super::address::PrivateTarget;
use crate::causes::{Cause, cause, causes};
use gleaner_governor::{Outcome, network_error, untrusted_certificate};
use std::time::Duration;

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportKind {
    /// No connection: the provider has not seen the request.
    #[error(
        "no connection, so nothing was sent; the name, the port or the way there may be wrong, or the provider is down"
    )]
    Connect,
    /// No answer within the timeout of one attempt. The provider may have executed the request. Holds the timeout.
    #[error("no answer within {:.1} s of being sent; the provider may still have executed the request", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection broke. The provider may have executed the request.
    #[error("the connection broke before the answer; the provider may still have executed the request")]
    Lost,
}

/// Why an attempt has no answer. Converts from `reqwest::Error`, without its URL.
#[derive(Debug)]
pub struct NoAnswer {
    pub(crate) why: Why,
    pub(crate) cause: Option<Cause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Transport(TransportKind),
    Untrusted,
    Private,
    /// No request was sent: it is not in the recording.
    NotRecorded,
}

impl NoAnswer {
    /// Without a further cause.
    #[must_use]
    pub const fn new(kind: TransportKind) -> Self {
        Self { why: Why::Transport(kind), cause: None }
    }

    pub(crate) fn not_recorded(what: String) -> Self {
        Self { why: Why::NotRecorded, cause: Some(what.into()) }
    }

    /// Its meaning for the governor.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.why {
            Why::Transport(_) => network_error(),
            // A retry cannot cure a certificate, a forbidden address or a recording.
            Why::Untrusted | Why::Private | Why::NotRecorded => untrusted_certificate(),
        }
    }

    /// Text for a person, without the URL.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let what = match self.why {
            Why::Transport(TransportKind::Timeout(after)) => {
                return format!("no answer within {} s", after.as_secs());
            }
            Why::Transport(TransportKind::Connect) => "no connection",
            Why::Transport(TransportKind::Lost) => "the connection broke",
            Why::Untrusted => "its certificate is not trusted",
            Why::Private => return "its address is not public".to_owned(),
            Why::NotRecorded => "it is not in the recording",
        };
        match self.cause.as_ref().and_then(|cause| causes(cause.as_ref()).last()) {
            Some(cause) => format!("{what}: {cause}"),
            None => what.to_owned(),
        }
    }
}

impl From<reqwest::Error> for NoAnswer {
    fn from(error: reqwest::Error) -> Self {
        // Its text would show the URL.
        let error = error.without_url();
        let is_untrusted = |error: &rustls::Error| matches!(error, rustls::Error::InvalidCertificate(_));
        let why = if cause::<PrivateTarget>(&error).is_some() {
            Why::Private
        } else if cause(&error).is_some_and(is_untrusted) {
            Why::Untrusted
        } else if error.is_connect() {
            Why::Transport(TransportKind::Connect)
        } else {
            Why::Transport(TransportKind::Lost)
        };
        Self { why, cause: Some(error.into()) }
    }
}

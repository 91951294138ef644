//! Why a call has no answer, in words for a person and in variants for a program.
//!
//! A variant per thing that a caller can do differently. Texts say what happened, why, and what to do
//! next. Never holds a query, a header, a body or a credential: a URL is shown as a [`Place`].

use super::paging::PagingFault;
use super::place::Place;
use crate::governors::KeyError;
use crate::refusal::Refused;
use crate::wire::{BodyFault, Cause, RedirectFault, TransportKind};
use gleaner_governor::{DeferReason, PressureReason};
use http::StatusCode;
use std::time::Duration;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was not sent, or not sent again, by our own decision.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The provider refused it for good. Shown as `<name>_rate_limited` and the like, which is what the
    /// retry patterns of connectors look for.
    #[error(transparent)]
    Terminal(#[from] Terminal),
    /// There is no answer. Whether the provider has seen the request is in the kind.
    #[error("{place}: {kind}")]
    Transport {
        /// Where it was sent.
        place: Place,
        /// What failed.
        kind: TransportKind,
        /// The failure underneath, where there is one.
        source: Option<Cause>,
        /// Our own budget, if that is why it was not sent again.
        deferred: Option<DeferReason>,
    },
    /// The provider could not prove who it is. Never sent again, and never sent without the check.
    #[error(
        "{place}: the certificate is not trusted; somebody may be listening, or the provider or this machine has \
         out-of-date certificates or a wrong clock"
    )]
    UntrustedCertificate {
        /// Where it was sent.
        place: Place,
        /// What is wrong with it.
        source: Cause,
    },
    /// A redirect that is not followed.
    #[error("{place}: the redirect is not followed: {fault}")]
    Redirect {
        /// Who sent the redirect.
        place: Place,
        /// Why not.
        fault: RedirectFault,
    },
    /// The body of the answer cannot be read to its end.
    #[error("{place}: {fault}")]
    Body {
        /// Who sent it.
        place: Place,
        /// Why not.
        fault: BodyFault,
        /// The failure underneath, where there is one.
        source: Option<Cause>,
    },
    /// The body is not the JSON that was asked for. What it says instead is not shown.
    #[error("{place}: the answer is not the expected JSON: {what} at line {line}, column {column}")]
    Json {
        /// Who sent it.
        place: Place,
        /// In one or two words.
        what: &'static str,
        /// Where, counted from 1.
        line: usize,
        /// Where in the line, counted from 1.
        column: usize,
    },
    /// The status is an error, and the caller asked for that to be one
    /// ([`Response::error_for_status`](super::Response::error_for_status)).
    #[error("{place}: the provider answered {status}")]
    Status {
        /// Who answered.
        place: Place,
        /// What.
        status: StatusCode,
        /// Our own budget, if that is why it was not sent again.
        deferred: Option<DeferReason>,
    },
    /// The pages do not come to an end, or lead somewhere else.
    #[error("{place}: page {page}: {fault}")]
    Paging {
        /// Whose pages.
        place: Place,
        /// Counted from 0.
        page: u32,
        /// What is wrong.
        fault: PagingFault,
    },
    /// The request cannot be sent as it is written.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestFault),
    /// The key cannot be governed as it was asked for.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The client cannot be made.
    #[error("the client cannot be made: {what}")]
    Setup {
        /// What failed.
        what: &'static str,
        /// The failure underneath.
        source: Cause,
    },
    /// The recording that is played has no answer to it. Says which request it was, as its player shows it.
    #[error("{0}")]
    NotRecorded(Box<str>),
    /// A blocking call inside an async runtime would stop the runtime.
    #[error("a blocking call inside an async runtime would stop it; use GovernedClient there, or a thread of its own")]
    BlockingInAsync,
}

/// A refusal that is final for this call: the provider said no, and it is not asked again. Shown as the name and a word;
/// no period follows an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}_{}", word(*.reason))]
pub struct Terminal {
    /// The client's name.
    pub name: Box<str>,
    /// Why it is final. Only pressure may arm a cooldown.
    pub reason: TerminalReason,
    /// The last answer.
    pub status: StatusCode,
    /// How often it was sent.
    pub attempts: u32,
    /// After how long it makes sense to try again.
    pub retry_in: Option<Duration>,
}

/// Why a refusal is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalReason {
    /// The provider pushes back, and the attempts are used up.
    Pressure(PressureReason),
    /// Our own budget ended it. Not the provider's pressure.
    Deferred(DeferReason),
}

impl Terminal {
    /// The provider's pressure, if it was that: what may arm a cooldown.
    #[must_use]
    pub const fn pressure(&self) -> Option<PressureReason> {
        match self.reason {
            TerminalReason::Pressure(reason) => Some(reason),
            TerminalReason::Deferred(_) => None,
        }
    }
}

/// A word that patterns match on.
const fn word(reason: TerminalReason) -> &'static str {
    match reason {
        TerminalReason::Pressure(_) => "rate_limited",
        TerminalReason::Deferred(DeferReason::RetryBudget | DeferReason::Attempts) => "retry_exhausted",
        TerminalReason::Deferred(other) => other.as_str(),
    }
}

/// What is wrong with a request as it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// The URL cannot be read.
    #[error("its URL cannot be read: {0}")]
    Url(url::ParseError),
    /// Only HTTP is spoken here.
    #[error("its URL begins with neither http:// nor https://")]
    Scheme,
    /// A header has characters that no header may have. Holds which one; the value is not shown.
    #[error("its header {0:?} has a name or a value that HTTP does not allow")]
    Header(Box<str>),
    /// The value for its body cannot be written as JSON.
    #[error("its body cannot be written as JSON")]
    Json,
}

impl Error {
    /// The provider's pressure, if that is what ended the call: what may arm a cooldown.
    #[must_use]
    pub const fn pressure(&self) -> Option<PressureReason> {
        match self {
            Self::Terminal(terminal) => terminal.pressure(),
            _ => None,
        }
    }

    /// After how long it makes sense to try again, where that is known.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        match self {
            Self::Terminal(terminal) => terminal.retry_in,
            Self::Refused(refused) => refused.retry_in,
            _ => None,
        }
    }

    /// Not `From`: the text of a JSON error quotes the content, so only its position is taken over.
    pub(crate) fn json(place: &Place, error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Syntax => "not JSON",
            serde_json::error::Category::Eof => "it ends too early",
            serde_json::error::Category::Data => "a value of another kind or a missing field",
            serde_json::error::Category::Io => "it cannot be read",
        };
        Self::Json { place: place.clone(), what, line: error.line(), column: error.column() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(reason: TerminalReason) -> Terminal {
        Terminal { name: "github".into(), reason, status: StatusCode::TOO_MANY_REQUESTS, attempts: 4, retry_in: None }
    }

    #[test]
    fn only_pressure_reads_as_rate_limited() {
        let shown = |reason| terminal(reason).to_string();
        for reason in [PressureReason::RateLimited, PressureReason::UpstreamPressure] {
            assert_eq!(shown(TerminalReason::Pressure(reason)), "github_rate_limited");
        }
        assert_eq!(shown(TerminalReason::Deferred(DeferReason::RetryBudget)), "github_retry_exhausted");
        assert_eq!(shown(TerminalReason::Deferred(DeferReason::CircuitOpen)), "github_circuit_open");
        let deferred = Error::from(terminal(TerminalReason::Deferred(DeferReason::RetryBudget)));
        assert_eq!((deferred.pressure(), deferred.to_string().as_str()), (None, "github_retry_exhausted"));
    }

    #[test]
    fn a_json_error_tells_the_position_and_not_the_content() {
        let url = url::Url::parse("https://api.example/v1?token=secret").unwrap();
        let cause = serde_json::from_str::<u32>("\n \"my diary\"").unwrap_err();
        assert!(cause.to_string().contains("diary"), "otherwise this test proves nothing");
        let error = Error::json(&Place::of(&url), &cause);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("diary") && !shown.contains("secret"), "{shown}");
        assert!(shown.contains("line 2, column 11"), "{shown}");
    }
}

//! Errors of a call, as text for a person and as variants for a program.
//!
//! There is one variant per reaction of a caller. Texts say what happened, why, and what to do. Never holds a query,
//! a header, a body or a credential: a URL is shown as a [`ShownUrl`].

use super::paging::PagingFault;
use super::shown_url::ShownUrl;
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
    /// We did not send it, or did not retry it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The provider refused it for good. Displayed as `<name>_rate_limited` and the like, which the retry patterns of
    /// connectors match.
    #[error(transparent)]
    Terminal(#[from] Terminal),
    /// There is no answer. The kind says whether the provider may have seen the request.
    #[error("{place}: {kind}")]
    Transport {
        /// Target of the request.
        place: ShownUrl,
        /// Kind of failure.
        kind: TransportKind,
        /// The failure underneath, where there is one.
        source: Option<Cause>,
        /// Our own budget, if that prevented a retry.
        deferred: Option<DeferReason>,
    },
    /// The provider's certificate is not trusted. Never retried, and never sent without the check.
    #[error(
        "{place}: the certificate is not trusted; somebody may be listening, or the provider or this machine has \
         out-of-date certificates or a wrong clock"
    )]
    UntrustedCertificate {
        /// Target of the request.
        place: ShownUrl,
        /// The problem.
        source: Cause,
    },
    /// A redirect that is not followed.
    #[error("{place}: the redirect is not followed: {fault}")]
    Redirect {
        /// Sender of the redirect.
        place: ShownUrl,
        /// Why not.
        fault: RedirectFault,
    },
    /// The body of the answer cannot be read to its end.
    #[error("{place}: {fault}")]
    Body {
        /// Sender of the answer.
        place: ShownUrl,
        /// Why not.
        fault: BodyFault,
        /// The failure underneath, where there is one.
        source: Option<Cause>,
    },
    /// The body is not the expected JSON. Its content is not shown.
    #[error("{place}: the answer is not the expected JSON: {what} at line {line}, column {column}")]
    Json {
        /// Sender of the answer.
        place: ShownUrl,
        /// The problem, in one or two words.
        what: &'static str,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// The status is an error, and the caller treats that as an error
    /// ([`Response::error_for_status`](super::Response::error_for_status)).
    #[error("{place}: the provider answered {status}")]
    Status {
        /// Sender of the answer.
        place: ShownUrl,
        /// The status.
        status: StatusCode,
        /// Our own budget, if that prevented a retry.
        deferred: Option<DeferReason>,
    },
    /// The pages never end, or lead to another origin.
    #[error("{place}: page {page}: {fault}")]
    Paging {
        /// Sender of the pages.
        place: ShownUrl,
        /// Counted from 0.
        page: u32,
        /// The problem.
        fault: PagingFault,
    },
    /// The request is invalid.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestFault),
    /// The key cannot be governed as requested.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The client cannot be created.
    #[error("the client cannot be created: {what}")]
    Setup {
        /// The part that failed.
        what: &'static str,
        /// The failure underneath.
        source: Cause,
    },
    /// The recording has no answer to this request. Holds the request, as the player shows it.
    #[error("{0}")]
    NotRecorded(Box<str>),
    /// A blocking call inside an async runtime would block the runtime.
    #[error("a blocking call inside an async runtime would block it; use GovernedClient there, or a separate thread")]
    BlockingInAsync,
}

/// A refusal that is final for this call. Displayed as name and reason, without a trailing period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}_{}", word(*.reason))]
pub struct Terminal {
    /// The client's name.
    pub name: Box<str>,
    /// Why it is final. Only pressure may start a cooldown.
    pub reason: TerminalReason,
    /// The last answer.
    pub status: StatusCode,
    /// Number of sends.
    pub attempts: u32,
    /// Time after which a retry makes sense.
    pub retry_in: Option<Duration>,
}

/// Why a refusal is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalReason {
    /// The provider rate-limited us, and the attempts are used up.
    Pressure(PressureReason),
    /// Our own budget ended it. Not pressure from the provider.
    Deferred(DeferReason),
}

impl Terminal {
    /// The provider's pressure, if any: may start a cooldown.
    #[must_use]
    pub const fn pressure(&self) -> Option<PressureReason> {
        match self.reason {
            TerminalReason::Pressure(reason) => Some(reason),
            TerminalReason::Deferred(_) => None,
        }
    }
}

/// A word that patterns match.
const fn word(reason: TerminalReason) -> &'static str {
    match reason {
        TerminalReason::Pressure(_) => "rate_limited",
        TerminalReason::Deferred(DeferReason::RetryBudget | DeferReason::Attempts) => "retry_exhausted",
        TerminalReason::Deferred(other) => other.as_str(),
    }
}

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// The URL cannot be parsed.
    #[error("its URL is invalid: {0}")]
    Url(url::ParseError),
    /// The URL is neither http nor https.
    #[error("its URL begins with neither http:// nor https://")]
    Scheme,
    /// A header has invalid characters. Holds its name; the value is not shown.
    #[error("its header {0:?} has a name or a value that HTTP does not allow")]
    Header(Box<str>),
    /// The body cannot be serialized as JSON.
    #[error("its body cannot be serialized as JSON")]
    Json,
}

impl Error {
    /// The provider's pressure, if that ended the call: may start a cooldown.
    #[must_use]
    pub const fn pressure(&self) -> Option<PressureReason> {
        match self {
            Self::Terminal(terminal) => terminal.pressure(),
            _ => None,
        }
    }

    /// Time after which a retry makes sense, if known.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        match self {
            Self::Terminal(terminal) => terminal.retry_in,
            Self::Refused(refused) => refused.retry_in,
            _ => None,
        }
    }

    /// Not `From`: the text of a JSON error quotes the content, so only its position is kept.
    pub(crate) fn json(place: &ShownUrl, error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Syntax => "not JSON",
            serde_json::error::Category::Eof => "it ends too early",
            serde_json::error::Category::Data => "a value of the wrong type or a missing field",
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
        let error = Error::json(&ShownUrl::new(&url), &cause);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("diary") && !shown.contains("secret"), "{shown}");
        assert!(shown.contains("line 2, column 11"), "{shown}");
    }
}

//! Why a list or a detail could not be fetched: what an author's function returns, sorted by what is to
//! be done about it.
//!
//! Every error of the governed client becomes one with `?`. The text is for people: a class and a place,
//! never a body.

use crate::clock::rfc3339;
use crate::same_names::same_names;
use gleaner_engine::WallTime;
use gleaner_http::client::{Error, TerminalReason};
use gleaner_http::governor;
use gleaner_http::{Refusal, Refused};
use gleaner_protocol::{AbsenceReason, DeferReason, ErrorClass, GapReason, LastError, PressureReason, RawJson};
use std::time::Duration;

/// Why something could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What kind of failure.
    pub kind: FetchErrorKind,
    /// The status of the last answer, where there was one.
    pub http_status: Option<u16>,
    /// After how long it makes sense to try again, where that is known; for an open circuit when it lets a probe through.
    pub retry_in: Option<Duration>,
    message: String,
}

/// What kind of failure it was, by what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchErrorKind {
    /// The provider pushes back. The only kind that may arm a cooldown.
    Pressure(PressureReason),
    /// The circuit is open until [`FetchError::retry_in`] from now: wait, or leave it for later.
    CircuitOpen,
    /// Our own budget refused: the run's requests, its time or its retries are used up.
    Deferred(DeferReason),
    /// It is not there (404).
    NotFound,
    /// It was there (410).
    Gone,
    /// The credential is not accepted (401).
    RefusedCredentials,
    /// This account may not see it (403).
    Forbidden,
    /// It usually passes: a lost connection, a timeout, a 5xx.
    Temporary,
    /// What sends for us is gone, such as a browser. Nothing about the provider, and nothing more can be asked: it
    /// ends the run.
    SenderGone,
    /// It is not in the recording that is played. Nothing about the provider: it ends the run.
    NotRecorded,
    /// Anything else: an answer that makes no sense, a request that cannot be written.
    Other,
}

impl FetchError {
    /// An error of this kind. The message is for people and must not hold what the provider said.
    pub fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, http_status: None, retry_in: None, message: message.into() }
    }

    /// An answer of the provider that makes no sense.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Other, message)
    }

    /// The error for a status that is none of success, for authors who look at it themselves.
    pub fn of_status(status: u16) -> Self {
        let kind = match status {
            401 => FetchErrorKind::RefusedCredentials,
            403 => FetchErrorKind::Forbidden,
            404 => FetchErrorKind::NotFound,
            410 => FetchErrorKind::Gone,
            429 => FetchErrorKind::Pressure(PressureReason::RateLimited),
            408 | 425 | 500..=599 => FetchErrorKind::Temporary,
            _ => FetchErrorKind::Other,
        };
        Self { http_status: Some(status), ..Self::new(kind, format!("the provider answered {status}")) }
    }

    /// The stop of the run's own budget that this is, if it is one: nothing more will be fetched in this
    /// run. An open circuit is none: it closes again.
    pub const fn exhausted(&self) -> Option<DeferReason> {
        match self.kind {
            FetchErrorKind::Deferred(
                reason @ (DeferReason::RequestCap | DeferReason::WallClock | DeferReason::RetryBudget),
            ) => Some(reason),
            _ => None,
        }
    }

    /// Whether a cap of the owner's is why this was not fetched: then nothing failed.
    pub(crate) const fn is_cap(&self) -> bool {
        matches!(self.kind, FetchErrorKind::Deferred(reason) if is_cap(reason))
    }

    /// The reason of the gap that stands for what was not fetched. Only the provider's pressure is a
    /// pressure reason.
    pub const fn gap_reason(&self) -> GapReason {
        let absence = match self.kind {
            FetchErrorKind::Pressure(reason) => return GapReason::Pressure(reason),
            FetchErrorKind::CircuitOpen => DeferReason::CircuitOpen.gap_reason(),
            FetchErrorKind::Deferred(reason) => reason.gap_reason(),
            FetchErrorKind::NotFound => AbsenceReason::NotFound,
            FetchErrorKind::Gone => AbsenceReason::Gone,
            FetchErrorKind::RefusedCredentials => AbsenceReason::AuthFailure,
            FetchErrorKind::Forbidden => AbsenceReason::PermanentForbidden,
            FetchErrorKind::Temporary
            | FetchErrorKind::SenderGone
            | FetchErrorKind::NotRecorded
            | FetchErrorKind::Other => AbsenceReason::TemporaryUnavailable,
        };
        GapReason::Absence(absence)
    }

    /// When the provider said that it may be asked again.
    pub(crate) fn not_before(&self, now: WallTime) -> Option<String> {
        let wait = self.retry_in.filter(|_| matches!(self.kind, FetchErrorKind::Pressure(_)))?;
        Some(rfc3339(now + wait))
    }

    /// What went wrong, as a gap carries it: a class and a status, no text.
    pub fn last_error(&self) -> LastError {
        if let FetchErrorKind::Deferred(reason) = self.kind
            && let Some(class) = reason.error_class()
        {
            return LastError::of_class(class);
        }
        let class = match self.kind {
            FetchErrorKind::Pressure(reason) => reason.code(),
            FetchErrorKind::CircuitOpen => DeferReason::CircuitOpen.code(),
            FetchErrorKind::Deferred(reason) => reason.code(),
            FetchErrorKind::NotFound => "not_found",
            FetchErrorKind::Gone => "gone",
            FetchErrorKind::RefusedCredentials => "refused_credentials",
            FetchErrorKind::Forbidden => "forbidden",
            FetchErrorKind::Temporary => "temporary",
            FetchErrorKind::SenderGone => "sender_gone",
            FetchErrorKind::NotRecorded => "not_recorded",
            FetchErrorKind::Other => "unexpected_answer",
        };
        // A stop of our own has no status: nothing failed at the provider.
        let is_own = matches!(self.kind, FetchErrorKind::CircuitOpen | FetchErrorKind::Deferred(_));
        last_error(class, self.http_status.filter(|_| !is_own))
    }
}

/// An error of this class, with a status where there was one.
pub(crate) fn last_error(class: &str, http_status: Option<u16>) -> LastError {
    let raw = match http_status {
        Some(status) => serde_json::json!({"class": class, "http_status": status}),
        None => serde_json::json!({ "class": class }),
    };
    LastError { class: class.to_owned(), http_status, raw: RawJson::new(raw.to_string()).unwrap_or_default() }
}

/// Whether this is a cap that the owner set. Used-up retries and an open circuit are the run's own stops as
/// well, but no cap: what they leave is one gap per record, each with its own reason.
pub(crate) const fn is_cap(reason: DeferReason) -> bool {
    reason.error_class().is_some()
}

/// The class of a gap that a cap of the owner's left.
pub(crate) fn run_cap() -> LastError {
    LastError::of_class(ErrorClass::RunCapDeferred)
}

impl From<Error> for FetchError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let retry_in = error.retry_in();
        let (kind, http_status) = match error {
            Error::Refused(refused) => (kind_of_refusal(&refused), None),
            Error::Terminal(terminal) => {
                let kind = match terminal.reason {
                    TerminalReason::Pressure(reason) => FetchErrorKind::Pressure(pressure(reason)),
                    TerminalReason::Deferred(reason) => kind_of_deferral(reason),
                };
                (kind, Some(terminal.status.as_u16()))
            }
            Error::Status { status, deferred, .. } => {
                let sorted = Self::of_status(status.as_u16());
                (spent(deferred).unwrap_or(sorted.kind), sorted.http_status)
            }
            Error::Transport { deferred, .. } => (spent(deferred).unwrap_or(FetchErrorKind::Temporary), None),
            Error::NotRecorded(_) => (FetchErrorKind::NotRecorded, None),
            _ => (FetchErrorKind::Other, None),
        };
        Self { kind, http_status, retry_in, message }
    }
}

/// A failure for which no retry was left: nothing else would tell the run that it has used them up. What other
/// budgets say is found out by the next request.
fn spent(deferred: Option<governor::DeferReason>) -> Option<FetchErrorKind> {
    deferred.filter(|reason| *reason == governor::DeferReason::RetryBudget).map(kind_of_deferral)
}

const fn kind_of_refusal(refused: &Refused) -> FetchErrorKind {
    match &refused.reason {
        Refusal::Deferred(reason) => kind_of_deferral(*reason),
        Refusal::MaxWait | Refusal::QueueFull(_) => FetchErrorKind::Temporary,
        Refusal::GovernedTwice(_) => FetchErrorKind::Other,
    }
}

const fn kind_of_deferral(reason: governor::DeferReason) -> FetchErrorKind {
    match reason {
        governor::DeferReason::CircuitOpen => FetchErrorKind::CircuitOpen,
        // No budget of ours: the provider said when to come back, and that is too far away to wait for.
        governor::DeferReason::BeyondHorizon => FetchErrorKind::Pressure(PressureReason::RateLimited),
        other => FetchErrorKind::Deferred(defer_reason(other)),
    }
}

same_names! {
    defer_reason: DeferReason { RequestCap, WallClock, RetryBudget, Attempts, CircuitOpen, BeyondHorizon }
    pressure: PressureReason { RateLimited, UpstreamPressure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_is_to_be_done() {
        for (status, kind, reason) in [
            (401, FetchErrorKind::RefusedCredentials, "auth_failure"),
            (403, FetchErrorKind::Forbidden, "permanent_forbidden"),
            (404, FetchErrorKind::NotFound, "not_found"),
            (410, FetchErrorKind::Gone, "gone"),
            (429, FetchErrorKind::Pressure(PressureReason::RateLimited), "rate_limited"),
            (503, FetchErrorKind::Temporary, "temporary_unavailable"),
            (418, FetchErrorKind::Other, "temporary_unavailable"),
        ] {
            let error = FetchError::of_status(status);
            assert_eq!((error.kind, error.gap_reason().code()), (kind, reason));
            assert_eq!(error.last_error().http_status, Some(status));
        }
    }

    #[test]
    fn a_run_cap_deferral_is_distinguishable_from_a_source_pressure_deferral() {
        for reason in [DeferReason::RequestCap, DeferReason::WallClock] {
            let cap =
                FetchError { http_status: Some(200), ..FetchError::new(FetchErrorKind::Deferred(reason), "over") };
            assert_eq!(cap.last_error().class, "run_cap_deferred");
            assert_eq!((cap.last_error().http_status, cap.gap_reason().pressure()), (None, None));
            assert_eq!(cap.exhausted(), Some(reason));
        }
        let busy = FetchError::of_status(429);
        assert_ne!(busy.last_error().class, "run_cap_deferred");
        assert!(busy.gap_reason().pressure().is_some(), "otherwise the line above proves nothing");
    }

    #[test]
    fn a_provider_that_is_closed_for_long_pushes_back() {
        let kind = kind_of_deferral(governor::DeferReason::BeyondHorizon);
        assert_eq!(kind, FetchErrorKind::Pressure(PressureReason::RateLimited));
        assert_eq!(FetchError::new(kind, "closed").exhausted(), None);
    }

    #[test]
    fn an_open_circuit_is_neither_pressure_nor_the_end_of_the_budget() {
        let open = FetchError::new(FetchErrorKind::CircuitOpen, "open");
        assert_eq!((open.gap_reason().pressure(), open.exhausted()), (None, None));
        assert_eq!(open.last_error().class, "circuit_open");
    }
}

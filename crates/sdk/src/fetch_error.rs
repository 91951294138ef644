//! Errors of fetching a list or a detail, as an author's function returns them, grouped by the reaction.
//!
//! Every error of the governed client converts with `?`. The text is for people: a class and a place, never a body.

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
    /// Kind of failure.
    pub kind: FetchErrorKind,
    /// The status of the last answer, if any.
    pub http_status: Option<u16>,
    /// Time after which a retry makes sense, if known; for an open circuit the time of its next probe.
    pub retry_in: Option<Duration>,
    message: String,
}

/// Kind of failure, by reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchErrorKind {
    /// The provider rate-limited us. The only kind that may start a cooldown.
    Pressure(PressureReason),
    /// The circuit is open for [`FetchError::retry_in`]: wait, or leave it for later.
    CircuitOpen,
    /// Our own budget: requests, time or retries of the run are used up.
    Deferred(DeferReason),
    /// It does not exist (404).
    NotFound,
    /// It no longer exists (410).
    Gone,
    /// The credential is rejected (401).
    RefusedCredentials,
    /// This account may not see it (403).
    Forbidden,
    /// Usually temporary: a lost connection, a timeout, a 5xx.
    Temporary,
    /// The external sender, such as a browser, is gone. Says nothing about the provider; nothing more can be
    /// requested, so it ends the run.
    SenderGone,
    /// The request is not in the played recording. Says nothing about the provider; it ends the run.
    NotRecorded,
    /// Anything else: an invalid answer, an invalid request.
    Other,
}

impl FetchError {
    /// An error of this kind. The message is for people and must not contain the provider's text.
    pub fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, http_status: None, retry_in: None, message: message.into() }
    }

    /// An invalid answer of the provider.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Other, message)
    }

    /// The error for an unsuccessful status, for authors who check it themselves.
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

    /// The stop by the run's own budget, if this is one: nothing more will be fetched in this run. An open circuit is
    /// not one: it closes again.
    pub const fn exhausted(&self) -> Option<DeferReason> {
        match self.kind {
            FetchErrorKind::Deferred(
                reason @ (DeferReason::RequestCap | DeferReason::WallClock | DeferReason::RetryBudget),
            ) => Some(reason),
            _ => None,
        }
    }

    /// Whether an owner's cap prevented the fetch: then nothing failed.
    pub(crate) const fn is_cap(&self) -> bool {
        matches!(self.kind, FetchErrorKind::Deferred(reason) if is_cap(reason))
    }

    /// Reason of the gap for an item that was not fetched. Only pressure from the provider is a pressure reason.
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

    /// The provider's Retry-After, as a date.
    pub(crate) fn not_before(&self, now: WallTime) -> Option<String> {
        let wait = self.retry_in.filter(|_| matches!(self.kind, FetchErrorKind::Pressure(_)))?;
        Some(rfc3339(now + wait))
    }

    /// The error for a gap: a class and a status, no text.
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

/// An error of this class, with a status if any.
pub(crate) fn last_error(class: &str, http_status: Option<u16>) -> LastError {
    let raw = match http_status {
        Some(status) => serde_json::json!({"class": class, "http_status": status}),
        None => serde_json::json!({ "class": class }),
    };
    LastError { class: class.to_owned(), http_status, raw: RawJson::new(raw.to_string()).unwrap_or_default() }
}

/// Whether this is a cap set by the owner. Used-up retries and an open circuit are stops too, but no caps: they leave
/// one gap per record, each with its own reason.
pub(crate) const fn is_cap(reason: DeferReason) -> bool {
    reason.error_class().is_some()
}

/// The error class of a gap left by an owner's cap.
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

/// A failure without a retry left: only this tells the run that the retries are used up. The next request notices
/// other budgets.
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
        // Not a budget: the provider's Retry-After is too long to wait.
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

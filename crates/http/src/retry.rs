//! Retry rules, shared by everything that sends: whether to retry, when, and the result otherwise.
//!
//! The governor decides: its [`Advice`] spends the retry budget. [`Next::after`] is the only place that interprets an
//! advice; `transport.rs` waits and loops, and a scheduler of many hosts queues ([`End::later`]).
//!
//! A retry is safe if the request is idempotent (RFC 9110, section 9.2.2), or if the answer proves that nothing was
//! executed: 429, a 503 with a Retry-After, or a connection that was never made. A lost answer to a POST proves
//! nothing, so it is not retried.

use gleaner_governor::{Advice, DeferReason, PressureReason, Time, Verdict};
use http::{Method, StatusCode};
use std::time::Duration;

/// Next step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Retry, not before this time. The retry budget has paid for it.
    RetryAt(Time),
    /// No retry.
    End(End),
}

impl Next {
    /// Interprets `advice` after an answer with the Retry-After `told_wait`.
    pub(crate) fn after(advice: Advice, told_wait: Option<Duration>, now: Time) -> Self {
        let wait = |at: Option<Time>| at.map(|at| at.since(now));
        Self::End(match advice {
            Advice::RetryAt(at) => return Self::RetryAt(at),
            Advice::Done => End::Done,
            Advice::Defer(deferral) => End::Deferred { reason: deferral.reason, retry_in: wait(deferral.not_before) },
            // Without pacing there is no gate, so the provider's Retry-After is used.
            Advice::Pressure { reason, not_before } => {
                End::Pressure { reason, retry_in: wait(not_before).or(told_wait) }
            }
        })
    }
}

/// Why a call is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer is final, good or bad.
    Done,
    /// Our own budget ended it; the provider is not at fault.
    Deferred {
        /// The budget.
        reason: DeferReason,
        /// Time after which a retry makes sense.
        retry_in: Option<Duration>,
    },
    /// The provider rate-limited us and the attempts are used up: may start a cooldown.
    Pressure {
        /// Kind of pressure.
        reason: PressureReason,
        /// Time after which a retry makes sense.
        retry_in: Option<Duration>,
    },
    /// The retry would be later than the caller allows, or the deadline came before the answer. Holds the time after
    /// which a retry makes sense.
    TooLate(Duration),
}

impl End {
    /// Our own budget, if that ended it.
    #[must_use]
    pub const fn deferral(self) -> Option<DeferReason> {
        match self {
            Self::Deferred { reason, .. } => Some(reason),
            Self::Done | Self::Pressure { .. } | Self::TooLate(_) => None,
        }
    }

    /// When a scheduler that can wait may send the request again: a circuit or a retry budget ended the call, not the
    /// request. `verdict` is the meaning of the last answer.
    #[must_use]
    pub fn later(self, verdict: Verdict) -> Option<Later> {
        match self {
            Self::Deferred { reason: DeferReason::CircuitOpen, retry_in } => retry_in.map(Later::In),
            Self::Deferred { reason: DeferReason::RetryBudget, .. } if verdict == Verdict::Throttled => {
                Some(Later::AfterOthers)
            }
            _ => None,
        }
    }
}

/// When a scheduler sends a request again although its call is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// After this time.
    In(Duration),
    /// When other requests to the same host have earned a retry.
    AfterOthers,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider never saw the request: no DNS name, no connection, no TLS.
    NotSent,
    /// The provider may have seen the request.
    Lost,
}

/// Properties of a request that decide whether a retry is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// Its method is idempotent.
    idempotent: bool,
    /// Its body is still available.
    body_kept: bool,
}

impl Repeatable {
    /// A request with this method; `body_kept`: its body can be sent again.
    #[must_use]
    pub fn new(method: &Method, body_kept: bool) -> Self {
        Self { idempotent: method.is_idempotent(), body_kept }
    }

    /// After an answer.
    #[must_use]
    pub fn after_answer(&self, status: StatusCode, says_when: bool) -> bool {
        let nothing_done =
            status == StatusCode::TOO_MANY_REQUESTS || (status == StatusCode::SERVICE_UNAVAILABLE && says_when);
        self.body_kept && (self.idempotent || nothing_done)
    }

    /// After no answer.
    #[must_use]
    pub fn after_failure(&self, failure: Failure) -> bool {
        self.body_kept && (self.idempotent || failure == Failure::NotSent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_governor::Deferral;

    #[test]
    fn every_advice_has_one_meaning() {
        let (now, at) = (Time::ZERO, Time::ZERO + Duration::from_secs(7));
        let (seven, nine) = (Some(Duration::from_secs(7)), Some(Duration::from_secs(9)));
        let after = |advice| Next::after(advice, nine, now);
        assert_eq!(after(Advice::RetryAt(at)), Next::RetryAt(at));
        assert_eq!(after(Advice::Done), Next::End(End::Done));
        let reason = DeferReason::CircuitOpen;
        let deferred = after(Advice::Defer(Deferral { reason, not_before: Some(at) }));
        assert_eq!(deferred, Next::End(End::Deferred { reason, retry_in: seven }));
        for (not_before, retry_in) in [(Some(at), seven), (None, nine)] {
            let reason = PressureReason::RateLimited;
            let pressure = after(Advice::Pressure { reason, not_before });
            assert_eq!(pressure, Next::End(End::Pressure { reason, retry_in }));
        }
    }

    #[test]
    fn only_our_own_stop_is_a_reason_to_send_it_later() {
        let deferred = |reason, retry_in| End::Deferred { reason, retry_in };
        let wait = Duration::from_secs(7);
        for (end, verdict, expected) in [
            (deferred(DeferReason::CircuitOpen, Some(wait)), Verdict::ServerError, Some(Later::In(wait))),
            (deferred(DeferReason::RetryBudget, None), Verdict::Throttled, Some(Later::AfterOthers)),
            (deferred(DeferReason::RetryBudget, None), Verdict::ServerError, None),
            (deferred(DeferReason::Attempts, None), Verdict::Network, None),
            (End::Pressure { reason: PressureReason::RateLimited, retry_in: Some(wait) }, Verdict::Throttled, None),
            (End::Done, Verdict::Success, None),
        ] {
            assert_eq!(end.later(verdict), expected, "{end:?} {verdict:?}");
        }
    }

    #[test]
    fn only_what_does_nothing_twice_is_repeated() {
        let (get, post) = (Repeatable::new(&Method::GET, true), Repeatable::new(&Method::POST, true));
        for (request, status, says_when, expected) in [
            (&get, 500, false, true),
            (&get, 429, false, true),
            (&post, 429, false, true),
            (&post, 503, true, true),
            (&post, 503, false, false),
            (&post, 500, true, false),
            (&post, 408, false, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(request.after_answer(status, says_when), expected, "{request:?} {status} {says_when}");
        }
        assert!(get.after_failure(Failure::Lost) && post.after_failure(Failure::NotSent));
        assert!(!post.after_failure(Failure::Lost));
    }

    #[test]
    fn what_is_gone_cannot_be_repeated() {
        let put = Repeatable::new(&Method::PUT, false);
        assert!(!put.after_answer(StatusCode::TOO_MANY_REQUESTS, true) && !put.after_failure(Failure::NotSent));
    }
}

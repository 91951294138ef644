//! Whether a request is sent again, when, and what became of it if not: the rules, for everyone who sends.
//!
//! The governor decides and pays: its [`Advice`] spends the retry budget. [`Next::after`] is the only place that says what
//! an advice means; `transport.rs` waits and loops, and a scheduler of many hosts queues ([`End::later`]).
//!
//! A refused request is safe to repeat if repeating it means the same (RFC 9110, section 9.2.2), or if
//! the answer proves that nothing was done: 429, a 503 that says when to come back, or a connection that
//! was never made. A lost answer to a POST proves nothing, so it is not repeated.

use gleaner_governor::{Advice, DeferReason, PressureReason, Time, Verdict};
use http::{Method, StatusCode};
use std::time::Duration;

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The request is sent again, not before this time. The retry is paid for.
    RetryAt(Time),
    /// It is not sent again.
    End(End),
}

impl Next {
    /// What `advice` means, after an answer that asked to wait for `told_wait`.
    pub(crate) fn after(advice: Advice, told_wait: Option<Duration>, now: Time) -> Self {
        let wait = |at: Option<Time>| at.map(|at| at.since(now));
        Self::End(match advice {
            Advice::RetryAt(at) => return Self::RetryAt(at),
            Advice::Done => End::Done,
            Advice::Defer(deferral) => End::Deferred { reason: deferral.reason, retry_in: wait(deferral.not_before) },
            // Without a pace there is no gate, and the provider's own words have to do.
            Advice::Pressure { reason, not_before } => {
                End::Pressure { reason, retry_in: wait(not_before).or(told_wait) }
            }
        })
    }
}

/// Why a call is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer is final, good or bad.
    Done,
    /// Our own budget ended it; nothing here blames the provider.
    Deferred {
        /// Which budget.
        reason: DeferReason,
        /// After how long it makes sense to try again.
        retry_in: Option<Duration>,
    },
    /// The provider pushes back and the attempts are used up: what may arm a cooldown.
    Pressure {
        /// How.
        reason: PressureReason,
        /// After how long it makes sense to try again.
        retry_in: Option<Duration>,
    },
    /// The retry would come later than the caller allows, or its deadline came before the answer. Holds after how long it makes sense to try again.
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

    /// When somebody who can wait may send the request again: a circuit or a retry budget ended the call, and not the
    /// request. `verdict` is what the last answer meant.
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

/// When a scheduler sends a request after all, although its call is over.
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
    /// The provider never saw the request: no name, no connection, no TLS.
    NotSent,
    /// Anything may have happened to it.
    Lost,
}

/// What is known about a request that decides whether it may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// Its method is idempotent.
    idempotent: bool,
    /// Its body is still there.
    body_kept: bool,
}

impl Repeatable {
    /// A request with this method; `body_kept` says whether its body can be sent again.
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

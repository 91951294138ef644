//! Reasons why we did not send a request.
//!
//! Not an error of the provider, and never pressure: the provider's own refusals come back as answers
//! (`transport.rs`).

use crate::key::Key;
use gleaner_governor::DeferReason;
use std::time::Duration;

/// A request that was not sent, or not retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {}: {reason}{}", sent(*.attempts), after(*.retry_in))]
pub struct Refused {
    /// The key.
    pub key: Key,
    /// Why.
    pub reason: Refusal,
    /// Time after which a retry makes sense; `None` when only another run or setting helps.
    pub retry_in: Option<Duration>,
    /// Number of sends before; the provider may have executed them.
    pub attempts: u32,
}

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The governor deferred it: budget, open circuit, or a wait beyond the horizon.
    #[error("{}", describe(*.0))]
    Deferred(DeferReason),
    /// The wait would be longer than the caller allows.
    #[error("the wait would be longer than the caller allows")]
    MaxWait,
    /// The queue is full. Holds its length.
    #[error("the queue is full: {0} requests are waiting")]
    QueueFull(usize),
    /// The request already passed a governed layer and would wait twice. Holds the key of the outer layer.
    #[error(
        "the request is already governed by {0}; two governors on one path would wait twice, so remove one of them"
    )]
    GovernedTwice(Key),
}

impl Refusal {
    /// The stable name of the reason.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Deferred(reason) => reason.as_str(),
            Self::MaxWait => "max_wait",
            Self::QueueFull(_) => "queue_full",
            Self::GovernedTwice(_) => "governed_twice",
        }
    }
}

const fn describe(reason: DeferReason) -> &'static str {
    match reason {
        DeferReason::RequestCap => "the request limit of this run is reached",
        DeferReason::WallClock => "the time limit of this run is reached",
        DeferReason::RetryBudget => "the retry budget of this run is used up",
        DeferReason::Attempts => "the attempts of this request are used up",
        DeferReason::CircuitOpen => "the circuit is open: the provider failed too often",
        DeferReason::BeyondHorizon => "the provider's rate limit lasts longer than the longest wait",
    }
}

fn sent(attempts: u32) -> String {
    match attempts {
        0 => "not sent".to_owned(),
        1 => "not retried after one attempt".to_owned(),
        attempts => format!("not retried after {attempts} attempts"),
    }
}

fn after(retry_in: Option<Duration>) -> String {
    retry_in.map_or_else(String::new, |wait| format!("; retry in {} s", wait.as_secs_f64().ceil()))
}

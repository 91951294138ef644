//! Why a request was not sent: our own stops, in words for a caller.
//!
//! Not an error of the provider, and never mistaken for its pressure: what the provider said comes back
//! as an answer (`transport.rs`).

use crate::key::Key;
use gleaner_governor::DeferReason;
use std::time::Duration;

/// A request that was not sent, or not sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {}: {reason}{}", sent(*.attempts), after(*.retry_in))]
pub struct Refused {
    /// Whose limit.
    pub key: Key,
    /// Why.
    pub reason: Refusal,
    /// After how long it makes sense to ask again; `None` when only another run or setting helps.
    pub retry_in: Option<Duration>,
    /// How often it was sent before; 0 when never. What was sent may have been done.
    pub attempts: u32,
}

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The governor put it off: budget, open circuit, or a wait that is not worth sleeping.
    #[error("{}", describe(*.0))]
    Deferred(DeferReason),
    /// It would have to wait longer than the caller is willing to.
    #[error("it would have to wait longer than its caller allows")]
    MaxWait,
    /// As many as may wait are waiting. Holds how many.
    #[error("{0} requests are waiting already")]
    QueueFull(usize),
    /// The request passed a governed layer before: it would wait twice. Holds the key of the outer one.
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
        DeferReason::RequestCap => "this run has used up its requests",
        DeferReason::WallClock => "this run has used up its time",
        DeferReason::RetryBudget => "this run has used up its retries",
        DeferReason::Attempts => "this request has used up its attempts",
        DeferReason::CircuitOpen => "the provider failed too often and is left alone for a while",
        DeferReason::BeyondHorizon => "the provider is closed for longer than is worth waiting",
    }
}

fn sent(attempts: u32) -> String {
    match attempts {
        0 => "not sent".to_owned(),
        1 => "not sent again after one attempt".to_owned(),
        attempts => format!("not sent again after {attempts} attempts"),
    }
}

fn after(retry_in: Option<Duration>) -> String {
    retry_in.map_or_else(String::new, |wait| format!("; try again in {} s", wait.as_secs_f64().ceil()))
}

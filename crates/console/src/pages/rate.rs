//! The readout of the collection rate: how fast it goes, how fast it may, and why not faster.
//!
//! Where no pace was reported there is none to show: the page says that it is unavailable, and never a zero.

use super::words::{interval, rate};
use gleaner_app::ConnectionView;
use gleaner_protocol::{CircuitState, CollectionRate, ProviderBudget};
use gleaner_schedule::Zone;
use gleaner_store::Evidence;

const MS_PER_MIN: f64 = 60_000.0;

/// What is known about the pace of a connection.
#[derive(Debug)]
pub(crate) struct RateReadout {
    pub(crate) rate: String,
    pub(crate) interval: String,
    pub(crate) ceiling: String,
    pub(crate) ceiling_interval: String,
    /// Of the ceiling, in hundredths of a percent, for the bar.
    pub(crate) share: u64,
    /// The last time that it slowed down.
    pub(crate) backoff: Option<BackoffView>,
    pub(crate) why: String,
}

#[derive(Debug)]
pub(crate) struct BackoffView {
    pub(crate) rate: String,
    pub(crate) interval: String,
    pub(crate) reason: &'static str,
}

impl RateReadout {
    /// Nothing where no pace was reported.
    pub(crate) fn of(evidence: &Evidence) -> Option<Self> {
        let reported = evidence.rate.as_ref()?;
        let share = (reported.ceiling_interval_ms / reported.current_interval_ms).clamp(0.0, 1.0) * 10_000.0;
        let backoff = reported.last_backoff.map(|backoff| BackoffView {
            rate: rate(MS_PER_MIN / backoff.at_interval_ms),
            interval: interval(backoff.at_interval_ms),
            reason: backoff.reason.because(),
        });
        Some(Self {
            rate: rate(reported.effective_rate_per_min),
            interval: interval(reported.current_interval_ms),
            ceiling: rate(reported.ceiling_rate_per_min),
            ceiling_interval: interval(reported.ceiling_interval_ms),
            share: share as u64,
            backoff,
            why: why_not_faster(reported, evidence.circuit.as_ref()),
        })
    }
}

/// Why it does not go faster, in one sentence.
pub(crate) fn why_not_faster(reported: &CollectionRate, circuit: Option<&ProviderBudget>) -> String {
    if let Some(words) = circuit.and_then(circuit_words) {
        return format!("{words}.");
    }
    if reported.effective_rate_per_min >= reported.ceiling_rate_per_min {
        return "This is its ceiling.".to_owned();
    }
    match reported.last_backoff {
        Some(backoff) => {
            format!("It slowed down because {}, and speeds up with each success.", backoff.reason.because())
        }
        None => "It is finding out how fast it may go, and speeds up with each success.".to_owned(),
    }
}

/// What its run waits for now, in the sentence that is used everywhere; nothing when no process works on it.
pub(crate) fn waiting_words(view: &ConnectionView) -> Option<String> {
    let (waiting, until) = view.waits()?;
    Some(waiting.sentence(&Zone::of_this_machine().show_near(until, view.now)))
}

/// A circuit that is not closed, in words.
pub(crate) fn circuit_words(budget: &ProviderBudget) -> Option<String> {
    let state = match budget.circuit.state {
        CircuitState::Closed => return None,
        CircuitState::HalfOpen => "It asks with single careful requests",
        CircuitState::Open => "It stopped asking for a while",
    };
    Some(format!("{state}: {}", budget.circuit.reason.because()))
}

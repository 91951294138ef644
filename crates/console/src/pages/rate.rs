//! The readout of the collection rate: how fast it goes, how fast it may, and why not faster.
//!
//! Where no pace was reported there is none to show: the page says that it is unavailable, and never a zero.

use gleaner_app::ConnectionView;
use gleaner_protocol::{CircuitState, CollectionRate, ProviderBudget};
use gleaner_schedule::Zone;

/// How much of its ceiling a pace is, in hundredths of a percent.
pub(crate) fn share(of: &CollectionRate) -> u64 {
    ((of.ceiling_interval_ms / of.current_interval_ms).clamp(0.0, 1.0) * 10_000.0) as u64
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

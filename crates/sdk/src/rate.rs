//! The pace and the circuit of a governor, as a run shows them: numbers and words, nothing about an account.
//!
//! A governor whose owner opted out of pacing has no pace: then nothing is said of it, and never a zero.

use gleaner_http::{RetryTokens as Tokens, SendGovernor};
use gleaner_protocol::{
    Backoff, BackoffReason, CircuitChange, CircuitReason, CircuitState, CircuitTrigger, CollectionRate, Evidence,
    Progress, ProviderBudget, RetryTokens, UnboundedTag,
};

/// What is to be said now: the pace first, then each change of the circuit since the last time.
pub(crate) fn readout(governor: &SendGovernor) -> Vec<Progress> {
    let readout = governor.readout();
    let rate = readout.collection_rate.and_then(|rate| {
        let last = rate.last_backoff.and_then(|last| {
            let reason = BackoffReason::from_code(last.reason)?;
            Some(Backoff { at_interval_ms: last.at_interval_ms, reason })
        });
        CollectionRate::new(rate.current_interval_ms, rate.ceiling_interval_ms, last)
    });
    let pace = rate.map(|rate| Progress {
        message: format!("{:.0} requests per minute", rate.effective_rate_per_min),
        collection_rate: Evidence::Valid(rate),
        ..Progress::default()
    });
    pace.into_iter().chain(readout.provider_budget.iter().filter_map(circuit)).collect()
}

fn circuit(change: &gleaner_http::ProviderBudget) -> Option<Progress> {
    let circuit = CircuitChange {
        previous_state: CircuitState::from_code(change.circuit.previous_state)?,
        state: CircuitState::from_code(change.circuit.state)?,
        reason: CircuitReason::from_code(change.circuit.reason)?,
        trigger: CircuitTrigger::from_code(change.circuit.trigger)?,
    };
    let tokens = match change.retry_tokens_remaining {
        Tokens::Left(count) => RetryTokens::Left(f64::from(count)),
        Tokens::Unbounded => RetryTokens::Unbounded(UnboundedTag::Unbounded),
    };
    // Milliseconds of a run are far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "a run is shorter than 285,000 years")]
    let elapsed_ms = change.elapsed_ms as f64;
    let budget = ProviderBudget::new(circuit, elapsed_ms, change.request_count, Some(tokens))?;
    let message = match circuit.state {
        CircuitState::Open => "the provider is left alone for a while",
        CircuitState::HalfOpen => "a careful request to the provider",
        CircuitState::Closed => "the provider answers again",
    };
    Some(Progress { message: message.to_owned(), provider_budget: Evidence::Valid(budget), ..Progress::default() })
}

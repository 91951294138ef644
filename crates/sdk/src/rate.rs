//! The pace and the circuit of a governor, as a run shows them: numbers and words, nothing about an account.
//!
//! Why governor and protocol have their own types: both are published, and neither depends on the other. Here is the one
//! conversion; a value that one side gains does not compile until it has a counterpart. A governor whose owner opted out
//! of pacing has no pace: then nothing is said of it, and never a zero.

use gleaner_http::SendGovernor;
use gleaner_http::governor::{self, CircuitTransition};
use gleaner_protocol::{
    Backoff, BackoffReason, CircuitChange, CircuitReason, CircuitState, CircuitTrigger, CollectionRate, Evidence,
    Progress, ProviderBudget, RetryTokens, UnboundedTag,
};

/// What is to be said now: the pace first, then each change of the circuit since the last time.
pub(crate) fn readout(governor: &SendGovernor) -> Vec<Progress> {
    let readout = governor.readout();
    let rate = readout.collection_rate.and_then(|rate| {
        let last = rate.last_backoff;
        let last =
            last.map(|last| Backoff { at_interval_ms: last.at_interval_ms, reason: backoff_reason(last.reason) });
        CollectionRate::new(rate.current_interval_ms, rate.ceiling_interval_ms, last)
    });
    let pace = rate.map(|rate| Progress {
        message: format!("{:.0} requests per minute", rate.effective_rate_per_min),
        collection_rate: Evidence::Valid(rate),
        ..Progress::default()
    });
    pace.into_iter().chain(readout.circuit_transitions.into_iter().filter_map(circuit)).collect()
}

fn circuit(change: CircuitTransition) -> Option<Progress> {
    let circuit = CircuitChange {
        previous_state: circuit_state(change.previous),
        state: circuit_state(change.state),
        reason: circuit_reason(change.reason),
        trigger: circuit_trigger(change.trigger),
    };
    let tokens = change
        .retry_tokens_remaining
        .map_or(RetryTokens::Unbounded(UnboundedTag::Unbounded), |count| RetryTokens::Left(f64::from(count)));
    // Whole milliseconds of a run are far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "a run is shorter than 285,000 years")]
    let elapsed_ms = change.elapsed.as_millis() as f64;
    let budget = ProviderBudget::new(circuit, elapsed_ms, change.request_count, Some(tokens))?;
    let message = match circuit.state {
        CircuitState::Open => "the provider is left alone for a while",
        CircuitState::HalfOpen => "a careful request to the provider",
        CircuitState::Closed => "the provider answers again",
    };
    Some(Progress { message: message.to_owned(), provider_budget: Evidence::Valid(budget), ..Progress::default() })
}

const fn backoff_reason(reason: governor::BackoffReason) -> BackoffReason {
    match reason {
        governor::BackoffReason::Throttle => BackoffReason::Throttle,
        governor::BackoffReason::RetryAfter => BackoffReason::RetryAfter,
        governor::BackoffReason::Latency => BackoffReason::Latency,
        governor::BackoffReason::Quota => BackoffReason::Quota,
        governor::BackoffReason::Ban => BackoffReason::Ban,
    }
}

const fn circuit_state(state: governor::CircuitState) -> CircuitState {
    match state {
        governor::CircuitState::Closed => CircuitState::Closed,
        governor::CircuitState::HalfOpen => CircuitState::HalfOpen,
        governor::CircuitState::Open => CircuitState::Open,
    }
}

const fn circuit_reason(reason: governor::CircuitReason) -> CircuitReason {
    match reason {
        governor::CircuitReason::ProviderFailure => CircuitReason::ProviderFailure,
        governor::CircuitReason::ProviderThrottle => CircuitReason::ProviderThrottle,
        governor::CircuitReason::ResetTimeout => CircuitReason::ResetTimeout,
        governor::CircuitReason::Success => CircuitReason::Success,
    }
}

const fn circuit_trigger(trigger: governor::CircuitTrigger) -> CircuitTrigger {
    match trigger {
        governor::CircuitTrigger::BeforeRequest => CircuitTrigger::BeforeRequest,
        governor::CircuitTrigger::ProviderFailure => CircuitTrigger::ProviderFailure,
        governor::CircuitTrigger::ProviderThrottle => CircuitTrigger::ProviderThrottle,
        governor::CircuitTrigger::Success => CircuitTrigger::Success,
    }
}

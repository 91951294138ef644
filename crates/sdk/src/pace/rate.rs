//! Rate and circuit of a governor as progress messages, without account data.
//!
//! Why governor and protocol have their own types: both are published, and neither depends on the other. The only
//! conversion is here; a new value on one side does not compile until it has a counterpart. Without pacing there is
//! no rate: nothing is sent, never a zero.

use crate::same_names::same_names;
use gleaner_http::SendGovernor;
use gleaner_http::governor::CircuitTransition;
use gleaner_protocol::{
    Backoff, BackoffReason, CircuitChange, CircuitReason, CircuitState, CircuitTrigger, CollectionRate, Evidence,
    Progress, ProviderBudget, RetryTokens, UnboundedTag,
};

/// Messages to send now: the rate first, then each circuit transition since the last call.
pub(crate) fn readout(governor: &SendGovernor) -> Vec<Progress> {
    let rate = governor.collection_rate().and_then(|rate| {
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
    pace.into_iter().chain(governor.take_circuit_transitions().into_iter().filter_map(circuit)).collect()
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
        CircuitState::Open => "circuit open: requests to the provider are paused",
        CircuitState::HalfOpen => "circuit half-open: one probe request to the provider",
        CircuitState::Closed => "circuit closed: the provider answers again",
    };
    Some(Progress { message: message.to_owned(), provider_budget: Evidence::Valid(budget), ..Progress::default() })
}

same_names! {
    backoff_reason: BackoffReason { Throttle, RetryAfter, Latency, Quota, Ban }
    circuit_state: CircuitState { Closed, HalfOpen, Open }
    circuit_reason: CircuitReason { ProviderFailure, ProviderThrottle, ResetTimeout, Success }
    circuit_trigger: CircuitTrigger { BeforeRequest, ProviderFailure, ProviderThrottle, Success }
}

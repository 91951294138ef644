//! Evidence of what the circuit did: its states, and why it changed, in words that stay the same.
//!
//! Why types and not a log line: whoever stores or shows a transition must not have to parse prose
//! (D6). Holds counters and closed vocabularies only; never a route, an id or a body.

use std::time::Duration;

/// What a circuit looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitState {
    /// Requests pass.
    Closed,
    /// Only probes pass.
    HalfOpen,
    /// Nothing passes.
    Open,
}

impl CircuitState {
    /// The stable name, as it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// During which step the circuit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitTrigger {
    /// While a request asked for admission.
    BeforeRequest,
    /// While a failure was taken in.
    ProviderFailure,
    /// While a throttle was taken in.
    ProviderThrottle,
    /// While a success was taken in.
    Success,
}

impl CircuitTrigger {
    /// The stable name, as it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeRequest => "before_request",
            Self::ProviderFailure => "provider_failure",
            Self::ProviderThrottle => "provider_throttle",
            Self::Success => "success",
        }
    }
}

/// Why the circuit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitReason {
    /// The provider failed too often, or failed a probe.
    ProviderFailure,
    /// The provider throttled without saying for how long, too often or on a probe.
    ProviderThrottle,
    /// The circuit was open for its time.
    ResetTimeout,
    /// Enough probes succeeded.
    Success,
}

impl CircuitReason {
    /// The stable name, as it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProviderFailure => "provider_failure",
            Self::ProviderThrottle => "provider_throttle",
            Self::ResetTimeout => "reset_timeout",
            Self::Success => "success",
        }
    }
}

/// Evidence of one change of the circuit (D6). Holds counters only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitTransition {
    /// The state that was left.
    pub previous: CircuitState,
    /// The state that was entered.
    pub state: CircuitState,
    /// During which step.
    pub trigger: CircuitTrigger,
    /// Why.
    pub reason: CircuitReason,
    /// Time since the run's first request for admission.
    pub elapsed: Duration,
    /// Sends of the run so far, retries included.
    pub request_count: u64,
    /// Whole retries left; `None` when no retry budget bounds them.
    pub retry_tokens_remaining: Option<u32>,
}

/// The breaker's own part of a [`CircuitTransition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "every transition is evidence"]
pub(crate) struct Change {
    pub(crate) previous: CircuitState,
    pub(crate) state: CircuitState,
    pub(crate) trigger: CircuitTrigger,
    pub(crate) reason: CircuitReason,
}

impl Change {
    /// Completes the evidence with the counters of the run, which the breaker does not keep.
    pub(crate) const fn with_counters(
        self,
        elapsed: Duration,
        request_count: u64,
        retry_tokens_remaining: Option<u32>,
    ) -> CircuitTransition {
        let Self { previous, state, trigger, reason } = self;
        CircuitTransition { previous, state, trigger, reason, elapsed, request_count, retry_tokens_remaining }
    }
}

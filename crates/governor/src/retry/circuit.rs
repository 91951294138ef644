//! Circuit states and transitions, with stable names.
//!
//! Why types and not a log line: code that stores or shows a transition must not parse prose (D6). Holds counters and
//! fixed vocabularies only; never a route, an id or a body.

use std::time::Duration;

/// State of a circuit.
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

/// The step during which the circuit changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CircuitTrigger {
    /// A request asked for admission.
    BeforeRequest,
    /// A failure was reported.
    ProviderFailure,
    /// A throttle was reported.
    ProviderThrottle,
    /// A success was reported.
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
    /// The provider throttled without a Retry-After, too often or on a probe.
    ProviderThrottle,
    /// The open time is over.
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

/// One transition of the circuit (D6). Holds counters only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitTransition {
    /// The state before.
    pub previous: CircuitState,
    /// The state after.
    pub state: CircuitState,
    /// The step during which it happened.
    pub trigger: CircuitTrigger,
    /// Why.
    pub reason: CircuitReason,
    /// Time since the run's first request for admission.
    pub elapsed: Duration,
    /// Sends of the run so far, retries included.
    pub request_count: u64,
    /// Whole retries left; `None` without a retry budget.
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
    /// Adds the counters of the run, which the breaker does not keep.
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

//! Reasons why a request was not sent: one type for our own budgets and one for pressure from the provider.
//!
//! Why two types: a planned stop must never start the cooldown that protects a provider under pressure (D9).
//! [`DeferReason`] and [`PressureReason`] do not convert into each other, so code that starts a cooldown takes a
//! [`PressureReason`] and cannot be given a budget.

use crate::time::Time;

/// A planned stop by our own budget. Never a failure, never pressure from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeferReason {
    /// The run's cap on request attempts is reached.
    RequestCap,
    /// The run's time limit is reached.
    WallClock,
    /// The retry budget is used up.
    RetryBudget,
    /// The attempts of this request are used up.
    Attempts,
    /// The circuit is open: the provider is known to be unhealthy.
    CircuitOpen,
    /// The next permitted send is later than the longest wait that we sleep.
    BeyondHorizon,
}

impl DeferReason {
    /// The stable name of the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestCap => "request_cap",
            Self::WallClock => "wall_clock",
            Self::RetryBudget => "retry_budget",
            Self::Attempts => "attempts",
            Self::CircuitOpen => "circuit_open",
            Self::BeyondHorizon => "beyond_horizon",
        }
    }
}

/// Pressure from the provider. The only thing that may start a cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PressureReason {
    /// The provider refused because of a rate limit.
    RateLimited,
    /// The provider is overloaded or banned us.
    UpstreamPressure,
}

impl PressureReason {
    /// The stable name, as on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::UpstreamPressure => "upstream_pressure",
        }
    }
}

/// Reason why a request waits: the one that lasts longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// The interval at the current rate.
    Pacing,
    /// The gate is closed: the provider sent a Retry-After, or refused without one.
    Gate,
    /// A quota shown by the provider is used up until its reset.
    Quota,
    /// All slots of a learned window are taken.
    Window,
    /// A request in flight must be answered first.
    InFlight,
    /// The circuit is open. Requests do not wait for it; they are deferred.
    Circuit,
}

impl WaitReason {
    /// The stable name of the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pacing => "pacing",
            Self::Gate => "gate",
            Self::Quota => "quota",
            Self::Window => "window",
            Self::InFlight => "in_flight",
            Self::Circuit => "circuit",
        }
    }
}

/// A deferral: the reason, and the earliest time for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// Reason.
    pub reason: DeferReason,
    /// The earliest time at which another attempt makes sense; `None` when only a new run helps.
    pub not_before: Option<Time>,
}

//! Why a request was not sent: closed vocabularies, one for our own budgets and one for the provider's push-back.
//!
//! Why two types: a planned stop must never arm the cooldown that protects a provider under
//! pressure (D9). [`DeferReason`] and [`PressureReason`] do not convert into each other, so code
//! that arms a cooldown takes a [`PressureReason`] and cannot be handed a budget.

use crate::time::Time;

/// A planned stop by our own budget. Never a failure, never source pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeferReason {
    /// The run's cap on request attempts is reached.
    RequestCap,
    /// The run's wall-clock envelope is over.
    WallClock,
    /// The retries of this run are used up.
    RetryBudget,
    /// The retries of this one request are used up.
    Attempts,
    /// The circuit is open: the provider is known to be unhealthy.
    CircuitOpen,
    /// The next permitted send lies beyond the horizon for which we are willing to sleep.
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

/// The provider pushes back. The only thing that may arm a cooldown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PressureReason {
    /// The provider refused because of a rate limit.
    RateLimited,
    /// The provider is overloaded or shut us out.
    UpstreamPressure,
}

impl PressureReason {
    /// The stable name of the reason, as it is written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::UpstreamPressure => "upstream_pressure",
        }
    }
}

/// What a request has to wait for before it may be sent: the one reason that holds longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// The time between two sends at the present rate.
    Pacing,
    /// The key is closed: the provider said for how long, or refused without a word.
    Gate,
    /// A quota that the provider told is used up until it resets.
    Quota,
    /// All places of a learned window are taken.
    Window,
    /// An answer to a request in flight has to come first.
    InFlight,
    /// The circuit is open. Nobody waits for this; a request is deferred instead.
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

/// A deferral: why, and before when it is pointless to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// Why the request is not sent now.
    pub reason: DeferReason,
    /// The earliest time at which trying again makes sense; `None` when only a new run helps.
    pub not_before: Option<Time>,
}

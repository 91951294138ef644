//! Reasons of gaps, of our own stops, and of pressure from a provider.
//!
//! Why three types: only pressure from a provider may start the cooldown that protects an account. [`PressureReason`]
//! and [`DeferReason`] do not convert into each other, so code that starts a cooldown takes the first and cannot be
//! given the second (R8).

use crate::json::view::View;
use crate::messages::fields::Fault;
use crate::messages::line_writer::write_string;
use crate::messages::wire::Value;
use crate::words::violation::ViolationCode;
use crate::words::vocabulary::{Wording, vocabulary};

vocabulary! {
    /// Pressure from the provider. The only reason for a cooldown, and the only texts that may say that the service
    /// is busy.
    pub enum PressureReason {
        /// The provider refused because of a rate limit.
        RateLimited = "rate_limited",
            "The service is limiting how fast it can be asked.",
            "It answered that too many requests came in a short time.",
            "Nothing to do: collection resumes automatically after a pause.";
        /// The provider is overloaded or blocked us.
        UpstreamPressure = "upstream_pressure",
            "The service is busy and asked us to stay away for now.",
            "It was overloaded, or it slowed this account down.",
            "Nothing to do: collection resumes automatically after a pause.";
    }
}

vocabulary! {
    /// A planned stop by our own budget. Never a failure, never pressure from the provider.
    pub enum DeferReason {
        /// The run's cap on requests is reached.
        RequestCap = "request_cap",
            "This run made as many requests as you allowed it.",
            "A cap on requests per run is set for this connection.",
            "Nothing to do: the next run continues where this one stopped.";
        /// The run's time limit is reached.
        WallClock = "wall_clock",
            "This run used the time you allowed it.",
            "A cap on the length of a run is set for this connection.",
            "Nothing to do: the next run continues where this one stopped.";
        /// The retries of the run are used up.
        RetryBudget = "retry_budget",
            "This run has used up its retries.",
            "Retries are limited to a share of all requests, so that a run stops instead of retrying endlessly.",
            "Nothing to do: the next run tries again with a fresh budget.";
        /// The retries of one request are used up.
        Attempts = "attempts",
            "One request was tried as often as a request may be.",
            "Endless retries of the same request do not help.",
            "Nothing to do: a later run tries it again.";
        /// The circuit is open.
        CircuitOpen = "circuit_open",
            "This run stopped asking for a while.",
            "Most of its last requests had failed, so further requests would probably have failed too.",
            "Nothing to do: a later run starts with a single probe request.";
        /// The next permitted send is too late to wait for.
        BeyondHorizon = "beyond_horizon",
            "This run did not wait for the time of its next request.",
            "That time is further away than a run may sleep.",
            "Nothing to do: a run after that time continues.";
    }
}

vocabulary! {
    /// Reason of a gap that is neither pressure nor described by its error class.
    pub enum AbsenceReason {
        /// Retries are used up; on the wire also the reason of a run-cap deferral.
        RetryExhausted = "retry_exhausted",
            "A run used up its retries before it had the record.",
            "Requests of that run had failed; the record itself may not have been requested.",
            "Nothing to do: a later run requests it.";
        /// It could not be fetched this time.
        TemporaryUnavailable = "temporary_unavailable",
            "The record could not be loaded this time.",
            "The request for it failed in a way that usually passes.",
            "Nothing to do: a later run tries it again.";
        /// The current sign-in does not give access.
        AuthFailure = "auth_failure",
            "The record could not be loaded with the present sign-in.",
            "The sign-in has expired or does not cover this record.",
            "Sign in again for this connection.";
        /// It existed and was removed.
        Gone = "gone",
            "The record no longer exists at the source.",
            "It was listed, and removed before its detail was read.",
            "Nothing to do: it is kept on record as gone.";
        /// It does not exist.
        NotFound = "not_found",
            "The record was listed but not found.",
            "It was removed, or moved to another place, after it was listed.",
            "Nothing to do: after a few more tries it is kept on record as missing.";
        /// This account will never be allowed to see it.
        PermanentForbidden = "permanent_forbidden",
            "This account is not allowed to read the record.",
            "The owner of the record does not share it with this account.",
            "Nothing to do, unless you can get access to it.";
        /// Attempted too often.
        Quarantined = "quarantined",
            "The record was set aside after too many tries.",
            "Each try failed, and going on would take time from other records.",
            "Look at its last error, then ask for another try if the cause is gone.";
        /// Not offered in this mode.
        NotAvailableInMode = "not_available_in_mode",
            "The record is not available in this kind of run.",
            "The connector can read it in another mode only.",
            "Nothing to do: a run in the other mode reads it.";
        /// The owner did not request it.
        OutOfScope = "out_of_scope",
            "The record lies outside what you asked for.",
            "The grant of this connection does not cover it.",
            "Widen the grant if you want it.";
        /// The owner switched it off.
        UserDisabled = "user_disabled",
            "The record is switched off in the settings.",
            "You, or a setting of the connection, excluded it.",
            "Switch it on if you want it.";
        /// Required by a coverage report and left without an outcome.
        Unaccounted = "unaccounted",
            "The connector listed the record, and nothing was stored for it.",
            "The final report names no outcome for it, or one that the store cannot confirm.",
            "Nothing to do: it is kept as a gap, and a later run tries it.";
    }
}

/// The reason of a gap, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapReason {
    /// The provider rate-limited us.
    Pressure(PressureReason),
    /// Anything else. Never starts a cooldown.
    Absence(AbsenceReason),
}

impl GapReason {
    /// The stable code, as it is written on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Pressure(reason) => reason.code(),
            Self::Absence(reason) => reason.code(),
        }
    }

    /// The reason with this code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        PressureReason::from_code(code)
            .map(Self::Pressure)
            .or_else(|| AbsenceReason::from_code(code).map(Self::Absence))
    }

    /// Text for people.
    #[must_use]
    pub const fn wording(self) -> Wording {
        match self {
            Self::Pressure(reason) => reason.wording(),
            Self::Absence(reason) => reason.wording(),
        }
    }

    /// The pressure, if it is one: the only way from a gap to a cooldown.
    #[must_use]
    pub const fn pressure(self) -> Option<PressureReason> {
        match self {
            Self::Pressure(reason) => Some(reason),
            Self::Absence(_) => None,
        }
    }
}

impl Value for GapReason {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let reason = view.name().and_then(|code| Self::from_code(&code));
        reason.ok_or_else(|| Fault { code: ViolationCode::UnknownReason, ..Fault::malformed(field, view) })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_string(out, self.code());
    }
}

impl DeferReason {
    /// The reason of a gap for this stop. Every planned stop has the same reason on the wire; it is no pressure
    /// reason, and the class [`ErrorClass::RunCapDeferred`] distinguishes it.
    #[must_use]
    pub const fn gap_reason(self) -> AbsenceReason {
        match self {
            Self::RequestCap
            | Self::WallClock
            | Self::RetryBudget
            | Self::Attempts
            | Self::CircuitOpen
            | Self::BeyondHorizon => AbsenceReason::RetryExhausted,
        }
    }

    /// The error class for it: an owner's cap is not a used-up retry budget.
    #[must_use]
    pub const fn error_class(self) -> Option<ErrorClass> {
        match self {
            Self::RequestCap | Self::WallClock => Some(ErrorClass::RunCapDeferred),
            Self::RetryBudget | Self::Attempts | Self::CircuitOpen | Self::BeyondHorizon => None,
        }
    }
}

vocabulary! {
    /// Error classes of a gap with a meaning for the runtime. Connectors use many others, which are kept and have no
    /// meaning here.
    pub enum ErrorClass {
        /// The run reached a cap that its owner set. Nothing failed, so there is no HTTP status.
        RunCapDeferred = "run_cap_deferred",
            "This run saved a batch and stopped within its own budget.",
            "A limit applies to each run, set by you, the connector or Gleaner.",
            "Nothing to do: the next run continues with the rest.";
    }
}

/// The pressure in a connector's last error: a name `rate_limited` or `<name>_rate_limited` is a rate limit.
#[must_use]
pub fn pressure_in_terminal_error(name: &str) -> Option<PressureReason> {
    let head = name.strip_suffix(PressureReason::RateLimited.code())?;
    let is_name = |head: &str| head.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    match head.strip_suffix('_') {
        None if head.is_empty() => Some(PressureReason::RateLimited),
        Some(head) if !head.is_empty() && is_name(head) => Some(PressureReason::RateLimited),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_budget_exhaustion_reason_arms_the_source_pressure_cooldown() {
        /// Stands for whatever arms a cooldown: it takes pressure, and a `DeferReason` is none.
        fn arm(gap: GapReason) -> Option<PressureReason> {
            gap.pressure()
        }
        for defer in DeferReason::ALL {
            assert_eq!(PressureReason::from_code(defer.code()), None, "{defer}");
            assert_eq!(arm(GapReason::Absence(defer.gap_reason())), None, "{defer}");
        }
        // Negative control: pressure does arm it.
        for pressure in PressureReason::ALL {
            assert_eq!(arm(GapReason::Pressure(*pressure)), Some(*pressure));
        }
    }

    #[test]
    fn the_source_pressure_set_is_these_two() {
        let codes = PressureReason::ALL.iter().map(|reason| reason.code()).collect::<Vec<_>>();
        assert_eq!(codes, ["rate_limited", "upstream_pressure"]);
    }

    #[test]
    fn reasons_are_read_back_from_their_codes() {
        for reason in PressureReason::ALL {
            assert_eq!(GapReason::from_code(reason.code()), Some(GapReason::Pressure(*reason)));
        }
        for reason in AbsenceReason::ALL {
            assert_eq!(GapReason::from_code(reason.code()), Some(GapReason::Absence(*reason)));
        }
        assert_eq!(GapReason::from_code("busy"), None);
        assert_eq!(GapReason::from_code("request_cap"), None, "own budgets are not written on the wire");
    }

    #[test]
    fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
        for name in ["rate_limited", "github_rate_limited", "my-bank_2_rate_limited"] {
            assert_eq!(pressure_in_terminal_error(name), Some(PressureReason::RateLimited), "{name}");
        }
        for name in
            ["", "_rate_limited", "xrate_limited", "github_rate_limited!", "not rate_limited", "a b_rate_limited"]
        {
            assert_eq!(pressure_in_terminal_error(name), None, "{name}");
        }
    }
}

//! Why collecting ended early: the error that `?` carries from an author's code to the last message.
//!
//! There are four kinds, with four reactions: send nothing more, report the cancellation, account for the rest and
//! report success, or report the failure.

use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::wire::WireFault;
use gleaner_protocol::{DeferReason, PressureReason, RecoveryAction};

/// Why collecting ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The runtime no longer reads. Nothing more is sent.
    Disconnected,
    /// The owner declined.
    Cancelled,
    /// The run's own budget is used up. The rest becomes gaps, and the run succeeded.
    Deferred(DeferReason),
    /// It failed.
    Failed(Failure),
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A sentence for people. Secrets of the connection are masked before it is sent.
    pub message: String,
    /// Whether another run may succeed.
    pub retryable: bool,
    /// A code for programs: lower case, digits and `_`.
    pub code: Option<String>,
    /// Recommended action.
    pub action: Option<RecoveryAction>,
}

impl Stop {
    /// A failure that may not recur.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Failure { message: message.into(), retryable: true, code: None, action: None })
    }

    /// A failure of every run until somebody acts.
    pub fn for_good(message: impl Into<String>, action: RecoveryAction) -> Self {
        Self::Failed(Failure { message: message.into(), retryable: false, code: None, action: Some(action) })
    }

    /// A failure that only the connector's developer can fix.
    pub(crate) fn of_author(message: impl Into<String>) -> Self {
        Self::for_good(message, RecoveryAction::RetryOnConnectorUpgrade)
    }

    /// The same with a code for programs.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        if let Self::Failed(failure) = &mut self {
            failure.code = Some(code.to_owned());
        }
        self
    }
}

impl From<WireFault> for Stop {
    fn from(fault: WireFault) -> Self {
        match fault {
            WireFault::Disconnected => Self::Disconnected,
            WireFault::Unreadable(_) => Self::failed(fault.to_string()),
        }
    }
}

/// An item that was not fetched and has no gap ends the run.
impl From<FetchError> for Stop {
    fn from(error: FetchError) -> Self {
        if let Some(reason) = error.exhausted() {
            return Self::Deferred(reason);
        }
        let (retryable, action, code) = match error.kind {
            // The only code that a runtime treats as pressure.
            FetchErrorKind::Pressure(_) => {
                (true, RecoveryAction::RetryByRuntime, Some(PressureReason::RateLimited.code().to_owned()))
            }
            FetchErrorKind::RefusedCredentials => (false, RecoveryAction::RefreshCredentials, None),
            FetchErrorKind::Forbidden => (false, RecoveryAction::UpstreamUnblock, None),
            FetchErrorKind::NotRecorded => (false, RecoveryAction::RetryOnConnectorUpgrade, None),
            FetchErrorKind::Other => (true, RecoveryAction::Unknown, None),
            FetchErrorKind::CircuitOpen
            | FetchErrorKind::Deferred(_)
            | FetchErrorKind::NotFound
            | FetchErrorKind::Gone
            | FetchErrorKind::SenderGone
            | FetchErrorKind::Temporary => (true, RecoveryAction::RetryByRuntime, None),
        };
        Self::Failed(Failure { message: error.to_string(), retryable, code, action: Some(action) })
    }
}

impl From<gleaner_http::Error> for Stop {
    fn from(error: gleaner_http::Error) -> Self {
        FetchError::from(error).into()
    }
}

/// The position of the fault, never the text.
impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(format!("JSON cannot be read or written, at line {}, column {}", error.line(), error.column()))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::pressure_in_terminal_error;

    #[test]
    fn pressure_that_ends_a_run_arms_the_cooldown_and_a_budget_does_not() {
        let Stop::Failed(failure) = Stop::from(FetchError::of_status(429)) else { panic!("a failure") };
        let code = failure.code.as_deref().and_then(pressure_in_terminal_error);
        assert_eq!(code, Some(PressureReason::RateLimited));
        let budget = FetchError::new(FetchErrorKind::Deferred(DeferReason::RequestCap), "over");
        assert_eq!(Stop::from(budget), Stop::Deferred(DeferReason::RequestCap));
    }

    #[test]
    fn a_json_error_tells_the_place_and_not_the_content() {
        let cause = serde_json::from_str::<u32>("\"my diary\"").unwrap_err();
        assert!(cause.to_string().contains("diary"), "otherwise this test proves nothing");
        let Stop::Failed(failure) = Stop::from(cause) else { panic!("a failure") };
        assert!(!failure.message.contains("diary"), "{}", failure.message);
    }
}

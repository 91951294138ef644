//! DONE: the last message of a run, with its error.

use crate::messages::fields::{Fault, Fields};
use crate::messages::hints::RecoveryHint;
use crate::messages::wire::{Holds, Optional, Required, Sentence, wire_fields, wire_object};
use crate::words::reasons::{PressureReason, pressure_in_terminal_error};
use crate::words::violation::ViolationCode;
use crate::words::vocabulary::wire_words;

/// The end of a run, as its connector sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Result.
    pub status: DoneStatus,
    /// Number of records sent.
    pub records_emitted: u64,
    /// The error. Absent on success.
    pub error: Option<DoneError>,
}

wire_words! {
    /// Result of a connector.
    pub enum DoneStatus {
        /// As planned.
        Succeeded = "succeeded";
        /// With an error.
        Failed = "failed";
        /// On request.
        Cancelled = "cancelled";
    }
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneError {
    /// A sentence, or the connector's own name for the error.
    pub message: String,
    /// Whether another run may succeed.
    pub retryable: bool,
    /// A code for programs.
    pub code: Option<String>,
    /// Recommended action.
    pub recovery_hint: Option<RecoveryHint>,
}

/// The code of a failure of single streams.
pub const STREAM_COLLECTION_FAILED: &str = "stream_collection_failed";

wire_fields!(Done { status: Required, records_emitted: Required, error: Optional });

impl Done {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        let done = Self::read_fields(fields)?;
        match (done.status, fields.optional("error")) {
            (DoneStatus::Succeeded, Some(error)) => {
                Err(Fault { code: ViolationCode::ContradictoryDone, field: "error", offset: error.offset() })
            }
            _ => Ok(done),
        }
    }
}

wire_object!(DoneError { message: Sentence, retryable: Required, code: Optional = read_code, recovery_hint: Optional });

/// A code is short and plain.
fn read_code(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<String>, Fault> {
    match fields.optional(name) {
        Some(code) if !code.name().is_some_and(|code| is_code(&code)) => Err(Fault::malformed("error.code", code)),
        _ => Optional::read(fields, name),
    }
}

impl DoneError {
    /// The pressure that this error reports, if any.
    #[must_use]
    pub fn pressure(&self) -> Option<PressureReason> {
        self.code.as_deref().and_then(pressure_in_terminal_error).or_else(|| pressure_in_terminal_error(&self.message))
    }
}

/// Maximum length of a code, by the contract.
const CODE_BYTES_MAX: usize = 64;

pub(crate) fn is_code(code: &str) -> bool {
    code.len() <= CODE_BYTES_MAX
        && code.starts_with(|c: char| c.is_ascii_lowercase())
        && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_short_and_plain() {
        for code in ["a", "stream_collection_failed", "x2", &"a".repeat(64)] {
            assert!(is_code(code), "{code}");
        }
        for code in ["", "A", "2x", "_x", "a-b", "a b", &"a".repeat(65)] {
            assert!(!is_code(code), "{code}");
        }
    }

    #[test]
    fn a_named_rate_limit_is_pressure_and_a_sentence_about_one_is_not() {
        let error = |message: &str, code: Option<&str>| DoneError {
            message: message.to_owned(),
            retryable: true,
            code: code.map(ToOwned::to_owned),
            recovery_hint: None,
        };
        assert_eq!(error("github_rate_limited", None).pressure(), Some(PressureReason::RateLimited));
        assert_eq!(error("sorry", Some("bank_rate_limited")).pressure(), Some(PressureReason::RateLimited));
        assert_eq!(error("I think we were rate_limited", None).pressure(), None);
    }
}

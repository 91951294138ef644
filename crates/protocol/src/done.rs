//! DONE: the last message of a run, and what went wrong if something did.

use crate::fields::{Fault, Fields};
use crate::hints::RecoveryHint;
use crate::line_writer::LineWriter;
use crate::reasons::{PressureReason, pressure_in_terminal_error};
use crate::view::View;
use crate::violation::ViolationCode;
use crate::vocabulary::wire_words;

/// The end of a run as its connector sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub status: DoneStatus,
    /// How many records were sent.
    pub records_emitted: u64,
    /// What went wrong. Never there on success.
    pub error: Option<DoneError>,
}

wire_words! {
    /// How a connector ended.
    pub enum DoneStatus {
        /// As planned.
        Succeeded = "succeeded";
        /// With an error.
        Failed = "failed";
        /// On request.
        Cancelled = "cancelled";
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneError {
    /// A sentence, or the connector's own name for the error.
    pub message: String,
    /// Whether another run may succeed.
    pub retryable: bool,
    /// A code for programs.
    pub code: Option<String>,
    /// What may help.
    pub recovery_hint: Option<RecoveryHint>,
}

/// The code that certifies a failure as one of single streams.
pub const STREAM_COLLECTION_FAILED: &str = "stream_collection_failed";

impl Done {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        let done = Self {
            status: fields.required_word("status", DoneStatus::from_code)?,
            records_emitted: fields.required_count("records_emitted")?,
            error: fields.optional("error").map(DoneError::read).transpose()?,
        };
        match (done.status, fields.optional("error")) {
            (DoneStatus::Succeeded, Some(error)) => {
                Err(Fault { code: ViolationCode::ContradictoryDone, field: "error", offset: error.offset() })
            }
            _ => Ok(done),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut line = LineWriter::message(out, "DONE")
            .text("status", self.status.code())
            .number("records_emitted", self.records_emitted);
        if let Some(error) = &self.error {
            line = line.value("error", |out| error.write(out));
        }
        line.end();
    }
}

impl DoneError {
    /// The pressure that this error tells of, if it does.
    #[must_use]
    pub fn pressure(&self) -> Option<PressureReason> {
        self.code.as_deref().and_then(pressure_in_terminal_error).or_else(|| pressure_in_terminal_error(&self.message))
    }

    fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("error", view))?;
        let fields = Fields::nested(&members);
        let code = fields.optional("code");
        if let Some(code) = code
            && !code.name().is_some_and(|code| is_code(&code))
        {
            return Err(Fault::malformed("error.code", code));
        }
        Ok(Self {
            message: fields.required_sentence("message")?,
            retryable: fields.required_flag("retryable")?,
            code: fields.optional_name("code")?.map(Into::into),
            recovery_hint: fields.optional("recovery_hint").map(RecoveryHint::read).transpose()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = LineWriter::object(out)
            .text("message", &self.message)
            .flag("retryable", self.retryable)
            .optional_text("code", self.code.as_deref());
        if let Some(hint) = self.recovery_hint {
            object = object.value("recovery_hint", |out| hint.write(out));
        }
        object.close();
    }
}

/// How long a code may be, by the contract.
const CODE_BYTES_MAX: usize = 64;

fn is_code(code: &str) -> bool {
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

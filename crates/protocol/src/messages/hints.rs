//! Recovery hints and continuations of a connector.
//!
//! Why strict: a hint decides whether the owner is asked, and a continuation decides what counts as covered. A guess
//! would deceive the owner, so an invalid one is a violation, unlike a progress figure, which may be dropped.

use crate::json::raw_json::RawJson;
use crate::json::view::View;
use crate::messages::fields::{Fault, Fields};
use crate::messages::line_writer::LineWriter;
use crate::messages::wire::{Optional, Required, Value, code_value, wire_fields};
use crate::words::violation::ViolationCode;
use crate::words::vocabulary::vocabulary;

vocabulary! {
    /// Recommended action.
    pub enum RecoveryAction {
        /// The runtime retries automatically.
        RetryByRuntime = "retry_by_runtime",
            "This part was left for later.",
            "The connector expects it to work another time.",
            "Nothing to do: a later run tries it again.";
        /// A newer connector may succeed.
        RetryOnConnectorUpgrade = "retry_on_connector_upgrade",
            "This version of the connector cannot read this part.",
            "The source has changed, or the connector does not support it yet.",
            "Update the connector when a new version is there.";
        /// The owner must sign in again.
        RefreshCredentials = "refresh_credentials",
            "This part needs a fresh sign-in.",
            "The credential of this connection has expired or is not accepted.",
            "Sign in again for this connection.";
        /// The owner must do something at the source.
        ManualActionRequired = "manual_action_required",
            "This part needs something that only you can do.",
            "The source asks for a step that cannot be automated.",
            "Follow the connector's message, then run it again.";
        /// The source's page or interface has changed.
        UpdateSelector = "update_selector",
            "The connector did not find this part where it used to be.",
            "The source has probably changed its pages.",
            "Report it to the connector's author.";
        /// The source must lift a block.
        UpstreamUnblock = "upstream_unblock",
            "The source does not let this account read this part at present.",
            "Something at the source has to be released first.",
            "Check the account at the source; a later run tries it again.";
        /// Never.
        NotRetriable = "not_retriable",
            "This part cannot be collected.",
            "The connector knows that another try would end the same way.",
            "Nothing to do: it stays on record as not collected.";
        /// The connector does not know.
        Unknown = "unknown",
            "This part was skipped, and the connector does not know what would help.",
            "The cause is not one that it recognises.",
            "Look at its message; a later run may work.";
    }
}

/// An action, and whether the connector recommends a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryHint {
    /// Recommended action.
    pub action: RecoveryAction,
    /// Whether a retry may succeed, if the connector says so.
    pub retryable: Option<bool>,
}

/// Reads an action, or an object with one.
impl Value for RecoveryHint {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let read = || {
            if let Ok(action) = RecoveryAction::read(field, view) {
                return Ok(Self { action, retryable: None });
            }
            let members = view.members().ok_or_else(|| Fault::malformed(field, view))?;
            Self::read_fields(Fields::nested(&members))
        };
        read().map_err(|fault| Fault { code: ViolationCode::MalformedHint, ..fault })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.write_fields(LineWriter::object(out)).close();
    }
}

code_value!(RecoveryAction);
wire_fields!(RecoveryHint { action: Required, retryable: Optional });

/// Proof of one bounded page of a stream, of which the runtime may request more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The boundary of the page.
    pub boundary: String,
    /// Number of items in it.
    pub considered: u64,
    /// Number of those accounted for.
    pub covered: u64,
    /// Start of the page: a string or a number of the connector.
    pub slice_start: RawJson<'static>,
    /// End of the page.
    pub slice_end: RawJson<'static>,
}

wire_fields! {
    Continuation {
        boundary: Required,
        considered: Required,
        covered: Required,
        slice_start: Required = read_edge,
        slice_end: Required = read_edge,
        ;
        [owner = "runtime"]
        [remaining = true]
    }
}

/// A text or a number.
fn read_edge(fields: Fields<'_, '_>, name: &'static str) -> Result<RawJson<'static>, Fault> {
    let edge = fields.required(name)?;
    let is_scalar = edge.is_number() || edge.name().is_some();
    if is_scalar { Ok(edge.raw().into_owned()) } else { Err(Fault::malformed(name, edge)) }
}

impl Value for Continuation {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let malformed = Fault { code: ViolationCode::MalformedContinuation, ..Fault::malformed(field, view) };
        let members = view.members().ok_or(malformed)?;
        let read = Self::read_fields(Fields::nested(&members));
        let continuation = read.map_err(|fault| Fault { code: malformed.code, ..fault })?;
        if continuation.covered > continuation.considered { Err(malformed) } else { Ok(continuation) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.write_fields(LineWriter::object(out)).close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(text: &str) -> Result<RecoveryHint, ViolationCode> {
        RecoveryHint::read("recovery_hint", View::whole(text)).map_err(|fault| fault.code)
    }

    fn continuation(text: &str) -> Result<Continuation, ViolationCode> {
        Continuation::read("continuation", View::whole(text)).map_err(|fault| fault.code)
    }

    #[test]
    fn a_hint_is_an_action_or_an_object_with_one() {
        let action = RecoveryAction::RefreshCredentials;
        assert_eq!(hint(r#""refresh_credentials""#), Ok(RecoveryHint { action, retryable: None }));
        assert_eq!(
            hint(r#"{"action":"refresh_credentials","retryable":true,"more":1}"#),
            Ok(RecoveryHint { action, retryable: Some(true) })
        );
        for text in [r#""pray""#, "{}", r#"{"action":"pray"}"#, r#"{"action":"unknown","retryable":1}"#, "7", "[]"] {
            assert_eq!(hint(text), Err(ViolationCode::MalformedHint), "{text}");
        }
    }

    #[test]
    fn a_continuation_proves_one_page_and_nothing_else() {
        let good = r#"{"boundary":"page","considered":5,"covered":4,"slice_start":1.50,"slice_end":"z","owner":"runtime","remaining":true}"#;
        let read = continuation(good).unwrap();
        assert_eq!((read.considered, read.covered, read.slice_start.as_str()), (5, 4, "1.50"));
        for (from, to) in [
            ("\"covered\":4", "\"covered\":6"),
            ("\"runtime\"", "\"connector\""),
            ("true", "false"),
            ("1.50", "{}"),
            ("\"considered\":5", "\"considered\":-5"),
            ("\"boundary\":\"page\",", ""),
        ] {
            assert_eq!(continuation(&good.replace(from, to)), Err(ViolationCode::MalformedContinuation), "{to}");
        }
    }
}

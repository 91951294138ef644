//! What a connector suggests to do about something it skipped, and how far it got.
//!
//! Why typed and strict: a hint decides whether the owner is asked for something, and a continuation
//! decides what counts as covered. A guess in either would be a lie to the owner, so what cannot be
//! read is a violation, unlike a progress figure, which may be dropped.

use crate::fields::{Fault, Fields};
use crate::line_writer::LineWriter;
use crate::raw_json::RawJson;
use crate::view::View;
use crate::violation::ViolationCode;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// What may help.
    pub enum RecoveryAction {
        /// The runtime tries again by itself.
        RetryByRuntime = "retry_by_runtime",
            "This part was left for later.",
            "The connector expects it to work another time.",
            "Nothing to do: a later run tries it again.";
        /// A newer connector may manage it.
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

/// An action, and whether the connector thinks that trying again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryHint {
    /// What may help.
    pub action: RecoveryAction,
    /// Whether another try may succeed, where the connector says so.
    pub retryable: Option<bool>,
}

impl RecoveryHint {
    /// Reads an action, or an object with one.
    pub(crate) fn read(view: View<'_>) -> Result<Self, Fault> {
        Self::read_inner(view).map_err(|fault| Fault { code: ViolationCode::MalformedHint, ..fault })
    }

    fn read_inner(view: View<'_>) -> Result<Self, Fault> {
        let named = |view: View<'_>| view.name().and_then(|name| RecoveryAction::from_code(&name));
        if let Some(action) = named(view) {
            return Ok(Self { action, retryable: None });
        }
        let members = view.members().ok_or_else(|| Fault::malformed("recovery_hint", view))?;
        let fields = Fields::nested(&members);
        let action = fields.required("action")?;
        Ok(Self {
            action: named(action).ok_or_else(|| Fault::malformed("recovery_hint", action))?,
            retryable: fields.optional_flag("retryable")?,
        })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        LineWriter::object(out).text("action", self.action.code()).optional_flag("retryable", self.retryable).close();
    }
}

/// Proof of one bounded page of a stream, of which more remains for the runtime to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// What bounds the page.
    pub boundary: String,
    /// How many were looked at in it.
    pub considered: u64,
    /// How many of those are accounted for.
    pub covered: u64,
    /// Where the page begins: a string or a number of the connector's.
    pub slice_start: RawJson<'static>,
    /// Where it ends.
    pub slice_end: RawJson<'static>,
}

impl Continuation {
    pub(crate) fn read(view: View<'_>) -> Result<Self, Fault> {
        Self::read_inner(view).map_err(|fault| Fault { code: ViolationCode::MalformedContinuation, ..fault })
    }

    fn read_inner(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("continuation", view))?;
        let fields = Fields::nested(&members);
        let edge = |name: &'static str| {
            let edge = fields.required(name)?;
            let is_scalar = edge.is_number() || edge.name().is_some();
            if is_scalar { Ok(edge.raw().into_owned()) } else { Err(Fault::malformed("continuation", edge)) }
        };
        if fields.required_name("owner")? != "runtime" || !fields.required_flag("remaining")? {
            return Err(Fault::malformed("continuation", view));
        }
        let continuation = Self {
            boundary: fields.required_name("boundary")?.into_owned(),
            considered: fields.required_count("considered")?,
            covered: fields.required_count("covered")?,
            slice_start: edge("slice_start")?,
            slice_end: edge("slice_end")?,
        };
        if continuation.covered > continuation.considered {
            return Err(Fault::malformed("continuation", view));
        }
        Ok(continuation)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::object(out)
            .text("boundary", &self.boundary)
            .number("considered", self.considered)
            .number("covered", self.covered)
            .raw("slice_start", &self.slice_start)
            .raw("slice_end", &self.slice_end)
            .text("owner", "runtime")
            .flag("remaining", true)
            .close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(text: &str) -> Result<RecoveryHint, ViolationCode> {
        RecoveryHint::read(View::of(text)).map_err(|fault| fault.code)
    }

    fn continuation(text: &str) -> Result<Continuation, ViolationCode> {
        Continuation::read(View::of(text)).map_err(|fault| fault.code)
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

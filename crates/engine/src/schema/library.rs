//! The one place that knows the validator library.
//!
//! Why it is wrapped: it decides what a schema means, for every keyword of every draft, and nothing
//! else here should have to know how it is asked. It is told to fetch nothing (it is compiled without
//! the means, too), to match patterns in linear time and within a size, and to take `format` for the
//! remark that it is: providers' dates and addresses are not ours to reject.
//!
//! It never panics on our behalf: should the library do so, the schema is refused, or the body has not
//! been shown to fit.

use super::SchemaFaultCode;
use super::plan::BesideRef;
use crate::scope::Misfit;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The longest reason: a schema may list thousands of values.
const REASON_CHARS_MAX: usize = 300;

/// A schema, compiled by the library.
#[derive(Debug)]
pub(super) struct Library {
    validator: Validator,
    can_be_located: bool,
}

impl Library {
    /// Compiles a schema that was surveyed. The draft is the one that `$schema` names, or 2020-12.
    /// A compiled pattern may have this many bytes.
    pub(super) fn new(
        mut schema: Value,
        can_be_located: bool,
        pattern_bytes: usize,
    ) -> Result<Self, (SchemaFaultCode, String)> {
        // References are within the document, so its own name is of no use, and a strange one only harms.
        if let Some(members) = schema.as_object_mut() {
            for keyword in ["$id", "id"] {
                if members.get(keyword).is_some_and(Value::is_string) {
                    members.remove(keyword);
                }
            }
        }
        let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
        let options = jsonschema::options().offline().should_validate_formats(false).with_pattern_options(patterns);
        match catch_unwind(AssertUnwindSafe(|| options.build(&schema))) {
            Ok(Ok(validator)) => Ok(Self { validator, can_be_located }),
            Ok(Err(error)) => Err(fault(&error)),
            Err(_) => Err((SchemaFaultCode::NotASchema, String::new())),
        }
    }

    /// What a plan must know about the draft; `None` for drafts that mean other things by the same words.
    pub(super) fn beside_ref(&self) -> Option<BesideRef> {
        match self.validator.draft() {
            Draft::Draft6 | Draft::Draft7 => Some(BesideRef::Ignored),
            Draft::Draft201909 | Draft::Draft202012 => Some(BesideRef::Counts),
            _ => None,
        }
    }

    /// Whether a body fits.
    ///
    /// # Errors
    ///
    /// What does not, and why.
    pub(super) fn check(&self, body: &Value) -> Result<(), Misfit> {
        let check = || {
            if self.validator.is_valid(body) {
                return Ok(());
            }
            if !self.can_be_located {
                return Err(Misfit::default());
            }
            Err(match self.validator.validate(body) {
                Ok(()) => Misfit::default(),
                Err(error) => Misfit {
                    pointer: error.instance_path().as_str().to_owned(),
                    reason: error.masked_with("it").to_string().chars().take(REASON_CHARS_MAX).collect(),
                },
            })
        };
        catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err(Misfit::default()))
    }
}

/// The library checks a schema against the schema of schemas, so the "instance" is ours.
fn fault(error: &ValidationError<'_>) -> (SchemaFaultCode, String) {
    let path = error.instance_path().as_str();
    match error.kind() {
        // References were followed before; what is left is the name of a draft.
        ValidationErrorKind::Referencing(_) => (SchemaFaultCode::UnknownDraft, "/$schema".to_owned()),
        ValidationErrorKind::Format { .. }
        | ValidationErrorKind::Pattern { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
            if path.contains("attern") =>
        {
            (SchemaFaultCode::PatternRefused, path.to_owned())
        }
        _ => (SchemaFaultCode::NotASchema, path.to_owned()),
    }
}

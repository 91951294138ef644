//! Faults of a manifest: path, value, and allowed values.
//!
//! All faults are collected, up to a maximum, so that an author can fix them together.

use super::node::Node;
use crate::words::vocabulary::vocabulary;
use std::fmt;

/// Maximum number of reported faults.
const FAULTS_MAX: usize = 100;
/// Characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 80;

vocabulary! {
    /// Kinds of faults.
    pub enum ManifestFaultCode {
        /// Larger than allowed.
        TooLarge = "manifest_too_large",
            "The manifest is too large.",
            "A manifest is read whole before anything is started, so its size has a bound.",
            "Move what is not part of the manifest elsewhere.";
        /// Not JSON, or not readable.
        NotJson = "manifest_not_json",
            "The manifest is not valid JSON.",
            "It cannot be read at all.",
            "Correct it at the byte that is named.";
        /// The same key twice.
        DuplicateKey = "manifest_duplicate_key",
            "The manifest has an object with the same key twice.",
            "Programs disagree about which of the two counts.",
            "Remove one of them.";
        /// A required value is missing.
        Missing = "manifest_missing",
            "The manifest lacks something that must be there.",
            "Without it the connector cannot be run accountably.",
            "Add it.";
        /// The wrong type.
        WrongType = "manifest_wrong_type",
            "A value in the manifest has the wrong type.",
            "It cannot be read as what it is meant to be.",
            "Write it as the allowed type.";
        /// A value that is not allowed.
        NotAllowed = "manifest_not_allowed",
            "A value in the manifest is not one of the allowed ones.",
            "The vocabulary is closed, so that every runtime understands it alike.",
            "Use one of the allowed values.";
        /// A number outside its range.
        OutOfRange = "manifest_out_of_range",
            "A number in the manifest is out of its range.",
            "It would make the runtime act in a way that makes no sense.",
            "Use a number within the range.";
        /// A value occurs twice that must be unique.
        Duplicate = "manifest_duplicate",
            "Something is in the manifest twice that may be there once.",
            "Nobody could tell which of the two is meant.",
            "Remove or rename one of them.";
        /// A stream that does not exist.
        UnknownStream = "manifest_unknown_stream",
            "The manifest refers to a stream that it does not declare.",
            "A checkpoint can depend on a declared stream only.",
            "Declare the stream, or correct the name.";
        /// A stream that depends on itself.
        SelfReference = "manifest_self_reference",
            "A stream in the manifest depends on itself.",
            "Its checkpoint could never be committed.",
            "Name the stream whose list it is read from, or remove the dependency.";
        /// Streams depend on each other in a cycle.
        Cycle = "manifest_cycle",
            "Streams in the manifest depend on each other in a ring.",
            "None of their checkpoints could ever be committed.",
            "Remove one of the dependencies in the ring.";
        /// Two values exclude each other.
        Conflict = "manifest_conflict",
            "Two things in the manifest exclude each other.",
            "The runtime cannot do both.",
            "Keep the one that is meant.";
        /// More entries than allowed.
        TooMany = "manifest_too_many",
            "The manifest has more of something than is allowed.",
            "Every list has a bound, so that a bad manifest costs little.",
            "Reduce it to the allowed number.";
        /// Would let the connector control more than itself.
        Dangerous = "manifest_dangerous",
            "The manifest asks for something that would be dangerous to give.",
            "It could be used to run other code than the connector's.",
            "Remove it.";
    }
}

/// One fault, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFault {
    /// Kind.
    pub code: ManifestFaultCode,
    /// Path, for instance `streams[2].coverage_policy`; `$` is the whole.
    pub path: String,
    /// The value, shortened; empty when absent.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{} is missing; allowed: {}", self.path, self.allowed)
        } else {
            write!(f, "{} is {}; allowed: {}", self.path, self.value, self.allowed)
        }
    }
}

/// An invalid manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestRejected {
    /// All faults, at least one.
    pub faults: Vec<ManifestFault>,
}

impl fmt::Display for ManifestRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            write!(f, "{line}{fault}")?;
        }
        Ok(())
    }
}

/// Collects faults and warnings.
#[derive(Debug, Default)]
pub(super) struct Faults {
    errors: Vec<ManifestFault>,
    warnings: Vec<ManifestFault>,
}

impl Faults {
    /// A fault of a node, or of a missing child of `parent`.
    pub(super) fn error(&mut self, code: ManifestFaultCode, node: Option<&Node<'_>>, parent: &Node<'_>, allowed: &str) {
        let node = node.unwrap_or(parent);
        self.error_at(code, node.path(), node.text(), allowed);
    }

    pub(super) fn error_at(&mut self, code: ManifestFaultCode, path: &str, value: &str, allowed: &str) {
        if self.errors.len() < FAULTS_MAX {
            self.errors.push(fault(code, path, value, allowed));
        }
    }

    pub(super) fn warning_at(&mut self, code: ManifestFaultCode, path: &str, value: &str, allowed: &str) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(fault(code, path, value, allowed));
        }
    }

    pub(super) fn into_parts(self) -> (Vec<ManifestFault>, Vec<ManifestFault>) {
        (self.errors, self.warnings)
    }
}

fn fault(code: ManifestFaultCode, path: &str, value: &str, allowed: &str) -> ManifestFault {
    ManifestFault { code, path: printable(path), value: printable(value), allowed: allowed.to_owned() }
}

/// An untrusted value, shortened and safe to print.
fn printable(value: &str) -> String {
    let safe = |c: char| if c.is_control() || is_reordering(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut text = value.chars().take(VALUE_CHARS_MAX).map(safe).collect::<String>();
    if value.chars().nth(VALUE_CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}

/// Characters that change the text direction in a terminal.
const fn is_reordering(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

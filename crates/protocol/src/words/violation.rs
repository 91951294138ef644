//! Violations of the contract: a code, a position, and a text for people.
//!
//! Why no text of the message: a line may hold a password or private mail. A violation names the line, the byte, the
//! field, the stream and the record's key, never the bytes. The vocabulary covers the whole contract: this crate
//! finds the faults in one line, the engine those in a run, and both use the same texts.

use crate::words::vocabulary::{Wording, vocabulary};
use std::fmt;

/// Position in a connector's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, counted from 1; blank lines count.
    pub line: u64,
    /// The byte within the line, counted from 0.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}", self.line, self.offset)
    }
}

/// One violation of the contract. It ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Kind of violation.
    pub code: ViolationCode,
    /// Position, if it is about a line.
    pub position: Option<Position>,
    /// The field of the message, if it is about one.
    pub field: Option<&'static str>,
    /// The stream, if it is known.
    pub stream: Option<String>,
    /// The key of the record, if it is about one.
    pub key: Option<String>,
}

/// Maximum length of a name in a violation. A longer text is not a name.
const NAME_BYTES_MAX: usize = 200;

impl Violation {
    /// A violation without details.
    #[must_use]
    pub const fn new(code: ViolationCode) -> Self {
        Self { code, position: None, field: None, stream: None, key: None }
    }

    /// Adds the position.
    #[must_use]
    pub const fn at(mut self, line: u64, offset: u64) -> Self {
        self.position = Some(Position { line, offset });
        self
    }

    /// Adds the field.
    #[must_use]
    pub const fn in_field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// Adds the stream.
    #[must_use]
    pub fn of_stream(mut self, stream: &str) -> Self {
        self.stream = Some(shorten(stream));
        self
    }

    /// Adds the key of the record.
    #[must_use]
    pub fn of_key(mut self, key: &str) -> Self {
        self.key = Some(shorten(key));
        self
    }

    /// Text for people.
    #[must_use]
    pub const fn wording(&self) -> Wording {
        self.code.wording()
    }
}

fn shorten(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    if end == name.len() { name.to_owned() } else { format!("{}…", &name[..end]) }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.code())?;
        if let Some(position) = self.position {
            write!(f, " at {position}")?;
        }
        if let Some(field) = self.field {
            write!(f, ", field {field}")?;
        }
        // Quoted and escaped: a name from a connector may contain terminal control characters.
        if let Some(stream) = &self.stream {
            write!(f, ", stream {stream:?}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {key:?}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

vocabulary! {
    /// All violations of the contract. All of them end the run; committed data stays.
    pub enum ViolationCode {
        /// Not JSON.
        BadJson = "bad_json",
            "The connector wrote a line that is not valid JSON.",
            "Something other than a message went to its output, or a message was written wrongly.",
            "Report it to the connector's author with the line and byte; logs belong on stderr.";
        /// A byte sequence that is not UTF-8.
        InvalidUtf8 = "invalid_utf8",
            "The connector wrote a line that is not valid UTF-8.",
            "Text in another encoding, or binary data, went to its output.",
            "Report it to the connector's author with the line and byte.";
        /// A raw NUL byte.
        NulByte = "nul_byte",
            "The connector wrote a raw NUL byte.",
            "JSON allows it as an escape only; a raw one usually comes from binary data.",
            "Report it to the connector's author with the line and byte.";
        /// A line over its limit.
        LineTooLong = "line_too_long",
            "The connector wrote a line that is longer than the limit.",
            "A line is held in memory until it ends, so its length must have a bound.",
            "Report it to the connector's author: it has to send less in one line.";
        /// A coverage report over its limit.
        CoverageTooLong = "coverage_too_long",
            "The connector's coverage report is longer than the limit.",
            "Reports are read in blocks, but even those must end some time.",
            "Raise the coverage limit, or report it to the connector's author.";
        /// Nested too deeply.
        TooDeep = "too_deep",
            "The connector wrote JSON that is nested too deeply.",
            "Such text cannot be read safely by other programs, and no record needs it.",
            "Report it to the connector's author with the line and byte.";
        /// More keys than can be checked.
        TooManyKeys = "too_many_keys",
            "The connector wrote an object with too many keys.",
            "Every key is checked against the others, so their number must have a bound.",
            "Report it to the connector's author with the line.";
        /// The same key twice in one object.
        DuplicateKey = "duplicate_key",
            "The connector wrote an object that has the same key twice.",
            "Programs disagree about which of the two counts, so neither is taken.",
            "Report it to the connector's author with the line and byte.";
        /// The output ended inside a line.
        IncompleteLine = "incomplete_line",
            "The connector's output ended in the middle of a message.",
            "It crashed, was killed, or stopped before its output was written out.",
            "Run it again to continue from the last saved slice; if it happens again, tell the connector's author.";
        /// JSON, but not an object.
        NotAnObject = "not_an_object",
            "The connector wrote a line that is not a message.",
            "Every line must be one JSON object.",
            "Report it to the connector's author with the line; logs belong on stderr.";
        /// An unknown type.
        UnknownType = "unknown_type",
            "The connector sent a message of a type that is not known.",
            "It may be made for a newer version of the protocol.",
            "Update Gleaner, or report it to the connector's author.";
        /// A field is missing.
        MissingField = "missing_field",
            "The connector sent a message without a field that it must have.",
            "Without that field the message has no meaning.",
            "Report it to the connector's author with the line and field.";
        /// A field has the wrong type or a value that is not allowed.
        MalformedField = "malformed_field",
            "The connector sent a message with a field that has a wrong value.",
            "Its type, or its value, is not one that the contract allows.",
            "Report it to the connector's author with the line and field.";
        /// Half of a character in a name or key.
        LoneSurrogate = "lone_surrogate",
            "The connector sent a name or key with half a character in it.",
            "It cut a text in the middle of a character; such a key cannot be found again.",
            "Report it to the connector's author with the line and field.";
        /// An invalid recovery hint.
        MalformedHint = "malformed_hint",
            "The connector sent a recovery hint that is not known.",
            "The action for a skip must be one of the agreed ones.",
            "Report it to the connector's author with the line.";
        /// An invalid continuation.
        MalformedContinuation = "malformed_continuation",
            "The connector sent a continuation that cannot be read.",
            "Without exact bounds nobody can tell what was covered.",
            "Report it to the connector's author with the line.";
        /// A gap reason outside the vocabulary.
        UnknownReason = "unknown_reason",
            "The connector gave a reason for a gap that is not known.",
            "The reason decides what happens next, so it must be one of the agreed ones.",
            "Update Gleaner, or report it to the connector's author.";
        /// A run-cap deferral that reports a failure.
        ContradictoryGap = "contradictory_gap",
            "The connector sent a gap that says two things at once.",
            "A stop by the run's own budget is no failure: it has its own reason and no HTTP status.",
            "Report it to the connector's author with the line.";
        /// A success with an error, or a failure without one.
        ContradictoryDone = "contradictory_done",
            "The connector ended with a status and an error that disagree.",
            "A run that succeeded has no error.",
            "Report it to the connector's author.";
        /// A message after DONE.
        AfterDone = "after_done",
            "The connector went on writing after it said that it was done.",
            "Output after the end cannot be accounted for.",
            "Report it to the connector's author with the line.";
        /// An unrequested stream.
        StreamOutOfScope = "stream_out_of_scope",
            "The connector sent something for a stream that it was not asked for.",
            "Only what you granted may be collected.",
            "Add the stream to the grant if you want it; otherwise report it to the author.";
        /// An unrequested key.
        KeyOutOfResources = "key_out_of_resources",
            "The connector sent a record that it was not asked for.",
            "The grant names the records to collect, and this one is not among them.",
            "Add the record to the grant if you want it; otherwise report it to the author.";
        /// An unrequested field.
        FieldOutOfScope = "field_out_of_scope",
            "The connector sent a record with a field that it was not asked for.",
            "The grant names the fields to collect, and this one is not among them.",
            "Add the field to the grant if you want it; otherwise report it to the author.";
        /// An unrequested time.
        TimeOutOfRange = "time_out_of_range",
            "The connector sent a record outside the requested time range.",
            "The grant has a range of time, and this record lies outside it.",
            "Widen the range if you want it; otherwise report it to the author.";
        /// A tombstone in an append-only stream.
        DeleteOnAppendOnly = "delete_on_append_only",
            "The connector deleted a record in a stream where nothing is ever deleted.",
            "The manifest says that this stream only grows.",
            "Report it to the connector's author: the manifest or the connector is wrong.";
        /// A key twice in one list of a coverage report.
        CoverageDuplicateKey = "coverage_duplicate_key",
            "The connector's coverage report names a key twice in one list.",
            "Each record is counted once, or the count means nothing.",
            "Report it to the connector's author with the stream and key.";
        /// An outcome for a key that was not required.
        CoverageKeyNotRequired = "coverage_key_not_required",
            "The connector's coverage report has an outcome for a record it did not list.",
            "Outcomes must be among the required keys.",
            "Report it to the connector's author with the stream and key.";
        /// Two outcomes for one key.
        CoverageOverlap = "coverage_overlap",
            "The connector's coverage report gives a record two outcomes.",
            "A record was read, or is a gap, or was skipped: one of them.",
            "Report it to the connector's author with the stream and key.";
        /// A second report for the same pair of streams.
        CoverageRepeated = "coverage_repeated",
            "The connector sent two coverage reports for the same streams.",
            "One report per run is the account; a second would contradict it.",
            "Report it to the connector's author with the stream.";
        /// A report for a checkpoint that the manifest does not declare.
        CoverageUndeclaredParent = "coverage_undeclared_parent",
            "The connector's coverage report names a parent that its manifest does not declare.",
            "Only a declared parent's checkpoint can depend on a report.",
            "Report it to the connector's author: manifest and connector disagree.";
        /// A report for a stream that uses its parent's checkpoint.
        CoverageForChild = "coverage_for_child",
            "The connector sent a coverage report for a stream that shares another's checkpoint.",
            "Such a stream is accounted for by its parent.",
            "Report it to the connector's author: manifest and connector disagree.";
        /// A question although nobody can answer.
        InteractionWithoutBinding = "interaction_without_binding",
            "The connector asked a question although nobody can answer in this run.",
            "It was started without someone to ask, and must end instead of waiting.",
            "Start the run where it can ask you; otherwise report it to the author.";
        /// Output while a question is open.
        OutputWhileWaiting = "output_while_waiting",
            "The connector went on writing while its question was open.",
            "After a question it must wait for the answer.",
            "Report it to the connector's author with the line.";
        /// The number of records does not match.
        CountMismatch = "count_mismatch",
            "The connector counted other records than arrived.",
            "Either a record was lost on the way, or the connector counts wrongly.",
            "Run it again; if it happens again, report it to the connector's author.";
        /// The exit code and the last message disagree.
        ExitDisagrees = "exit_disagrees",
            "The connector's exit code contradicts its last message.",
            "Code 0 means success, and any other code means that it did not succeed.",
            "Report it to the connector's author.";
        /// No DONE message.
        ExitWithoutDone = "exit_without_done",
            "The connector stopped without saying that it was done.",
            "It crashed or was killed, so nobody knows whether it had finished.",
            "Run it again to continue from the last saved slice; if it happens again, tell the connector's author.";
        /// The connection's own credential in data to be stored.
        CredentialInOutput = "credential_in_output",
            "The connector sent its own credential as data.",
            "Stored data can be read by others than you, and a credential must not be in it.",
            "Report it to the connector's author, and change the credential to be safe.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_place_field_stream_and_key() {
        let violation = Violation::new(ViolationCode::KeyOutOfResources)
            .at(7, 30)
            .in_field("key")
            .of_stream("mail")
            .of_key("a\u{1b}[2J");
        assert_eq!(
            violation.to_string(),
            "key_out_of_resources at line 7, byte 30, field key, stream \"mail\", key \"a\\u{1b}[2J\""
        );
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let violation = Violation::new(ViolationCode::BadJson).of_key(&"é".repeat(300));
        assert_eq!(violation.key.map(|key| key.len()), Some(NAME_BYTES_MAX + "…".len()));
    }

    #[test]
    fn codes_are_read_back() {
        for code in ViolationCode::ALL {
            assert_eq!(ViolationCode::from_code(code.code()), Some(*code));
        }
    }
}

//! Messages of both directions, read from a line and written as one.
//!
//! One enum per direction: a runtime cannot receive a START, and a connector cannot receive a RECORD. An unknown type
//! is a violation. DETAIL_COVERAGE is absent on purpose: it is read in blocks, see [`Decoder`](crate::Decoder).

use crate::json::lex;
use crate::json::scan::{FieldSpan, ScanError, Scanner};
use crate::json::view::{View, members_of_line};
use crate::messages::done::Done;
use crate::messages::fields::{Fault, Fields};
use crate::messages::gap::{DetailGap, DetailGapAttempted, DetailGapRecovered, GapsPageRequest};
use crate::messages::interaction::{Assistance, AssistanceStatus, Interaction, InteractionResponse};
use crate::messages::line_writer::LineWriter;
use crate::messages::progress::{Progress, SkipResult};
use crate::messages::record::{Record, State};
use crate::messages::start::{GapsPageResponse, Start};
use crate::words::violation::{Violation, ViolationCode};

/// Messages of a connector, except DETAIL_COVERAGE.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectorMessage<'a> {
    /// A record, or its deletion.
    Record(Record<'a>),
    /// The cursor of a stream.
    State(State<'a>),
    /// Progress for people.
    Progress(Progress),
    /// A skipped part.
    SkipResult(Box<SkipResult>),
    /// A known record that was not collected.
    DetailGap(Box<DetailGap>),
    /// A served gap was attempted.
    DetailGapAttempted(DetailGapAttempted),
    /// A served gap was closed.
    DetailGapRecovered(DetailGapRecovered),
    /// A request for the next page of gaps.
    GapsPageRequest(GapsPageRequest),
    /// A question that must be answered.
    Interaction(Interaction),
    /// A request for help that blocks nothing.
    Assistance(Assistance),
    /// The status of such a request.
    AssistanceStatus(AssistanceStatus),
    /// The end.
    Done(Done),
}

/// Messages of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeMessage {
    /// The request of a run.
    Start(Box<Start>),
    /// The next page of gaps.
    GapsPageResponse(GapsPageResponse),
    /// The answer to a question.
    InteractionResponse(InteractionResponse),
}

/// The type of the message that is read in blocks.
const DETAIL_COVERAGE: &[u8] = b"DETAIL_COVERAGE";

impl<'a> ConnectorMessage<'a> {
    /// Parses one complete line, without its line feed. Positions in a violation count it as line 1.
    ///
    /// # Errors
    ///
    /// The line is invalid. DETAIL_COVERAGE is an unknown type here.
    pub fn decode(line: &'a [u8]) -> Result<Self, Violation> {
        let mut scanner = Scanner::default();
        let text = scan_line(line, &mut scanner, 1)?;
        Self::read(text, scanner.fields(), 1)
    }

    /// Parses a scanned line.
    pub(crate) fn read(text: &'a str, spans: &[FieldSpan], line: u64) -> Result<Self, Violation> {
        let violation = |fault: Fault| name_stream(violation_of(fault, line), text, spans);
        let kind = message_type(text, spans).map_err(violation)?;
        // The hot path allocates no list of members.
        if kind == "RECORD" {
            return Record::read(text, spans).map(Self::Record).map_err(violation);
        }
        let members = members_of_line(text, spans);
        Self::read_fields(kind, Fields::nested(&members)).map_err(violation)
    }
}

/// Message types: parser, and type name for writing.
macro_rules! message_types {
    ([$($generics:tt)*] $name:ty, $fields:ty: $($variant:ident = $kind:literal $(, $read:path)?;)+) => {
        impl $($generics)* $name {
            fn read_fields(kind: &str, fields: $fields) -> Result<Self, Fault> {
                match kind {
                    $($( $kind => $read(fields).map(|message| Self::$variant(message.into())), )?)+
                    _ => Err(Fault { code: ViolationCode::UnknownType, field: "type", offset: 0 }),
                }
            }

            /// Writes the message as one line, with its line feed.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$variant(message) => message.write_fields(LineWriter::message(out, $kind)).end(), )+
                }
            }
        }
    };
}

message_types! {
    [<'a>] ConnectorMessage<'a>, Fields<'a, '_>:
    Record = "RECORD";
    State = "STATE", State::read;
    Progress = "PROGRESS", Progress::read_fields;
    SkipResult = "SKIP_RESULT", SkipResult::read_fields;
    DetailGap = "DETAIL_GAP", DetailGap::read;
    DetailGapAttempted = "DETAIL_GAP_ATTEMPTED", DetailGapAttempted::read_fields;
    DetailGapRecovered = "DETAIL_GAP_RECOVERED", DetailGapRecovered::read_fields;
    GapsPageRequest = "DETAIL_GAPS_PAGE_REQUEST", GapsPageRequest::read_fields;
    Interaction = "INTERACTION", Interaction::read_fields;
    Assistance = "ASSISTANCE", Assistance::read_fields;
    AssistanceStatus = "ASSISTANCE_STATUS", AssistanceStatus::read_fields;
    Done = "DONE", Done::read;
}

message_types! {
    [] RuntimeMessage, Fields<'_, '_>:
    Start = "START", Start::read_fields;
    GapsPageResponse = "DETAIL_GAPS_PAGE_RESPONSE", GapsPageResponse::read_fields;
    InteractionResponse = "INTERACTION_RESPONSE", InteractionResponse::read_fields;
}

impl RuntimeMessage {
    /// Parses one complete line, without its line feed. Positions in a violation count it as line 1.
    ///
    /// # Errors
    ///
    /// The line is invalid.
    pub fn decode(line: &[u8]) -> Result<Self, Violation> {
        let mut scanner = Scanner::default();
        let text = scan_line(line, &mut scanner, 1)?;
        let violation = |fault: Fault| violation_of(fault, 1);
        let members = members_of_line(text, scanner.fields());
        let kind = message_type(text, scanner.fields()).map_err(violation)?;
        Self::read_fields(kind, Fields::nested(&members)).map_err(violation)
    }
}

/// Checks that a line is one object in UTF-8, and finds its fields.
fn scan_line<'a>(line: &'a [u8], scanner: &mut Scanner, number: u64) -> Result<&'a str, Violation> {
    // White space in JSON, but the end of a line here: a body with one could not be written as a line.
    if let Some(offset) = lex::find_newline(line) {
        return Err(Violation::new(ViolationCode::BadJson).at(number, offset as u64));
    }
    match scanner.object(line) {
        Ok(_) => line_text(line, number),
        Err(error) => Err(scan_violation(line, error, scanner.fields(), number)),
    }
}

/// The text of a scanned line.
pub(crate) fn line_text(line: &[u8], number: u64) -> Result<&str, Violation> {
    std::str::from_utf8(line)
        .map_err(|error| Violation::new(ViolationCode::InvalidUtf8).at(number, error.valid_up_to() as u64))
}

/// The violation of a line. Invalid UTF-8 is invalid JSON too, and the first says more.
pub(crate) fn scan_violation(line: &[u8], error: ScanError, spans: &[FieldSpan], number: u64) -> Violation {
    let text = match line_text(line, number) {
        Ok(text) => text,
        Err(violation) => return violation,
    };
    let (code, offset) = match error {
        ScanError::Incomplete => (ViolationCode::BadJson, line.len()),
        ScanError::Fault { code, offset } => (code, offset),
    };
    // Fields before the fault may name the stream.
    name_stream(Violation::new(code).at(number, offset as u64), text, spans)
}

/// Whether the fields are those of a DETAIL_COVERAGE, checked before UTF-8.
pub(crate) fn is_detail_coverage(line: &[u8], spans: &[FieldSpan]) -> bool {
    let is_type = |span: &FieldSpan| {
        let key = &line[span.key.0..span.key.1];
        key == b"type" || (span.key_escaped && std::str::from_utf8(line).is_ok_and(|text| span.name(text) == "type"))
    };
    let value = spans.iter().find(|span| is_type(span)).map(|span| &line[span.value.0..span.value.1]);
    value.and_then(|value| value.strip_prefix(b"\"")?.strip_suffix(b"\"")) == Some(DETAIL_COVERAGE)
}

/// The type of a message. A type with escapes is unknown.
fn message_type<'a>(text: &'a str, spans: &[FieldSpan]) -> Result<&'a str, Fault> {
    let span = spans.iter().find(|span| span.name(text) == "type").ok_or_else(|| Fault::missing("type"))?;
    let view = View::new(text, span.value);
    let inside = view.text().strip_prefix('"').and_then(|inside| inside.strip_suffix('"'));
    inside.ok_or_else(|| Fault::malformed("type", view))
}

/// Adds the stream of a message, if readable.
pub(crate) fn name_stream(violation: Violation, text: &str, spans: &[FieldSpan]) -> Violation {
    let stream = spans.iter().find(|span| span.name(text) == "stream");
    match stream.and_then(|span| View::new(text, span.value).name()) {
        Some(stream) => violation.of_stream(&stream),
        None => violation,
    }
}

fn violation_of(fault: Fault, line: u64) -> Violation {
    Violation::new(fault.code).at(line, fault.offset as u64).in_field(fault.field)
}

//! The messages of both directions, read from a line and written as one.
//!
//! One enum per direction: a runtime cannot be handed a START, and a connector cannot be handed a
//! RECORD. A type that is not in the enum is a violation. DETAIL_COVERAGE is missing on purpose: it
//! is read in blocks, see [`Decoder`](crate::Decoder).

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

/// What a connector says, but for DETAIL_COVERAGE.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectorMessage<'a> {
    /// A record, or the news that one was deleted.
    Record(Record<'a>),
    /// How far a stream has come.
    State(State<'a>),
    /// News for people.
    Progress(Progress),
    /// Something that was left out.
    SkipResult(Box<SkipResult>),
    /// A record that is known and not here.
    DetailGap(Box<DetailGap>),
    /// A served gap was tried.
    DetailGapAttempted(DetailGapAttempted),
    /// A served gap was closed.
    DetailGapRecovered(DetailGapRecovered),
    /// The next page of gaps is wanted.
    GapsPageRequest(GapsPageRequest),
    /// A question that must be answered.
    Interaction(Interaction),
    /// A request for help that blocks nothing.
    Assistance(Assistance),
    /// What became of such a request.
    AssistanceStatus(AssistanceStatus),
    /// The end.
    Done(Done),
}

/// What the runtime says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeMessage {
    /// What to do.
    Start(Box<Start>),
    /// The next page of gaps.
    GapsPageResponse(GapsPageResponse),
    /// The answer to a question.
    InteractionResponse(InteractionResponse),
}

/// The type of the message that is read in blocks.
const DETAIL_COVERAGE: &[u8] = b"DETAIL_COVERAGE";

impl<'a> ConnectorMessage<'a> {
    /// Reads one complete line, without its line feed. Positions in a violation count it as line 1.
    ///
    /// # Errors
    ///
    /// What is wrong with it. DETAIL_COVERAGE is an unknown type here.
    pub fn decode(line: &'a [u8]) -> Result<Self, Violation> {
        let mut scanner = Scanner::default();
        let text = scan_line(line, &mut scanner, 1)?;
        Self::read(text, scanner.fields(), 1)
    }

    /// Reads a line that was scanned.
    pub(crate) fn read(text: &'a str, spans: &[FieldSpan], line: u64) -> Result<Self, Violation> {
        let violation = |fault: Fault| name_stream(violation_of(fault, line), text, spans);
        let kind = message_type(text, spans).map_err(violation)?;
        // The hot path: no list of members is made.
        if kind == "RECORD" {
            return Record::read(text, spans).map(Self::Record).map_err(violation);
        }
        let members = members_of_line(text, spans);
        Self::read_fields(kind, Fields::nested(&members)).map_err(violation)
    }
}

/// The types of messages: how each is read, and that it is written with its type.
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
    /// Reads one complete line, without its line feed. Positions in a violation count it as line 1.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn decode(line: &[u8]) -> Result<Self, Violation> {
        let mut scanner = Scanner::default();
        let text = scan_line(line, &mut scanner, 1)?;
        let violation = |fault: Fault| violation_of(fault, 1);
        let members = members_of_line(text, scanner.fields());
        let kind = message_type(text, scanner.fields()).map_err(violation)?;
        Self::read_fields(kind, Fields::nested(&members)).map_err(violation)
    }
}

/// Checks that a line is one object and text, and finds its fields.
fn scan_line<'a>(line: &'a [u8], scanner: &mut Scanner, number: u64) -> Result<&'a str, Violation> {
    // White space for JSON, and the end of a line for us: a body with one could not be written as a line.
    if let Some(offset) = lex::find_newline(line) {
        return Err(Violation::new(ViolationCode::BadJson).at(number, offset as u64));
    }
    match scanner.object(line) {
        Ok(_) => line_text(line, number),
        Err(error) => Err(scan_violation(line, error, scanner.fields(), number)),
    }
}

/// The text of a line that was scanned.
pub(crate) fn line_text(line: &[u8], number: u64) -> Result<&str, Violation> {
    std::str::from_utf8(line)
        .map_err(|error| Violation::new(ViolationCode::InvalidUtf8).at(number, error.valid_up_to() as u64))
}

/// What is wrong with a line. One that is no text is no JSON either, and the first says more.
pub(crate) fn scan_violation(line: &[u8], error: ScanError, spans: &[FieldSpan], number: u64) -> Violation {
    let text = match line_text(line, number) {
        Ok(text) => text,
        Err(violation) => return violation,
    };
    let (code, offset) = match error {
        ScanError::Incomplete => (ViolationCode::BadJson, line.len()),
        ScanError::Fault { code, offset } => (code, offset),
    };
    // What was read before the fault may tell whose it is.
    name_stream(Violation::new(code).at(number, offset as u64), text, spans)
}

/// Whether the fields are those of a DETAIL_COVERAGE, asked before it is known whether they are text.
pub(crate) fn is_detail_coverage(line: &[u8], spans: &[FieldSpan]) -> bool {
    let is_type = |span: &FieldSpan| {
        let key = &line[span.key.0..span.key.1];
        key == b"type" || (span.key_escaped && std::str::from_utf8(line).is_ok_and(|text| span.name(text) == "type"))
    };
    let value = spans.iter().find(|span| is_type(span)).map(|span| &line[span.value.0..span.value.1]);
    value.and_then(|value| value.strip_prefix(b"\"")?.strip_suffix(b"\"")) == Some(DETAIL_COVERAGE)
}

/// The type of a message. It is a plain word, so one with escapes is none of ours.
fn message_type<'a>(text: &'a str, spans: &[FieldSpan]) -> Result<&'a str, Fault> {
    let span = spans.iter().find(|span| span.name(text) == "type").ok_or_else(|| Fault::missing("type"))?;
    let view = View::new(text, span.value);
    let inside = view.text().strip_prefix('"').and_then(|inside| inside.strip_suffix('"'));
    inside.ok_or_else(|| Fault::malformed("type", view))
}

/// Adds the stream that a message names, if it can be read.
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

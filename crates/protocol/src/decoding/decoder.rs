//! Decodes a connector's output: bytes in, events out, with limits.
//!
//! Why it is fed and does not read: the owner of the pipe decides when to read, waits, and stops when the store is
//! slow. The first violation is the last event, because nothing after it can be trusted. It holds at most one line or
//! one block of keys.

use crate::decoding::coverage_reader::{CoverageReader, Step as CoverageStep, TOKEN_BYTES_MAX};
use crate::decoding::framer::{ANNOUNCE_BYTES, Frame, Framer, LinePlace};
use crate::json::scan::Scanner;
use crate::messages::coverage::{CoverageField, CoverageReport, KeyBlock};
use crate::messages::message::{self, ConnectorMessage};
use crate::words::violation::{Violation, ViolationCode};

/// Memory limits for one connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum line length, without the line feed.
    pub line_bytes_max: usize,
    /// Maximum length of a DETAIL_COVERAGE. It is read in blocks, so this limits time, not memory. Values below 64
    /// KiB count as 64 KiB.
    pub coverage_bytes_max: u64,
}

impl Limits {
    /// Default maximum line length. The largest known records are mails with attachments of about 10 MB.
    pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Default maximum length of a coverage report: ten million keys of 20 bytes.
    pub const COVERAGE_BYTES_MAX: u64 = 256 * 1024 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self { line_bytes_max: Self::LINE_BYTES_MAX, coverage_bytes_max: Self::COVERAGE_BYTES_MAX }
    }
}

/// An event in a connector's output. Borrowed: use it before asking for the next one.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    /// A message.
    Message {
        /// The line, counted from 1.
        line: u64,
        /// The message.
        message: ConnectorMessage<'a>,
    },
    /// A block of keys of a DETAIL_COVERAGE. They count once its end has arrived.
    CoverageKeys {
        /// The line, counted from 1.
        line: u64,
        /// The list.
        field: CoverageField,
        /// The keys, in order. An empty list has no event.
        keys: &'a KeyBlock,
    },
    /// The end of a DETAIL_COVERAGE. The preceding blocks of the same line are its keys.
    CoverageEnd {
        /// The line, counted from 1.
        line: u64,
        /// Everything except the keys.
        report: CoverageReport,
    },
    /// A violation of the contract. Nothing follows it.
    Violation(Violation),
}

/// Decodes the output of one connector.
///
/// Feed it data from the pipe, take all events, feed the next. At the end of the pipe, call [`finish`](Self::finish).
#[derive(Debug)]
pub struct Decoder {
    framer: Framer,
    scanner: Scanner,
    coverage: Option<Coverage>,
    limits: Limits,
    failed: bool,
    /// Not all events of the last data were taken.
    undrained: bool,
    /// Data was fed before all events were taken. Events are lost, so decoding stops.
    lost: bool,
}

#[derive(Debug)]
struct Coverage {
    reader: Box<CoverageReader>,
    line: u64,
    source: Source,
}

/// Source of the bytes of a coverage report.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A complete line, and the number of bytes read.
    Line(LinePlace, usize),
    /// A line that is still arriving.
    Pieces,
}

/// Result of [`Decoder::advance`], without borrows.
enum Step {
    Line(LinePlace),
    CoverageKeys,
    CoverageEnd(u64, CoverageReport),
    Violation(Violation),
}

impl Decoder {
    /// A decoder for one connector.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let coverage_bytes_max = limits.coverage_bytes_max.max(ANNOUNCE_BYTES as u64 + 1);
        Self {
            framer: Framer::new(limits.line_bytes_max, coverage_bytes_max),
            scanner: Scanner::default(),
            coverage: None,
            limits,
            failed: false,
            undrained: false,
            lost: false,
        }
    }

    /// Feeds data from the pipe. Take all events before feeding more: the data is not kept, so untaken events are
    /// lost, and the decoder then reports that instead of continuing.
    #[must_use = "the events must be taken"]
    pub const fn feed<'d, 'f>(&'d mut self, bytes: &'f [u8]) -> Feed<'d, 'f> {
        self.lost = self.lost || self.undrained;
        self.undrained = !bytes.is_empty();
        Feed { decoder: self, bytes, at: 0 }
    }

    /// Marks the end of the output. A last line without its line feed is never a message.
    ///
    /// # Errors
    ///
    /// [`ViolationCode::IncompleteLine`], unless there was a violation before.
    pub fn finish(&mut self) -> Result<(), Violation> {
        let all_taken = !self.undrained && !self.lost && !self.framer.is_inside_a_line();
        if self.failed || all_taken {
            return Ok(());
        }
        self.failed = true;
        let violation = Violation::new(ViolationCode::IncompleteLine).at(self.framer.line(), 0);
        Err(match &self.coverage {
            Some(coverage) => name_known_stream(violation, &coverage.reader),
            None => self.name_cut_stream(violation),
        })
    }

    fn advance(&mut self, fed: &[u8], at: &mut usize) -> Option<Step> {
        loop {
            if self.failed {
                return None;
            }
            if self.lost {
                let violation = Violation::new(ViolationCode::IncompleteLine).at(self.framer.line(), 0);
                return Some(self.fail(violation));
            }
            if self.coverage.is_some() {
                match self.advance_coverage(fed, at) {
                    Some(Ok(step)) => return Some(step),
                    Some(Err(violation)) => return Some(self.fail(violation)),
                    None if self.coverage.is_some() => return None,
                    None => continue,
                }
            }
            match self.framer.next(fed, at)? {
                Frame::Line(place) => match self.open_line(fed, place) {
                    Ok(true) => return Some(Step::Line(place)),
                    Ok(false) => {}
                    Err(violation) => return Some(self.fail(violation)),
                },
                Frame::Long => self.open_long_line(),
                // Pieces come only while a coverage report is open.
                Frame::Piece | Frame::LastPiece => {}
                Frame::TooLong => {
                    let offset = self.limits.line_bytes_max as u64;
                    let violation = Violation::new(ViolationCode::LineTooLong).at(self.framer.line(), offset);
                    let violation = self.name_cut_stream(violation);
                    return Some(self.fail(violation));
                }
            }
        }
    }

    fn fail(&mut self, violation: Violation) -> Step {
        self.failed = true;
        self.coverage = None;
        Step::Violation(violation)
    }

    /// Opens a complete line; true if it is a message to read as a whole.
    fn open_line(&mut self, fed: &[u8], place: LinePlace) -> Result<bool, Violation> {
        let line = self.framer.line();
        let bytes = without_return(self.framer.bytes(fed, place));
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        if let Err(error) = self.scanner.object(bytes) {
            return Err(message::scan_violation(bytes, error, self.scanner.fields(), line));
        }
        if !message::is_detail_coverage(bytes, self.scanner.fields()) {
            return Ok(true);
        }
        self.open_coverage(Source::Line(place, 0));
        Ok(false)
    }

    /// Opens a line that is already long: a coverage report is read while it arrives.
    fn open_long_line(&mut self) {
        let beginning = self.framer.gathered();
        let beginning = &beginning[..beginning.len().min(ANNOUNCE_BYTES)];
        let fields = self.scanner.complete_fields(beginning);
        if !message::is_detail_coverage(beginning, fields) {
            return;
        }
        self.open_coverage(Source::Pieces);
        if let Some(coverage) = &mut self.coverage {
            coverage.reader.fill(self.framer.gathered());
        }
        self.framer.hand_out_pieces();
    }

    fn open_coverage(&mut self, source: Source) {
        let reader = Box::new(CoverageReader::new(self.limits.line_bytes_max.min(TOKEN_BYTES_MAX)));
        self.coverage = Some(Coverage { reader, line: self.framer.line(), source });
    }

    /// Continues a coverage report; `None` when it needs more data.
    fn advance_coverage(&mut self, fed: &[u8], at: &mut usize) -> Option<Result<Step, Violation>> {
        loop {
            let coverage = self.coverage.as_mut()?;
            let line = coverage.line;
            match coverage.reader.step() {
                CoverageStep::Block => return Some(Ok(Step::CoverageKeys)),
                CoverageStep::End => {
                    let report = self.coverage.take()?.reader.into_report();
                    return Some(Ok(Step::CoverageEnd(line, report)));
                }
                CoverageStep::Fault(fault) => {
                    let violation =
                        Violation { field: fault.field, ..Violation::new(fault.code).at(line, fault.offset) };
                    return Some(Err(name_known_stream(violation, &coverage.reader)));
                }
                CoverageStep::NeedMore => {}
            }
            match coverage.source {
                Source::Line(place, read) => {
                    let bytes = self.framer.bytes(fed, place);
                    let piece = &bytes[read..bytes.len().min(read + ANNOUNCE_BYTES)];
                    coverage.source = Source::Line(place, read + piece.len());
                    if piece.is_empty() {
                        coverage.reader.end_of_line();
                    }
                    coverage.reader.fill(piece);
                }
                Source::Pieces => match self.framer.next(fed, at)? {
                    Frame::Piece => coverage.reader.fill(self.framer.gathered()),
                    Frame::LastPiece => {
                        coverage.reader.fill(self.framer.gathered());
                        coverage.reader.end_of_line();
                    }
                    Frame::Line(_) | Frame::Long | Frame::TooLong => {
                        let violation = Violation::new(ViolationCode::CoverageTooLong);
                        let violation = violation.at(line, self.limits.coverage_bytes_max);
                        return Some(Err(name_known_stream(violation, &coverage.reader)));
                    }
                },
            }
        }
    }

    /// Adds the stream named at the beginning of a cut line.
    fn name_cut_stream(&mut self, violation: Violation) -> Violation {
        let beginning = self.framer.gathered();
        let beginning = &beginning[..beginning.len().min(ANNOUNCE_BYTES)];
        match valid_beginning(beginning) {
            Some(text) => message::name_stream(violation, text, self.scanner.complete_fields(text.as_bytes())),
            None => violation,
        }
    }
}

/// Iterates over the events of the fed data.
#[derive(Debug)]
pub struct Feed<'d, 'f> {
    decoder: &'d mut Decoder,
    bytes: &'f [u8],
    at: usize,
}

impl Feed<'_, '_> {
    /// The next event; `None` when the data is used up, and always after a violation.
    #[expect(
        clippy::should_implement_trait,
        reason = "an event borrows from the decoder, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> Option<Event<'_>> {
        let Some(step) = self.decoder.advance(self.bytes, &mut self.at) else {
            self.decoder.undrained = false;
            return None;
        };
        Some(match step {
            Step::Line(place) => self.message(place),
            Step::CoverageKeys => {
                let coverage = self.decoder.coverage.as_ref()?;
                let (field, keys) = coverage.reader.block();
                Event::CoverageKeys { line: coverage.line, field, keys }
            }
            Step::CoverageEnd(line, report) => Event::CoverageEnd { line, report },
            Step::Violation(violation) => Event::Violation(violation),
        })
    }

    fn message(&mut self, place: LinePlace) -> Event<'_> {
        let Decoder { framer, scanner, failed, .. } = &mut *self.decoder;
        let line = framer.line();
        let bytes = without_return(framer.bytes(self.bytes, place));
        let message = message::line_text(bytes, line);
        match message.and_then(|text| ConnectorMessage::read(text, scanner.fields(), line)) {
            Ok(message) => Event::Message { line, message },
            Err(violation) => {
                *failed = true;
                Event::Violation(violation)
            }
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The valid text of a beginning that may be cut within a character.
fn valid_beginning(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}

fn name_known_stream(violation: Violation, reader: &CoverageReader) -> Violation {
    match reader.stream() {
        Some(stream) => violation.of_stream(stream),
        None => violation,
    }
}

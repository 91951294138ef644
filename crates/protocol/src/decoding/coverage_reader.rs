//! Streaming reader of DETAIL_COVERAGE: returns its keys in blocks.
//!
//! Why a separate reader: a million keys are 25 MB of text, and no part of the runtime may hold a run's keys. This
//! holds the current token and one block. Block boundaries depend on the keys only, and the framer's pieces have one
//! size, so any cut of the input gives the same events.

use crate::json::json_string::{self, LoneSurrogate};
use crate::json::lex;
use crate::json::scan::{ScanError, Scanner, fault_at};
use crate::json::view::View;
use crate::messages::coverage::{CoverageField, CoverageReport, KeyBlock};
use crate::messages::record::RecordKey;
use crate::words::violation::ViolationCode;

/// A block ends with this many keys.
const BLOCK_KEYS_MAX: usize = 1024;
/// A block also ends when its keys have this many bytes; one long key may exceed it.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of all field names together. The contract's ten have 120 bytes.
const NAMES_BYTES_MAX: usize = 64 * 1024;

/// Maximum length of one key or scalar. Twice the longest key in tests; a key is copied into its block, so this also
/// limits the memory of a report.
pub(crate) const TOKEN_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are needed.
    NeedMore,
    /// A block is ready.
    Block,
    /// The message is complete.
    End,
    /// The message is invalid.
    Fault(CoverageFault),
}

/// The problem and its offset in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoverageFault {
    pub(crate) code: ViolationCode,
    pub(crate) field: Option<&'static str>,
    pub(crate) offset: u64,
}

#[derive(Debug)]
pub(crate) struct CoverageReader {
    buffer: Vec<u8>,
    /// The next byte of the buffer to read.
    at: usize,
    /// Bytes of the line before the buffer.
    before: u64,
    /// No more bytes follow.
    complete: bool,
    /// Retry when this many bytes are unread.
    wanted: usize,
    token_bytes_max: usize,
    place: Expecting,
    names: Vec<String>,
    lists: Vec<CoverageField>,
    block: KeyBlock,
    block_field: CoverageField,
    block_taken: bool,
    report: CoverageReport,
    scanner: Scanner,
}

/// Position in the message: the tokens that may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    Open,
    FirstName,
    Name,
    Value(Field),
    FirstKey(CoverageField),
    Key(CoverageField),
    AfterKey(CoverageField),
    AfterValue,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Stream,
    StateStream,
    Considered,
    Covered,
    ReferenceOnly,
    Keys(CoverageField),
    Other,
}

/// Success, or the step to return.
type Outcome = Result<(), Step>;

impl CoverageReader {
    /// A reader with this maximum token length.
    pub(crate) fn new(token_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            at: 0,
            before: 0,
            complete: false,
            wanted: 0,
            token_bytes_max,
            place: Expecting::Open,
            names: Vec::new(),
            lists: Vec::new(),
            block: KeyBlock::default(),
            block_field: CoverageField::RequiredKeys,
            block_taken: false,
            report: CoverageReport::default(),
            scanner: Scanner::default(),
        }
    }

    /// Adds the next bytes of the line.
    pub(crate) fn fill(&mut self, piece: &[u8]) {
        self.before += self.at as u64;
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// Marks the end of the line.
    pub(crate) fn end_of_line(&mut self) {
        self.complete = true;
    }

    /// The block that is ready.
    pub(crate) const fn block(&self) -> (CoverageField, &KeyBlock) {
        (self.block_field, &self.block)
    }

    /// The report of a complete message.
    pub(crate) fn into_report(self) -> CoverageReport {
        self.report
    }

    /// The stream, if already read.
    pub(crate) fn stream(&self) -> Option<&str> {
        Some(self.report.stream.as_str()).filter(|stream| !stream.is_empty())
    }

    /// Continues reading.
    pub(crate) fn step(&mut self) -> Step {
        if self.block_taken {
            self.block.clear();
            self.block_taken = false;
        }
        loop {
            if let Err(step) = self.advance() {
                self.block_taken = step == Step::Block;
                return step;
            }
        }
    }

    /// Reads one token.
    fn advance(&mut self) -> Outcome {
        if self.place == Expecting::Closed {
            return Err(self.closed());
        }
        self.skip_whitespace();
        if !self.complete && self.buffer.len() - self.at < self.wanted.max(1) {
            return Err(Step::NeedMore);
        }
        self.wanted = 0;
        let byte = self.buffer.get(self.at).copied();
        match (self.place, byte) {
            (Expecting::Open, Some(b'{')) => self.go(Expecting::FirstName),
            (Expecting::FirstName | Expecting::AfterValue, Some(b'}')) => self.go(Expecting::Closed),
            (Expecting::FirstName | Expecting::Name, Some(b'"')) => self.name(),
            (Expecting::Value(Field::Keys(field)), Some(b'[')) => self.go(Expecting::FirstKey(field)),
            (Expecting::Value(field), Some(_)) => self.value(field),
            (Expecting::FirstKey(field) | Expecting::AfterKey(field), Some(b']')) => self.close_list(field),
            (Expecting::FirstKey(field) | Expecting::Key(field), Some(_)) => self.key(field),
            (Expecting::AfterKey(field), Some(b',')) => self.go(Expecting::Key(field)),
            (Expecting::AfterValue, Some(b',')) => self.go(Expecting::Name),
            (_, Some(_)) => self.scan_fault(fault_at(&self.buffer, self.at)),
            (_, None) => self.scan_fault(ScanError::Incomplete),
        }
    }

    fn go(&mut self, place: Expecting) -> Outcome {
        self.at += 1;
        self.place = place;
        Ok(())
    }

    /// Reads a field name and its colon.
    fn name(&mut self) -> Outcome {
        let (start, end) = self.token()?;
        let name = self.text("type", start + 1, end - 1, LoneSurrogate::Replace)?;
        // If the colon has not arrived yet, the name is read again.
        let colon = lex::skip_whitespace(&self.buffer, end);
        match self.buffer.get(colon) {
            Some(b':') => {}
            Some(_) => return self.scan_fault(fault_at(&self.buffer, colon)),
            None => return self.need_more(),
        }
        if self.names.contains(&name) {
            return self.fault(ViolationCode::DuplicateKey, None, start);
        }
        let field = match name.as_str() {
            "stream" => Field::Stream,
            "state_stream" => Field::StateStream,
            "considered" => Field::Considered,
            "covered" => Field::Covered,
            "reference_only" => Field::ReferenceOnly,
            other => CoverageField::from_code(other).map_or(Field::Other, Field::Keys),
        };
        self.names.push(name);
        if self.names.iter().map(|name| name.len() + 1).sum::<usize>() > NAMES_BYTES_MAX {
            return self.fault(ViolationCode::TooManyKeys, None, start);
        }
        self.at = colon + 1;
        self.place = Expecting::Value(field);
        Ok(())
    }

    /// Reads a value that is not a list of keys.
    fn value(&mut self, field: Field) -> Outcome {
        let (start, end) = self.token()?;
        let view = View::whole(self.utf8(start, end)?);
        let lone = view.is_string() && view.name().is_none();
        let name =
            view.name().filter(|name| !name.is_empty() && !name.contains('\0')).map(std::borrow::Cow::into_owned);
        let (count, null, flag) = (view.count(), view.is_null(), view.flag());
        let bad =
            |field| (if lone { ViolationCode::LoneSurrogate } else { ViolationCode::MalformedField }, Some(field));
        let fault = match field {
            Field::Stream if name.is_none() => Some(bad("stream")),
            Field::StateStream if name.is_none() => Some(bad("state_stream")),
            Field::Considered if count.is_none() && !null => Some(bad("considered")),
            Field::Covered if count.is_none() && !null => Some(bad("covered")),
            Field::ReferenceOnly if flag != Some(true) => Some(bad("reference_only")),
            // `null` counts as an absent list.
            Field::Keys(field) if !null => Some(bad(field.code())),
            _ => None,
        };
        if let Some((code, field)) = fault {
            return self.fault(code, field, start);
        }
        match field {
            Field::Stream => self.report.stream = name.unwrap_or_default(),
            Field::StateStream => self.report.state_stream = name.unwrap_or_default(),
            Field::Considered => self.report.considered = count,
            Field::Covered => self.report.covered = count,
            Field::ReferenceOnly | Field::Keys(_) | Field::Other => {}
        }
        self.at = end;
        self.place = Expecting::AfterValue;
        Ok(())
    }

    /// One key of a list.
    fn key(&mut self, field: CoverageField) -> Outcome {
        let (start, end) = self.token()?;
        match self.buffer[start] {
            b'"' => {
                let key = self.text(field.code(), start + 1, end - 1, LoneSurrogate::Refuse)?;
                if key.is_empty() || key.contains('\0') {
                    return self.fault(ViolationCode::MalformedField, Some(field.code()), start);
                }
                self.block.push(&key);
            }
            b'-' | b'0'..=b'9' => {
                let key = self.utf8(start, end)?.to_owned();
                self.block.push(&key);
            }
            b'[' => {
                let key = self.compound_key(field, start, end)?;
                self.block.push(&key);
            }
            _ => return self.fault(ViolationCode::MalformedField, Some(field.code()), start),
        }
        self.at = end;
        self.place = Expecting::AfterKey(field);
        *self.report.count_mut(field) += 1;
        self.block_field = field;
        if self.block.len() >= BLOCK_KEYS_MAX || self.block.text_len() >= BLOCK_BYTES_MAX {
            return Err(Step::Block);
        }
        Ok(())
    }

    /// A compound key as minified JSON.
    fn compound_key(&self, field: CoverageField, start: usize, end: usize) -> Result<String, Step> {
        let malformed = || self.fault(ViolationCode::MalformedField, Some(field.code()), start).err();
        let parts = View::whole(self.utf8(start, end)?).elements().unwrap_or_default();
        let names = parts.iter().map(|part| part.name()).collect::<Option<Vec<_>>>();
        let names = names
            .filter(|names| !names.is_empty() && names.iter().all(|name| !name.is_empty() && !name.contains('\0')));
        let names = names.ok_or_else(|| malformed().unwrap_or(Step::NeedMore))?;
        Ok(RecordKey::Compound(names).canonical().into_owned())
    }

    fn close_list(&mut self, field: CoverageField) -> Outcome {
        self.at += 1;
        self.place = Expecting::AfterValue;
        self.lists.push(field);
        self.block_field = field;
        if self.block.is_empty() { Ok(()) } else { Err(Step::Block) }
    }

    /// After the closing brace: only white space may follow, and all required fields must be present.
    fn closed(&mut self) -> Step {
        self.skip_whitespace();
        if self.at < self.buffer.len() {
            return self.scan_fault(fault_at(&self.buffer, self.at)).err().unwrap_or(Step::NeedMore);
        }
        if !self.complete {
            return Step::NeedMore;
        }
        let names = ["stream", "state_stream", "reference_only"].into_iter();
        let lists = [CoverageField::RequiredKeys, CoverageField::HydratedKeys].into_iter();
        let missing = names
            .filter(|name| !self.names.iter().any(|seen| seen == name))
            .chain(lists.filter(|list| !self.lists.contains(list)).map(CoverageField::code))
            .next();
        match missing {
            Some(name) => self.fault(ViolationCode::MissingField, Some(name), self.at).err().unwrap_or(Step::End),
            None => Step::End,
        }
    }

    /// The scalar, array or object that begins here: one token for this reader.
    fn token(&mut self) -> Result<(usize, usize), Step> {
        let start = self.at;
        let end = self.scanner.value(&self.buffer, start);
        // The result must not depend on how much of an overlong token has arrived.
        let limit = start.saturating_add(self.token_bytes_max);
        let too_long = match end {
            Ok(end) => end > limit,
            Err(ScanError::Fault { offset, .. }) => offset >= limit,
            Err(ScanError::Incomplete) => self.buffer.len() > limit,
        };
        if too_long {
            self.fault(ViolationCode::LineTooLong, None, start)?;
        }
        match end {
            // A number at the end of the buffer may continue.
            Ok(end) if end == self.buffer.len() && !self.complete => self.need_more().map(|()| (start, end)),
            Ok(end) => Ok((start, end)),
            Err(error) => self.scan_fault(error).map(|()| (start, start)),
        }
    }

    fn skip_whitespace(&mut self) {
        self.at = lex::skip_whitespace(&self.buffer, self.at);
    }

    /// Waits for twice as much data, so that a long token is not scanned once per piece.
    fn need_more(&mut self) -> Outcome {
        if self.complete {
            return self.fault(ViolationCode::BadJson, None, self.buffer.len());
        }
        let unread = self.buffer.len() - self.at;
        self.wanted = unread.saturating_mul(2).min(self.token_bytes_max.saturating_add(1)).max(unread + 1);
        Err(Step::NeedMore)
    }

    fn scan_fault(&mut self, error: ScanError) -> Outcome {
        match error {
            ScanError::Incomplete => self.need_more(),
            ScanError::Fault { code, offset } => self.fault(code, None, offset),
        }
    }

    fn utf8(&self, start: usize, end: usize) -> Result<&str, Step> {
        std::str::from_utf8(&self.buffer[start..end]).map_err(|error| {
            let offset = self.before + (start + error.valid_up_to()) as u64;
            Step::Fault(CoverageFault { code: ViolationCode::InvalidUtf8, field: None, offset })
        })
    }

    fn text(&self, field: &'static str, start: usize, end: usize, lone: LoneSurrogate) -> Result<String, Step> {
        json_string::decode(self.utf8(start, end)?, lone).map(std::borrow::Cow::into_owned).ok_or_else(|| {
            let offset = self.before + start as u64;
            Step::Fault(CoverageFault { code: ViolationCode::LoneSurrogate, field: Some(field), offset })
        })
    }

    fn fault(&self, code: ViolationCode, field: Option<&'static str>, at: usize) -> Outcome {
        Err(Step::Fault(CoverageFault { code, field, offset: self.before + at as u64 }))
    }
}

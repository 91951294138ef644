//! One pass over a complete JSON text: checks it and finds the fields of the outer object.
//!
//! Why our own pass: the runtime needs five answers about each line (grammar, depth, duplicate keys at every depth,
//! position of each field, position of the first fault). A library needs three recursive passes and rewrites numbers.
//! This one holds positions only and never interprets a value.

use crate::json::key_ledger::{Entry, KeyLedger};
use crate::json::lex::{self, LexError, StringToken};
use crate::words::violation::ViolationCode;

/// Maximum nesting of a message. `serde_json` refuses a 128th level, and a body is one level inside its message: so
/// other programs can read everything that passes here.
pub(crate) const DEPTH_MAX: usize = 128;

/// Position of one field in the text of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSpan {
    /// The key, without its quotes.
    pub(crate) key: (usize, usize),
    pub(crate) key_escaped: bool,
    pub(crate) value: (usize, usize),
}

/// Why a scan stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// The text ends too early.
    Incomplete,
    /// The text is invalid at this offset.
    Fault { code: ViolationCode, offset: usize },
}

/// Lists reused between texts, so that a line allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    ledger: KeyLedger,
    frames: Vec<Frame>,
    fields: Vec<FieldSpan>,
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    /// Its keys begin at this mark of the ledger.
    Object(usize),
    Array,
}

impl Scanner {
    /// Scans a text that must be one object.
    pub(crate) fn object(&mut self, bytes: &[u8]) -> Result<&[FieldSpan], ScanError> {
        let end = self.outer_object(bytes)?;
        let rest = lex::skip_whitespace(bytes, end);
        if rest < bytes.len() { Err(fault_at(bytes, rest)) } else { Ok(&self.fields) }
    }

    /// Scans as far as possible and returns the complete fields.
    pub(crate) fn complete_fields(&mut self, bytes: &[u8]) -> &[FieldSpan] {
        // The error does not matter: the text is cut.
        let _end = self.outer_object(bytes);
        &self.fields
    }

    /// The fields of the last scan.
    pub(crate) fn fields(&self) -> &[FieldSpan] {
        &self.fields
    }

    /// One past the value of any kind at `start`.
    pub(crate) fn value(&mut self, bytes: &[u8], start: usize) -> Result<usize, ScanError> {
        self.clear();
        self.nested_value(bytes, start)
    }

    fn clear(&mut self) {
        self.ledger.clear();
        self.frames.clear();
        self.fields.clear();
    }

    fn outer_object(&mut self, bytes: &[u8]) -> Result<usize, ScanError> {
        self.clear();
        let start = lex::skip_whitespace(bytes, 0);
        match bytes.get(start) {
            Some(b'{') => {}
            Some(b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.nested_value(bytes, start)?;
                return Err(ScanError::Fault { code: ViolationCode::NotAnObject, offset: start });
            }
            _ => return Err(fault_at(bytes, start)),
        }
        self.frames.push(Frame::Object(0));
        let mut at = lex::skip_whitespace(bytes, start + 1);
        if bytes.get(at) == Some(&b'}') {
            return Ok(at + 1);
        }
        loop {
            let key = at;
            let (colon, token) = self.key(bytes, key, 0)?;
            let begin = lex::skip_whitespace(bytes, colon + 1);
            let end = self.nested_value(bytes, begin)?;
            let key = (key + 1, token.end - 1);
            self.fields.push(FieldSpan { key, key_escaped: token.escaped, value: (begin, end) });
            at = lex::skip_whitespace(bytes, end);
            match bytes.get(at) {
                Some(b',') => at = lex::skip_whitespace(bytes, at + 1),
                Some(b'}') => {
                    self.close_object(bytes, 0)?;
                    return Ok(at + 1);
                }
                _ => return Err(fault_at(bytes, at)),
            }
        }
    }

    /// A value inside the open frames. Not recursive: depth costs a frame, not stack.
    fn nested_value(&mut self, bytes: &[u8], start: usize) -> Result<usize, ScanError> {
        let outer = self.frames.len();
        let mut at = start;
        loop {
            at = lex::skip_whitespace(bytes, at);
            at = match bytes.get(at) {
                Some(b'{') => {
                    let mark = self.ledger.mark();
                    self.open(Frame::Object(mark), at)?;
                    at = lex::skip_whitespace(bytes, at + 1);
                    if bytes.get(at) != Some(&b'}') {
                        at = self.key(bytes, at, mark)?.0 + 1;
                        continue;
                    }
                    self.frames.pop();
                    at + 1
                }
                Some(b'[') => {
                    self.open(Frame::Array, at)?;
                    at = lex::skip_whitespace(bytes, at + 1);
                    if bytes.get(at) != Some(&b']') {
                        continue;
                    }
                    self.frames.pop();
                    at + 1
                }
                _ => lex::scalar(bytes, at).map_err(|error| lex_fault(bytes, error))?,
            };
            match self.climb(bytes, at, outer)? {
                Next::Value(next) => at = next,
                Next::Ended(end) => return Ok(end),
            }
        }
    }

    /// After a value: closes frames, until the next value or the end of the outermost one.
    fn climb(&mut self, bytes: &[u8], mut at: usize, outer: usize) -> Result<Next, ScanError> {
        while self.frames.len() > outer {
            at = lex::skip_whitespace(bytes, at);
            match (self.frames.last(), bytes.get(at)) {
                (Some(Frame::Array), Some(b',')) => return Ok(Next::Value(at + 1)),
                (Some(&Frame::Object(mark)), Some(b',')) => {
                    let key = lex::skip_whitespace(bytes, at + 1);
                    return Ok(Next::Value(self.key(bytes, key, mark)?.0 + 1));
                }
                (Some(Frame::Array), Some(b']')) => {}
                (Some(&Frame::Object(mark)), Some(b'}')) => self.close_object(bytes, mark)?,
                _ => return Err(fault_at(bytes, at)),
            }
            self.frames.pop();
            at += 1;
        }
        Ok(Next::Ended(at))
    }

    /// The key at `at`; returns the offset of its colon, and the key.
    fn key(&mut self, bytes: &[u8], at: usize, mark: usize) -> Result<(usize, StringToken), ScanError> {
        if bytes.get(at) != Some(&b'"') {
            return Err(fault_at(bytes, at));
        }
        let token = lex::string(bytes, at).map_err(|error| lex_fault(bytes, error))?;
        match self.ledger.enter(bytes, mark, at, token.end, token.escaped) {
            Entry::New => {}
            Entry::Duplicate => return Err(ScanError::Fault { code: ViolationCode::DuplicateKey, offset: at }),
            Entry::Full => return Err(ScanError::Fault { code: ViolationCode::TooManyKeys, offset: at }),
        }
        let colon = lex::skip_whitespace(bytes, token.end);
        if bytes.get(colon) != Some(&b':') {
            return Err(fault_at(bytes, colon));
        }
        Ok((colon, token))
    }

    fn open(&mut self, frame: Frame, at: usize) -> Result<(), ScanError> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(ScanError::Fault { code: ViolationCode::TooDeep, offset: at });
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close_object(&mut self, bytes: &[u8], mark: usize) -> Result<(), ScanError> {
        match self.ledger.close(bytes, mark) {
            Some(offset) => Err(ScanError::Fault { code: ViolationCode::DuplicateKey, offset }),
            None => Ok(()),
        }
    }
}

enum Next {
    Value(usize),
    Ended(usize),
}

/// The fault at an unexpected byte.
pub(crate) fn fault_at(bytes: &[u8], offset: usize) -> ScanError {
    match bytes.get(offset) {
        None => ScanError::Incomplete,
        Some(0) => ScanError::Fault { code: ViolationCode::NulByte, offset },
        Some(_) => ScanError::Fault { code: ViolationCode::BadJson, offset },
    }
}

pub(crate) fn lex_fault(bytes: &[u8], error: LexError) -> ScanError {
    match error {
        LexError::Incomplete => ScanError::Incomplete,
        LexError::Invalid(offset) => fault_at(bytes, offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str) -> Result<Vec<(String, String)>, ScanError> {
        let mut scanner = Scanner::default();
        let fields = scanner.object(text.as_bytes())?;
        Ok(fields
            .iter()
            .map(|field| (text[field.key.0..field.key.1].to_owned(), text[field.value.0..field.value.1].to_owned()))
            .collect())
    }

    fn code(text: &str) -> Option<(ViolationCode, usize)> {
        match scan(text) {
            Err(ScanError::Fault { code, offset }) => Some((code, offset)),
            _ => None,
        }
    }

    #[test]
    fn fields_are_found_where_they_stand() {
        let fields = scan(r#" {"a" : [1, {"a":2}] ,"b\"":"x","c":-0.0e1} "#).unwrap();
        let expected = [("a", r#"[1, {"a":2}]"#), (r#"b\""#, "\"x\""), ("c", "-0.0e1")];
        assert_eq!(fields, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(scan("{}"), Ok(Vec::new()));
        assert_eq!(scan(r#"{"":{}}"#), Ok(vec![(String::new(), "{}".to_owned())]));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        use ViolationCode::{BadJson, DuplicateKey, NotAnObject, NulByte};
        for (text, expected) in [
            (r#"{"a":1,"a":2}"#, (DuplicateKey, 7)),
            (r#"{"a":{"b":1,"\u0062":2}}"#, (DuplicateKey, 12)),
            (r#"{"a":[{"b":1},{"b":2}],"c":[{"d":1,"d":2}]}"#, (DuplicateKey, 35)),
            ("[1]", (NotAnObject, 0)),
            ("17", (NotAnObject, 0)),
            ("{\"a\":\"\0\"}", (NulByte, 6)),
            ("{\"a\":1}\0", (NulByte, 7)),
            (r#"{"a":1}{"b":2}"#, (BadJson, 7)),
            (r#"{"a":01}"#, (BadJson, 6)),
            (r#"{"a":1,}"#, (BadJson, 7)),
            (r#"{"a":[1,]}"#, (BadJson, 8)),
            (r#"{"a" 1}"#, (BadJson, 5)),
            ("{a:1}", (BadJson, 1)),
            ("\u{feff}{}", (BadJson, 0)),
            (r#"{"a":NaN}"#, (BadJson, 5)),
            (r#"{"a":]}"#, (BadJson, 5)),
            (r#"{"a":[}"#, (BadJson, 6)),
        ] {
            assert_eq!(code(text), Some(expected), "{text}");
        }
        for text in ["", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":[", "{\"a\":{\"b\":1"] {
            assert_eq!(scan(text), Err(ScanError::Incomplete), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_and_costs_no_stack() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&nested(DEPTH_MAX - 1)).is_ok());
        assert_eq!(code(&nested(DEPTH_MAX)).map(|(code, _)| code), Some(ViolationCode::TooDeep));
        assert_eq!(code(&nested(100_000)).map(|(code, _)| code), Some(ViolationCode::TooDeep));
    }

    #[test]
    fn the_deepest_body_can_be_read_by_the_next_program() {
        let depth = DEPTH_MAX - 1;
        let body = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&format!("{{\"data\":{body}}}")).is_ok());
        #[expect(clippy::disallowed_types, reason = "the next program may use it")]
        let read = serde_json::from_str::<serde_json::Value>(&body);
        assert!(read.is_ok());
    }

    #[test]
    fn a_cut_text_tells_the_fields_it_had() {
        let mut scanner = Scanner::default();
        let fields = scanner.complete_fields(br#"{"type":"RECORD","stream":"x","data":{"lo"#);
        assert_eq!(fields.len(), 2);
    }

    proptest! {
        // A library decides whether a text is JSON; ours must agree wherever it has no rule of its own.
        #[test]
        fn the_grammar_is_that_of_json(text in r#"[\[\]{}:,"ab\\u0-9eE.+\-tfn ]{0,24}"#) {
            let ours = scan(&text);
            let library = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            match ours {
                Ok(_) => prop_assert!(library.is_ok()),
                Err(ScanError::Fault { code: ViolationCode::DuplicateKey | ViolationCode::NotAnObject, .. }) => {}
                Err(_) => prop_assert!(library.is_err()),
            }
        }

        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _answer = Scanner::default().object(&bytes).map(<[_]>::len);
        }
    }
}

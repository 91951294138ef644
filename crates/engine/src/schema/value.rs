//! A body as the library wants it: a tree of values.
//!
//! Why not the library's own parser: it refuses `1e400` and lone surrogates, which are legal in a
//! record, and a record must not be rejected because of our parser. The tree is looked at and thrown
//! away. It is never stored and never written: what is stored is the text.

use super::number::Worth;
use super::text;
use serde_json::{Map, Value};

/// How deep a tree may be. A message has at most 128 levels, so this refuses nothing that was decoded.
const DEPTH_MAX: usize = 128;

/// Reads a text that was checked before. `None` for anything else.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    let value = reader.value(DEPTH_MAX)?;
    (text::skip_whitespace(reader.bytes, reader.at) == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.at = text::skip_whitespace(self.bytes, self.at);
        let start = self.at;
        match self.bytes.get(start)? {
            b'"' => self.string().map(Value::String),
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.array(depth.checked_sub(1)?),
            b't' => self.word(b"true", Value::Bool(true)),
            b'f' => self.word(b"false", Value::Bool(false)),
            b'n' => self.word(b"null", Value::Null),
            _ => {
                (self.at, _) = text::number_end(self.bytes, start);
                Worth::read(self.text.get(start..self.at)?)?.to_number().map(Value::Number)
            }
        }
    }

    fn word(&mut self, word: &[u8], value: Value) -> Option<Value> {
        self.at = text::word_end(self.bytes, self.at, word)?;
        Some(value)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        if self.bytes.get(start) != Some(&b'"') {
            return None;
        }
        (self.at, _) = text::string_end(self.bytes, start)?;
        Some(text::decode(self.text.get(start + 1..self.at - 1)?).into_owned())
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        if self.closes_at_once(b'}') {
            return Some(Value::Object(members));
        }
        loop {
            self.at = text::skip_whitespace(self.bytes, self.at);
            let key = self.string()?;
            self.at = text::skip_whitespace(self.bytes, self.at);
            self.at = text::word_end(self.bytes, self.at, b":")?;
            let value = self.value(depth)?;
            members.insert(key, value);
            if self.closes(b'}')? {
                return Some(Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut elements = Vec::new();
        if self.closes_at_once(b']') {
            return Some(Value::Array(elements));
        }
        loop {
            elements.push(self.value(depth)?);
            if self.closes(b']')? {
                return Some(Value::Array(elements));
            }
        }
    }

    /// Steps over an opening bracket; whether nothing is in it.
    fn closes_at_once(&mut self, bracket: u8) -> bool {
        self.at = text::skip_whitespace(self.bytes, self.at + 1);
        let closes = self.bytes.get(self.at) == Some(&bracket);
        self.at += usize::from(closes);
        closes
    }

    /// After a value: whether this was the last one.
    fn closes(&mut self, bracket: u8) -> Option<bool> {
        self.at = text::skip_whitespace(self.bytes, self.at);
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        match byte {
            b',' => Some(false),
            _ => (byte == bracket).then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_parser_would_refuse_is_read() {
        let value = read(r#" {"a":1e400,"b":"\ud800x\u0000","\udc00":[-0.0, 18446744073709551616]} "#).unwrap();
        assert_eq!(value["a"].as_f64(), Some(f64::MAX));
        assert_eq!(value["b"], "\u{fffd}x\0");
        assert_eq!(value["\u{fffd}"][1].as_f64(), Some(18_446_744_073_709_551_616.0));
    }

    #[test]
    fn what_is_no_json_gets_no_value() {
        for text in ["", "{", "[1", "[1}", "{\"a\"}", "{\"a\":}", "{a:1}", "1 2", "nul", "\"a", "-", "[,]", "[1,]"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(read(&format!("{}{}", "[".repeat(128), "]".repeat(128))).is_some());
        assert_eq!(read(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), None);
    }

    proptest! {
        #[test]
        fn where_a_parser_reads_a_text_both_read_the_same(
            text in r#"[\[\]{}:,"ab\\n0-9eE.\-tfn ]{0,24}|[0-9]{1,25}|-?[0-9]{1,3}\.[0-9]{1,20}(e-?[0-9]{1,2})?"#
        ) {
            if let Ok(expected) = serde_json::from_str::<Value>(&text) {
                // `-0` is a float there and an integer here, and both are zero.
                prop_assume!(!text.contains("-0"));
                prop_assert_eq!(read(&text), Some(expected));
            }
        }

        #[test]
        fn any_text_gets_an_answer(text in any::<String>()) {
            let _answer = read(&text);
        }
    }
}

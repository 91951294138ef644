//! A view of one JSON value inside a scanned text.
//!
//! Why not a tree: few fields of a message matter, and the large ones are passed on as text. A view is a slice that
//! is read on demand. It relies on the scan and never reports a grammar fault.

use crate::json::json_string::{self, LoneSurrogate};
use crate::json::lex;
use crate::json::raw_json::RawJson;
use crate::json::scan::FieldSpan;
use std::borrow::Cow;

/// One value, and its position in the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    text: &'a str,
    offset: usize,
}

/// A field of an object: its key, and its value.
pub(crate) type Member<'a> = (Cow<'a, str>, View<'a>);

impl<'a> View<'a> {
    /// The value at `span` of a line.
    pub(crate) fn new(line: &'a str, (start, end): (usize, usize)) -> Self {
        Self { text: &line[start..end], offset: start }
    }

    /// A text that is one value.
    pub(crate) fn whole(text: &'a str) -> Self {
        Self { text: text.trim(), offset: text.len() - text.trim_start().len() }
    }

    pub(crate) const fn offset(self) -> usize {
        self.offset
    }

    pub(crate) const fn raw(self) -> RawJson<'a> {
        RawJson::checked(self.text)
    }

    pub(crate) const fn text(self) -> &'a str {
        self.text
    }

    pub(crate) fn is_null(self) -> bool {
        self.text == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    pub(crate) fn is_string(self) -> bool {
        self.text.starts_with('"')
    }

    pub(crate) fn is_number(self) -> bool {
        self.text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
    }

    pub(crate) fn flag(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A whole number from zero up, written without fraction or exponent.
    pub(crate) fn count(self) -> Option<u64> {
        if self.text.starts_with(|c: char| c.is_ascii_digit()) { self.text.parse().ok() } else { None }
    }

    /// A string that is a name; `None` for another value or a lone surrogate.
    pub(crate) fn name(self) -> Option<Cow<'a, str>> {
        json_string::decode(self.inside()?, LoneSurrogate::Refuse)
    }

    /// A string for people: half characters are replaced.
    pub(crate) fn sentence(self) -> Option<Cow<'a, str>> {
        json_string::decode(self.inside()?, LoneSurrogate::Replace)
    }

    /// The fields of an object.
    pub(crate) fn members(self) -> Option<Vec<Member<'a>>> {
        let bytes = self.text.as_bytes();
        if !self.is_object() {
            return None;
        }
        let mut members = Vec::new();
        let mut at = lex::skip_whitespace(bytes, 1);
        while bytes.get(at) == Some(&b'"') {
            let key = lex::string(bytes, at).ok()?;
            let colon = lex::skip_whitespace(bytes, key.end);
            let start = lex::skip_whitespace(bytes, colon + 1);
            let end = lex::skip_known_value(bytes, start);
            let name = json_string::decode(&self.text[at + 1..key.end - 1], LoneSurrogate::Replace)?;
            members.push((name, self.part(start, end)));
            at = self.after_comma(end);
        }
        Some(members)
    }

    /// The elements of an array.
    pub(crate) fn elements(self) -> Option<Vec<Self>> {
        let bytes = self.text.as_bytes();
        if !self.text.starts_with('[') {
            return None;
        }
        let mut elements = Vec::new();
        let mut at = lex::skip_whitespace(bytes, 1);
        while at < bytes.len() && bytes[at] != b']' {
            let end = lex::skip_known_value(bytes, at);
            elements.push(self.part(at, end));
            at = self.after_comma(end);
        }
        Some(elements)
    }

    fn inside(self) -> Option<&'a str> {
        self.text.strip_prefix('"')?.strip_suffix('"')
    }

    fn part(self, start: usize, end: usize) -> Self {
        Self { text: &self.text[start..end], offset: self.offset + start }
    }

    fn after_comma(self, end: usize) -> usize {
        let bytes = self.text.as_bytes();
        let at = lex::skip_whitespace(bytes, end);
        if bytes.get(at) == Some(&b',') { lex::skip_whitespace(bytes, at + 1) } else { at }
    }
}

/// The scanned fields as members.
pub(crate) fn members_of_line<'a>(line: &'a str, fields: &[FieldSpan]) -> Vec<Member<'a>> {
    fields.iter().map(|field| (field.name(line), View::new(line, field.value))).collect()
}

impl FieldSpan {
    /// The key as text. A lone surrogate is replaced: no known field has one.
    pub(crate) fn name<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let inside = &line[self.key.0..self.key.1];
        if !self.key_escaped {
            return Cow::Borrowed(inside);
        }
        json_string::decode(inside, LoneSurrogate::Replace).unwrap_or(Cow::Borrowed(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_found_with_their_place() {
        let text = r#"{ "a" : [ 1 , "x,]" , {"b":[]} ] , "c":{} }"#;
        let members = View::whole(text).members().unwrap();
        let (name, array) = &members[0];
        assert_eq!((name.as_ref(), array.offset()), ("a", 8));
        let elements = array.elements().unwrap();
        assert_eq!(elements.iter().map(|view| view.text()).collect::<Vec<_>>(), ["1", "\"x,]\"", "{\"b\":[]}"]);
        assert_eq!(&text[elements[1].offset()..][..5], "\"x,]\"");
        assert_eq!(members[1].1.text(), "{}");
        assert!(View::whole("[]").elements().unwrap().is_empty());
        assert!(View::whole("{ }").members().unwrap().is_empty());
    }

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!(View::whole("18446744073709551615").count(), Some(u64::MAX));
        for text in ["-1", "1.0", "1e3", "\"1\"", "18446744073709551616", "null"] {
            assert_eq!(View::whole(text).count(), None, "{text}");
        }
    }

    #[test]
    fn a_name_refuses_what_a_sentence_replaces() {
        let half = View::whole(r#""x\ud83d""#);
        assert_eq!(half.name(), None);
        assert_eq!(half.sentence().as_deref(), Some("x\u{fffd}"));
    }
}

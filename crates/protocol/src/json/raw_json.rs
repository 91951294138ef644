//! A JSON value kept as written.
//!
//! Why not a parsed value: `1.0`, `1e400` and 2^63 do not survive a parser, and a cursor or a record must not be
//! rewritten. This is the text itself, checked once. Why not the library's raw value: it would scan the text again.
//! It never prints its content: records are private.

use crate::json::scan::{ScanError, Scanner};
use crate::json::view::View;
use crate::words::violation::ViolationCode;
use std::borrow::Cow;
use std::fmt;

/// The text of one JSON value, without line feeds, as written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson<'a>(Cow<'a, str>);

impl<'a> RawJson<'a> {
    /// Checks a text and takes it.
    ///
    /// # Errors
    ///
    /// It is not one JSON value, has a line feed (a message is one line) or a duplicate key, or is nested too deeply.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Result<Self, RawJsonFault> {
        let text = text.into();
        let bytes = text.as_bytes();
        if let Some(offset) = crate::json::lex::find_newline(bytes) {
            return Err(RawJsonFault { code: ViolationCode::BadJson, offset });
        }
        let mut scanner = Scanner::default();
        let start = crate::json::lex::skip_whitespace(bytes, 0);
        let end = scanner.value(bytes, start).map_err(|error| RawJsonFault::from_scan(error, bytes.len()))?;
        let rest = crate::json::lex::skip_whitespace(bytes, end);
        if rest < bytes.len() {
            return Err(RawJsonFault::from_scan(crate::json::scan::fault_at(bytes, rest), rest));
        }
        Ok(Self(text))
    }

    /// Text that was checked with its line.
    pub(crate) const fn checked(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.trim_start().starts_with('{')
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.trim() == "null"
    }

    /// The same, with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson(Cow::Owned(self.0.into_owned()))
    }

    /// The fields of an object, in order; `None` for another value. Half a character in a key becomes U+FFFD.
    #[must_use]
    pub fn members(&self) -> Option<Vec<(Cow<'_, str>, RawJson<'_>)>> {
        let members = View::whole(&self.0).members()?;
        Some(members.into_iter().map(|(key, view)| (key, view.raw())).collect())
    }

    /// The elements of an array, in order; `None` for another value.
    #[must_use]
    pub fn elements(&self) -> Option<Vec<RawJson<'_>>> {
        Some(View::whole(&self.0).elements()?.into_iter().map(View::raw).collect())
    }

    /// The decoded string; `None` for another value or half a character.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        View::whole(&self.0).name()
    }
}

/// `null`.
impl Default for RawJson<'_> {
    fn default() -> Self {
        Self(Cow::Borrowed("null"))
    }
}

/// Shows the number of bytes, never the bytes.
impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.0.len())
    }
}

/// Why a text is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} at byte {offset}")]
pub struct RawJsonFault {
    /// The problem.
    pub code: ViolationCode,
    /// Its offset.
    pub offset: usize,
}

impl RawJsonFault {
    const fn from_scan(error: ScanError, len: usize) -> Self {
        match error {
            ScanError::Incomplete => Self { code: ViolationCode::BadJson, offset: len },
            ScanError::Fault { code, offset } => Self { code, offset },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_stays_as_it_was_written() {
        for text in ["1e400", "-0", "9223372036854775808", "{ \"a\" : 1.0 }", r#""\u0000\ud800""#, "null"] {
            assert_eq!(RawJson::new(text).map(|raw| raw.as_str().to_owned()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_would_break_a_line_or_a_reader_is_refused() {
        for text in ["", "1 2", "{\"a\":1,\"a\":2}", "{\n}", "[1", "\u{0}"] {
            assert!(RawJson::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn members_elements_and_texts_can_be_looked_at() {
        let raw = RawJson::new(r#"{"a":[1,"x"],"\u0062":"y\n"}"#).unwrap();
        let members = raw.members().unwrap();
        assert_eq!(members.iter().map(|(key, _)| key.as_ref()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(members[0].1.elements().unwrap()[0].as_str(), "1");
        assert_eq!(members[1].1.text().as_deref(), Some("y\n"));
        assert_eq!((raw.text(), raw.elements(), members[0].1.members()), (None, None, None));
    }

    #[test]
    fn it_is_printed_as_a_length() {
        assert_eq!(format!("{:?}", RawJson::new("\"secret\"").unwrap()), "RawJson(8 bytes)");
    }
}

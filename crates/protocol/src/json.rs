//! JSON text kept as written: tokens, one pass over a line, raw values.
//!
//! The functions reread a body whose grammar the [`Decoder`](crate::Decoder) has checked. They never panic, never
//! recurse, and copy a string only when it has escapes.

pub(crate) mod json_string;
pub(crate) mod key_ledger;
pub(crate) mod lex;
pub(crate) mod raw_json;
pub(crate) mod scan;
pub(crate) mod view;

use json_string::LoneSurrogate;
pub use lex::{skip_whitespace, word_at};
use std::borrow::Cow;

/// The string whose opening quote is at `at`: one past its closing quote, and whether it has escapes.
#[inline]
#[must_use]
pub fn string_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    lex::string(bytes, at).ok().map(|token| (token.end, token.escaped))
}

/// One past the value that begins at `at`, in checked text. Depth costs a counter, not stack.
#[must_use]
pub fn skip_value(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at).map(|_| lex::skip_known_value(bytes, at))
}

/// The decoded inside of a string. U+FFFD replaces half a surrogate pair, which is legal JSON and no legal text.
#[must_use]
pub fn decode(inside: &str) -> Cow<'_, str> {
    json_string::decode(inside, LoneSurrogate::Replace).unwrap_or_default()
}

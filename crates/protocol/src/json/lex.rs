//! Tokens of JSON text, in bytes that may end anywhere.
//!
//! Why not a JSON library: a library either needs the whole text (a gigabyte in one line must be held before it can
//! be refused) or returns copies (a number is then no longer as written). These functions only find the end of a
//! token. They never copy, never recurse, and distinguish "invalid" from "incomplete".

/// Why no token was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexError {
    /// The bytes end before the token does.
    Incomplete,
    /// The byte at this offset is not allowed there.
    Invalid(usize),
}

/// A string token: its end, and whether it has escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringToken {
    /// One past the closing quote.
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

/// Finds the end of the string whose opening quote is at `start`.
pub(crate) fn string(bytes: &[u8], start: usize) -> Result<StringToken, LexError> {
    let mut at = start + 1;
    let mut escaped = false;
    loop {
        at = skip_plain(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(StringToken { end: at + 1, escaped }),
            Some(b'\\') => {
                escaped = true;
                at = escape(bytes, at)?;
            }
            Some(_) => return Err(LexError::Invalid(at)),
            None => return Err(LexError::Incomplete),
        }
    }
}

/// Finds the end of the number at `start`. A number at the end of the bytes counts as complete: only the caller knows
/// whether more follows.
pub(crate) fn number(bytes: &[u8], start: usize) -> Result<usize, LexError> {
    let mut at = start;
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    // No leading zeros: `012` is two tokens, and so an error one token later.
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

/// Finds the end of the string, number, `true`, `false` or `null` that begins at `start`.
pub(crate) fn scalar(bytes: &[u8], start: usize) -> Result<usize, LexError> {
    match bytes.get(start) {
        Some(b'"') => string(bytes, start).map(|token| token.end),
        Some(b'-' | b'0'..=b'9') => number(bytes, start),
        Some(b't') => literal(bytes, start, b"true"),
        Some(b'f') => literal(bytes, start, b"false"),
        Some(b'n') => literal(bytes, start, b"null"),
        Some(_) => Err(LexError::Invalid(start)),
        None => Err(LexError::Incomplete),
    }
}

/// The first offset from `start` on that is not JSON white space.
#[inline]
#[must_use]
pub fn skip_whitespace(bytes: &[u8], mut start: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = bytes.get(start) {
        start += 1;
    }
    start
}

/// One past the value at `start`, in scanned text.
pub(crate) fn skip_known_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {
                at += 1;
                continue;
            }
            _ => {
                at = scalar(bytes, at).unwrap_or(bytes.len());
                if depth == 0 {
                    return at;
                }
                continue;
            }
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The first line feed. Every byte of every line passes through here.
pub(crate) fn find_newline(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

/// Skips unescaped characters of a string: anything but a quote, a backslash or a control character.
#[inline]
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let control = word.wrapping_sub(repeat(0x20)) & !word;
        let special = (control & HIGH_BITS) | zero_bytes(word ^ repeat(b'"')) | zero_bytes(word ^ repeat(b'\\'));
        if special != 0 {
            return at + first_hit(special);
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

/// One past the escape whose backslash is at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, LexError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            for place in at + 2..at + 6 {
                match bytes.get(place) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Err(LexError::Invalid(place)),
                    None => return Err(LexError::Incomplete),
                }
            }
            Ok(at + 6)
        }
        Some(_) => Err(LexError::Invalid(at + 1)),
        None => Err(LexError::Incomplete),
    }
}

/// At least one digit, and all that follow.
fn digits(bytes: &[u8], start: usize) -> Result<usize, LexError> {
    match bytes.get(start) {
        Some(b'0'..=b'9') => {}
        Some(_) => return Err(LexError::Invalid(start)),
        None => return Err(LexError::Incomplete),
    }
    let mut at = start + 1;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    Ok(at)
}

fn literal(bytes: &[u8], start: usize, word: &[u8]) -> Result<usize, LexError> {
    for (index, expected) in word.iter().enumerate() {
        match bytes.get(start + index) {
            Some(byte) if byte == expected => {}
            Some(_) => return Err(LexError::Invalid(start + index)),
            None => return Err(LexError::Incomplete),
        }
    }
    Ok(start + word.len())
}

/// The top bit of each byte of a word.
const HIGH_BITS: u64 = repeat(0x80);

const fn repeat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Eight bytes as a number, little-endian.
#[inline]
#[must_use]
pub fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let (word, _) = bytes.get(at..)?.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// Marks the zero bytes of a word. Bytes above the first hit may be marked wrongly, so only the first hit is used.
#[inline]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeat(1)) & !word & HIGH_BITS
}

#[inline]
const fn first_hit(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_end_at_their_closing_quote() {
        let text = br#""a\"b" "#;
        assert_eq!(string(text, 0), Ok(StringToken { end: 6, escaped: true }));
        assert_eq!(string(b"\"plain and long enough\"x", 0), Ok(StringToken { end: 23, escaped: false }));
    }

    #[test]
    fn unfinished_is_told_from_wrong() {
        for text in ["\"abc", "\"a\\", "\"\\u12", "-", "1.", "1e", "1e+", "tru", "nul", ""] {
            assert_eq!(scalar(text.as_bytes(), 0), Err(LexError::Incomplete), "{text}");
        }
        for (text, at) in
            [("\"a\nb\"", 2), ("\"\\x\"", 2), ("\"\\u12g4\"", 5), ("-a", 1), ("1.e", 2), ("trux", 3), ("NaN", 0)]
        {
            assert_eq!(scalar(text.as_bytes(), 0), Err(LexError::Invalid(at)), "{text}");
        }
    }

    #[test]
    fn numbers_of_any_size_are_one_token() {
        for text in ["0", "-0", "1e400", "9223372036854775808", "0.1e-7", "-12.50E+3"] {
            assert_eq!(number(text.as_bytes(), 0), Ok(text.len()), "{text}");
        }
        assert_eq!(number(b"012", 0), Ok(1), "a leading zero is a number of its own");
    }

    proptest! {
        #[test]
        fn the_word_wise_search_finds_what_a_plain_one_finds(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(find_newline(&bytes), bytes.iter().position(|&b| b == b'\n'));
            let plain = bytes.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(bytes.len());
            prop_assert_eq!(skip_plain(&bytes, 0), plain);
        }
    }
}

//! Finding one's way through JSON text that was checked before.
//!
//! Why it exists: the decoder has checked the grammar of every body, so whoever looks at it again
//! need not. These functions find where a token ends and what a string says, and nothing else. They
//! rely on the grammar for speed only: on anything else they end early or answer `None`. They never
//! panic, never recurse, and copy a string only when it has escapes.

use std::borrow::Cow;

/// The first place at or after `at` that is not white space.
#[inline]
pub(super) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The string whose opening quote stands at `at`: one past its closing quote, and whether it has escapes.
#[inline]
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let end = skip_plain(bytes, at + 1);
    if bytes.get(end) == Some(&b'"') { Some((end + 1, false)) } else { escaped_string_end(bytes, end) }
}

/// The rest of a string from its first backslash on.
#[cold]
fn escaped_string_end(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some((at + 1, true)),
            // Whatever is escaped, its first byte is not the end. The digits of `\u0022` are plain.
            _ => at = skip_plain(bytes, at + 2),
        }
    }
}

/// The next quote or backslash, eight bytes at a time: most bytes of a body stand in strings.
#[inline]
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let hits = zero_bytes(word ^ repeat(b'"')) | zero_bytes(word ^ repeat(b'\\'));
        if hits != 0 {
            // Marks above the first one may be wrong, so only the first one counts.
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

/// Eight bytes as a number, the first one lowest.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let (word, _) = bytes.get(at..)?.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

const fn repeat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[inline]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeat(1)) & !word & repeat(0x80)
}

/// One past the number that begins at `at`, and whether it has a point or an exponent.
#[inline]
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut pointed = false;
    loop {
        match bytes.get(at) {
            Some(b'0'..=b'9' | b'-') => {}
            Some(b'.' | b'e' | b'E' | b'+') => pointed = true,
            _ => return (at, pointed),
        }
        at += 1;
    }
}

/// One past the word, if it stands at `at`.
#[inline]
pub(super) fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

/// One past the value that begins at `at`. Depth costs a number, not stack.
pub(super) fn skip_value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        at = skip_whitespace(bytes, at);
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?.0,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' if depth > 0 => {
                at += 1;
                continue;
            }
            b't' => at = word_end(bytes, at, b"true")?,
            b'f' => at = word_end(bytes, at, b"false")?,
            b'n' => at = word_end(bytes, at, b"null")?,
            b'-' | b'0'..=b'9' => at = number_end(bytes, at).0,
            _ => return None,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// How many characters the inside of a string means. Half a surrogate pair is one: U+FFFD.
pub(super) fn count_chars(inside: &str, escaped: bool) -> u64 {
    if escaped {
        return pieces(inside).map(|piece| count_chars(piece.plain, false) + u64::from(piece.escape.is_some())).sum();
    }
    // Every byte but those that continue a character begins one.
    inside.bytes().map(|byte| u64::from(byte & 0xc0 != 0x80)).sum()
}

/// What the inside of a string says. U+FFFD stands in for half a surrogate pair: it is legal JSON
/// and no legal text, and no schema could say anything else about it.
pub(super) fn decode(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    for piece in pieces(inside) {
        text.push_str(piece.plain);
        text.extend(piece.escape);
    }
    Cow::Owned(text)
}

/// Plain text, and the character that the escape behind it means.
struct Piece<'a> {
    plain: &'a str,
    escape: Option<char>,
}

fn pieces(inside: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = inside;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (plain, after) = rest.split_once('\\').unwrap_or((rest, ""));
        let escape = (plain.len() < rest.len()).then(|| escape(after));
        rest = escape.map_or("", |(_, after)| after);
        Some(Piece { plain, escape: escape.map(|(c, _)| c) })
    })
}

/// The escape whose backslash was just read, and what follows it.
fn escape(after: &str) -> (char, &str) {
    let mut chars = after.chars();
    let meant = match chars.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return code_unit(chars.as_str()),
        Some(other) => other,
        None => char::REPLACEMENT_CHARACTER,
    };
    (meant, chars.as_str())
}

/// Four hex digits, and the second half of a pair where one follows.
fn code_unit(after: &str) -> (char, &str) {
    let Some((unit, rest)) = hex(after) else { return (char::REPLACEMENT_CHARACTER, "") };
    if let Some(c) = char::from_u32(unit) {
        return (c, rest);
    }
    if let 0xd800..0xdc00 = unit
        && let Some((low @ 0xdc00..0xe000, rest)) = rest.strip_prefix("\\u").and_then(hex)
        && let Some(c) = char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    {
        return (c, rest);
    }
    (char::REPLACEMENT_CHARACTER, rest)
}

fn hex(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_resolved_and_half_a_pair_is_replaced() {
        let said = |inside: &'static str| decode(inside).into_owned();
        assert_eq!(said(r#"a\n\t\"\\\/\u00e9\ud83d\ude00\u0000"#), "a\n\t\"\\/é😀\0");
        assert_eq!(said(r"\ud83d"), "\u{fffd}");
        assert_eq!(said(r"\ud83d\u0041"), "\u{fffd}A");
        assert_eq!(said(r"\ud83d\ud83d\ude00"), "\u{fffd}😀");
        assert_eq!(said(r"\ude00x"), "\u{fffd}x");
        assert!(matches!(decode("naïve"), Cow::Borrowed("naïve")));
    }

    #[test]
    fn what_is_no_json_gets_an_answer() {
        for inside in ["\\", "\\u", "\\u12", "\\ud800\\u", "\\é", "\\u\u{fe}\u{ff}é"] {
            assert_eq!(decode(inside).chars().count() as u64, count_chars(inside, true), "{inside}");
        }
        for text in ["", "\"", "\"\\", "[", "{\"a\"", "]", ",", "tru", "x", "[1}"] {
            let _end = skip_value(text.as_bytes(), 0);
        }
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        for text in ["{\"a\":[1,{\"b\":\"]\\\"}\"}]}", "[]", "-1.5e+7", "true", "null", "\"a\\\\\"", "[ [ ] , { } ]"] {
            let followed = format!("{text},1]");
            assert_eq!(skip_value(followed.as_bytes(), 0), Some(text.len()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_a_library_wrote_is_read_back(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let (end, escaped) = string_end(written.as_bytes(), 0).unwrap();
            prop_assert_eq!(end, written.len());
            let inside = &written[1..end - 1];
            prop_assert_eq!(escaped, inside.contains('\\'));
            let said = decode(inside);
            prop_assert_eq!(said.as_ref(), text.as_str());
            prop_assert_eq!(count_chars(inside, escaped), text.chars().count() as u64);
        }

        #[test]
        fn any_text_gets_an_answer(text in any::<String>()) {
            let _answers = (skip_value(text.as_bytes(), 0), decode(&text), count_chars(&text, true));
        }
    }
}

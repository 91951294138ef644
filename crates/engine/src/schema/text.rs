//! Finding one's way through JSON text that was checked before.
//!
//! Why it exists: the decoder has checked the grammar of every body, so whoever looks at it again
//! need not. These functions find where a token ends and what a string says, and nothing else. They
//! rely on the grammar for speed only: on anything else they end early or answer `None`. They never
//! panic, never recurse, and copy a string only when it has escapes.

pub(super) use gleaner_protocol::json::{decode, skip_value, skip_whitespace, string_end, word_at};
use std::borrow::Cow;

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

/// How many characters the inside of a string means. Half a surrogate pair is one: U+FFFD.
pub(super) fn count_chars(inside: &str, escaped: bool) -> u64 {
    let plain = if escaped { decode(inside) } else { Cow::Borrowed(inside) };
    // Every byte but those that continue a character begins one.
    plain.bytes().map(|byte| u64::from(byte & 0xc0 != 0x80)).sum()
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

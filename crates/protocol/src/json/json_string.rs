//! Decodes JSON strings.
//!
//! Why not a library: JavaScript programs cut strings within an emoji and then print a lone surrogate (`"\ud83d"`).
//! That is legal JSON and no legal text. A name or a key must refuse it, a sentence for people may replace it, and
//! two object keys must be compared with it; libraries offer one of the three. Text without escapes is borrowed.

use std::borrow::Cow;

/// Treatment of half a surrogate pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoneSurrogate {
    /// For names, keys and ids: no text means this.
    Refuse,
    /// For sentences: replaced by U+FFFD.
    Replace,
}

/// Decodes the inside of a scanned string token. `None` for a lone surrogate that must be refused.
pub(crate) fn decode(inside: &str, lone: LoneSurrogate) -> Option<Cow<'_, str>> {
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    let mut text = String::with_capacity(inside.len());
    for piece in Pieces(inside) {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Char(c) => text.push(c),
            Piece::Lone(_) if lone == LoneSurrogate::Refuse => return None,
            Piece::Lone(_) => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Some(Cow::Owned(text))
}

/// The same as bytes that keep lone surrogates distinct, for comparing object keys.
pub(crate) fn decode_bytes(inside: &str) -> Cow<'_, [u8]> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside.as_bytes());
    }
    let mut bytes = Vec::with_capacity(inside.len());
    for piece in Pieces(inside) {
        match piece {
            Piece::Plain(plain) => bytes.extend_from_slice(plain.as_bytes()),
            Piece::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            // The three bytes that UTF-8 would use. No text has these bytes.
            Piece::Lone(unit) => {
                let [high, low] = unit.to_be_bytes();
                bytes.extend_from_slice(&[0xed, 0x80 | ((high & 0x0f) << 2) | (low >> 6), 0x80 | (low & 0x3f)]);
            }
        }
    }
    Cow::Owned(bytes)
}

enum Piece<'a> {
    Plain(&'a str),
    Char(char),
    Lone(u16),
}

/// The pieces of the inside of a string token, in order.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.0;
        let Some(after) = rest.strip_prefix('\\') else {
            if rest.is_empty() {
                return None;
            }
            let (plain, tail) = rest.split_at(rest.find('\\').unwrap_or(rest.len()));
            self.0 = tail;
            return Some(Piece::Plain(plain));
        };
        let mut chars = after.chars();
        let kind = chars.next()?;
        self.0 = chars.as_str();
        Some(match kind {
            'b' => Piece::Char('\u{8}'),
            'f' => Piece::Char('\u{c}'),
            'n' => Piece::Char('\n'),
            'r' => Piece::Char('\r'),
            't' => Piece::Char('\t'),
            'u' => self.code_unit()?,
            other => Piece::Char(other),
        })
    }
}

impl<'a> Pieces<'a> {
    /// Four hex digits, and the second half of a pair if one follows.
    fn code_unit(&mut self) -> Option<Piece<'a>> {
        let unit = self.hex()?;
        if let Some(c) = char::from_u32(u32::from(unit)) {
            return Some(Piece::Char(c));
        }
        let before = self.0;
        if (0xd800..0xdc00).contains(&unit) && before.starts_with("\\u") {
            self.0 = &before[2..];
            if let Some(low @ 0xdc00..0xe000) = self.hex() {
                let pair = 0x1_0000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                return char::from_u32(pair).map(Piece::Char);
            }
            self.0 = before;
        }
        Some(Piece::Lone(unit))
    }

    fn hex(&mut self) -> Option<u16> {
        let (digits, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        u16::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LoneSurrogate::{Refuse, Replace};
    use proptest::prelude::*;

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode("naïve", Refuse), Some(Cow::Borrowed("naïve"))));
    }

    #[test]
    fn escapes_and_pairs_are_resolved() {
        assert_eq!(decode(r#"a\n\t\"\\\/\u00e9\ud83d\ude00\u0000"#, Refuse).as_deref(), Some("a\n\t\"\\/é😀\0"));
    }

    #[test]
    fn a_lone_surrogate_is_refused_in_names_and_replaced_in_sentences() {
        for text in [r"\ud83d", r"x\ude00y", r"\ud83d\n", r"\ud83d\ud83d", r"\ud83d\u0041"] {
            assert_eq!(decode(text, Refuse), None, "{text}");
            assert!(decode(text, Replace).is_some_and(|text| text.contains('\u{fffd}')), "{text}");
        }
        assert_eq!(decode(r"\ud83d\u0041", Replace).as_deref(), Some("\u{fffd}A"));
    }

    #[test]
    fn different_lone_surrogates_stay_different() {
        assert_ne!(decode_bytes(r"\ud800"), decode_bytes(r"\ud801"));
        assert_ne!(decode_bytes(r"\ud800"), decode_bytes(r"\ufffd"));
        assert_eq!(decode_bytes(r"\u0061"), decode_bytes("a"));
    }

    proptest! {
        #[test]
        fn what_a_library_wrote_is_read_back(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let inside = &written[1..written.len() - 1];
            let read = decode(inside, Refuse);
            prop_assert_eq!(read.as_deref(), Some(text.as_str()));
        }
    }
}

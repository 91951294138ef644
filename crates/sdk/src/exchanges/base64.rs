//! Base64 (RFC 4648) for bodies that are no text: written with padding, read with or without.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (position, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = ALPHABET[((bits >> shift) & 63) as usize];
            text.push(if position > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// The bytes; `None` when the text is not base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut bits = 0;
        for digit in chunk {
            bits = (bits << 6) | value(*digit)?;
        }
        // Six bits alone are no byte.
        let (count, spare) = match chunk.len() {
            4 => (3, 0),
            3 => (2, 2),
            2 => (1, 4),
            _ => return None,
        };
        bytes.extend_from_slice(&(bits >> spare).to_be_bytes()[4 - count..]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    ALPHABET.iter().position(|&known| known == digit).and_then(|value| u32::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_other_texts_are_not() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (&[0xff, 0x00, 0xfe], "/wD+"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(bytes));
        }
        for text in ["Z", "Zm9vY", "Zm 9", "Zm9-", "ü"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}

//! Text from outside, and addresses made of it.
//!
//! What a connector, a provider or a record says is only ever shown. Templates escape whatever they are given; this type
//! adds what escaping for HTML does not do: a control character and one that turns the order of others around can be
//! seen, as on the terminal. Nothing here is ever markup.

use gleaner_base::outside;
use std::fmt::{self, Display, Formatter, Write as _};

/// Text that somebody else wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside(String);

impl Outside {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// At most so many characters, in one line.
    pub(crate) fn short(text: &str, chars_max: usize) -> Self {
        let mut line = text.chars().take(chars_max).map(|c| if c == '\n' { ' ' } else { c }).collect::<String>();
        if line.len() < text.len() {
            line.push('…');
        }
        Self(line)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Display for Outside {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&outside::lines(&self.0))
    }
}

/// An address on this console: its parts, each encoded, so that a name cannot lead elsewhere.
pub(crate) fn href(parts: &[&str]) -> String {
    parts.iter().fold(String::new(), |mut path, part| {
        path.push('/');
        path.push_str(&encoded(part));
        path
    })
}

/// The same with a query.
pub(crate) fn href_with(parts: &[&str], query: &[(&str, &str)]) -> String {
    let mut address = href(parts);
    for (at, (name, value)) in query.iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        address.push_str(&encoded(value));
    }
    address
}

fn encoded(part: &str) -> String {
    // A part of dots alone would be taken for a step up.
    let is_dots = !part.is_empty() && part.bytes().all(|byte| byte == b'.');
    part.bytes().fold(String::with_capacity(part.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') || (byte == b'.' && !is_dots) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_turned_letters_can_be_seen() {
        let text = Outside::new("a\u{1b}]8;;x\u{7}b\u{202e}c\u{9b}\r\n\td\u{200b}\u{feff}");
        assert_eq!(text.to_string(), "a\\u{1b}]8;;x\\u{7}b\\u{202e}c\\u{9b}\\r\n\td\\u{200b}\\u{feff}");
    }

    #[test]
    fn a_short_text_is_a_line_and_says_that_there_is_more() {
        assert_eq!(Outside::short("a\nbcd", 3).to_string(), "a b…");
        assert_eq!(Outside::short("äöü", 3).to_string(), "äöü");
    }

    #[test]
    fn a_name_stays_one_part_of_an_address() {
        assert_eq!(href(&["connections", "a/../b?c#d e"]), "/connections/a%2F..%2Fb%3Fc%23d%20e");
        assert_eq!(href(&["data", ".."]), "/data/%2E%2E");
        assert_eq!(href_with(&["gaps"], &[("after", "1&x=2"), ("s", "ä")]), "/gaps?after=1%26x%3D2&s=%C3%A4");
    }
}

//! Makes text from outside safe to show: it can neither control a terminal nor imitate a line of ours.
//!
//! Control characters, line separators, invisible characters and those that change the text direction are escaped.

use std::fmt::{self, Display, Formatter, Write as _};

/// Text from outside on one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    escaped(text, |_| false).to_string()
}

/// The same, cut to `chars_max` characters; `…` marks a cut.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Text from outside that keeps its own lines and tabs.
#[must_use]
pub fn lines(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t')).to_string()
}

fn escaped(text: &str, stays: fn(char) -> bool) -> impl Display {
    struct Escaped<'a>(&'a str, fn(char) -> bool);
    impl Display for Escaped<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            self.0.chars().try_for_each(|c| {
                let is_shown = self.1(c) || !(c.is_control() || is_deceptive(c));
                if is_shown { f.write_char(c) } else { write!(f, "{}", c.escape_default()) }
            })
        }
    }
    Escaped(text, stays)
}

/// Whether a character ends a line, is invisible, or changes the text direction.
const fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_from_outside_are_shown_and_not_sent() {
        assert_eq!(one_line("a\u{1b}[31mb\u{7}\nc\u{9b}"), "a\\u{1b}[31mb\\u{7}\\nc\\u{9b}");
        assert_eq!(one_line("a\r\u{85}\u{2028}b\t"), "a\\r\\u{85}\\u{2028}b\\t");
        assert_eq!(one_line("a\u{202e}b\u{200b}\u{feff}"), "a\\u{202e}b\\u{200b}\\u{feff}");
        assert_eq!(lines("a\n\t\u{7}b\r"), "a\n\t\\u{7}b\\r");
        assert_eq!(one_line("Zoë \"quoted\" \\n"), "Zoë \"quoted\" \\n");
    }

    #[test]
    fn a_short_text_says_that_there_is_more() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
        assert_eq!(shortened("a\nb", 3), "a\\n…");
        assert_eq!(shortened("", 0), "");
    }
}

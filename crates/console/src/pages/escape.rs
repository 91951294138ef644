//! Text from outside on a page.
//!
//! A connector, a provider or a record says things that are only ever shown. Whatever a template writes goes through
//! [`Visible`]: markup is escaped, and a control character and one that turns the order of others around can be seen, as
//! on the terminal.

use askama::filters::{Escaper, Html};
use gleaner_base::outside;
use std::fmt::{self, Write};

/// The escaper of all templates; `askama.toml` names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, page: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(page, &outside::lines(text))
    }
}

/// At most so many characters, in one line.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    let mut line = text.chars().take(chars_max).map(|c| if c == '\n' { ' ' } else { c }).collect::<String>();
    if line.len() < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_turned_letters_can_be_seen() {
        let (text, mut page) = ("a\u{1b}]8;;x\u{7}b\u{202e}c\u{9b}\r\n\td\u{200b}\u{feff}<", String::new());
        Visible.write_escaped_str(&mut page, text).expect("a string takes everything");
        assert_eq!(page, "a\\u{1b}]8;;x\\u{7}b\\u{202e}c\\u{9b}\\r\n\td\\u{200b}\\u{feff}&#60;");
    }

    #[test]
    fn a_short_text_is_a_line_and_says_that_there_is_more() {
        assert_eq!(short("a\nbcd", 3), "a b…");
        assert_eq!(short("äöü", 3), "äöü");
    }
}

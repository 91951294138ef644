//! What an owner writes beside a decision of theirs, so that it can be understood in a year.
//!
//! A type and not a text, because a note that is empty says nothing, and one without a bound is a place to lose a file in.
//! It is shown to its owner and never read by a rule.

/// The longest note: a paragraph.
pub const NOTE_CHARS_MAX: usize = 500;

/// A note of the owner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note(String);

/// Why a text is no note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteFault {
    /// There is nothing in it.
    #[error("the note is empty")]
    Empty,
    /// It is too long.
    #[error("the note has {0} characters, and {NOTE_CHARS_MAX} are the most")]
    TooLong(usize),
    /// It has something in it that is no text.
    #[error("the note has control characters in it")]
    NotText,
}

impl Note {
    /// A note, without the space around it.
    ///
    /// # Errors
    ///
    /// When it is empty, too long, or has control characters other than ends of lines in it.
    pub fn new(text: &str) -> Result<Self, NoteFault> {
        // Forms of browsers end lines with both.
        let text = text.trim().replace("\r\n", "\n");
        let count = text.chars().count();
        match count {
            0 => Err(NoteFault::Empty),
            _ if count > NOTE_CHARS_MAX => Err(NoteFault::TooLong(count)),
            _ if text.chars().any(|char| char.is_control() && !matches!(char, '\n' | '\t')) => Err(NoteFault::NotText),
            _ => Ok(Self(text)),
        }
    }

    /// A note as it was stored: what was accepted once stays readable.
    #[must_use]
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_something_and_is_bounded_text() {
        assert_eq!(
            Note::new("  seen\r\nelsewhere ").map(|note| note.as_str().to_owned()),
            Ok("seen\nelsewhere".to_owned())
        );
        assert_eq!(Note::new(" \n\t "), Err(NoteFault::Empty));
        assert!(Note::new(&"ä".repeat(NOTE_CHARS_MAX)).is_ok());
        assert_eq!(Note::new(&"ä".repeat(NOTE_CHARS_MAX + 1)), Err(NoteFault::TooLong(NOTE_CHARS_MAX + 1)));
        for text in ["a\u{1b}[31m", "a\0", "a\rb", "\u{85}x\u{7f}"] {
            assert_eq!(Note::new(text), Err(NoteFault::NotText), "{text:?}");
        }
    }
}

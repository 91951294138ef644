//! What a question to the owner says about the page: where it is, and what it is called.
//!
//! A renderer that hangs must not keep a question from being asked. So every read has a bound of its own, and one that
//! takes too long is noted and left out. Both are texts from outside: short, on one line, and without what comes after
//! a question mark in an address, which may be a secret.

use crate::Page;
use std::time::Duration;

/// How long the title is waited for. A page that works answers in a hundredth of it.
pub const TITLE_WITHIN: Duration = Duration::from_secs(2);
/// How long the address is waited for. The browser itself knows it.
const URL_WITHIN: Duration = Duration::from_secs(2);
/// The longest title that is shown: a line.
const TITLE_CHARS_MAX: usize = 120;
const URL_CHARS_MAX: usize = 200;

/// What is known about a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// Its address without query and fragment, if the browser told.
    pub url: Option<String>,
    /// Its title, if it was there in time.
    pub title: Option<String>,
    /// What could not be read, as a line for the run's account.
    pub diagnostics: Vec<String>,
}

impl PageFacts {
    /// Reads what can be read within its bounds.
    #[must_use]
    pub fn read(page: &Page) -> Self {
        let mut facts = Self::default();
        match page.url(URL_WITHIN) {
            Ok(url) => facts.url = Some(place_of(&url)),
            Err(error) => facts.diagnostics.push(format!("page_metadata: the address was not read: {error}")),
        }
        match page.title(TITLE_WITHIN) {
            Ok(title) => facts.title = Some(one_line(&title, TITLE_CHARS_MAX)).filter(|title| !title.is_empty()),
            Err(error) if error.is_timeout() => {
                let seconds = TITLE_WITHIN.as_secs();
                facts.diagnostics.push(format!("page_metadata_timeout: the title was not there within {seconds} s"));
            }
            Err(error) => facts.diagnostics.push(format!("page_metadata: the title was not read: {error}")),
        }
        facts
    }

    /// As part of a question: `"Sign in" at https://service.example/login`.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        match (&self.title, &self.url) {
            (Some(title), Some(url)) => Some(format!("{title:?} at {url}")),
            (Some(title), None) => Some(format!("{title:?}")),
            (None, Some(url)) => Some(url.clone()),
            (None, None) => None,
        }
    }
}

/// An address without query and fragment.
fn place_of(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    one_line(&url[..end], URL_CHARS_MAX)
}

/// A text from outside on one line, at most so long.
fn one_line(text: &str, chars_max: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().filter(|c| !is_direction(*c)).take(chars_max).collect()
}

/// Marks that turn the direction of text around, and so what a person reads.
const fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets_and_a_title_on_one_line() {
        assert_eq!(place_of("https://a.example/callback?code=secret#token"), "https://a.example/callback");
        assert_eq!(one_line("Sign\u{1b}[31m in\n\u{202e}now", 120), "Sign [31m in now");
        assert_eq!(one_line(&"x".repeat(5000), 120).len(), 120);
    }

    #[test]
    fn a_question_says_what_is_known() {
        let facts = |title: Option<&str>, url: Option<&str>| {
            PageFacts { title: title.map(Into::into), url: url.map(Into::into), diagnostics: Vec::new() }.in_words()
        };
        assert_eq!(facts(Some("Sign in"), Some("https://a.example/")).unwrap(), r#""Sign in" at https://a.example/"#);
        assert_eq!(facts(None, Some("https://a.example/")).unwrap(), "https://a.example/");
        assert_eq!(facts(None, None), None);
    }
}

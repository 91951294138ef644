//! What a question to the owner says about the page: where it is, and what it is called.
//!
//! A renderer that hangs must not keep a question from being asked. So every read has a bound of its own, and one that
//! takes too long is noted and left out. Both are texts from outside: short, on one line, and without what comes after
//! a question mark in an address, which may be a secret.

use crate::Page;
use gleaner_base::outside::shortened;
use std::time::Duration;

/// How long the title is waited for. A page that works answers in a hundredth of it.
pub(super) const TITLE_WITHIN: Duration = Duration::from_secs(2);
/// How long the address is waited for. The browser itself knows it.
const URL_WITHIN: Duration = Duration::from_secs(2);
/// The longest title that is shown: a line.
const TITLE_CHARS_MAX: usize = 120;
const URL_CHARS_MAX: usize = 200;

/// What is known about a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageFacts {
    /// Its address without query and fragment, if the browser told.
    pub(super) url: Option<String>,
    /// Its title, if it was there in time.
    pub(super) title: Option<String>,
    /// What could not be read, as a line for the run's account.
    pub(super) diagnostics: Vec<String>,
}

impl PageFacts {
    /// Reads what can be read within its bounds.
    pub(super) fn read(page: &Page) -> Self {
        let mut facts = Self::default();
        match page.url(URL_WITHIN) {
            Ok(url) => facts.url = Some(place_of(&url)),
            Err(error) => facts.diagnostics.push(format!("page_metadata: the address was not read: {error}")),
        }
        match page.title(TITLE_WITHIN) {
            Ok(title) => facts.title = Some(shortened(title.trim(), TITLE_CHARS_MAX)).filter(|title| !title.is_empty()),
            Err(error) if error.is_timeout() => {
                let seconds = TITLE_WITHIN.as_secs();
                facts.diagnostics.push(format!("page_metadata_timeout: the title was not there within {seconds} s"));
            }
            Err(error) => facts.diagnostics.push(format!("page_metadata: the title was not read: {error}")),
        }
        facts
    }

    /// As part of a question: `"Sign in" at https://service.example/login`.
    pub(super) fn in_words(&self) -> Option<String> {
        match (&self.title, &self.url) {
            (Some(title), Some(url)) => Some(format!("\"{title}\" at {url}")),
            (Some(title), None) => Some(format!("\"{title}\"")),
            (None, Some(url)) => Some(url.clone()),
            (None, None) => None,
        }
    }
}

/// An address without query and fragment.
fn place_of(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    shortened(&url[..end], URL_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_short_and_shown_without_its_secrets() {
        assert_eq!(place_of("https://a.example/callback?code=secret#token"), "https://a.example/callback");
        assert!(place_of(&"x".repeat(5000)).chars().count() <= URL_CHARS_MAX + 1);
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

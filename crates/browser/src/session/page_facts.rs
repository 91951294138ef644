//! Address and title of a page, for a question to the owner.
//!
//! A hanging renderer must not block a question. So every read has its own timeout, and a slow one is noted and
//! skipped. Both are untrusted texts: short, on one line, and without the query of the address, which may hold a
//! secret.

use crate::Page;
use gleaner_base::outside::shortened;
use std::time::Duration;

/// Timeout of the title. A working page answers in a hundredth of it.
pub(super) const TITLE_WITHIN: Duration = Duration::from_secs(2);
/// Timeout of the address. The browser itself knows it.
const URL_WITHIN: Duration = Duration::from_secs(2);
/// Maximum length of a shown title: a line.
const TITLE_CHARS_MAX: usize = 120;
const URL_CHARS_MAX: usize = 200;

/// Facts about a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageFacts {
    /// Its address without query and fragment, if known.
    pub(super) url: Option<String>,
    /// Its title, if it came in time.
    pub(super) title: Option<String>,
    /// Failed reads, one line each.
    pub(super) diagnostics: Vec<String>,
}

impl PageFacts {
    /// Reads the facts within their timeouts.
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

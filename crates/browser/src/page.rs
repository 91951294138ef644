//! A page, as a connector sees it. Scripts find and measure, the engine clicks and types: so a page gets the same
//! events as from a person.

mod fetch;
mod form;

pub use fetch::{PageRequest, PageResponse};

use crate::engine::{Deadline, EnginePage};
use crate::error::BrowserError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A page. Dropping it does not close it: the browser does.
#[derive(Clone, Debug)]
pub struct Page {
    pub(crate) page: Arc<dyn EnginePage>,
}

/// Result of a navigation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Navigation {
    /// The final address.
    pub url: String,
    /// The status of its document, if it came over HTTP.
    pub status: Option<u16>,
}

impl Page {
    pub(crate) fn new(page: Arc<dyn EnginePage>) -> Self {
        Self { page }
    }

    /// Navigates to an address, and waits for its document. Images may still be loading.
    ///
    /// # Errors
    ///
    /// The address cannot be reached, the page is gone, or a timeout.
    pub fn navigate(&self, url: &str, within: Duration) -> Result<Navigation, BrowserError> {
        self.page.navigate(url, Deadline::after(within))
    }

    /// The value of an expression in the page. Awaits a promise.
    ///
    /// # Errors
    ///
    /// The script fails, its value is not a `T`, the page is gone, or a timeout.
    pub fn evaluate<T: DeserializeOwned>(&self, expression: &str, within: Duration) -> Result<T, BrowserError> {
        let value = self.page.evaluate(expression, Deadline::after(within))?;
        typed(value, "evaluate")
    }

    /// The title, from the page itself. A hanging renderer does not answer: use a short timeout.
    ///
    /// # Errors
    ///
    /// The page is gone, or a timeout.
    pub fn title(&self, within: Duration) -> Result<String, BrowserError> {
        self.evaluate("document.title", within)
    }

    /// The address. The browser itself knows it, so this works with a hanging renderer.
    ///
    /// # Errors
    ///
    /// The page is gone, or a timeout.
    pub fn url(&self, within: Duration) -> Result<String, BrowserError> {
        self.page.url(Deadline::after(within))
    }

    /// A screenshot of the window, as PNG.
    ///
    /// # Errors
    ///
    /// The page is gone, or a timeout.
    pub fn screenshot(&self, within: Duration) -> Result<Vec<u8>, BrowserError> {
        self.page.screenshot(Deadline::after(within))
    }

    /// Brings the page to the front, for a person.
    ///
    /// # Errors
    ///
    /// The page is gone, or a timeout.
    pub fn show(&self, within: Duration) -> Result<(), BrowserError> {
        self.page.show(Deadline::after(within))
    }

    /// Closes it, also against its will.
    ///
    /// # Errors
    ///
    /// A timeout, or the browser is gone.
    pub fn close(self, within: Duration) -> Result<(), BrowserError> {
        self.page.close(Deadline::after(within))
    }
}

fn typed<T: DeserializeOwned>(value: Value, method: &str) -> Result<T, BrowserError> {
    // The error of serde may quote a value: only its kind is shown.
    serde_json::from_value(value)
        .map_err(|error| BrowserError::protocol(method, format!("the value has another type ({:?})", error.classify())))
}

/// An address without secret parts: without user, query and fragment.
pub(crate) fn address(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (scheme, rest) = url[..end].split_once("://").unwrap_or(("", &url[..end]));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{path}").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_told_without_its_secrets() {
        assert_eq!(address("https://ada:secret@shop.example/a?token=secret#secret"), "https://shop.example/a");
        assert_eq!(address("about:blank"), "about:blank");
        assert_eq!(address("https://shop.example"), "https://shop.example");
    }
}

//! The one way to a browser.

use crate::browser::Browser;
use crate::error::BrowserError;
use crate::request::BrowserRequest;

/// Starts a browser for this run, with a profile that nobody else has until it is dropped.
///
/// # Errors
///
/// When the profile is in use (with the process that has it) or not to be trusted, when there is no browser, or when it
/// does not start.
pub fn acquire_isolated_browser(request: &BrowserRequest) -> Result<Browser, BrowserError> {
    let _ = request;
    Err(BrowserError::NoBrowser { tried: "there is no engine yet".to_owned() })
}

//! A page through the driver.

use super::objects::Objects;
use super::value;
use crate::engine::connection::Connection;
use crate::engine::keys;
use crate::engine::{Deadline, EnginePage, picture};
use crate::error::BrowserError;
use crate::page::{Navigation, address};
use serde_json::{Value, json};
use std::time::Duration;

/// Time to tell a closed page from a lost browser: the driver reports pages first.
const GONE_TOLD_MAX: Duration = Duration::from_millis(200);

/// A page, by the driver's id.
#[derive(Debug)]
pub(crate) struct PatchrightPage {
    pub(crate) connection: Connection<Objects>,
    pub(crate) page: String,
}

/// The page itself, or its main frame, which runs scripts and navigates.
#[derive(Clone, Copy)]
enum Part {
    Page,
    Frame,
}

impl PatchrightPage {
    fn call(
        &self,
        part: Part,
        method: &'static str,
        params: Value,
        what: &'static str,
        deadline: Deadline,
    ) -> Result<Value, BrowserError> {
        let to = self.connection.of_page(&self.page, |objects| {
            let frame = objects.pages.get(&self.page)?;
            Some(match part {
                Part::Page => self.page.clone(),
                Part::Frame => frame.clone(),
            })
        })?;
        self.connection.call(Some(&to), method, params, what, deadline).map_err(|error| self.settled(error))
    }

    /// An answer may arrive before its reason.
    fn settled(&self, error: BrowserError) -> BrowserError {
        if !matches!(error, BrowserError::PageGone(_)) {
            return error;
        }
        let never = self.connection.wait(Deadline::after(GONE_TOLD_MAX), |_| None::<()>);
        never.err().unwrap_or_else(|| self.connection.page_gone(&self.page))
    }

    /// Waits until the document is loaded.
    fn wait_loaded(&self, deadline: Deadline) -> Result<(), BrowserError> {
        self.connection.wait_for_page(&self.page, deadline, |objects| objects.is_loaded(&self.page))
    }
}

impl EnginePage for PatchrightPage {
    fn navigate(&self, url: &str, deadline: Deadline) -> Result<Navigation, BrowserError> {
        let params = json!({"url": url, "waitUntil": "domcontentloaded"});
        match self.call(Part::Frame, "goto", params, "open the page", deadline) {
            Ok(_) => {}
            // The page navigated again before it was loaded: wait for the new document.
            Err(BrowserError::Replaced) => self.wait_loaded(deadline)?,
            Err(BrowserError::Protocol { why, .. }) if why.contains("is interrupted by another navigation") => {
                self.wait_loaded(deadline)?;
            }
            Err(BrowserError::Protocol { why, .. }) => {
                return Err(BrowserError::Navigation { place: address(url), why: reason(&why) });
            }
            Err(error) => return Err(error),
        }
        self.connection.of_page(&self.page, |objects| {
            Some(Navigation { url: objects.url(&self.page)?, status: objects.status(&self.page) })
        })
    }

    fn evaluate(&self, expression: &str, deadline: Deadline) -> Result<Value, BrowserError> {
        // In the page's own script context, as with the other engine, so that requests look like the page's.
        let params = json!({
            "expression": expression, "isFunction": false, "isolatedContext": false,
            "arg": {"value": {"v": "undefined"}, "handles": []},
        });
        const METHOD: &str = "evaluateExpression";
        let answer = self.call(Part::Frame, METHOD, params, "run a script", deadline).map_err(|error| match error {
            BrowserError::Protocol { method, why } if method == METHOD && !why.starts_with("Protocol error") => {
                BrowserError::Script(why)
            }
            error => error,
        })?;
        value::read(&answer["value"]).map_err(|why| BrowserError::protocol(METHOD, why))
    }

    fn click_at(&self, x: f64, y: f64, deadline: Deadline) -> Result<(), BrowserError> {
        self.call(Part::Page, "mouseClick", json!({"x": x, "y": y}), "click", deadline).map(drop)
    }

    fn insert_text(&self, text: &str, deadline: Deadline) -> Result<(), BrowserError> {
        self.call(Part::Page, "keyboardInsertText", json!({"text": text}), "type", deadline).map(drop)
    }

    fn press(&self, key: &str, deadline: Deadline) -> Result<(), BrowserError> {
        let known = keys::find(key)?;
        self.call(Part::Page, "keyboardPress", json!({"key": known.name}), "press a key", deadline).map(drop)
    }

    fn screenshot(&self, deadline: Deadline) -> Result<Vec<u8>, BrowserError> {
        let answer = self.call(Part::Page, "screenshot", json!({"type": "png"}), "draw the page", deadline)?;
        picture(&answer["binary"], "screenshot")
    }

    fn url(&self, _: Deadline) -> Result<String, BrowserError> {
        // The driver reports each navigation, so no call is needed.
        if let Some(why) = self.connection.gone() {
            return Err(BrowserError::Gone(why));
        }
        self.connection.of_page(&self.page, |objects| objects.url(&self.page))
    }

    fn show(&self, deadline: Deadline) -> Result<(), BrowserError> {
        self.call(Part::Page, "bringToFront", json!({}), "show the page", deadline).map(drop)
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        // The driver ends a hanging renderer itself.
        match self.call(Part::Page, "close", json!({}), "close the page", deadline) {
            Err(BrowserError::PageGone(_)) => Ok(()),
            closed => closed.map(drop),
        }
    }
}

/// Why navigation failed, in the browser's words, without the address, which may hold secrets.
fn reason(why: &str) -> String {
    match why.split_once(" at ") {
        Some((code, _)) if code.starts_with("net::") => code.to_owned(),
        _ if why.contains("://") => "the browser could not open the address".to_owned(),
        _ => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_reason_does_not_tell_the_address() {
        assert_eq!(reason("net::ERR_UNSAFE_PORT at http://127.0.0.1:1/a?token=secret"), "net::ERR_UNSAFE_PORT");
        assert_eq!(reason("Download is starting"), "Download is starting");
        assert!(!reason("Navigation to \"https://a.example/?token=secret\" failed").contains("secret"));
    }
}

//! A page through the driver.

use super::objects::Objects;
use super::value;
use crate::connection::Connection;
use crate::engine::{Deadline, EnginePage};
use crate::error::BrowserError;
use crate::keys;
use crate::page::{Navigation, address};
use base64::Engine as _;
use serde_json::{Value, json};
use std::time::Duration;

/// How long it may take to tell a page that was closed from a browser that is gone: the driver tells of pages first.
const GONE_TOLD_MAX: Duration = Duration::from_millis(200);

/// A page, by the driver's name for it.
#[derive(Debug)]
pub(crate) struct PatchrightPage {
    pub(crate) connection: Connection<Objects>,
    pub(crate) page: String,
}

/// The page itself, or its outermost frame, which runs scripts and goes to addresses.
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
        let found = self.connection.look(|objects| match (part, objects.page(&self.page)) {
            (Part::Page, Some(_)) => Ok(self.page.clone()),
            (Part::Frame, Some(page)) => Ok(page.frame.clone()),
            (_, None) => Err(objects.why_closed(&self.page)),
        });
        let to = found.map_err(|why| self.gone(why))?;
        self.connection.call(Some(&to), method, params, what, deadline).map_err(|error| self.settled(error))
    }

    /// With the browser gone, its pages are too, and that is the better reason.
    fn gone(&self, why: String) -> BrowserError {
        match self.connection.gone() {
            Some(why) => BrowserError::Gone { why },
            None => BrowserError::PageGone { why },
        }
    }

    /// An answer may overtake the reason of it.
    fn settled(&self, error: BrowserError) -> BrowserError {
        if !matches!(error, BrowserError::PageGone { .. }) {
            return error;
        }
        let never = self.connection.wait(Deadline::after(GONE_TOLD_MAX), |_| None::<()>);
        match never {
            Err(gone) => gone,
            Ok(_) => self.gone(self.connection.look(|objects| objects.why_closed(&self.page))),
        }
    }

    /// Waits until the document is all there.
    fn wait_loaded(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let loaded = self.connection.wait(deadline, |objects| match objects.page(&self.page) {
            Some(_) => objects.is_loaded(&self.page).then_some(Ok(())),
            None => Some(Err(objects.why_closed(&self.page))),
        })?;
        match loaded {
            Some(loaded) => loaded.map_err(|why| self.gone(why)),
            None => Err(deadline.timed_out("open the page")),
        }
    }
}

impl EnginePage for PatchrightPage {
    fn navigate(&self, url: &str, deadline: Deadline) -> Result<Navigation, BrowserError> {
        let params = json!({"url": url, "waitUntil": "domcontentloaded"});
        match self.call(Part::Frame, "goto", params, "open the page", deadline) {
            Ok(_) => {}
            // The page went on by itself before it was all there: that is where it leads.
            Err(BrowserError::Replaced) => self.wait_loaded(deadline)?,
            Err(BrowserError::Protocol { why, .. }) if why.contains("is interrupted by another navigation") => {
                self.wait_loaded(deadline)?;
            }
            Err(BrowserError::Protocol { why, .. }) => {
                return Err(BrowserError::Navigation { place: address(url), why: reason(&why) });
            }
            Err(error) => return Err(error),
        }
        let found = self.connection.look(|objects| Some((objects.url(&self.page)?, objects.status(&self.page))));
        let (url, status) = found.ok_or_else(|| self.gone("it was closed".to_owned()))?;
        Ok(Navigation { url, status })
    }

    fn evaluate(&self, expression: &str, deadline: Deadline) -> Result<Value, BrowserError> {
        // Where the page's own scripts are, as with the other engine: a request of the page is to be one.
        let params = json!({
            "expression": expression, "isFunction": false, "isolatedContext": false,
            "arg": {"value": {"v": "undefined"}, "handles": []},
        });
        const METHOD: &str = "evaluateExpression";
        let answer = self.call(Part::Frame, METHOD, params, "run a script", deadline).map_err(|error| match error {
            BrowserError::Protocol { method, why } if method == METHOD && !why.starts_with("Protocol error") => {
                BrowserError::Script { message: why }
            }
            error => error,
        })?;
        value::read(&answer["value"])
            .map_err(|why| BrowserError::Protocol { method: METHOD.to_owned(), why: why.to_owned() })
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
        let data = answer["binary"].as_str().unwrap_or_default();
        base64::engine::general_purpose::STANDARD.decode(data).map_err(|_| BrowserError::Protocol {
            method: "screenshot".to_owned(),
            why: "the picture is no base64".to_owned(),
        })
    }

    fn url(&self, _: Deadline) -> Result<String, BrowserError> {
        // The driver tells of each move, so nobody needs to be asked.
        if let Some(why) = self.connection.gone() {
            return Err(BrowserError::Gone { why });
        }
        let found =
            self.connection.look(|objects| objects.url(&self.page).ok_or_else(|| objects.why_closed(&self.page)));
        found.map_err(|why| self.gone(why))
    }

    fn show(&self, deadline: Deadline) -> Result<(), BrowserError> {
        self.call(Part::Page, "bringToFront", json!({}), "show the page", deadline).map(drop)
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        // The driver ends a renderer that hangs by itself.
        match self.call(Part::Page, "close", json!({}), "close the page", deadline) {
            Err(BrowserError::PageGone { .. }) => Ok(()),
            closed => closed.map(drop),
        }
    }
}

/// Why an address could not be reached, in the browser's words, and without the address, which may hold secrets.
fn reason(why: &str) -> String {
    match why.split_once(" at ") {
        Some((code, _)) if code.starts_with("net::") => code.to_owned(),
        _ if why.contains("://") => "the browser did not go there".to_owned(),
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

//! A page through the pipe.

use super::world::World;
use crate::engine::connection::Connection;
use crate::engine::keys;
use crate::engine::{Deadline, EnginePage, picture};
use crate::error::BrowserError;
use crate::page::{Navigation, address};
use serde_json::{Value, json};
use std::time::Duration;

/// A page, by the browser's id.
#[derive(Debug)]
pub(crate) struct PipePage {
    pub(crate) connection: Connection<World>,
    pub(crate) target: String,
}

/// The page's address and HTTP status.
const WHERE: &str = "[location.href, performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0]";

/// Timeout for a loaded document to report its address.
const WHERE_MAX: Duration = Duration::from_secs(5);
/// Timeout for a normal close.
const CLOSE_ASKED_MAX: Duration = Duration::from_millis(1500);
/// Time to crash a page. There is no answer to it.
const CRASH_MAX: Duration = Duration::from_millis(200);

impl PipePage {
    fn call(
        &self,
        method: &'static str,
        params: Value,
        what: &'static str,
        deadline: Deadline,
    ) -> Result<Value, BrowserError> {
        let session =
            self.connection.of_page(&self.target, |world| Some(world.pages.get(&self.target)?.session.clone()))?;
        self.connection.call(Some(&session), method, params, what, deadline)
    }
}

impl EnginePage for PipePage {
    fn navigate(&self, url: &str, deadline: Deadline) -> Result<Navigation, BrowserError> {
        let answer = self.call("Page.navigate", json!({"url": url}), "open the page", deadline)?;
        if let Some(why) = answer["errorText"].as_str() {
            return Err(BrowserError::Navigation { place: address(url), why: why.to_owned() });
        }
        // Without a loader the document is the same: only the fragment changed.
        if let Some(loader) = answer["loaderId"].as_str() {
            let is_ready = |world: &mut World| world.pages.get(&self.target).is_some_and(|page| page.is_ready(loader));
            self.connection.wait_for_page(&self.target, deadline, is_ready)?;
        }
        loop {
            match self.evaluate(WHERE, Deadline::after(deadline.left().min(WHERE_MAX))) {
                Err(BrowserError::Replaced) if !deadline.is_over() => {}
                // The document loaded and hangs since: the next call finds out.
                Err(BrowserError::TimedOut { .. }) if !deadline.is_over() => {
                    return self.url(deadline).map(|url| Navigation { url, status: None });
                }
                found => return found.map(|found| whereabouts(&found)),
            }
        }
    }

    fn evaluate(&self, expression: &str, deadline: Deadline) -> Result<Value, BrowserError> {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
            "allowUnsafeEvalBlockedByCSP": false,
        });
        let mut answer = self.call("Runtime.evaluate", params, "run a script", deadline)?;
        if let Some(details) = answer.get("exceptionDetails") {
            let described = details["exception"]["description"].as_str().or_else(|| details["text"].as_str());
            let first = described.unwrap_or("it threw something").lines().next().unwrap_or_default();
            return Err(BrowserError::Script(first.chars().take(300).collect()));
        }
        Ok(answer["result"]["value"].take())
    }

    fn click_at(&self, x: f64, y: f64, deadline: Deadline) -> Result<(), BrowserError> {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let params = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params, "click", deadline)?;
        }
        Ok(())
    }

    fn insert_text(&self, text: &str, deadline: Deadline) -> Result<(), BrowserError> {
        self.call("Input.insertText", json!({"text": text}), "type", deadline).map(drop)
    }

    fn press(&self, key: &str, deadline: Deadline) -> Result<(), BrowserError> {
        let known = keys::find(key)?;
        let kind = if known.text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [kind, "keyUp"] {
            let text = if kind == "keyDown" { known.text } else { "" };
            let params = json!({
                "type": kind, "key": known.name, "code": known.name, "windowsVirtualKeyCode": known.number, "text": text,
            });
            self.call("Input.dispatchKeyEvent", params, "press a key", deadline)?;
        }
        Ok(())
    }

    fn screenshot(&self, deadline: Deadline) -> Result<Vec<u8>, BrowserError> {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}), "draw the page", deadline)?;
        picture(&answer["data"], "Page.captureScreenshot")
    }

    fn url(&self, deadline: Deadline) -> Result<String, BrowserError> {
        // Asked of the browser and not of the page. While the page moves from a hanging renderer to another one there
        // is no answer: then it keeps the old address.
        let params = json!({"targetId": self.target});
        let answer = self.connection.call(None, "Target.getTargetInfo", params, "say where the page is", deadline);
        let before = || self.connection.look(|world| world.pages.get(&self.target).map(|page| page.url.clone()));
        match answer {
            Ok(answer) => match answer["targetInfo"]["url"].as_str() {
                Some(url) if !url.is_empty() => Ok(url.to_owned()),
                _ => Ok(before().unwrap_or_default()),
            },
            Err(BrowserError::PageGone(_)) => Err(self.connection.page_gone(&self.target)),
            Err(error) => Err(error),
        }
    }

    fn show(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let params = json!({"targetId": self.target});
        self.connection.call(None, "Target.activateTarget", params, "show the page", deadline).map(drop)
    }

    fn close(&self, deadline: Deadline) -> Result<(), BrowserError> {
        let Some(session) = self.connection.look(|world| Some(world.pages.get(&self.target)?.session.clone())) else {
            return Ok(());
        };
        let is_closed = |within| {
            let params = json!({"targetId": self.target});
            // It is closed when it is gone, whatever the answer.
            drop(self.connection.call(None, "Target.closeTarget", params, "close the page", Deadline::after(within)));
            self.connection.wait(Deadline::after(within), |world| world.pages.get(&self.target).is_none().then_some(()))
        };
        if is_closed(deadline.left().min(CLOSE_ASKED_MAX))?.is_some() {
            return Ok(());
        }
        // A hanging renderer does not close: it is crashed from outside, without an answer.
        let crash =
            self.connection.call(Some(&session), "Page.crash", json!({}), "close the page", Deadline::after(CRASH_MAX));
        drop(crash);
        is_closed(deadline.left())?.ok_or_else(|| deadline.timed_out("close the page"))
    }
}

fn whereabouts(found: &Value) -> Navigation {
    let status = found[1].as_u64().and_then(|status| u16::try_from(status).ok()).filter(|&status| status != 0);
    Navigation { url: found[0].as_str().unwrap_or_default().to_owned(), status }
}

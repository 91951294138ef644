//! Forms: waiting, filling in, clicking.
//!
//! A selector is a CSS selector. It is embedded in a script as a JSON text, so it cannot become code.

use super::Page;
use crate::engine::Deadline;
use crate::error::BrowserError;
use serde::Deserialize;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Poll interval of a page. A person does not notice a tenth of a second.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until the page is drawn, and then drawn again. A page without content is never drawn, and one in the
/// background not again: a second and a quarter of one are the timeouts.
const DRAWN: &str = "(async () => { const pause = ms => new Promise(done => setTimeout(done, ms)); \
    for (let i = 0; i < 20 && performance.getEntriesByType('paint').length === 0; i++) await pause(50); \
    await Promise.race([pause(250), new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))]) })()";

impl Page {
    /// Waits until an element is visible.
    ///
    /// # Errors
    ///
    /// It does not appear in time, or the page is gone.
    pub fn wait_for(&self, selector: &str, within: Duration) -> Result<(), BrowserError> {
        self.find(selector, Deadline::after(within)).map(drop)
    }

    /// Waits until an expression is true.
    ///
    /// # Errors
    ///
    /// It does not become true in time, its script fails, or the page is gone.
    pub fn wait_until(&self, expression: &str, within: Duration) -> Result<(), BrowserError> {
        let script = format!("Boolean({expression})");
        let deadline = Deadline::after(within);
        poll(deadline, || match self.page.evaluate(&script, deadline) {
            Ok(Value::Bool(true)) => Ok(Some(())),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        })?
        .ok_or_else(|| deadline.timed_out("see what was waited for"))
    }

    /// Waits for a field and replaces its content, as if pasted.
    ///
    /// # Errors
    ///
    /// It does not appear in time, or the page is gone. Never contains the text.
    pub fn fill(&self, selector: &str, text: &str, within: Duration) -> Result<(), BrowserError> {
        let deadline = Deadline::after(within);
        self.find(selector, deadline)?;
        let focus = format!(
            "(() => {{ const field = document.querySelector({selector}); if (!field) return false; field.focus(); \
             if (field.select) field.select(); else document.getSelection().selectAllChildren(field); return true }})()",
            selector = quoted(selector)
        );
        if self.page.evaluate(&focus, deadline)? != Value::Bool(true) {
            return Err(not_there(selector, deadline));
        }
        if text.is_empty() { self.page.press("Delete", deadline) } else { self.page.insert_text(text, deadline) }
    }

    /// Waits for an element and clicks it.
    ///
    /// # Errors
    ///
    /// It does not appear in time, or the page is gone.
    pub fn click(&self, selector: &str, within: Duration) -> Result<(), BrowserError> {
        let deadline = Deadline::after(within);
        self.find(selector, deadline)?;
        // A page that is not drawn yet drops clicks, and a moving element is missed.
        self.page.evaluate(DRAWN, deadline)?;
        let place = self.find(selector, deadline)?;
        self.page.click_at(place.x, place.y, deadline)
    }

    /// Presses a key at the cursor, such as `Enter` or `Tab`.
    ///
    /// # Errors
    ///
    /// The key is unknown, the page is gone, or a timeout.
    pub fn press(&self, key: &str, within: Duration) -> Result<(), BrowserError> {
        self.page.press(key, Deadline::after(within))
    }

    /// Waits until an element is visible, scrolls to it, and returns its center.
    fn find(&self, selector: &str, deadline: Deadline) -> Result<Point, BrowserError> {
        let script = format!(
            "(() => {{ const found = document.querySelector({selector}); if (!found) return null; \
             found.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}}); \
             const box = found.getBoundingClientRect(); \
             if (box.width === 0 || box.height === 0 || getComputedStyle(found).visibility === 'hidden') return null; \
             return {{x: box.x + box.width / 2, y: box.y + box.height / 2}} }})()",
            selector = quoted(selector)
        );
        let look = || match self.page.evaluate(&script, deadline)? {
            Value::Null => Ok(None),
            value => super::typed::<Point>(value, "find").map(Some),
        };
        poll(deadline, look)?.ok_or_else(|| not_there(selector, deadline))
    }
}

/// Polls until there is a result. A document that is replaced meanwhile is no error.
fn poll<T>(
    deadline: Deadline,
    mut look: impl FnMut() -> Result<Option<T>, BrowserError>,
) -> Result<Option<T>, BrowserError> {
    loop {
        match look() {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) | Err(BrowserError::Replaced) => {}
            Err(error) => return Err(error),
        }
        if deadline.left() <= POLL_INTERVAL {
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[derive(Deserialize)]
struct Point {
    x: f64,
    y: f64,
}

/// A text as a JavaScript literal.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn not_there(selector: &str, deadline: Deadline) -> BrowserError {
    BrowserError::NotThere { selector: selector.to_owned(), within: deadline.within }
}

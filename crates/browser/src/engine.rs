//! Interface between connector-facing types and the engine that drives the browser.
//!
//! An engine can open a page, navigate, run a script, press keys and take a screenshot. `page.rs` builds everything
//! else from these, once for all engines.

pub(crate) mod choice;
pub(crate) mod connection;
pub(crate) mod downloads;
pub(crate) mod driven;
pub(crate) mod keys;
pub(crate) mod message;
pub(crate) mod open_pages;
#[cfg(feature = "patchright")]
pub(crate) mod patchright;
pub(crate) mod pipe;

use crate::browser::{BrowserCounts, Download};
use crate::error::BrowserError;
use crate::page::Navigation;
use base64::Engine as _;
use serde_json::Value;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Our own, over a pipe.
    Pipe,
    /// Patchright's, through its driver.
    Patchright,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe => "pipe",
            Self::Patchright => "patchright",
        })
    }
}

/// Deadline of a call, with its length for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) within: Duration,
    at: Instant,
}

impl Deadline {
    pub(crate) fn after(within: Duration) -> Self {
        /// Longer deadlines are cut to this, which always fits the clock.
        const FAR: Duration = Duration::from_secs(24 * 3600);
        let now = Instant::now();
        Self { within, at: now + within.min(FAR) }
    }

    pub(crate) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }

    pub(crate) const fn timed_out(self, what: &'static str) -> BrowserError {
        BrowserError::TimedOut { what, within: self.within }
    }
}

/// A running browser.
pub(crate) trait Engine: Debug + Send + Sync {
    fn kind(&self) -> EngineKind;
    fn new_page(&self, deadline: Deadline) -> Result<Arc<dyn EnginePage>, BrowserError>;
    /// Pages that other pages opened and that were not returned yet.
    fn take_popups(&self) -> Vec<Arc<dyn EnginePage>>;
    fn downloads(&self) -> Vec<Download>;
    fn counts(&self) -> BrowserCounts;
    /// Why the browser is gone, if it is.
    fn gone(&self) -> Option<String>;
    /// Asks the browser to close, and waits for it.
    fn close(&self, deadline: Deadline) -> Result<(), BrowserError>;
}

/// A page of it.
pub(crate) trait EnginePage: Debug + Send + Sync {
    /// Navigates to an address, and waits for its document.
    fn navigate(&self, url: &str, deadline: Deadline) -> Result<Navigation, BrowserError>;
    /// The value of an expression; awaits a promise.
    fn evaluate(&self, expression: &str, deadline: Deadline) -> Result<Value, BrowserError>;
    /// A mouse click at a position in the window.
    fn click_at(&self, x: f64, y: f64, deadline: Deadline) -> Result<(), BrowserError>;
    /// Inserts text at the cursor, as if pasted.
    fn insert_text(&self, text: &str, deadline: Deadline) -> Result<(), BrowserError>;
    /// One key by its name, such as `Enter`.
    fn press(&self, key: &str, deadline: Deadline) -> Result<(), BrowserError>;
    /// A screenshot of the window, as PNG.
    fn screenshot(&self, deadline: Deadline) -> Result<Vec<u8>, BrowserError>;
    /// The address, without asking the renderer.
    fn url(&self, deadline: Deadline) -> Result<String, BrowserError>;
    /// Brings its window to the front.
    fn show(&self, deadline: Deadline) -> Result<(), BrowserError>;
    fn close(&self, deadline: Deadline) -> Result<(), BrowserError>;
}

/// A picture from an answer.
pub(crate) fn picture(data: &Value, method: &str) -> Result<Vec<u8>, BrowserError> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap_or_default());
    decoded.map_err(|_| BrowserError::protocol(method, "the picture is not base64"))
}

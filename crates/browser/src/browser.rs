//! A browser, as a connector sees it.

use crate::engine::{Deadline, Engine, EngineKind};
use crate::error::BrowserError;
use crate::notice::Notice;
use crate::page::Page;
use crate::request::Window;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A running browser with its own profile. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Browser {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) window: Window,
    pub(crate) profile: PathBuf,
    /// Last, so that the profile is released after the browser is gone.
    pub(crate) _held: crate::profile::HeldProfile,
}

/// Poll interval for downloads.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Browser {
    /// Opens a page.
    ///
    /// # Errors
    ///
    /// There are too many pages, the browser is gone, or a timeout.
    pub fn new_page(&self, within: Duration) -> Result<Page, BrowserError> {
        self.engine.new_page(Deadline::after(within)).map(Page::new)
    }

    /// Pages that other pages opened since the last call. Those beyond the limit were closed and counted.
    pub fn popups(&self) -> Vec<Page> {
        self.engine.take_popups().into_iter().map(Page::new).collect()
    }

    /// The downloads of this run. Files are deleted with the browser: move those to keep.
    pub fn downloads(&self) -> Vec<Download> {
        self.engine.downloads()
    }

    /// Waits until this many downloads are complete, and returns all.
    ///
    /// # Errors
    ///
    /// The browser is gone, or a timeout.
    pub fn wait_for_downloads(&self, count: usize, within: Duration) -> Result<Vec<Download>, BrowserError> {
        let deadline = Deadline::after(within);
        loop {
            let done = self.downloads().into_iter().filter(|download| download.is_complete).collect::<Vec<_>>();
            if done.len() >= count {
                return Ok(done);
            }
            if let Some(why) = self.engine.gone() {
                return Err(BrowserError::Gone(why));
            }
            if deadline.is_over() {
                return Err(deadline.timed_out("finish its downloads"));
            }
            std::thread::sleep(POLL_INTERVAL.min(deadline.left()));
        }
    }

    /// Automatic decisions that the owner should know of.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Counts of unrequested actions of pages.
    pub fn counts(&self) -> BrowserCounts {
        self.engine.counts()
    }

    /// The engine that drives it.
    pub fn engine(&self) -> EngineKind {
        self.engine.kind()
    }

    /// Whether the owner can see and use it.
    pub fn has_window(&self) -> bool {
        self.window == Window::Headed
    }

    /// Path of its profile.
    pub fn profile(&self) -> &Path {
        &self.profile
    }

    /// Why the browser is gone, if it is.
    pub fn gone(&self) -> Option<String> {
        self.engine.gone()
    }

    /// Closes the browser normally, so that its state is saved. Remaining processes are killed.
    ///
    /// # Errors
    ///
    /// It did not end normally. It is gone all the same.
    pub fn close(self, within: Duration) -> Result<(), BrowserError> {
        self.engine.close(Deadline::after(within))
    }
}

/// Unrequested actions of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserCounts {
    /// Alerts, prompts, and "do you want to leave".
    pub dialogs_dismissed: u64,
    /// Popups beyond the limit.
    pub popups_closed: u64,
    /// Downloads beyond the limits.
    pub downloads_cancelled: u64,
    /// Unexpected messages of the browser beyond the limit.
    pub events_dropped: u64,
}

/// A download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The page's name for it. Untrusted text, never a path.
    pub suggested_name: String,
    /// Its path.
    pub path: PathBuf,
    /// Its current size.
    pub bytes: u64,
    /// Whether it is complete.
    pub is_complete: bool,
}

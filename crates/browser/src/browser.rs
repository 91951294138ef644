//! A browser as a connector sees it.

use crate::engine::{Deadline, Engine, EngineKind};
use crate::error::BrowserError;
use crate::notice::Notice;
use crate::page::Page;
use crate::request::Window;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A running browser with a profile of its own. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Browser {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) window: Window,
    pub(crate) profile: PathBuf,
    /// Last, so that the profile is free only when the browser is gone.
    pub(crate) _held: crate::profile::HeldProfile,
}

/// How often it is looked whether a download is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Browser {
    /// Opens a page.
    ///
    /// # Errors
    ///
    /// When there are too many, the browser is gone, or it takes too long.
    pub fn new_page(&self, within: Duration) -> Result<Page, BrowserError> {
        self.engine.new_page(Deadline::after(within)).map(Page::new)
    }

    /// Pages that were opened by pages since the last call. Those beyond the bound were closed and counted.
    pub fn popups(&self) -> Vec<Page> {
        self.engine.take_popups().into_iter().map(Page::new).collect()
    }

    /// What was downloaded in this run. Files are deleted with the browser: move away what is to be kept.
    pub fn downloads(&self) -> Vec<Download> {
        self.engine.downloads()
    }

    /// Waits until this many downloads are complete, and gives all of them.
    ///
    /// # Errors
    ///
    /// When the browser is gone, or it takes too long.
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
            std::thread::sleep(LOOK_AGAIN.min(deadline.left()));
        }
    }

    /// What was done without having been asked for, for the owner to know.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// What pages tried, and how often.
    pub fn counts(&self) -> BrowserCounts {
        self.engine.counts()
    }

    /// What drives it.
    pub fn engine(&self) -> EngineKind {
        self.engine.kind()
    }

    /// Whether an owner can see and use it.
    pub fn has_window(&self) -> bool {
        self.window == Window::Headed
    }

    /// Where its profile is.
    pub fn profile(&self) -> &Path {
        &self.profile
    }

    /// Why the browser is no longer there, if it is not.
    pub fn gone(&self) -> Option<String> {
        self.engine.gone()
    }

    /// Ends the browser as a person would: what it knows is on the disk afterwards. Whatever is left is killed.
    ///
    /// # Errors
    ///
    /// When it did not end by itself. It is gone all the same.
    pub fn close(self, within: Duration) -> Result<(), BrowserError> {
        self.engine.close(Deadline::after(within))
    }
}

/// What pages tried that nobody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserCounts {
    /// Alerts, questions, and "do you want to leave".
    pub dialogs_dismissed: u64,
    /// Pages beyond the bound.
    pub popups_closed: u64,
    /// Downloads beyond the bounds.
    pub downloads_cancelled: u64,
    /// Messages of the browser's that nobody waited for, beyond the bound.
    pub events_dropped: u64,
}

/// A download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// What the page calls it. A text from outside: never a path.
    pub suggested_name: String,
    /// Where it is.
    pub path: PathBuf,
    /// How large it is by now.
    pub bytes: u64,
    /// Whether it is all there.
    pub is_complete: bool,
}

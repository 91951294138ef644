//! Open and closed pages of a browser, and counts of unrequested actions. Pure.
//!
//! Both engines use it, each with its own state of a page. It stays small whatever pages do: pages, downloads and the
//! list of closed pages have limits; everything beyond is refused, canceled or dropped, and counted.

use crate::browser::{BrowserCounts, Download};
use crate::engine::connection::{Consequences, Order};
use crate::engine::downloads::{Downloads, Unwanted};
use crate::error::BrowserError;
use crate::limits::Limits;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Closed pages that are remembered, for messages.
const CLOSED_MAX: usize = 64;

/// Pages by id, each with the engine's state.
#[derive(Debug)]
pub(crate) struct OpenPages<P> {
    pub(crate) limits: Limits,
    open: BTreeMap<String, OpenPage<P>>,
    closed: VecDeque<(String, String)>,
    /// Unrequested pages that were not taken yet.
    unclaimed: Vec<String>,
    downloads: Downloads,
    pub(crate) counts: BrowserCounts,
}

#[derive(Debug)]
struct OpenPage<P> {
    known: P,
    dialogs: u64,
}

impl<P> OpenPages<P> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: BTreeMap::new(),
            closed: VecDeque::new(),
            unclaimed: Vec::new(),
            downloads: Downloads::new(limits),
            counts: BrowserCounts::default(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&P> {
        self.open.get(name).map(|page| &page.known)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut P> {
        self.open.get_mut(name).map(|page| &mut page.known)
    }

    /// The id of the page that matches.
    pub(crate) fn find(&self, is_it: impl Fn(&P) -> bool) -> Option<String> {
        self.open.iter().find(|(_, page)| is_it(&page.known)).map(|(name, _)| name.clone())
    }

    /// Why a page is not open.
    pub(crate) fn why_closed(&self, name: &str) -> String {
        let known = self.closed.iter().find(|(closed, _)| closed == name);
        known.map_or_else(|| "it was closed".to_owned(), |(_, why)| why.clone())
    }

    /// The error for one more page, if the limit is reached.
    pub(crate) fn check_room(&self) -> Result<(), BrowserError> {
        if self.open.len() < self.limits.pages_max { Ok(()) } else { Err(self.too_many()) }
    }

    pub(crate) const fn too_many(&self) -> BrowserError {
        BrowserError::TooMany { what: "pages open", max: self.limits.pages_max as u64 }
    }

    /// Adds a page; `false` when the limit is reached and it must be closed.
    pub(crate) fn add(&mut self, name: &str, known: P) -> bool {
        let has_room = self.check_room().is_ok();
        if has_room {
            self.open.insert(name.to_owned(), OpenPage { known, dialogs: 0 });
            self.unclaimed.push(name.to_owned());
        } else {
            self.counts.popups_closed += 1;
        }
        has_room
    }

    /// Marks a requested page as taken; returns whether it is open.
    pub(crate) fn claim(&mut self, name: &str) -> bool {
        self.unclaimed.retain(|other| other != name);
        self.open.contains_key(name)
    }

    pub(crate) fn take_unclaimed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unclaimed)
    }

    /// Removes a page: its state, and why it is gone. An earlier reason is kept.
    pub(crate) fn lose(&mut self, name: &str, why: &str) -> Option<(P, String)> {
        let page = self.open.remove(name)?;
        self.unclaimed.retain(|other| other != name);
        if !self.closed.iter().any(|(closed, _)| closed == name) {
            self.remember(name, why);
        }
        Some((page.known, self.why_closed(name)))
    }

    /// Counts a dialog; `false` when there were too many and the page must be closed: its script waits for an answer
    /// and would open the next.
    pub(crate) fn allows_dialog(&mut self, name: &str) -> bool {
        let max = self.limits.dialogs_max;
        if let Some(page) = self.open.get_mut(name) {
            page.dialogs += 1;
            if page.dialogs > max {
                self.remember(name, &format!("it opened more than {max} dialogs"));
                return false;
            }
        }
        self.counts.dialogs_dismissed += 1;
        true
    }

    /// Consequences of a download event. `cancel` creates the order that cancels one.
    pub(crate) fn on_download(
        &mut self,
        method: &str,
        params: &Value,
        cancel: impl FnOnce(&str) -> Order,
    ) -> Consequences {
        let (orders, guid) = match self.downloads.on_event(method, params) {
            None => return Consequences::default(),
            Some(Unwanted::Complete(guid)) => (Vec::new(), guid),
            Some(Unwanted::Coming(guid)) => {
                self.counts.downloads_cancelled += 1;
                (vec![cancel(&guid)], guid)
            }
        };
        Consequences { orders, delete: vec![guid], ..Consequences::default() }
    }

    /// Downloads for a connector, with their paths.
    pub(crate) fn downloads(&self, folder: &Path) -> Vec<Download> {
        self.downloads.list(folder)
    }

    fn remember(&mut self, name: &str, why: &str) {
        self.closed.push_back((name.to_owned(), why.to_owned()));
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_closed_pages_stays_small() {
        let mut pages = OpenPages::new(Limits::default());
        for at in 0..1000 {
            let name = format!("page {at}");
            assert!(pages.add(&name, at) && pages.lose(&name, "it was tired") == Some((at, "it was tired".to_owned())));
        }
        assert_eq!((pages.closed.len(), pages.unclaimed.len()), (CLOSED_MAX, 0));
        assert_eq!(
            (pages.why_closed("page 999").as_str(), pages.why_closed("page 1").as_str()),
            ("it was tired", "it was closed")
        );
        assert_eq!(pages.lose("page 999", "again"), None);
    }
}

//! The pages that a browser has open, those that it had, and what they tried that nobody asked for. Pure.
//!
//! Both engines keep them here, each with what it knows of a page. Whatever pages do, this stays small: pages, downloads
//! and the memory of closed pages each have a bound, and what is beyond it is refused, cancelled or forgotten, and counted.

use crate::browser::{BrowserCounts, Download};
use crate::engine::connection::{Consequences, Order};
use crate::engine::downloads::{Downloads, Unwanted};
use crate::error::BrowserError;
use crate::limits::Limits;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// How many closed pages are remembered, for the words about them.
const CLOSED_MAX: usize = 64;

/// Pages by their names, each with what an engine knows of it.
#[derive(Debug)]
pub(crate) struct OpenPages<P> {
    pub(crate) limits: Limits,
    open: BTreeMap<String, OpenPage<P>>,
    closed: VecDeque<(String, String)>,
    /// Pages that nobody asked for and nobody has taken yet.
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

    /// The name of the page of which this is so.
    pub(crate) fn find(&self, is_it: impl Fn(&P) -> bool) -> Option<String> {
        self.open.iter().find(|(_, page)| is_it(&page.known)).map(|(name, _)| name.clone())
    }

    /// Why a page is not open.
    pub(crate) fn why_closed(&self, name: &str) -> String {
        let known = self.closed.iter().find(|(closed, _)| closed == name);
        known.map_or_else(|| "it was closed".to_owned(), |(_, why)| why.clone())
    }

    /// The error of whoever wants one more, if there are as many as there may be.
    pub(crate) fn check_room(&self) -> Result<(), BrowserError> {
        if self.open.len() < self.limits.pages_max { Ok(()) } else { Err(self.too_many()) }
    }

    pub(crate) const fn too_many(&self) -> BrowserError {
        BrowserError::TooMany { what: "pages open", max: self.limits.pages_max as u64 }
    }

    /// A page was opened; `false` when it is one too many, and has to be closed.
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

    /// Whoever asked for this page has it now; whether it is open.
    pub(crate) fn claim(&mut self, name: &str) -> bool {
        self.unclaimed.retain(|other| other != name);
        self.open.contains_key(name)
    }

    pub(crate) fn take_unclaimed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unclaimed)
    }

    /// A page is gone: what was known of it, and why it is gone. One that was closed for a reason keeps that.
    pub(crate) fn lose(&mut self, name: &str, why: &str) -> Option<(P, String)> {
        let page = self.open.remove(name)?;
        self.unclaimed.retain(|other| other != name);
        if !self.closed.iter().any(|(closed, _)| closed == name) {
            self.remember(name, why);
        }
        Some((page.known, self.why_closed(name)))
    }

    /// A page opens a dialog; `false` when it has opened too many, and has to be closed: its script waits for an answer,
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

    /// What follows from what the browser says about downloads. `cancel` makes the order that cancels one.
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

    /// Downloads as a connector sees them, in the folder where they are.
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

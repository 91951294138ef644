//! Detail lane: a list with a detail per item, newest first, recovery before new work, and a coverage report.
//!
//! An author implements [`Source`]: one page of a list, one detail. The difficult parts are here, and pure where they
//! decide: the total order of a moving list (`in_order`), the accounted ranges (`cursor`, `backlog`), the outcome of
//! every key (`ledger`). The rest calls and sends (`work`, `walk`, `recovery`, `forward`).
//!
//! **Invariant after every message:** each listed item is stored, or has its own gap, or is in a range of the backlog
//! gap, or is above the range that the cursor covers. Therefore a gap is sent before the cursor that relies on it,
//! and a cursor after everything that it covers.
//!
//! ```no_run
//! # use gleaner_sdk::{Collect, FetchError, Stop};
//! use gleaner_sdk::lane::{Detail, ListItem, ListPage, Timestamp};
//!
//! # fn collect(run: &mut Collect<'_>) -> Result<(), Stop> {
//! let api = run.client()?;
//! run.lane("threads", "messages").collect(
//!     |at| {
//!         let page = at.page.as_deref().unwrap_or_default();
//!         let url = format!("https://mail.example/threads?page={page}");
//!         let list: serde_json::Value = api.get(url).send()?.error_for_status()?.json()?;
//!         let text = |thread: &serde_json::Value, name: &str| thread[name].as_str().unwrap_or_default().to_owned();
//!         let items = list["threads"].as_array().into_iter().flatten();
//!         let item = |thread| ListItem::new(text(thread, "id"), Timestamp::new(text(thread, "changed"))).record(thread);
//!         let next = list["next"].as_str().map(str::to_owned);
//!         Ok(ListPage { items: items.map(item).collect(), next, left: None })
//!     },
//!     |thread| {
//!         let url = format!("https://mail.example/threads/{}", thread.key);
//!         let body: serde_json::Value = api.get(url).send()?.error_for_status()?.json()?;
//!         Ok(Detail::new().record(thread.key.as_str(), &body))
//!     },
//! )?;
//! # Ok(())
//! # }
//! ```

mod backlog;
mod cursor;
mod forward;
mod in_order;
mod ledger;
mod place;
mod recovery;
mod source;
mod threads;
mod ties;
mod walk;
mod work;

pub use backlog::BACKLOG_KEY;
pub use place::Timestamp;
pub use source::{Detail, ListAt, ListItem, ListPage, Source, Target};

use crate::collect::Collect;
use crate::fetch_error::FetchError;
use crate::pages::Left;
use crate::stop::Stop;
use gleaner_protocol::DeferReason;
use ledger::{Ledger, Outcome};
use source::Functions;
use std::io::Write;
use work::Work;

/// Items per cursor. A kill repeats at most this many plus a page, and a commit costs a sync: little beside a hundred
/// requests.
const BATCH: usize = 100;
/// Maximum of concurrent detail fetches: each is a thread, if the system allows.
const CONCURRENCY_MAX: usize = 64;

/// A lane before it runs.
#[derive(Debug)]
#[must_use = "a lane that is not collected does nothing"]
pub struct Lane<'l, 'r> {
    run: &'l mut Collect<'r>,
    config: LaneConfig,
}

/// Settings of a lane.
#[derive(Debug)]
struct LaneConfig {
    list_stream: String,
    detail_stream: String,
    concurrency: usize,
    batch: usize,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// Outcomes of the items of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a lane that is not finished has more"]
pub struct Collected {
    /// Whether the list was read to its end, or a gap represents the rest.
    pub left: Left,
    /// Items whose detail was sent.
    pub hydrated: usize,
    /// Items that became a gap, the backlog included.
    pub gaps: usize,
    /// Items skipped on purpose.
    pub skipped: usize,
}

impl<'r> Collect<'r> {
    /// A lane of a list stream, newest first, and its detail stream. The manifest declares the first as a parent of
    /// the second.
    pub fn lane(&mut self, list_stream: impl Into<String>, detail_stream: impl Into<String>) -> Lane<'_, 'r> {
        let config = LaneConfig {
            list_stream: list_stream.into(),
            detail_stream: detail_stream.into(),
            concurrency: 1,
            batch: BATCH,
            since: None,
            until: None,
        };
        Lane { run: self, config }
    }
}

impl Lane<'_, '_> {
    /// Sets the number of concurrent detail fetches. Details are still sent in the order of the list.
    pub fn concurrency(mut self, details: usize) -> Self {
        self.config.concurrency = details.clamp(1, CONCURRENCY_MAX);
        self
    }

    /// Sets the number of items per cursor.
    pub fn slice_of(mut self, items: usize) -> Self {
        self.config.batch = items.max(1);
        self
    }

    /// Collects only items of this time and newer.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.config.since = Some(since);
        self
    }

    /// Collects only items older than this: for a run that catches up below another one.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.config.until = Some(until);
        self
    }

    /// Collects with two functions: one page of the list, one detail.
    ///
    /// # Errors
    ///
    /// As [`collect_from`](Self::collect_from).
    pub fn collect<L, D>(self, list: L, detail: D) -> Result<Collected, Stop>
    where
        L: Fn(&ListAt) -> Result<ListPage, FetchError> + Sync,
        D: Fn(&Target) -> Result<Detail, FetchError> + Sync,
    {
        self.collect_from(&Functions { list, detail })
    }

    /// Recovers gaps, then walks forward, then sends the coverage report.
    ///
    /// # Errors
    ///
    /// Why it ended early, unless that was the run's own budget. Everything committed until then is accounted for,
    /// and the report was sent unless nobody reads.
    pub fn collect_from(self, source: &dyn Source) -> Result<Collected, Stop> {
        let Self { run, config } = self;
        let LaneConfig { list_stream, detail_stream, .. } = &config;
        if !run.emitter.wants_stream(list_stream) && !run.emitter.wants_stream(detail_stream) {
            return Ok(collected(&Ledger::default(), Left::NotAsked));
        }
        let mut work = Work::new(&config, run, source);
        let ended = collect(&mut work);
        if ended == Err(Stop::Disconnected) {
            return Err(Stop::Disconnected);
        }
        let left = work.leave(ended.as_ref().err());
        let Work { ledger, run, .. } = work;
        // The report is sent also when the list could not be read: it covers the items so far.
        let mut report = |out: &mut dyn Write| ledger.write_report(detail_stream, list_stream, out);
        run.emitter.coverage(detail_stream, list_stream, &mut report)?;
        match (left?, ended) {
            (Some(reason), _) => Ok(collected(&ledger, Left::Unfinished(reason))),
            (None, ended) => ended.map(|()| collected(&ledger, Left::Finished)),
        }
    }
}

fn collect(work: &mut Work<'_, '_>) -> Result<(), Stop> {
    // A list that could not be read for the backlog does not prevent collecting new items.
    let stopped = work.recover()?;
    if !work.run.is_recovery_only() {
        work.forward()?;
    }
    stopped.map_or(Ok(()), |no_page| Err(no_page.into()))
}

impl Work<'_, '_> {
    /// Accounts for the part of the list that our own budget left, if that ended the walk. The backlog gap is not
    /// written twice.
    fn leave(&mut self, ended: Option<&Stop>) -> Result<Option<DeferReason>, Stop> {
        let (list, detail) = (&self.config.list_stream, &self.config.detail_stream);
        let reason = match ended {
            Some(Stop::Deferred(reason)) => Some(*reason),
            Some(_) => return Ok(None),
            None => None,
        };
        if let Some(reason) = reason
            && self.backlogs_written == 0
            && !self.run.is_recovery_only()
        {
            let at = self.cursor.to_map();
            let _: Left = self.run.leave_rest(list, Some(&at).filter(|at| !at.is_empty()), reason)?;
        }
        self.run.finished(list);
        self.run.finished(detail);
        Ok(reason)
    }
}

fn collected(ledger: &Ledger, left: Left) -> Collected {
    Collected {
        left,
        hydrated: ledger.count(Outcome::Hydrated),
        gaps: ledger.count(Outcome::Gap),
        skipped: ledger.count(Outcome::Skipped),
    }
}

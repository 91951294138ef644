//! A list with a detail per item: newest first, recovery before new work, and an account of every key.
//!
//! What an author writes is in [`Source`]: one page of a list, one detail. What is hard is here, and pure
//! where it decides: the total order of a list that moves (`in_order`), what is accounted for and what is
//! not (`cursor`, `backlog`), what became of every key (`ledger`). The rest calls and speaks (`work`,
//! `walk`, `recovery`, `forward`).
//!
//! **What holds after any message, whatever ends the run there:** every listed item is stored, or has a gap
//! of its own, or lies in a range of the backlog gap, or is above what the cursor accounts for. Therefore a
//! gap is said before the cursor that relies on it, and a cursor after everything that it covers.
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

/// After how many items a cursor is sent. A kill repeats so many and a page at most, and a commit costs a
/// sync: with a hundred it is little beside a hundred requests.
const BATCH: usize = 100;
/// The most details that are fetched at the same time: each is a thread, where the system gives so many.
const CONCURRENCY_MAX: usize = 64;

/// A lane that is about to run.
#[derive(Debug)]
#[must_use = "a lane that is not collected does nothing"]
pub struct Lane<'l, 'r> {
    run: &'l mut Collect<'r>,
    config: LaneConfig,
}

/// What a lane is about.
#[derive(Debug)]
struct LaneConfig {
    list_stream: String,
    detail_stream: String,
    concurrency: usize,
    batch: usize,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// What became of the items of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a lane that is not finished has more"]
pub struct Collected {
    /// Whether the list was read to its end, or to where a gap stands for the rest.
    pub left: Left,
    /// How many had their detail sent.
    pub hydrated: usize,
    /// How many became a gap, the backlog among them.
    pub gaps: usize,
    /// How many were left out on purpose.
    pub skipped: usize,
}

impl<'r> Collect<'r> {
    /// A stream that is a list, newest first, and the stream of its details. The manifest declares the first
    /// as a parent of the second.
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
    /// Fetches so many details at the same time. They are sent in the order of the list all the same.
    pub fn concurrency(mut self, details: usize) -> Self {
        self.config.concurrency = details.clamp(1, CONCURRENCY_MAX);
        self
    }

    /// Sends a cursor after so many items.
    pub fn slice_of(mut self, items: usize) -> Self {
        self.config.batch = items.max(1);
        self
    }

    /// Only items of this time and newer.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.config.since = Some(since);
        self
    }

    /// Only items older than this: for a run that catches up below what another one has.
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

    /// Recovers gaps, then walks forward, then gives the account.
    ///
    /// # Errors
    ///
    /// Why it ended before its end, unless that was the run's own budget. What was committed until then is
    /// accounted for, and the account was given unless nobody reads it.
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
        // The account is given also when the list could not be read: it is about what was.
        let mut report = |out: &mut dyn Write| ledger.write_report(detail_stream, list_stream, out);
        run.emitter.coverage(detail_stream, list_stream, &mut report)?;
        match (left?, ended) {
            (Some(reason), _) => Ok(collected(&ledger, Left::Unfinished(reason))),
            (None, ended) => ended.map(|()| collected(&ledger, Left::Finished)),
        }
    }
}

fn collect(work: &mut Work<'_, '_>) -> Result<(), Stop> {
    // A list that could not be read for the backlog does not keep us from what is new.
    let stopped = work.recover()?;
    if !work.run.is_recovery_only() {
        work.forward()?;
    }
    stopped.map_or(Ok(()), |no_page| Err(no_page.into()))
}

impl Work<'_, '_> {
    /// Accounts for what our own budget left of the list, if that is why it ended. What the backlog gap
    /// already says is not said twice.
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

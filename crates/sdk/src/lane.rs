//! A list with a detail per item: newest first, recovery before new work, and an account of every key.
//!
//! What an author writes is in [`Source`]: one page of a list, one detail. What is hard is here, and pure
//! where it decides: the total order of a list that moves ([`in_order`]), what is accounted for and what is
//! not ([`cursor`], [`backlog`]), what became of every key ([`ledger`]). The rest calls and speaks
//! ([`work`], [`walk`], [`recovery`], [`forward`]).
//!
//! **What holds after any message, whatever ends the run there:** every listed item is stored, or has a gap
//! of its own, or lies in a range of the backlog gap, or is above what the cursor accounts for. Therefore a
//! gap is said before the cursor that relies on it, and a cursor after everything that it covers.

mod backlog;
mod cursor;
mod forward;
mod host;
mod in_order;
mod ledger;
mod place;
mod recovery;
mod source;
mod ties;
mod walk;
mod work;

pub use backlog::BACKLOG_KEY;
pub use host::{Host, Sent};
pub use place::Timestamp;
pub use source::{Item, ListAt, NewRecord, Page, Source, Target};

use crate::stop::Stop;
use cursor::Cursor;
use gleaner_protocol::RawJson;
use ledger::Outcome;
use work::Work;

/// How many items are settled between two cursors. A kill repeats so many at most, and a commit costs a
/// sync: with a hundred it is little beside a hundred requests.
pub const BATCH: usize = 100;

/// What a lane is about.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// The stream of the list. Its cursor is the lane's.
    pub list_stream: String,
    /// The stream of the details.
    pub detail_stream: String,
    /// How many details may be fetched at the same time. They are sent in the order of the list all the same.
    pub concurrency: usize,
    /// How many items are settled between two cursors.
    pub batch: usize,
    /// Only this time and newer.
    pub since: Option<Timestamp>,
    /// Only older than this.
    pub until: Option<Timestamp>,
    /// Recover gaps and do nothing else.
    pub recovery_only: bool,
}

impl LaneConfig {
    /// A lane of one fetch at a time.
    pub fn new(list_stream: impl Into<String>, detail_stream: impl Into<String>) -> Self {
        Self {
            list_stream: list_stream.into(),
            detail_stream: detail_stream.into(),
            concurrency: 1,
            batch: BATCH,
            since: None,
            until: None,
            recovery_only: false,
        }
    }
}

/// What became of the items of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// How many had their detail sent.
    pub hydrated: usize,
    /// How many became a gap.
    pub gaps: usize,
    /// How many were left out on purpose.
    pub skipped: usize,
}

/// Runs a lane: recovery, then the forward pass, then the account.
///
/// # Errors
///
/// Why it ended before its end. What was committed until then is accounted for, and the account was given
/// unless nobody reads it.
pub fn run_lane(
    config: &LaneConfig,
    host: &mut dyn Host,
    source: &dyn Source,
    cursor: Option<&RawJson<'_>>,
) -> Result<LaneCounts, Stop> {
    let config = LaneConfig { concurrency: config.concurrency.max(1), ..config.clone() };
    let mut work = Work::new(&config, host, source, Cursor::read(cursor));
    let ended = collect(&mut work);
    if ended == Err(Stop::Disconnected) {
        return Err(Stop::Disconnected);
    }
    let Work { ledger, host, .. } = work;
    host.long_line(&mut |out| ledger.write_report(&config.detail_stream, &config.list_stream, out))?;
    ended.map(|()| LaneCounts {
        hydrated: ledger.count(Outcome::Hydrated),
        gaps: ledger.count(Outcome::Gap),
        skipped: ledger.count(Outcome::Skipped),
    })
}

fn collect(work: &mut Work<'_>) -> Result<(), Stop> {
    // A list that could not be read for the backlog does not keep us from what is new.
    let stopped = work.recover()?;
    if !work.config.recovery_only {
        work.forward()?;
    }
    stopped.map_or(Ok(()), |no_page| Err(no_page.into()))
}

//! What a run wants done, and how it ended.

use super::ending::Exit;
use crate::checkpoint::{CommitPlan, Track, Withheld};
use crate::coverage::CoveragePair;
use crate::ended::Ended;
use crate::gap::GapsConfirmed;
use crate::ids::{CommitSeq, ReportId};
use crate::incomplete::{Shortfall, Skips, Warning};
use crate::slice::Slice;
use gleaner_protocol::{
    Assistance, AssistanceStatus, CoverageField, DoneError, Interaction, KeyBlock, PressureReason, Progress,
    RuntimeMessage, SkipResult, TerminalReason, Violation,
};

/// Something to do. Effects are carried out in the order in which they are given out.
///
/// Each kind has one kind of addressee, so that whoever carries out one kind matches all of it, and an effect that
/// nobody carries out does not compile.
#[derive(Debug)]
#[must_use = "an effect that is not carried out is a promise broken"]
pub enum Effect<T: Track> {
    /// For the store, while the run lasts.
    Store(StoreEffect<T>),
    /// For the connector's process.
    Process(ProcessEffect),
    /// For the owner.
    Owner(OwnerEffect),
    /// The run is over: leases return and kept keys go. The last effect, given out once. A run that was superseded
    /// writes nothing: then this is for people only.
    Finish(Box<RunOutcome>),
}

/// What the store is to do.
#[derive(Debug)]
#[must_use = "an effect that is not carried out is a promise broken"]
pub enum StoreEffect<T: Track> {
    /// Write it in one transaction, sync, then [`handle_receipt`](super::Run::handle_receipt).
    WriteSlice(Slice<T>),
    /// Keep these keys of a report until the run ends.
    KeepCoverageKeys {
        /// Which report.
        report: ReportId,
        /// Which list.
        field: CoverageField,
        /// The keys.
        keys: KeyBlock,
    },
    /// Count, then [`handle_tally`](super::Run::handle_tally). Every slice before it is written.
    TallyCoverage {
        /// Which report.
        report: ReportId,
        /// About what.
        pair: CoveragePair,
    },
    /// Write what nothing accounts for as gaps with the reason `unaccounted`, then
    /// [`handle_unaccounted_written`](super::Run::handle_unaccounted_written).
    WriteUnaccounted {
        /// Which report.
        report: ReportId,
        /// The stream of the gaps, and their parent.
        pair: CoveragePair,
    },
    /// Lease a page of gaps, then [`handle_gaps_page`](super::Run::handle_gaps_page). Every change of gaps before it is
    /// written.
    LeaseGapsPage {
        /// Of these streams: those that were asked for, or all in scope.
        streams: Vec<String>,
        /// At most this large.
        bytes_max: u64,
    },
    /// Commit in one transaction, sync, then [`handle_committed`](super::Run::handle_committed).
    Commit(CommitPlan<T>),
    /// Keep an event for the trace.
    Trace(TraceEvent),
}

/// What is to be done with the connector's process.
#[derive(Debug)]
#[must_use = "an effect that is not carried out is a promise broken"]
pub enum ProcessEffect {
    /// Send one message.
    Send(RuntimeMessage),
    /// Close its input. This says that DONE was accepted and everything before it is durable.
    CloseInput,
    /// Ask its group to end.
    Stop,
    /// End its group.
    Kill,
}

/// What the owner is to be told.
#[derive(Debug)]
#[must_use = "an effect that is not carried out is a promise broken"]
pub enum OwnerEffect {
    /// A question.
    Ask(Interaction),
    /// The question is no longer open.
    Withdraw {
        /// Which.
        request_id: String,
        /// Its time is over; else the run is.
        is_over: bool,
    },
}

/// Something that is kept for people and for [`health`](crate::Health), typed.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEvent {
    /// News, pace and circuit.
    Progress(Progress),
    /// Something was left out.
    Skip(Box<SkipResult>),
    /// Help is wanted.
    Assistance(Assistance),
    /// Help is no longer wanted.
    AssistanceStatus(AssistanceStatus),
}

/// What a slice or a run has stored. All of it is counted from rows that are durable and comes back with receipts, but for
/// [`seen`](Self::seen).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// RECORD lines that were read, of any kind, durable or not. Never to be shown as stored.
    pub seen: u64,
    /// Records that were not there before, or only as deleted ones.
    pub new: u64,
    /// Records that are there with another body now.
    pub changed: u64,
    /// Records and deletions that were stored like this already.
    pub unchanged: u64,
    /// Deletions that were not there before.
    pub deleted: u64,
    /// Records in quarantine.
    pub rejected: u64,
    /// Records that are stored, and whose time could not be held against the time range.
    pub times_unreadable: u64,
    /// Gaps that were named, new or not.
    pub gaps: u64,
    /// Gaps that were closed.
    pub recovered: u64,
    /// What the store found for the gaps that were called recovered.
    pub confirmed: GapsConfirmed,
    /// Required keys that nobody accounted for and that are gaps now.
    pub unaccounted: u64,
}

impl Counts {
    /// Records that were sent and are stored, whether or not that changed anything.
    #[must_use]
    pub const fn collected(&self) -> u64 {
        self.new + self.changed + self.unchanged
    }

    /// What a person is told: how many records are new, changed, and so on. All of it is durable.
    #[must_use]
    pub fn words(&self) -> String {
        let parts = [
            (self.new, "new"),
            (self.changed, "changed"),
            (self.unchanged, "unchanged"),
            (self.deleted, "deleted"),
            (self.rejected, "in quarantine"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        let parts = parts.collect::<Vec<_>>();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.seen += other.seen;
        self.new += other.new;
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.deleted += other.deleted;
        self.rejected += other.rejected;
        self.times_unreadable += other.times_unreadable;
        self.gaps += other.gaps;
        self.recovered += other.recovered;
        self.confirmed.add(other.confirmed);
        self.unaccounted += other.unaccounted;
    }
}

/// How a run ended. There is one per run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// Why it is over.
    pub reason: TerminalReason,
    /// The breach that ended it, if one did.
    pub violation: Option<Violation>,
    /// What it stored.
    pub counts: Counts,
    /// What the connector said went wrong.
    pub error: Option<DoneError>,
    /// What arms the cooldown, if anything.
    pub pressure: Option<PressureReason>,
    /// The cursors that were committed at the end. Those of slices are not among them.
    pub committed: Vec<(String, CommitSeq)>,
    /// The checkpoints that stay where they were.
    pub withheld: Vec<Withheld>,
    /// Whether a commit was given out whose end is not known.
    pub commit_is_unknown: bool,
    /// The streams that the connector says failed.
    pub failed_streams: Vec<String>,
    /// The streams whose cursor a slice committed and no later run may go on from.
    pub list_again: Vec<String>,
    /// How its process ended, if that is known.
    pub exit: Option<Exit>,
    /// The last lines of its stderr, masked: whoever runs the process fills them in.
    pub stderr: Option<String>,
    /// The accounts that fell short, where the run's cursors would have been committed otherwise.
    pub shortfalls: Vec<Shortfall>,
    /// What was left out so that the run is incomplete.
    pub skips: Skips,
    /// What the connector did that it should not have.
    pub warnings: Vec<Warning>,
}

impl RunOutcome {
    /// The outcome of a run that was opened and not started, for this reason.
    #[must_use]
    pub fn refused(reason: TerminalReason) -> Self {
        Self {
            reason,
            violation: None,
            counts: Counts::default(),
            error: None,
            pressure: None,
            committed: Vec::new(),
            withheld: Vec::new(),
            commit_is_unknown: false,
            failed_streams: Vec::new(),
            list_again: Vec::new(),
            exit: None,
            stderr: None,
            shortfalls: Vec::new(),
            skips: Skips::default(),
            warnings: Vec::new(),
        }
    }

    /// What is known about its end.
    #[must_use]
    pub fn ended<'a>(&'a self, violation: Option<&'a str>, runtime_error: Option<&'a str>) -> Ended<'a> {
        Ended {
            reason: self.reason,
            violation,
            message: self.error.as_ref().map(|error| error.message.as_str()),
            exit: self.exit,
            stderr: self.stderr.as_deref(),
            runtime_error,
        }
    }

    /// Whether something was left open, although the run may have succeeded: a checkpoint was withheld, an account fell
    /// short, or something was left out.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        !self.withheld.is_empty() || !self.shortfalls.is_empty() || self.skips.count > 0
    }
}

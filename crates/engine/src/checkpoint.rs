//! Which cursors may be committed, and the plan that says so.
//!
//! Why receipts: a cursor that is committed before what it covers is durable loses records after a
//! crash, silently and for good. So a [`CommitPlan`] has no public constructor. It comes out of a
//! [`Ledger`], which knows only cursors that arrived in a [`Receipt`], which comes only from a slice
//! that was written. Why tracks are types: the cursor of a catch-up run in the place of the steady
//! one would make "partly backfilled" look like "fully synced" (D10), and code that confuses them
//! does not compile. This file never looks into a cursor.

use crate::ids::{CommitSeq, Epoch, SliceId};
use crate::run::Counts;
use gleaner_protocol::{Manifest, RawJson, coded_enum};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

/// Whose bookmark a run moves. Implemented by [`Steady`], [`CatchUp`] and [`Scoped`] and nothing else. Which of them a
/// run has is decided by [`Reach::decide`](crate::Reach::decide).
///
/// ```
/// use gleaner_engine::{CommitSeq, Cursor, Ledger, Steady};
/// # use gleaner_protocol::RawJson;
/// let steady = Cursor::restore("trips".to_owned(), RawJson::new("{}").unwrap(), CommitSeq::new(1));
/// Ledger::<Steady>::new([&steady]);
/// ```
///
/// The same cursor in the other track does not compile:
///
/// ```compile_fail,E0271
/// use gleaner_engine::{CatchUp, CommitSeq, Cursor, Ledger, Steady};
/// # use gleaner_protocol::RawJson;
/// let steady = Cursor::<Steady>::restore("trips".to_owned(), RawJson::new("{}").unwrap(), CommitSeq::new(1));
/// Ledger::<CatchUp>::new([&steady]);
/// ```
pub trait Track: sealed::Sealed + Clone + Copy + std::fmt::Debug + PartialEq + Eq + 'static {
    /// The name of the track, as stores write it. Of scoped tracks there are many: stores add a digest of the scope.
    const NAME: &'static str;

    /// Whether what the track has passed counts as accounted for. What a scoped track has passed is accounted for by
    /// the other two.
    const ACCOUNTS: bool;
}

/// Incremental collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady;

/// Historical backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp;

/// A run that asks for less than the owner allows: one track per exact scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scoped;

impl Track for Steady {
    const NAME: &'static str = "steady";
    const ACCOUNTS: bool = true;
}

impl Track for CatchUp {
    const NAME: &'static str = "catch_up";
    const ACCOUNTS: bool = true;
}

impl Track for Scoped {
    const NAME: &'static str = "scope";
    const ACCOUNTS: bool = false;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Steady {}
    impl Sealed for super::CatchUp {}
    impl Sealed for super::Scoped {}
}

/// A cursor of one track, and its place in the order of commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor<T: Track> {
    stream: String,
    token: RawJson<'static>,
    seq: CommitSeq,
    track: PhantomData<T>,
}

impl<T: Track> Cursor<T> {
    /// A cursor as a store has it.
    #[must_use]
    pub const fn restore(stream: String, token: RawJson<'static>, seq: CommitSeq) -> Self {
        Self { stream, token, seq, track: PhantomData }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The provider's token, byte for byte.
    #[must_use]
    pub const fn token(&self) -> &RawJson<'static> {
        &self.token
    }

    /// Its place in the order of commits of its stream.
    #[must_use]
    pub const fn seq(&self) -> CommitSeq {
        self.seq
    }
}

/// The proof that a slice is durable. Made by [`Slice::into_receipt`](crate::Slice::into_receipt).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "without its receipt no cursor of the slice is ever committed"]
pub struct Receipt<T: Track> {
    pub(crate) slice: SliceId,
    pub(crate) epoch: Epoch,
    pub(crate) staged: Vec<Cursor<T>>,
    pub(crate) committed: Vec<Cursor<T>>,
    pub(crate) written: Counts,
}

impl<T: Track> Receipt<T> {
    /// What became of its records and gaps.
    #[must_use]
    pub const fn written(&self) -> Counts {
        self.written
    }
}

/// A receipt that does not fit: the store wrote out of order, or twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("receipt for slice {} where slice {} was expected", got.get(), expected.get())]
pub struct ReceiptOutOfOrder {
    /// The slice that should be durable next.
    pub expected: SliceId,
    /// The slice that the receipt names.
    pub got: SliceId,
}

/// The cursors of one run: numbered when they are said, eligible when they are durable.
#[derive(Debug)]
pub struct Ledger<T: Track> {
    seqs: BTreeMap<String, CommitSeq>,
    durable: BTreeMap<String, Cursor<T>>,
    committed: BTreeSet<String>,
    next_slice: SliceId,
}

impl<T: Track> Ledger<T> {
    /// A ledger that goes on after these cursors.
    pub fn new<'a>(bookmarks: impl IntoIterator<Item = &'a Cursor<T>>) -> Self {
        let seqs = bookmarks.into_iter().map(|cursor| (cursor.stream.clone(), cursor.seq)).collect();
        Self { seqs, durable: BTreeMap::new(), committed: BTreeSet::new(), next_slice: SliceId::new(1) }
    }

    /// Gives a new cursor its number: larger than any of its stream before.
    pub fn number(&mut self, stream: &str, token: RawJson<'static>) -> Cursor<T> {
        let seq = self.seqs.get(stream).copied().unwrap_or_default().next();
        self.seqs.insert(stream.to_owned(), seq);
        Cursor::restore(stream.to_owned(), token, seq)
    }

    /// Takes the proof that a slice is durable.
    ///
    /// # Errors
    ///
    /// When it is not the next one. Then the store cannot be trusted, and the run must end.
    pub fn accept(&mut self, receipt: Receipt<T>) -> Result<(), ReceiptOutOfOrder> {
        if receipt.slice != self.next_slice {
            return Err(ReceiptOutOfOrder { expected: self.next_slice, got: receipt.slice });
        }
        self.next_slice = self.next_slice.next();
        for cursor in receipt.committed {
            // What the slice committed is newer than anything staged before it.
            self.durable.remove(&cursor.stream);
            self.committed.insert(cursor.stream);
        }
        for cursor in receipt.staged {
            self.durable.insert(cursor.stream.clone(), cursor);
        }
        Ok(())
    }

    /// Whether a slice of this run committed a cursor of this stream.
    #[must_use]
    pub fn has_committed(&self, stream: &str) -> bool {
        self.committed.contains(stream)
    }

    /// The plan for the end of the run. Takes every eligible cursor: a second plan is empty.
    pub fn plan(&mut self, ending: &Ending, found_by: &FoundBy, shortfalls: &BTreeSet<String>) -> CommitPlan<T> {
        let durable = std::mem::take(&mut self.durable);
        let failed = ending.failed_checkpoints(found_by);
        let mut plan = CommitPlan { cursors: Vec::new(), withheld: Vec::new() };
        for (stream, cursor) in durable {
            let why = match ending {
                Ending::Failed => Some(WithheldBecause::RunFailed),
                Ending::Cancelled => Some(WithheldBecause::RunCancelled),
                Ending::StreamScoped { .. } if failed.contains(&stream) => Some(WithheldBecause::StreamFailed),
                Ending::Succeeded | Ending::StreamScoped { .. } if shortfalls.contains(&stream) => {
                    Some(WithheldBecause::CoverageShortfall)
                }
                Ending::Succeeded | Ending::StreamScoped { .. } => None,
            };
            match why {
                None => plan.cursors.push(cursor),
                Some(why) => plan.withheld.push(Withheld { stream, why }),
            }
        }
        plan
    }
}

/// How the run ended, as far as cursors are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything staged is eligible.
    Succeeded,
    /// The connector certified which streams failed; the others are eligible.
    StreamScoped {
        /// The streams that failed.
        failed: BTreeSet<String>,
    },
    /// Nothing is eligible.
    Failed,
    /// Nothing is eligible, whatever else happened.
    Cancelled,
}

impl Ending {
    /// The checkpoints that depend on a failed stream: its own, and those of the streams by whose lists it is found.
    pub(crate) fn failed_checkpoints(&self, found_by: &FoundBy) -> BTreeSet<String> {
        let Self::StreamScoped { failed } = self else { return BTreeSet::new() };
        found_by.with_lists(failed)
    }
}

/// By the lists of which other streams the records of a stream are found, directly or through others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundBy(BTreeMap<String, BTreeSet<String>>);

impl FoundBy {
    /// As the manifest declares it.
    #[must_use]
    pub fn declared(manifest: &Manifest) -> Self {
        let streams = manifest.streams.iter();
        Self::of(streams.flat_map(|stream| {
            stream.checkpoint.parents().iter().map(|parent| (stream.name.clone(), parent.clone())).collect::<Vec<_>>()
        }))
    }

    /// From pairs of a stream and a list.
    #[must_use]
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut lists = BTreeMap::<String, BTreeSet<String>>::new();
        for (stream, list) in pairs {
            lists.entry(stream).or_default().insert(list);
        }
        let all = |stream: &String| {
            let (mut found, mut waiting) = (BTreeSet::new(), vec![stream]);
            while let Some(next) = waiting.pop() {
                waiting.extend(lists.get(next).into_iter().flatten().filter(|list| found.insert((*list).clone())));
            }
            found
        };
        Self(lists.keys().map(|stream| (stream.clone(), all(stream))).collect())
    }

    /// These streams, and those by whose lists they are found.
    #[must_use]
    pub fn with_lists<'a>(&self, streams: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        let lists = |stream: &'a String| self.0.get(stream).into_iter().flatten().chain([stream]).cloned();
        streams.into_iter().flat_map(lists).collect()
    }
}

/// The cursors to commit, in one transaction under the run's epoch. Nobody can make one up:
///
/// ```compile_fail,E0451
/// use gleaner_engine::{CommitPlan, Steady};
/// CommitPlan::<Steady> { cursors: Vec::new(), withheld: Vec::new() };
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a plan that is not carried out makes the next run repeat this one"]
pub struct CommitPlan<T: Track> {
    cursors: Vec<Cursor<T>>,
    withheld: Vec<Withheld>,
}

impl<T: Track> CommitPlan<T> {
    /// What to commit, at most one cursor per stream.
    #[must_use]
    pub fn cursors(&self) -> &[Cursor<T>] {
        &self.cursors
    }

    /// What stays where it was, and why.
    #[must_use]
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }
}

/// A checkpoint that stays where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The stream.
    pub stream: String,
    /// Why.
    pub why: WithheldBecause,
}

coded_enum! {
    /// Why a checkpoint stays where it was.
    pub enum WithheldBecause {
        /// The coverage report is missing or leaves keys without an outcome.
        CoverageShortfall = "coverage_shortfall";
        /// The stream failed, or one that depends on this checkpoint.
        StreamFailed = "stream_failed";
        /// The run failed.
        RunFailed = "run_failed";
        /// The run was cancelled.
        RunCancelled = "run_cancelled";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{manifest, token};
    use proptest::prelude::*;

    fn receipt<T: Track>(slice: u64, staged: Vec<Cursor<T>>, committed: Vec<Cursor<T>>) -> Receipt<T> {
        let (slice, epoch, written) = (SliceId::new(slice), Epoch::new(1), Counts::default());
        Receipt { slice, epoch, staged, committed, written }
    }

    /// A ledger in which `trips`, `photos` and `comments` have a durable staged cursor.
    fn ledger() -> Ledger<Steady> {
        let mut ledger = Ledger::new([]);
        let staged = ["trips", "photos", "comments"].map(|stream| ledger.number(stream, token(1))).to_vec();
        ledger.accept(receipt(1, staged, Vec::new())).unwrap();
        ledger
    }

    fn check(ending: &Ending, shortfalls: &[&str], committed: &[&str]) {
        let shortfalls = shortfalls.iter().map(|&stream| stream.to_owned()).collect();
        let plan = ledger().plan(ending, &FoundBy::declared(&manifest()), &shortfalls);
        let streams = plan.cursors().iter().map(Cursor::stream).collect::<Vec<_>>();
        assert_eq!(streams, committed, "{ending:?} {shortfalls:?}");
        assert_eq!(plan.cursors().len() + plan.withheld().len(), 3, "nothing is left out silently");
    }

    #[test]
    fn a_run_that_succeeded_commits_everything_but_shortfalls() {
        check(&Ending::Succeeded, &[], &["comments", "photos", "trips"]);
        check(&Ending::Succeeded, &["trips"], &["comments", "photos"]);
    }

    #[test]
    fn a_stream_scoped_failure_withholds_the_stream_its_parents_and_shortfalls() {
        let failed = |stream: &str| Ending::StreamScoped { failed: BTreeSet::from([stream.to_owned()]) };
        // Comments ride on the checkpoint of trips; photos stand alone.
        check(&failed("comments"), &[], &["photos"]);
        check(&failed("photos"), &[], &["comments", "trips"]);
        check(&failed("photos"), &["trips"], &["comments"]);
    }

    #[test]
    fn a_failure_climbs_to_the_first_list_of_a_chain() {
        let pairs = [("comments", "photos"), ("photos", "trips"), ("trips", "photos")];
        let found_by = FoundBy::of(pairs.map(|(stream, list)| (stream.to_owned(), list.to_owned())));
        let failed = Ending::StreamScoped { failed: BTreeSet::from(["comments".to_owned()]) };
        assert_eq!(ledger().plan(&failed, &found_by, &BTreeSet::new()).cursors(), [], "also through a circle");
    }

    #[test]
    fn any_other_failure_and_a_cancellation_commit_nothing() {
        check(&Ending::Failed, &[], &[]);
        check(&Ending::Cancelled, &[], &[]);
    }

    #[test]
    fn a_cursor_without_a_receipt_is_in_no_plan() {
        let mut ledger = Ledger::<Steady>::new([]);
        let staged = ledger.number("trips", token(1));
        let _not_durable = ledger.number("trips", token(2));
        ledger.accept(receipt(1, vec![staged], Vec::new())).unwrap();
        let plan = ledger.plan(&Ending::Succeeded, &FoundBy::default(), &BTreeSet::new());
        assert_eq!(plan.cursors()[0].token(), &token(1));
    }

    #[test]
    fn a_plan_takes_its_cursors_so_that_a_second_one_is_empty() {
        let mut ledger = ledger();
        let _first = ledger.plan(&Ending::Succeeded, &FoundBy::default(), &BTreeSet::new());
        assert_eq!(ledger.plan(&Ending::Succeeded, &FoundBy::default(), &BTreeSet::new()).cursors(), []);
    }

    #[test]
    fn a_slice_commit_replaces_what_was_staged_before_it() {
        let mut ledger = Ledger::<Steady>::new([]);
        let (old, new) = (ledger.number("trips", token(1)), ledger.number("trips", token(2)));
        ledger.accept(receipt(1, vec![old], Vec::new())).unwrap();
        ledger.accept(receipt(2, Vec::new(), vec![new])).unwrap();
        assert!(ledger.has_committed("trips"));
        let plan = ledger.plan(&Ending::Succeeded, &FoundBy::default(), &BTreeSet::new());
        assert_eq!(plan.cursors(), [], "the older cursor must not overwrite the newer one");
    }

    #[test]
    fn receipts_are_taken_in_the_order_of_writing_only() {
        let mut ledger = Ledger::<Steady>::new([]);
        let early = ledger.accept(receipt(2, Vec::new(), Vec::new()));
        assert_eq!(early, Err(ReceiptOutOfOrder { expected: SliceId::new(1), got: SliceId::new(2) }));
        ledger.accept(receipt(1, Vec::new(), Vec::new())).unwrap();
        assert!(ledger.accept(receipt(1, Vec::new(), Vec::new())).is_err());
    }

    #[test]
    fn numbers_go_on_after_the_bookmark() {
        let bookmark = Cursor::<CatchUp>::restore("trips".to_owned(), token(0), CommitSeq::new(41));
        let mut ledger = Ledger::new([&bookmark]);
        assert_eq!(ledger.number("trips", token(1)).seq(), CommitSeq::new(42));
        assert_eq!(ledger.number("trips", token(0)).seq(), CommitSeq::new(43), "also for a cursor seen before");
        assert_eq!(ledger.number("photos", token(1)).seq(), CommitSeq::new(1));
    }

    #[test]
    fn the_tracks_have_names_that_differ() {
        assert_ne!(Steady::NAME, CatchUp::NAME);
        assert!(![Steady::NAME, CatchUp::NAME].contains(&Scoped::NAME));
    }

    proptest! {
        /// Whatever is staged, committed and acknowledged: a plan holds the newest durable cursor of a
        /// stream or none, and never one that no receipt vouched for.
        #[test]
        fn a_plan_never_goes_past_what_is_durable(
            steps in proptest::collection::vec((0_usize..3, any::<bool>(), any::<bool>()), 0..60),
        ) {
            let mut ledger = Ledger::<Steady>::new([]);
            let mut waiting = Vec::new();
            let (mut slice, mut newest_durable) = (0, BTreeMap::new());
            for (stream, commits, acknowledges) in steps {
                let name = ["trips", "photos", "comments"][stream];
                let cursor = ledger.number(name, token(1));
                waiting.push((cursor, commits));
                if acknowledges {
                    for (cursor, commits) in waiting.drain(..) {
                        slice += 1;
                        newest_durable.insert(cursor.stream().to_owned(), (cursor.seq(), commits));
                        let (staged, committed) =
                            if commits { (vec![], vec![cursor]) } else { (vec![cursor], vec![]) };
                        ledger.accept(receipt(slice, staged, committed)).unwrap();
                    }
                }
            }
            let plan = ledger.plan(&Ending::Succeeded, &FoundBy::default(), &BTreeSet::new());
            let expected = newest_durable.into_iter().filter(|(_, (_, commits))| !commits)
                .map(|(stream, (seq, _))| (stream, seq)).collect::<Vec<_>>();
            let planned = plan.cursors().iter().map(|c| (c.stream().to_owned(), c.seq())).collect::<Vec<_>>();
            prop_assert_eq!(planned, expected);
        }
    }
}

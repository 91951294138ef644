//! The promises of an account, as functions over what is durable and what happened.
//!
//! Why functions and not assertions in the code they check: the same predicates judge the property
//! tests, the simulator, the kill and power-loss harnesses and `gleaner verify`, and a checker that
//! shares code with what it checks shares its faults. Each has a negative control among the tests: a
//! check that cannot fail proves nothing. They read a [`Durable`] state and a list of [`Fact`]s, and
//! never repair anything.

mod facts;

pub use facts::{Durable, Fact};

use crate::gap::GapCause;
use crate::ids::{CommitSeq, Epoch, GapId};
use gleaner_protocol::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// A promise that was broken, and where it shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id}: {what}")]
pub struct Broken {
    /// Which promise.
    pub id: &'static str,
    /// What shows it. Names streams and keys; for people, not for programs.
    pub what: String,
}

fn broken(id: &'static str, what: String) -> Result<(), Broken> {
    Err(Broken { id, what })
}

/// A1: what lies behind the checkpoint is stored, deleted, in a gap or backlog, or skipped.
///
/// # Errors
///
/// The first record that is lost.
pub fn a1_no_record_is_lost(db: &impl Durable, facts: &[Fact]) -> Result<(), Broken> {
    for fact in facts {
        let Fact::Listed { stream, key, covered_by, position } = fact else { continue };
        let behind = db.checkpoint(stream).is_some_and(|checkpoint| *covered_by <= checkpoint);
        if behind && !db.accounts_for(stream, key) && !db.backlog_covers(stream, *position) {
            return broken("A1", format!("{stream:?} {key:?} lies behind the checkpoint and is nowhere"));
        }
    }
    Ok(())
}

/// A number for people.
fn number(of: Option<u64>) -> String {
    of.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

/// A3: the checkpoint is that of the last slice that is wholly durable.
///
/// # Errors
///
/// The stream whose checkpoint is ahead of, or behind, its slices.
pub fn a3_checkpoint_is_the_last_whole_slice(db: &impl Durable, streams: &[&str]) -> Result<(), Broken> {
    for stream in streams {
        let (checkpoint, last) = (db.checkpoint(stream), db.whole_slices(stream).into_iter().max());
        if checkpoint != last {
            return broken(
                "A3",
                format!(
                    "{stream:?} is at {}, its last whole slice is {}",
                    number(checkpoint.map(CommitSeq::get)),
                    number(last.map(CommitSeq::get))
                ),
            );
        }
    }
    Ok(())
}

/// A4: per stream, each commit has a larger number than the one before.
///
/// # Errors
///
/// The commit that does not.
pub fn a4_commits_go_forward(facts: &[Fact]) -> Result<(), Broken> {
    let mut last = BTreeMap::new();
    for fact in facts {
        let Fact::Committed { stream, seq, .. } = fact else { continue };
        match last.insert(stream, *seq) {
            Some(before) if before >= *seq => {
                return broken("A4", format!("{stream:?} went from {} to {}", before.get(), seq.get()));
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// A5: a gap disappears only when the run that holds it settles it, and not after deferring it again.
///
/// # Errors
///
/// The gap that disappeared otherwise.
pub fn a5_gaps_disappear_only_when_settled(
    before: &BTreeSet<GapId>,
    db: &impl Durable,
    facts: &[Fact],
) -> Result<(), Broken> {
    let mut holders = BTreeMap::new();
    let mut ever = before.clone();
    let mut settled = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::GapLeased { gap, lease, .. } => drop(holders.insert(gap, lease)),
            Fact::GapWritten { gap, .. } => {
                ever.insert(gap.clone());
                holders.remove(gap);
                settled.remove(gap);
            }
            Fact::GapSettled { gap, lease } if holders.get(gap) == Some(&lease) => drop(settled.insert(gap.clone())),
            Fact::GapSettled { gap, .. } => return broken("A5", format!("{gap} was settled by who did not hold it")),
            _ => {}
        }
    }
    let open = db.open_gaps();
    match ever.iter().find(|gap| !open.contains(*gap) && !settled.contains(*gap)) {
        Some(gap) => broken("A5", format!("{gap} disappeared")),
        None => Ok(()),
    }
}

/// A7: writing a slice twice gives the same state, and no new version of equal content. Takes the hash
/// of the state and the number of versions after once and after twice.
///
/// # Errors
///
/// When either differs.
pub fn a7_writing_twice_is_writing_once(once: (u64, u64), twice: (u64, u64)) -> Result<(), Broken> {
    if once.0 != twice.0 {
        return broken("A7", "the state differs after the same slice came again".to_owned());
    }
    if once.1 != twice.1 {
        return broken("A7", format!("{} versions became {} without a change", once.1, twice.1));
    }
    Ok(())
}

/// A8: a catch-up run leaves every steady cursor byte for byte as it was.
///
/// # Errors
///
/// The stream whose cursor changed.
pub fn a8_catch_up_leaves_steady_alone(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Result<(), Broken> {
    let streams = before.keys().chain(after.keys());
    match streams.into_iter().find(|stream| before.get(*stream) != after.get(*stream)) {
        Some(stream) => broken("A8", format!("the steady cursor of {stream:?} changed")),
        None => Ok(()),
    }
}

/// A10: required is the disjoint union of the outcomes; one report per pair, after the last detail.
///
/// # Errors
///
/// The report that is not so.
pub fn a10_coverage_adds_up(facts: &[Fact]) -> Result<(), Broken> {
    let mut pairs = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::Detail { stream } if reported.contains(stream) => {
                return broken("A10", format!("a detail of {stream:?} came after its report"));
            }
            Fact::Covered { stream, state_stream, lists: [required, outcomes @ ..] } => {
                if !pairs.insert((stream, state_stream)) {
                    return broken("A10", format!("{stream:?} has two reports for {state_stream:?}"));
                }
                reported.insert(stream);
                let mut given = outcomes.concat();
                let mut required = required.clone();
                given.sort_unstable();
                required.sort_unstable();
                if given != required || required.windows(2).any(|pair| pair[0] == pair[1]) {
                    return broken("A10", format!("the outcomes of {stream:?} are not its required keys"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A11: tombstones only where records change, and only for deletions that a connector named: an empty
/// or failed listing deletes nothing.
///
/// # Errors
///
/// The tombstone that should not be.
pub fn a11_tombstones_were_asked_for(db: &impl Durable, facts: &[Fact]) -> Result<(), Broken> {
    for (stream, key) in db.tombstones() {
        if db.semantics(&stream) != Some(Semantics::MutableState) {
            return broken("A11", format!("{stream:?} only grows and has a tombstone"));
        }
        let fact = Fact::Deleted { stream, key };
        if !facts.contains(&fact) {
            return broken("A11", format!("nobody asked for this tombstone: {fact:?}"));
        }
    }
    Ok(())
}

/// A12: a gap that names a record is closed only after that record became durable: since it was handed out, a record
/// or deletion of its stream whose key or one of whose fields is the gap's key, or one of another stream with that key
/// (then it is empty).
///
/// # Errors
///
/// The gap that was closed on its connector's word alone.
pub fn a12_closed_gaps_were_confirmed(facts: &[Fact]) -> Result<(), Broken> {
    let mut handed_out = BTreeMap::new();
    for fact in facts {
        match fact {
            Fact::GapLeased { gap, stream, key: Some(key), .. } => drop(handed_out.insert(gap, (stream, key, false))),
            Fact::GapLeased { gap, key: None, .. } => drop(handed_out.remove(gap)),
            Fact::Stored { stream, key, fields } => {
                for (of, wanted, confirmed) in handed_out.values_mut() {
                    *confirmed |= key == *wanted || (stream == *of && fields.contains(*wanted));
                }
            }
            Fact::GapSettled { gap, .. } => {
                if let Some((stream, key, false)) = handed_out.get(gap) {
                    return broken("A12", format!("{gap} was closed, and nothing came for {stream:?} {key:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A13: a gap is given up only for a cause that does not pass by itself. Errors of a provider or a network, however many,
/// are no such cause. Takes the causes of all gaps that were given up.
///
/// # Errors
///
/// The first that may pass.
pub fn a13_only_permanent_causes_are_given_up(given_up: impl IntoIterator<Item = GapCause>) -> Result<(), Broken> {
    match given_up.into_iter().find(|cause| !cause.is_permanent()) {
        Some(cause) => broken("A13", format!("a gap was given up although its cause may pass: {cause:?}")),
        None => Ok(()),
    }
}

/// P1: an accepted record was asked for. `resources` of a stream in scope; empty means all.
///
/// # Errors
///
/// The record that was not.
pub fn p1_accepted_records_were_asked_for(
    scope: &BTreeMap<String, BTreeSet<String>>,
    facts: &[Fact],
) -> Result<(), Broken> {
    for fact in facts {
        let Fact::Accepted { stream, key, .. } = fact else { continue };
        let asked = scope.get(stream).is_some_and(|keys| keys.is_empty() || keys.contains(key));
        if !asked {
            return broken("P1", format!("{stream:?} {key:?} was not asked for"));
        }
    }
    Ok(())
}

/// P3: each run that did something ended exactly once, and nothing of it was accepted after that.
///
/// # Errors
///
/// The run that did not.
pub fn p3_runs_end_once(facts: &[Fact]) -> Result<(), Broken> {
    let (mut open, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for fact in facts {
        match fact {
            Fact::Ended { run, .. } if !ended.insert(run) => return broken("P3", format!("{run} ended twice")),
            Fact::Ended { run, .. } => drop(open.remove(run)),
            Fact::Accepted { run, .. } | Fact::GapWritten { run, .. } if ended.contains(run) => {
                return broken("P3", format!("something of {run} was accepted after its end"));
            }
            Fact::Accepted { run, .. } | Fact::GapWritten { run, .. } => drop(open.insert(run)),
            _ => {}
        }
    }
    open.first().map_or(Ok(()), |run| broken("P3", format!("{run} never ended")))
}

/// L1: there is one holder: every commit has the epoch of the lease at that moment.
///
/// # Errors
///
/// The commit that does not.
pub fn l1_one_holder(facts: &[Fact]) -> Result<(), Broken> {
    let mut held = None;
    for fact in facts {
        match fact {
            Fact::Acquired { epoch } => held = Some(*epoch),
            Fact::Committed { epoch, stream, .. } if held != Some(*epoch) => {
                return broken(
                    "L1",
                    format!(
                        "{stream:?} was committed under epoch {}, the lease has epoch {}",
                        epoch.get(),
                        number(held.map(Epoch::get))
                    ),
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// L2: each acquisition has a larger epoch, and a store that is older than what was seen stops work.
///
/// # Errors
///
/// The acquisition, or what was done on an older store.
pub fn l2_epochs_grow(facts: &[Fact]) -> Result<(), Broken> {
    let mut seen = None;
    let mut must_halt = false;
    for fact in facts {
        match fact {
            Fact::Halted => must_halt = false,
            Fact::Acquired { .. } | Fact::Committed { .. } | Fact::GapWritten { .. } if must_halt => {
                return broken("L2", "work went on on an older store".to_owned());
            }
            Fact::Acquired { epoch } if Some(*epoch) <= seen => {
                return broken(
                    "L2",
                    format!("epoch {} was acquired after {}", epoch.get(), number(seen.map(Epoch::get))),
                );
            }
            Fact::Observed { epoch } if Some(*epoch) < seen => must_halt = true,
            Fact::Acquired { epoch } | Fact::Observed { epoch } => seen = seen.max(Some(*epoch)),
            _ => {}
        }
    }
    if must_halt { broken("L2", "an older store was opened and nothing stopped".to_owned()) } else { Ok(()) }
}

/// L3: a commit under an old epoch changes nothing; its run ends superseded, arms no cooldown and
/// writes no gap after it.
///
/// # Errors
///
/// What the stale side did.
pub fn l3_a_stale_runner_changes_nothing(facts: &[Fact]) -> Result<(), Broken> {
    let mut stale = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::StaleCommit { run, rows_changed: 0 } => drop(stale.insert(run)),
            Fact::StaleCommit { run, rows_changed } => {
                return broken("L3", format!("{run} changed {rows_changed} rows under an old epoch"));
            }
            Fact::CooldownArmed { run } | Fact::GapWritten { run, .. } if stale.contains(run) => {
                return broken("L3", format!("{run} lost its lease and went on: {fact:?}"));
            }
            Fact::Ended { run, superseded: false } if stale.contains(run) => {
                return broken("L3", format!("{run} lost its lease and does not say so"));
            }
            Fact::Ended { run, .. } => drop(stale.remove(run)),
            _ => {}
        }
    }
    stale.first().map_or(Ok(()), |run| broken("L3", format!("{run} lost its lease and never ended")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommitSeq, Epoch, LeaseId, RunId};
    use gleaner_protocol::GapReason;

    #[derive(Default)]
    struct Db {
        checkpoint: Option<u64>,
        slices: Vec<u64>,
        accounted: Vec<&'static str>,
        backlog: Option<i64>,
        tombstones: Vec<(&'static str, &'static str)>,
        gaps: Vec<&'static str>,
    }

    impl Durable for Db {
        fn checkpoint(&self, _: &str) -> Option<CommitSeq> {
            self.checkpoint.map(CommitSeq::new)
        }
        fn whole_slices(&self, _: &str) -> Vec<CommitSeq> {
            self.slices.iter().copied().map(CommitSeq::new).collect()
        }
        fn accounts_for(&self, _: &str, key: &str) -> bool {
            self.accounted.contains(&key)
        }
        fn backlog_covers(&self, _: &str, position: i64) -> bool {
            self.backlog.is_some_and(|watermark| position <= watermark)
        }
        fn tombstones(&self) -> Vec<(String, String)> {
            self.tombstones.iter().map(|&(stream, key)| (stream.to_owned(), key.to_owned())).collect()
        }
        fn semantics(&self, stream: &str) -> Option<Semantics> {
            Some(if stream == "photos" { Semantics::AppendOnly } else { Semantics::MutableState })
        }
        fn open_gaps(&self) -> BTreeSet<GapId> {
            self.gaps.iter().map(|&gap| GapId::new(gap)).collect()
        }
    }

    fn run(name: &str) -> RunId {
        RunId::new(name)
    }

    fn listed(key: &str, covered_by: u64, position: i64) -> Fact {
        let (stream, key) = ("trips".to_owned(), key.to_owned());
        Fact::Listed { stream, key, covered_by: CommitSeq::new(covered_by), position }
    }

    fn committed(seq: u64, epoch: u64) -> Fact {
        Fact::Committed { stream: "trips".to_owned(), seq: CommitSeq::new(seq), epoch: Epoch::new(epoch) }
    }

    fn acquired(epoch: u64) -> Fact {
        Fact::Acquired { epoch: Epoch::new(epoch) }
    }

    fn accepted(key: &str) -> Fact {
        Fact::Accepted { run: run("r"), stream: "trips".to_owned(), key: key.to_owned() }
    }

    fn ended(superseded: bool) -> Fact {
        Fact::Ended { run: run("r"), superseded }
    }

    fn gap_written(lease: &str) -> Fact {
        Fact::GapWritten { run: run("r"), gap: GapId::new("g"), lease: LeaseId::new(lease) }
    }

    fn gap_leased(key: Option<&str>) -> Fact {
        let (gap, lease) = (GapId::new("g"), LeaseId::new("l"));
        Fact::GapLeased { gap, lease, stream: "details".to_owned(), key: key.map(str::to_owned) }
    }

    fn stored(stream: &str, key: &str, fields: &[&str]) -> Fact {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        Fact::Stored { stream: stream.to_owned(), key: key.to_owned(), fields }
    }

    #[test]
    fn a12_catches_a_gap_that_is_closed_without_its_record() {
        let settled = Fact::GapSettled { gap: GapId::new("g"), lease: LeaseId::new("l") };
        let check = |came: &[Fact]| {
            let facts = [&[gap_leased(Some("k"))], came, std::slice::from_ref(&settled)].concat();
            a12_closed_gaps_were_confirmed(&facts).is_ok()
        };
        assert!(check(&[stored("details", "k", &[])]));
        assert!(check(&[stored("details", "m", &["x", "k"])]), "by a field");
        assert!(check(&[stored("trips", "k", &[])]), "it is empty");
        assert!(!check(&[]), "nothing came");
        assert!(!check(&[stored("details", "m", &["x"])]), "another record came");
        assert!(!check(&[stored("trips", "m", &["k"])]), "a field of another stream proves nothing");
        let early = [stored("details", "k", &[]), gap_leased(Some("k")), settled.clone()];
        assert!(a12_closed_gaps_were_confirmed(&early).is_err(), "it came before the gap was handed out");
        let again = [gap_leased(Some("k")), stored("details", "k", &[]), gap_leased(Some("k")), settled.clone()];
        assert!(a12_closed_gaps_were_confirmed(&again).is_err(), "handed out again, and nothing came since");
        assert_eq!(a12_closed_gaps_were_confirmed(&[gap_leased(None), settled]), Ok(()), "a part of a list");
    }

    fn covered(lists: [&[&str]; 4]) -> Fact {
        let lists = lists.map(|list| list.iter().map(|&key| key.to_owned()).collect());
        Fact::Covered { stream: "details".to_owned(), state_stream: "trips".to_owned(), lists }
    }

    #[test]
    fn a1_catches_a_record_behind_the_checkpoint_that_is_nowhere() {
        let facts = [listed("a", 1, 5), listed("b", 2, 9)];
        let db = |accounted, backlog| Db { checkpoint: Some(1), accounted, backlog, ..Db::default() };
        assert_eq!(a1_no_record_is_lost(&db(vec!["a"], None), &facts), Ok(()), "b is ahead of the checkpoint");
        assert_eq!(a1_no_record_is_lost(&db(vec![], Some(5)), &facts), Ok(()), "the watermark is inclusive");
        assert!(a1_no_record_is_lost(&db(vec![], Some(4)), &facts).is_err());
        assert!(a1_no_record_is_lost(&db(vec!["b"], None), &facts).is_err());
    }

    #[test]
    fn a3_catches_a_cursor_that_is_committed_first() {
        let db = |checkpoint, slices| Db { checkpoint, slices, ..Db::default() };
        assert_eq!(a3_checkpoint_is_the_last_whole_slice(&db(Some(2), vec![1, 2]), &["trips"]), Ok(()));
        assert_eq!(a3_checkpoint_is_the_last_whole_slice(&db(None, vec![]), &["trips"]), Ok(()));
        assert!(a3_checkpoint_is_the_last_whole_slice(&db(Some(3), vec![1, 2]), &["trips"]).is_err());
        assert!(a3_checkpoint_is_the_last_whole_slice(&db(Some(1), vec![1, 2]), &["trips"]).is_err());
    }

    #[test]
    fn a4_catches_a_commit_that_goes_back_or_stays() {
        assert_eq!(a4_commits_go_forward(&[committed(1, 1), committed(3, 1)]), Ok(()));
        assert!(a4_commits_go_forward(&[committed(3, 1), committed(1, 1)]).is_err());
        assert!(a4_commits_go_forward(&[committed(3, 1), committed(3, 1)]).is_err());
    }

    #[test]
    fn a5_catches_a_gap_that_disappears() {
        let before = BTreeSet::from([GapId::new("g")]);
        let leased = gap_leased(Some("k"));
        let settled = |lease: &str| Fact::GapSettled { gap: GapId::new("g"), lease: LeaseId::new(lease) };
        let check = |gaps, facts: &[Fact]| {
            a5_gaps_disappear_only_when_settled(&before, &Db { gaps, ..Db::default() }, facts).is_ok()
        };
        assert!(check(vec!["g"], &[]));
        assert!(check(vec![], &[leased.clone(), settled("l")]));
        assert!(!check(vec![], &[]), "it vanished");
        assert!(!check(vec![], std::slice::from_ref(&leased)), "the run ended with it");
        assert!(!check(vec![], &[leased.clone(), settled("other")]));
        assert!(!check(vec![], &[leased.clone(), gap_written("l"), settled("l")]), "deferred again");
        assert!(!check(vec![], &[leased, settled("l"), gap_written("l")]), "open again, and gone");
    }

    #[test]
    fn a7_catches_a_new_version_of_equal_content() {
        assert_eq!(a7_writing_twice_is_writing_once((7, 2), (7, 2)), Ok(()));
        assert!(a7_writing_twice_is_writing_once((7, 2), (8, 2)).is_err());
        assert!(a7_writing_twice_is_writing_once((7, 2), (7, 3)).is_err());
    }

    #[test]
    fn a8_catches_a_steady_cursor_that_changed() {
        let at = |token: &str| BTreeMap::from([("trips".to_owned(), token.to_owned())]);
        assert_eq!(a8_catch_up_leaves_steady_alone(&at("{}"), &at("{}")), Ok(()));
        assert!(a8_catch_up_leaves_steady_alone(&at("{}"), &at("{ }")).is_err(), "byte for byte");
        assert!(a8_catch_up_leaves_steady_alone(&at("{}"), &BTreeMap::new()).is_err());
        assert!(a8_catch_up_leaves_steady_alone(&BTreeMap::new(), &at("{}")).is_err());
    }

    #[test]
    fn a10_catches_reports_that_do_not_add_up() {
        let full = covered([&["a", "b", "c"], &["a"], &["b"], &["c"]]);
        let detail = Fact::Detail { stream: "details".to_owned() };
        assert_eq!(a10_coverage_adds_up(&[detail.clone(), full.clone()]), Ok(()));
        assert!(a10_coverage_adds_up(&[full.clone(), detail]).is_err(), "too early");
        assert!(a10_coverage_adds_up(&[full.clone(), full]).is_err(), "twice");
        assert!(a10_coverage_adds_up(&[covered([&["a", "b"], &["a"], &[], &[]])]).is_err(), "short");
        assert!(a10_coverage_adds_up(&[covered([&["a"], &["a"], &["a"], &[]])]).is_err(), "overlap");
        assert!(a10_coverage_adds_up(&[covered([&["a", "a"], &["a"], &["a"], &[]])]).is_err(), "doubled");
    }

    #[test]
    fn a11_catches_tombstones_that_nobody_asked_for() {
        let deleted = Fact::Deleted { stream: "trips".to_owned(), key: "a".to_owned() };
        let db = |stream| Db { tombstones: vec![(stream, "a")], ..Db::default() };
        assert_eq!(a11_tombstones_were_asked_for(&db("trips"), &[deleted]), Ok(()));
        assert!(a11_tombstones_were_asked_for(&db("trips"), &[]).is_err(), "an empty list deletes nothing");
        let deleted = Fact::Deleted { stream: "photos".to_owned(), key: "a".to_owned() };
        assert!(a11_tombstones_were_asked_for(&db("photos"), &[deleted]).is_err());
    }

    #[test]
    fn p1_catches_records_that_were_not_asked_for() {
        let scope =
            |keys: &[&str]| BTreeMap::from([("trips".to_owned(), keys.iter().map(|&k| k.to_owned()).collect())]);
        assert_eq!(p1_accepted_records_were_asked_for(&scope(&[]), &[accepted("a")]), Ok(()));
        assert_eq!(p1_accepted_records_were_asked_for(&scope(&["a"]), &[accepted("a")]), Ok(()));
        assert!(p1_accepted_records_were_asked_for(&scope(&["b"]), &[accepted("a")]).is_err());
        assert!(p1_accepted_records_were_asked_for(&BTreeMap::new(), &[accepted("a")]).is_err());
    }

    #[test]
    fn p3_catches_runs_that_do_not_end_once() {
        assert_eq!(p3_runs_end_once(&[accepted("a"), ended(false)]), Ok(()));
        assert!(p3_runs_end_once(&[accepted("a")]).is_err(), "never");
        assert!(p3_runs_end_once(&[ended(false), ended(false)]).is_err(), "twice");
        assert!(p3_runs_end_once(&[ended(false), accepted("a")]).is_err(), "after its end");
    }

    #[test]
    fn a13_catches_a_gap_that_was_given_up_although_its_cause_may_pass() {
        let status = |status| GapCause { http_status: Some(status), ..GapCause::default() };
        let by = |code| GapCause { reason: GapReason::from_code(code), ..GapCause::default() };
        assert_eq!(
            a13_only_permanent_causes_are_given_up([status(404), status(410), by("permanent_forbidden")]),
            Ok(())
        );
        let passing = [status(500), status(503), by("temporary_unavailable"), by("rate_limited"), GapCause::default()];
        for cause in passing {
            assert!(a13_only_permanent_causes_are_given_up([status(404), cause]).is_err(), "{cause:?}");
        }
    }

    #[test]
    fn l1_catches_a_commit_of_who_does_not_hold_the_lease() {
        assert_eq!(l1_one_holder(&[acquired(1), committed(1, 1), acquired(2), committed(2, 2)]), Ok(()));
        assert!(l1_one_holder(&[acquired(1), acquired(2), committed(1, 1)]).is_err());
        assert!(l1_one_holder(&[committed(1, 1)]).is_err());
    }

    #[test]
    fn l2_catches_epochs_that_do_not_grow_and_stores_that_went_back() {
        let observed = |epoch| Fact::Observed { epoch: Epoch::new(epoch) };
        assert_eq!(l2_epochs_grow(&[acquired(1), observed(1), acquired(2)]), Ok(()));
        assert_eq!(l2_epochs_grow(&[acquired(2), observed(1), Fact::Halted]), Ok(()));
        assert!(l2_epochs_grow(&[acquired(1), acquired(1)]).is_err());
        assert!(l2_epochs_grow(&[acquired(2), observed(1), committed(1, 1)]).is_err());
        assert!(l2_epochs_grow(&[acquired(2), observed(1)]).is_err());
    }

    #[test]
    fn l3_catches_a_stale_runner_that_goes_on() {
        let stale = |rows_changed| Fact::StaleCommit { run: run("r"), rows_changed };
        assert_eq!(l3_a_stale_runner_changes_nothing(&[gap_written("l"), stale(0), ended(true)]), Ok(()));
        assert!(l3_a_stale_runner_changes_nothing(&[stale(1), ended(true)]).is_err());
        assert!(l3_a_stale_runner_changes_nothing(&[stale(0), gap_written("l"), ended(true)]).is_err());
        assert!(l3_a_stale_runner_changes_nothing(&[stale(0), Fact::CooldownArmed { run: run("r") }]).is_err());
        assert!(l3_a_stale_runner_changes_nothing(&[stale(0), ended(false)]).is_err());
        assert!(l3_a_stale_runner_changes_nothing(&[stale(0)]).is_err());
    }
}

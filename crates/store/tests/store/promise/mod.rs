//! The promises of an account that take more than a store to judge: what a provider listed, what was in scope, what a run
//! did after it lost its lease. The others are in `gleaner_engine::testing::promises`.
//!
//! Each has a negative control in `promises.rs`: a check that cannot fail proves nothing.

use gleaner_engine::invariants::Broken;
use gleaner_engine::testing::promises::{Durable, Fact};
use gleaner_engine::{GapCause, GapId};
use gleaner_protocol::Semantics;
use std::collections::{BTreeMap, BTreeSet};

fn broken(id: &'static str, what: impl Into<String>) -> Result<(), Broken> {
    Err(Broken { id, what: what.into() })
}

/// A5: a gap disappears only when the run that holds it settles it, and not after deferring it again.
///
/// # Errors
///
/// The gap that disappeared otherwise.
pub(crate) fn a5_gaps_disappear_only_when_settled(
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
pub(crate) fn a7_writing_twice_is_writing_once(once: (u64, u64), twice: (u64, u64)) -> Result<(), Broken> {
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
pub(crate) fn a8_catch_up_leaves_steady_alone(
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
pub(crate) fn a10_coverage_adds_up(facts: &[Fact]) -> Result<(), Broken> {
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
pub(crate) fn a11_tombstones_were_asked_for(db: &impl Durable, facts: &[Fact]) -> Result<(), Broken> {
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
pub(crate) fn a12_closed_gaps_were_confirmed(facts: &[Fact]) -> Result<(), Broken> {
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
pub(crate) fn a13_only_permanent_causes_are_given_up(
    given_up: impl IntoIterator<Item = GapCause>,
) -> Result<(), Broken> {
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
pub(crate) fn p1_accepted_records_were_asked_for(
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
pub(crate) fn p3_runs_end_once(facts: &[Fact]) -> Result<(), Broken> {
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

/// L3: a commit under an old epoch changes nothing; its run ends superseded, arms no cooldown and
/// writes no gap after it.
///
/// # Errors
///
/// What the stale side did.
pub(crate) fn l3_a_stale_runner_changes_nothing(facts: &[Fact]) -> Result<(), Broken> {
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

//! The promises of an account, as functions over what is durable and what happened.
//!
//! Why functions and not assertions in the code they check: the same predicates judge the property
//! tests, the simulator, the kill and power-loss harnesses and `gleaner verify`, and a checker that
//! shares code with what it checks shares its faults. Each has a negative control among the tests: a
//! check that cannot fail proves nothing. They read a [`Durable`] state and a list of [`Fact`]s, and
//! never repair anything. The promises that only a test can judge, because it knows the provider, are in the store's tests.

mod facts;

pub use facts::{Durable, Fact};

use crate::ids::{CommitSeq, Epoch};
use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GapId;
    use gleaner_protocol::Semantics;
    use std::collections::BTreeSet;

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
}

//! The promises of an account, as functions over what is durable and what happened.
//!
//! The property tests, the model of the store, and the kill and power-loss harnesses ask the same questions. Each has a
//! negative control among the tests below: a check that cannot fail proves nothing. They read a [`Durable`] state and a
//! list of [`Fact`]s, and never repair anything. The promises that take a provider to judge are in the store's tests.

use crate::ids::{CommitSeq, Epoch, GapId, LeaseId, RunId};
use crate::invariants::{self, Broken};
use gleaner_protocol::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// What is durable, read again after whatever happened.
pub trait Durable {
    /// The number of a stream's committed cursor.
    fn checkpoint(&self, stream: &str) -> Option<CommitSeq>;
    /// The numbers of a stream's slices that are wholly there, those that committed their cursor.
    fn whole_slices(&self, stream: &str) -> Vec<CommitSeq>;
    /// Whether a key is stored, a tombstone, in an open gap, in quarantine, or skipped on purpose.
    fn accounts_for(&self, stream: &str, key: &str) -> bool;
    /// Whether a backlog gap of the stream covers this position.
    fn backlog_covers(&self, stream: &str, position: i64) -> bool;
    /// Every tombstone, as stream and key.
    fn tombstones(&self) -> Vec<(String, String)>;
    /// What the manifest says about a stream.
    fn semantics(&self, stream: &str) -> Option<Semantics>;
    /// The gaps that are open.
    fn open_gaps(&self) -> BTreeSet<GapId>;
}

/// Something that happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The provider listed a record; the cursor with this number covers it.
    Listed {
        /// The stream.
        stream: String,
        /// The key.
        key: String,
        /// The cursor that covers it.
        covered_by: CommitSeq,
        /// What the list is ordered by.
        position: i64,
    },
    /// A RECORD was accepted.
    Accepted {
        /// The run.
        run: RunId,
        /// The stream.
        stream: String,
        /// The key.
        key: String,
    },
    /// A RECORD with `op: delete` was accepted.
    Deleted {
        /// The stream.
        stream: String,
        /// The key.
        key: String,
    },
    /// A record or gap of a detail stream was accepted.
    Detail {
        /// The detail stream.
        stream: String,
    },
    /// A coverage report was accepted.
    Covered {
        /// The detail stream.
        stream: String,
        /// Whose checkpoint waits for it.
        state_stream: String,
        /// The four lists: required, hydrated, gaps, skips.
        lists: [Vec<String>; 4],
    },
    /// A run ended.
    Ended {
        /// Which.
        run: RunId,
        /// Whether it lost its lease.
        superseded: bool,
    },
    /// Somebody took the lease.
    Acquired {
        /// With this epoch.
        epoch: Epoch,
    },
    /// A store showed this epoch when it was opened.
    Observed {
        /// The epoch.
        epoch: Epoch,
    },
    /// Work stopped because the store is older than what was seen.
    Halted,
    /// A cursor was committed.
    Committed {
        /// The stream.
        stream: String,
        /// Its number.
        seq: CommitSeq,
        /// The epoch of who did it.
        epoch: Epoch,
    },
    /// A commit under an old epoch was refused.
    StaleCommit {
        /// The run that tried.
        run: RunId,
        /// How many rows changed all the same.
        rows_changed: u64,
    },
    /// A run wrote a gap.
    GapWritten {
        /// The run.
        run: RunId,
        /// Which gap.
        gap: GapId,
        /// Its lease.
        lease: LeaseId,
    },
    /// A run was handed a gap.
    GapLeased {
        /// Which gap.
        gap: GapId,
        /// To whom.
        lease: LeaseId,
        /// Of which stream.
        stream: String,
        /// The key of what is missing; `None` where it stands for a part of a list.
        key: Option<String>,
    },
    /// A record or deletion that was accepted is durable, changed or not. What is in quarantine is not.
    Stored {
        /// The stream.
        stream: String,
        /// The key.
        key: String,
        /// Its top-level fields that are a text or a number, as text.
        fields: Vec<String>,
    },
    /// A gap was closed, in one transaction with everything that was said before.
    GapSettled {
        /// Which gap.
        gap: GapId,
        /// By whom.
        lease: LeaseId,
    },
    /// A cooldown was armed.
    CooldownArmed {
        /// By this run.
        run: RunId,
    },
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

/// A3: the checkpoint is that of the last slice that is wholly durable.
///
/// # Errors
///
/// The stream whose checkpoint is ahead of, or behind, its slices.
pub fn a3_checkpoint_is_the_last_whole_slice(db: &impl Durable, streams: &[&str]) -> Result<(), Broken> {
    let check = |stream: &&str| {
        invariants::a3_is_last_whole_slice(stream, db.checkpoint(stream), db.whole_slices(stream).into_iter().max())
    };
    streams.iter().try_for_each(check)
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
        invariants::a4_goes_forward(stream, last.insert(stream, *seq), *seq)?;
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
            Fact::Committed { epoch, stream, .. } => invariants::l1_is_of_holder(stream, *epoch, held)?,
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
    let mut is_current = Ok(());
    for fact in facts {
        match fact {
            Fact::Halted => is_current = Ok(()),
            Fact::Acquired { .. } | Fact::Committed { .. } | Fact::GapWritten { .. } if is_current.is_err() => {
                return broken("L2", "work went on on an older store".to_owned());
            }
            Fact::Acquired { epoch } => {
                invariants::l2_grows(seen, *epoch)?;
                seen = Some(*epoch);
            }
            Fact::Observed { epoch } if Some(*epoch) < seen => is_current = invariants::l2_is_not_older(seen, *epoch),
            Fact::Observed { epoch } => seen = Some(*epoch),
            _ => {}
        }
    }
    is_current
}

#[cfg(test)]
mod tests {
    use super::*;

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

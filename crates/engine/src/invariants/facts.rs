//! What the promises are about: a state that can be asked, and a list of what happened.
//!
//! Why not the store's own types: the checks run over SQLite, PostgreSQL, a simulator and a model in
//! a test alike, and must not know which.

use crate::ids::{CommitSeq, Epoch, GapId, LeaseId, RunId};
use gleaner_protocol::Semantics;
use std::collections::BTreeSet;

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

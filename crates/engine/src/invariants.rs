//! The promises of an account that can be asked of two numbers: each is one step of a history.
//!
//! Why functions and not assertions in the code they check: the same predicates judge the tests and `gleaner verify`, and
//! a checker that shares code with what it checks shares its faults. They never repair anything. `testing/promises.rs`
//! asks them of whole histories.

use crate::ids::{CommitSeq, Epoch};

/// A promise that was broken, and where it shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id}: {what}")]
pub struct Broken {
    /// Which promise.
    pub id: &'static str,
    /// What shows it. Names streams and keys; for people, not for programs.
    pub what: String,
}

fn holds(is_so: bool, id: &'static str, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if is_so { Ok(()) } else { Err(Broken { id, what: what() }) }
}

/// A number for people.
fn number(of: Option<u64>) -> String {
    of.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

/// A3: the checkpoint of a stream is that of its last slice that is wholly durable.
///
/// # Errors
///
/// When it is ahead of, or behind, its slices.
pub fn a3_is_last_whole_slice(
    stream: &str,
    checkpoint: Option<CommitSeq>,
    last: Option<CommitSeq>,
) -> Result<(), Broken> {
    holds(checkpoint == last, "A3", || {
        let [checkpoint, last] = [checkpoint, last].map(|seq| number(seq.map(CommitSeq::get)));
        format!("{stream:?} is at {checkpoint}, its last whole slice is {last}")
    })
}

/// A4: a commit of a stream has a larger number than the one before.
///
/// # Errors
///
/// When it does not.
pub fn a4_goes_forward(stream: &str, before: Option<CommitSeq>, seq: CommitSeq) -> Result<(), Broken> {
    holds(before < Some(seq), "A4", || {
        format!("{stream:?} went from {} to {}", number(before.map(CommitSeq::get)), seq.get())
    })
}

/// L1: there is one holder: a commit has the epoch of the lease at that moment.
///
/// # Errors
///
/// When it does not.
pub fn l1_is_of_holder(stream: &str, epoch: Epoch, held: Option<Epoch>) -> Result<(), Broken> {
    holds(held == Some(epoch), "L1", || {
        let held = number(held.map(Epoch::get));
        format!("{stream:?} was committed under epoch {}, the lease has epoch {held}", epoch.get())
    })
}

/// L2: an acquisition has a larger epoch than the one before.
///
/// # Errors
///
/// When it does not.
pub fn l2_grows(before: Option<Epoch>, epoch: Epoch) -> Result<(), Broken> {
    holds(before < Some(epoch), "L2", || {
        format!("epoch {} was acquired after {}", epoch.get(), number(before.map(Epoch::get)))
    })
}

/// L2: a store is not older than what was seen of it.
///
/// # Errors
///
/// When it is.
pub fn l2_is_not_older(seen: Option<Epoch>, store: Epoch) -> Result<(), Broken> {
    holds(Some(store) >= seen, "L2", || "an older store was opened and nothing stopped".to_owned())
}

//! What can happen, and how often.
//!
//! Streams and keys are few, so that records meet their equals, gaps meet their records and runs meet
//! what earlier ones left behind. Every number means something in every state; what cannot happen now
//! (a page without a run) begins a run or does nothing, so that any part of a list is a list.

use proptest::prelude::*;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Begin {
        catch_up: bool,
        details: bool,
    },
    Record {
        stream: usize,
        key: u8,
        body: u8,
    },
    Bad {
        stream: usize,
        key: u8,
    },
    Delete {
        stream: usize,
        key: u8,
    },
    State {
        stream: usize,
        slice: bool,
    },
    Gap {
        stream: usize,
        key: u8,
        cause: usize,
    },
    /// A run cap with so many records left, folded into gaps and a backlog.
    CapTrip {
        tail: u8,
        chunk: u8,
    },
    Page,
    /// About one of the gaps that were served, by this run or an earlier one.
    Attempt {
        nth: usize,
    },
    Recover {
        nth: usize,
    },
    PutBack {
        nth: usize,
        cause: usize,
    },
    /// Deferred again, and then called recovered by the same run.
    PutBackAndRecover {
        nth: usize,
    },
    /// Called recovered without its record, or with something else in its place.
    Lie {
        nth: usize,
        how: u8,
    },
    /// A page, everything on it tried and put back for this reason, and the end of the run.
    Sweep {
        cause: usize,
    },
    /// An outcome for each of four keys: hydrated, gap, skipped, none, a gap that nobody reported, and called hydrated
    /// without having been sent.
    Coverage {
        outcomes: [u8; 4],
    },
    StreamFailed {
        stream: usize,
    },
    /// The same, and the end of the run because of it.
    StreamsFailed {
        stream: usize,
    },
    Done {
        how: u8,
    },
    Cancel,
    /// A line that is none, or a deletion where nothing is deleted.
    Nonsense {
        deletion: bool,
    },
    /// The last slice once more.
    Repeat,
    /// Six seconds: what waits is written.
    Pass,
    /// The calendar moves by so many hours, and nothing else does.
    Jump {
        hours: i64,
    },
    /// Effects wait from now on, or no longer do.
    Lazy(bool),
    /// The machine loses power after so many of the effects that wait.
    Crash {
        carried_out: usize,
    },
    /// The holder dies, in one of three ways, and another process goes on. The holder may have had
    /// nothing left to do but to write its own end.
    Takeover {
        death: u8,
        catch_up: bool,
        at_its_end: bool,
    },
    /// The holder was not dead after all, and tries to go on.
    StaleActs,
    /// Another connection appears, or is forgotten.
    OtherConnection,
    /// The owner does without one of the gaps, whoever works on it.
    Ignore {
        nth: usize,
        note: u8,
    },
    /// The owner wants one after all.
    TakeBack {
        nth: usize,
    },
}

fn data() -> impl Strategy<Value = Op> {
    let (stream, key) = (0_usize..3, 0_u8..5);
    prop_oneof![
        10 => (stream.clone(), key.clone(), 0_u8..2).prop_map(|(stream, key, body)| Op::Record { stream, key, body }),
        5 => (stream.clone(), key.clone()).prop_map(|(stream, key)| Op::Bad { stream, key }),
        3 => (stream.clone(), key.clone()).prop_map(|(stream, key)| Op::Delete { stream, key }),
        6 => (stream.clone(), any::<bool>()).prop_map(|(stream, slice)| Op::State { stream, slice }),
        6 => (stream, key, 0_usize..9).prop_map(|(stream, key, cause)| Op::Gap { stream, key, cause }),
        1 => (1_u8..8, 1_u8..4).prop_map(|(tail, chunk)| Op::CapTrip { tail, chunk }),
        2 => prop::array::uniform4(outcome()).prop_map(|outcomes| Op::Coverage { outcomes }),
        1 => Just(Op::Repeat),
    ]
}

/// Mostly one that a report may have.
fn outcome() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0_u8), 2 => Just(1), 2 => Just(2), 1 => Just(3), 1 => Just(4), 1 => Just(5)]
}

fn recovery() -> impl Strategy<Value = Op> {
    let nth = 0_usize..6;
    prop_oneof![
        4 => Just(Op::Page),
        2 => nth.clone().prop_map(|nth| Op::Attempt { nth }),
        4 => nth.clone().prop_map(|nth| Op::Recover { nth }),
        3 => (nth.clone(), 0_usize..9).prop_map(|(nth, cause)| Op::PutBack { nth, cause }),
        3 => nth.clone().prop_map(|nth| Op::PutBackAndRecover { nth }),
        4 => (nth, 0_u8..5).prop_map(|(nth, how)| Op::Lie { nth, how }),
        3 => (2_usize..9).prop_map(|cause| Op::Sweep { cause }),
    ]
}

fn course() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => any::<(bool, bool)>().prop_map(|(catch_up, details)| Op::Begin { catch_up, details }),
        1 => (0_usize..3).prop_map(|stream| Op::StreamFailed { stream }),
        1 => (0_usize..3).prop_map(|stream| Op::StreamsFailed { stream }),
        6 => (0_u8..9).prop_map(|how| Op::Done { how }),
        1 => Just(Op::Cancel),
        1 => any::<bool>().prop_map(|deletion| Op::Nonsense { deletion }),
        2 => Just(Op::Pass),
        2 => prop_oneof![-90_000_i64..90_000, -8_i64..8].prop_map(|hours| Op::Jump { hours }),
        3 => any::<bool>().prop_map(Op::Lazy),
        2 => (0_usize..4).prop_map(|carried_out| Op::Crash { carried_out }),
        2 => (0_u8..3, any::<(bool, bool)>())
            .prop_map(|(death, (catch_up, at_its_end))| Op::Takeover { death, catch_up, at_its_end }),
        1 => Just(Op::StaleActs),
        1 => Just(Op::OtherConnection),
        3 => (0_usize..8, 0_u8..2).prop_map(|(nth, note)| Op::Ignore { nth, note }),
        2 => (0_usize..8).prop_map(|nth| Op::TakeBack { nth }),
    ]
}

/// One thing.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![5 => data(), 3 => recovery(), 3 => course()]
}

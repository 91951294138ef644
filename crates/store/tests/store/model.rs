//! The real engine over the real store, against a model that shares nothing with either.
//!
//! Why a model on top of all the single tests: what loses records is rarely one operation, it is an
//! order of several (a gap deferred, its run killed, another one taking over, the first one waking up).
//! Lists of operations are made up at random and shortened when they fail; after each operation all that
//! can be seen of the store is compared, and at the end every promise of `gleaner_engine::testing::promises` and
//! of `promise` is checked on the file itself. No test here looks at how the store does it, and none writes to the
//! file except to kill a holder or, as a control, to break something on purpose.

#![allow(missing_debug_implementations, reason = "nobody prints the harness")]

mod check;
mod expected;
mod gaps;
mod lines;
mod live;
mod ops;
mod trace;
mod world;

use ops::{Op, op};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// The longest list of operations.
const OPS_MAX: usize = 60;

/// Runs a list of operations, then lets everything come to rest and converge.
fn play(ops: &[Op]) -> World {
    let mut world = World::new();
    for &op in ops {
        world.act(op);
    }
    world.calm_down();
    world.check_promises();
    world.converge();
    world.check_promises();
    world
}

/// A case is some dozen runs on a file and takes as long as hundreds of a pure property, so a quarter of
/// what `PROPTEST_CASES` asks for is run, and 128 at least: 2,500 of the 10,000 of `scripts/test --all`.
fn cases() -> u32 {
    ProptestConfig::default().cases.div_ceil(4).max(128)
}

/// Not with the macro: it puts the number of the environment in the place of ours.
#[test]
fn store_and_model_agree_whatever_happens() {
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let played = TestRunner::new(config).run(&prop::collection::vec(op(), 1..OPS_MAX), |ops| {
        drop(play(&ops));
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
}

#[test]
fn the_lists_of_operations_meet_everything_that_they_are_made_for() {
    let wanted = [
        "succeeded",
        "connector_failed",
        "stream_collection_failed",
        "source_cooldown",
        "protocol_violation",
        "cancelled",
        "a backlog expanded in part",
        "a catch-up run to its end",
        "a complete report",
        "a connection forgotten beside ours",
        "a connector that waits for the store",
        "a crash between two effects",
        "a gap called recovered by a run that does not hold it",
        "a gap called recovered by the run that deferred it again",
        "a gap given up",
        "a gap ignored",
        "a gap ignored while a run held it",
        "a part of a list that cannot be ignored",
        "a gap recovered",
        "a gap closed as empty",
        "a key called hydrated that is empty",
        "a key called hydrated of which there is nothing",
        "a gap called recovered for which nothing came",
        "an ignored gap reported again",
        "an ignored gap taken back",
        "a rest cut after the calendar was set back",
        "a slice written twice",
        "a stale run refused at its end",
        "a stale run refused in the middle",
        "cursors committed at the end of a run",
        "keys that nothing accounts for became gaps",
    ];
    let mut runner = TestRunner::deterministic();
    let lists = prop::collection::vec(op(), OPS_MAX / 2..OPS_MAX);
    let mut missing = BTreeSet::from(wanted);
    for _ in 0..100 {
        let world = play(&lists.new_tree(&mut runner).unwrap().current());
        missing.retain(|kind| !world.met.contains(kind));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never met: {missing:?}");
}

#[test]
fn a_record_that_fits_leaves_the_quarantine_also_when_it_was_stored_before() {
    let (good, bad) = (Op::Record { stream: 2, key: 1, body: 0 }, Op::Bad { stream: 2, key: 1 });
    let commit = Op::State { stream: 2, slice: true };
    play(&[good, commit, bad, commit, good, commit]);
    play(&[bad, good, commit]);
    play(&[good, bad, commit]);
}

#[test]
fn a_gap_recovered_while_the_store_is_behind_is_settled() {
    play(&[
        Op::Gap { stream: 0, key: 0, cause: 0 },
        Op::Done { how: 0 },
        Op::Page,
        Op::Lazy(true),
        Op::CapTrip { tail: 1, chunk: 1 },
        Op::Pass,
        Op::Recover { nth: 0 },
        Op::Page,
        Op::Record { stream: 0, key: 0, body: 0 },
    ]);
}

#[test]
fn a_gap_that_is_called_recovered_is_closed_only_with_what_it_stood_for() {
    let (found, over) = (Op::Gap { stream: 0, key: 0, cause: 8 }, Op::Done { how: 0 });
    for how in 0..5 {
        play(&[found, over, Op::Page, Op::Lie { nth: 0, how }, over]);
        play(&[found, over, Op::Page, Op::Lie { nth: 0, how }, Op::Pass, Op::Lie { nth: 0, how: 4 }, over]);
        play(&[found, over, Op::Page, Op::Ignore { nth: 0, note: 0 }, Op::Lie { nth: 0, how }, over]);
    }
}

#[test]
fn a_gap_outside_the_scope_of_a_run_is_not_served_to_it() {
    let gap = Op::Gap { stream: 1, key: 0, cause: 8 };
    play(&[gap, Op::Done { how: 0 }, Op::Begin { catch_up: false, details: false }, Op::Page]);
}

#[test]
fn a_gap_that_is_ignored_while_a_run_holds_it_is_closed_by_that_run_or_stays_ignored() {
    let (found, over) = (Op::Gap { stream: 0, key: 0, cause: 8 }, Op::Done { how: 0 });
    let ignore = Op::Ignore { nth: 0, note: 0 };
    play(&[found, over, Op::Page, ignore, Op::Recover { nth: 0 }, over]);
    play(&[found, over, Op::Page, ignore, Op::Attempt { nth: 0 }, Op::PutBack { nth: 0, cause: 8 }, over, Op::Page]);
    play(&[found, over, Op::Page, ignore, over, Op::Recover { nth: 0 }, over, found, over, Op::TakeBack { nth: 0 }]);
    play(&[found, over, Op::Page, ignore, Op::TakeBack { nth: 0 }, Op::Recover { nth: 0 }, over, Op::Page]);
}

/// A world with something of everything in it.
fn full_world() -> World {
    play(&[
        Op::Record { stream: 0, key: 0, body: 0 },
        Op::Record { stream: 0, key: 1, body: 1 },
        Op::Record { stream: 2, key: 0, body: 1 },
        Op::Gap { stream: 0, key: 2, cause: 5 },
        Op::Bad { stream: 0, key: 3 },
        Op::State { stream: 0, slice: true },
        Op::Done { how: 7 },
        Op::Page,
        Op::PutBack { nth: 0, cause: 5 },
        Op::Done { how: 0 },
        Op::Page,
        Op::PutBack { nth: 0, cause: 5 },
        Op::Delete { stream: 0, key: 0 },
        Op::State { stream: 0, slice: false },
        Op::Coverage { outcomes: [0, 2, 0, 2] },
        Op::Done { how: 0 },
    ])
}

/// What is said about a store that was broken by this behind everybody's back.
fn complaint(break_it: &str) -> String {
    let world = full_world();
    world.watcher.execute_batch(break_it).unwrap();
    let check = catch_unwind(AssertUnwindSafe(|| world.check_promises()));
    let said = check.expect_err("nothing was noticed");
    let model = catch_unwind(AssertUnwindSafe(|| world.compare())).is_err();
    let text = said.downcast_ref::<String>().cloned().unwrap_or_default();
    format!("{text}{}", if model { " and the model disagrees" } else { "" })
}

#[test]
fn control_each_promise_notices_a_store_that_breaks_it() {
    let cases = [
        ("DELETE FROM records WHERE key = 'k1'", "\"A1\""),
        ("UPDATE cursors SET seq = seq + 1", "\"A3\""),
        ("DELETE FROM gaps", "\"A1\""),
        ("UPDATE gaps SET state = 'recovered', record_key = NULL; DELETE FROM quarantine", "\"A1\""),
        (
            "INSERT INTO gaps SELECT id + 100, x'00', connection, stream, grant_id, parent_stream, record_key,
          record_key_is_number, 'pending', lease, attempts, counted_under, deferred_under, reason, run_cap, http_status,
          terminal_reason, last_error, not_before, since, due, locator, list_cursor, run, hash, part_of_list, ignored_note, ignored_at, confirmed_by FROM gaps;
          DELETE FROM gaps WHERE id < 100",
            "\"A5\"",
        ),
        ("UPDATE versions SET deleted = 1, body = NULL WHERE key = 'k1'", "\"A11\""),
        ("UPDATE streams SET records = records + 1", "the file is whole"),
        ("UPDATE versions SET body = '{\"v\":9}' WHERE key = 'k1'", "the file is whole"),
        ("UPDATE commits SET epoch = 0 WHERE id = (SELECT max(id) FROM commits)", "the file is whole"),
        ("UPDATE versions SET previous = NULL", "the file is whole"),
    ];
    for (sql, wanted) in cases {
        let said = complaint(sql);
        assert!(said.contains(wanted), "{sql}\nwas noticed as: {said}");
    }
}

#[test]
fn control_the_model_notices_what_no_promise_forbids() {
    let cases = [
        ("UPDATE cursors SET token = '{}'", "cursors"),
        ("UPDATE cooldowns SET escalation = 3", "the rest"),
        ("DELETE FROM cooldowns", "the rest"),
        ("UPDATE gaps SET attempts = attempts + 1", "details"),
        ("UPDATE gaps SET state = 'ignored', ignored_note = 'x', ignored_at = 1 WHERE state != 'recovered'", "details"),
        ("UPDATE runs SET reason = 'succeeded'", "runs"),
        ("UPDATE quarantine SET body = NULL", "quarantine"),
    ];
    for (sql, wanted) in cases {
        let world = full_world();
        world.watcher.execute_batch(sql).unwrap();
        let said = catch_unwind(AssertUnwindSafe(|| world.compare())).expect_err(sql);
        let text = said.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains(wanted) || text.contains("trips"), "{sql}\nwas noticed as: {text}");
    }
}

#[test]
fn an_old_deletion_is_no_detail_of_a_trip_that_is_there_again() {
    play(&[
        Op::Gap { stream: 0, key: 1, cause: 0 },
        Op::Delete { stream: 1, key: 1 },
        Op::Gap { stream: 0, key: 2, cause: 0 },
        Op::Sweep { cause: 2 },
        Op::Sweep { cause: 2 },
        Op::Sweep { cause: 2 },
        Op::Lie { nth: 1, how: 3 },
        Op::Coverage { outcomes: [0, 5, 0, 0] },
        Op::Gap { stream: 0, key: 0, cause: 0 },
        Op::Record { stream: 0, key: 0, body: 0 },
    ]);
}

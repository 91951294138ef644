//! Cancellation, a store that fails, a lost lease, and the bounds of what waits.

use super::*;

#[test]
fn a_cancellation_wins_over_everything_until_the_commit_is_given_out() {
    let mut lazy = world(&["photos"]);
    lazy.eager = false;
    lazy.lines(&[&state("photos", 1), &done("succeeded", 0), &record("photos", "late")]);
    lazy.run.handle_cancel(lazy.now);
    lazy.settle();
    assert_eq!(lazy.outcome().reason, TerminalReason::Cancelled);
    assert_eq!(lazy.store.cursors.len(), 0);

    let mut late = world(&["photos"]);
    late.eager = false;
    late.lines(&[&state("photos", 1), &done("succeeded", 0)]);
    while !matches!(late.run.phase, super::super::ending::Phase::Committing { .. }) {
        assert!(late.step());
    }
    late.run.handle_cancel(late.now);
    late.settle();
    assert_eq!(late.outcome().reason, TerminalReason::Succeeded);
}

#[test]
fn a_store_that_fails_is_asked_for_nothing_more() {
    let mut world = world(&["photos"]);
    world.eager = false;
    world.lines(&[&slice_state("photos", 1), &slice_state("photos", 2)]);
    let Some(Effect::Store(StoreEffect::WriteSlice(_lost))) = world.run.poll_effect() else { panic!() };
    world.run.handle_store_failed(world.now);
    world.settle();
    assert_eq!(world.outcome().reason, TerminalReason::RuntimeError);
    assert_eq!((world.store.slices, world.log.as_slice()), (0, &["stop"][..]), "the second slice is not written");
}

#[test]
fn a_commit_whose_end_is_not_known_is_on_record() {
    let mut world = world(&["photos"]);
    world.eager = false;
    world.lines(&[&state("photos", 1), &done("succeeded", 0)]);
    while !matches!(world.run.phase, super::super::ending::Phase::Committing { .. }) {
        assert!(world.step());
    }
    let Some(Effect::Store(StoreEffect::Commit(_plan))) = world.run.poll_effect() else { panic!() };
    world.run.handle_store_failed(world.now);
    world.settle();
    let outcome = world.outcome();
    assert_eq!((outcome.reason, outcome.commit_is_unknown), (TerminalReason::RuntimeError, true));
    assert_eq!(outcome.committed, []);
}

#[test]
fn a_superseded_run_writes_nothing_and_arms_nothing() {
    let mut world = world(ALL);
    world.eager = false;
    world.lines(&[&gap("details", "trips", "a", "rate_limited"), &slice_state("trips", 1)]);
    world.run.handle_superseded(world.now);
    world.settle();
    assert_eq!((world.outcome().reason, world.outcome().pressure), (TerminalReason::Superseded, None));
    assert_eq!((world.store.slices, world.store.gaps.len(), world.store.cursors.len()), (0, 0, 0));
}

#[test]
fn a_receipt_out_of_order_ends_the_run() {
    let mut world = world(&["photos"]);
    world.eager = false;
    world.lines(&[&slice_state("photos", 1), &slice_state("photos", 2)]);
    let (Some(Effect::Store(StoreEffect::WriteSlice(_first))), Some(Effect::Store(StoreEffect::WriteSlice(second)))) =
        (world.run.poll_effect(), world.run.poll_effect())
    else {
        panic!()
    };
    world.run.handle_receipt(second.into_receipt(crate::Epoch::new(1), crate::Counts::default()), world.now);
    world.settle();
    assert_eq!(world.outcome().reason, TerminalReason::RuntimeError);
}

#[test]
fn input_is_refused_while_too_many_effects_wait_and_nothing_is_lost() {
    let mut config = config::<Steady>(&["photos"]);
    config.effects_max = 3;
    let mut world = World::new(config);
    world.eager = false;
    for page in 0..50 {
        world.line(&slice_state("photos", page));
    }
    assert_eq!(world.run.effects.len(), 2, "each is counted twice until it is taken out");
    let mut lines = std::mem::take(&mut world.refused);
    assert_eq!(lines.len(), 48);
    while let Some(line) = lines.pop_front() {
        world.line(&line);
        while let Some(line) = world.refused.pop_front() {
            assert!(world.step());
            world.line(&line);
        }
    }
    world.settle();
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":49}"#));
}

#[test]
fn a_long_slice_goes_out_in_parts_and_its_cursor_in_the_last() {
    let mut world = world(&["photos"]);
    for key in 0..2500 {
        world.line(&record("photos", &key.to_string()));
    }
    assert_eq!(world.store.slices, 2);
    world.line(&slice_state("photos", 1));
    assert_eq!((world.store.slices, world.keys("photos").len()), (3, 2500));
}

#[test]
fn records_do_not_wait_for_ever_in_an_unfinished_slice() {
    let mut world = world(&["photos"]);
    world.line(&record("photos", "a"));
    assert_eq!(world.run.poll_timeout(world.now).map(crate::Time::as_millis), Some(5000));
    world.pass(4999);
    assert_eq!(world.store.slices, 0);
    world.pass(1);
    assert_eq!((world.store.slices, world.run.poll_timeout(world.now)), (1, None));
}

//! What is written, staged and committed when a run goes well, and how much of it when it does not.

use super::*;

#[test]
fn a_run_that_succeeds_writes_closes_waits_for_the_exit_and_then_commits() {
    let mut world = world(&["photos"]);
    world.lines(&[&record("photos", "a"), &state("photos", 2), &record("photos", "b"), &done("succeeded", 2)]);
    assert_eq!(world.log, ["write", "close", "commit"]);
    assert_eq!(world.outcome().reason, TerminalReason::Succeeded);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":2}"#));
    assert_eq!(world.keys("photos").len(), 2);
}

#[test]
fn bodies_and_cursors_are_kept_byte_for_byte() {
    let mut world = world(&["photos"]);
    let body = r#"{ "n":1.50e400, "s":"\u0000\ud800" }"#;
    world.line(&record("photos", "a").replace(r#"{"id":1.0}"#, body)).line(&done("succeeded", 1));
    assert_eq!(world.store.records.values().next().unwrap().as_deref(), Some(body));
}

#[test]
fn a_slice_is_committed_as_soon_as_it_is_durable_whatever_happens_later() {
    let mut world = world(&["photos"]);
    world.lines(&[&record("photos", "a"), &slice_state("photos", 1)]);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
    assert_eq!(world.store.slices, 1, "records and cursor in one transaction");
    world.lines(&[&record("photos", "b"), &state("photos", 2), &failed("boom", 2)]);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
    assert_eq!(world.keys("photos").len(), 2, "what was accepted is kept");
}

#[test]
fn a_cursor_staged_before_a_whole_slice_does_not_come_back_at_the_end() {
    let mut world = world(&["photos"]);
    world.lines(&[&state("photos", 1), &slice_state("photos", 2), &done("succeeded", 0)]);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":2}"#));
    assert!(!world.log.contains(&"commit"), "nothing is left to commit");
}

#[test]
fn the_first_of_two_breaches_is_the_one_on_record() {
    let mut world = world(&["photos"]);
    world.exit = None;
    world.line(&record("trips", "a"));
    world.run.handle_violation(gleaner_protocol::Violation::new(ViolationCode::IncompleteLine), world.now);
    world.run.handle_exit(Exit::Signal(15), world.now);
    world.settle();
    assert_eq!(world.outcome().violation.as_ref().unwrap().code, ViolationCode::StreamOutOfScope);
}

#[test]
fn a_failure_commits_nothing_and_keeps_the_records() {
    for last in [failed("boom", 1), done("cancelled", 1)] {
        let mut world = world(&["photos"]);
        world.exit = Some(Exit::Code(1));
        world.lines(&[&record("photos", "a"), &state("photos", 1), &last]);
        assert_eq!(world.store.cursor("steady", "photos"), None);
        assert_eq!(world.outcome().withheld.len(), 1, "and says so");
        assert_eq!(world.keys("photos").len(), 1);
    }
}

#[test]
fn a_stream_scoped_failure_commits_the_other_streams_and_stays_failed() {
    let skip = r#"{"type":"SKIP_RESULT","stream":"comments","reason":"stream_collection_failed"}"#;
    let lines = |skip: &str| {
        let mut world = world(ALL);
        world.exit = Some(Exit::Code(1));
        world.lines(&[&record("photos", "a"), &state("photos", 1), &state("trips", 1), skip]);
        world.line(&failed("stream_collection_failed", 1));
        world
    };
    let certified = lines(skip);
    assert_eq!(certified.outcome().reason, TerminalReason::StreamCollectionFailed);
    assert_eq!(certified.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
    assert_eq!(certified.store.cursor("steady", "trips"), None, "comments ride on it");
    let uncertified = lines(&skip.replace("comments", "mail"));
    assert_eq!(uncertified.outcome().reason, TerminalReason::ConnectorFailed);
    assert_eq!(uncertified.store.cursor("steady", "photos"), None);
}

#[test]
fn list_detail_run_emits_detail_coverage_after_the_detail_lane() {
    let mut world = world(ALL);
    world.lines(&[&record("details", "a"), &state("trips", 1), &gap("details", "trips", "b", "retry_exhausted")]);
    world.lines(&[&coverage(&["a", "b"], &["a"], &["b"]), &done("succeeded", 1)]);
    assert_eq!(world.outcome().withheld, []);
    assert_eq!(world.store.cursor("steady", "trips"), Some(r#"{"page":1}"#));
}

#[test]
fn a_coverage_shortfall_withholds_the_checkpoint_and_never_fails_the_run() {
    let gap_of = |parent| gap("details", parent, "b", "retry_exhausted");
    let short = [
        vec![],
        vec![coverage(&["a", "b"], &["a"], &[])],
        vec![coverage(&["a", "b"], &["a"], &["b"])],
        // A gap of the same key under another parent backs nothing.
        vec![gap_of("photos"), coverage(&["a", "b"], &["a"], &["b"])],
    ];
    for report in short {
        let mut world = world(ALL);
        world.lines(&[&record("details", "a"), &state("trips", 1), &state("photos", 1)]);
        for line in &report {
            world.line(line);
        }
        world.line(&done("succeeded", 1));
        let outcome = world.outcome();
        assert_eq!(outcome.reason, TerminalReason::Succeeded, "{report:?}");
        assert_eq!(outcome.withheld[0].why, WithheldBecause::CoverageShortfall);
        assert_eq!(world.store.cursor("steady", "trips"), None);
        assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
        assert_eq!(outcome.counts.unaccounted, 0, "the next run lists them again");
    }
}

#[test]
fn a_required_key_without_outcome_under_a_committed_slice_becomes_a_gap() {
    let lasts = [done("succeeded", 0), failed("boom", 0)];
    for (last, eager) in lasts.iter().flat_map(|last| [(last, true), (last, false)]) {
        let mut world = world(ALL);
        world.eager = eager;
        world.exit = Some(Exit::Code(i32::from(last.contains("failed"))));
        world.lines(&[&slice_state("trips", 1), &coverage(&["a", "b"], &["a"], &[]), last]);
        world.settle();
        assert_eq!(world.store.open_gaps(), ["key:b"]);
        assert_eq!(world.outcome().counts.unaccounted, 1);
    }
}

#[test]
fn done_is_acknowledged_only_when_everything_before_it_is_durable() {
    let mut world = world(ALL);
    world.eager = false;
    world.lines(&[&slice_state("trips", 1), &coverage(&["a"], &[], &[]), &done("succeeded", 0)]);
    let mut waits = 0;
    while let Some(effect) = world.run.poll_effect() {
        assert!(!matches!(effect, Effect::Process(ProcessEffect::CloseInput)), "nothing was answered yet");
        match effect {
            Effect::Store(StoreEffect::WriteSlice(slice)) => {
                waits += 1;
                assert!(world.store.slices == 0);
                world.run.handle_receipt(slice.into_receipt(crate::Epoch::new(1), crate::Counts::default()), world.now);
            }
            Effect::Store(StoreEffect::TallyCoverage { report, .. }) => {
                waits += 1;
                let tally = crate::CoverageTally { required: 1, without_outcome: 1, ..Default::default() };
                world.run.handle_tally(report, &tally, world.now);
            }
            Effect::Store(StoreEffect::WriteUnaccounted { .. }) => waits += 1,
            _ => {}
        }
    }
    assert_eq!(waits, 3);
    world.run.handle_unaccounted_written(1, world.now);
    assert!(matches!(world.run.poll_effect(), Some(Effect::Process(ProcessEffect::CloseInput))));
}

#[test]
fn a_configured_size_cap_defers_the_remaining_tail_as_a_resumable_gap() {
    let mut world = world(ALL);
    let cap = r#"{"type":"DETAIL_GAP","reference_only":true,"status":"pending","stream":"details","parent_stream":"trips","record_key":"KEY","reason":"retry_exhausted","last_error":{"class":"run_cap_deferred"}}"#;
    world.lines(&[&record("details", "a"), &cap.replace("KEY", "b"), &cap.replace("KEY", "c")]);
    world.lines(&[&state("trips", 7), &coverage(&["a", "b", "c"], &["a"], &["b", "c"]), &done("succeeded", 1)]);
    assert_eq!(world.store.cursor("steady", "trips"), Some(r#"{"page":7}"#), "the prefix's cursor commits");
    assert_eq!(world.store.open_gaps(), ["key:b", "key:c"]);
    assert_eq!(world.outcome().pressure, None, "and nothing arms the cooldown");
}

#[test]
fn a_run_that_only_recovers_moves_no_cursor_whatever_its_connector_says() {
    let mut world = world(&["photos"]);
    world.run = Run::new(config(&["photos"]), world.now).unwrap().recovering_only(true);
    world.lines(&[&record("photos", "a"), &slice_state("photos", 1), &state("photos", 2), &done("succeeded", 1)]);
    assert_eq!(world.outcome().reason, TerminalReason::Succeeded);
    assert_eq!((world.store.cursor("steady", "photos"), world.keys("photos").len()), (None, 1));
    assert_eq!(world.outcome().withheld, [], "nothing was held back that would have counted");
}

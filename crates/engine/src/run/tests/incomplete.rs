//! What a run that succeeded leaves open, and what its connector is warned about.

use super::*;
use crate::WarningCode;

fn skip(stream: &str, reason: &str) -> String {
    format!(r#"{{"type":"SKIP_RESULT","stream":"{stream}","reason":"{reason}","message":"in its own words"}}"#)
}

fn warnings(world: &World<Steady>) -> Vec<(WarningCode, u64)> {
    world.outcome().warnings.iter().map(|warning| (warning.code, warning.count)).collect()
}

#[test]
fn a_checkpoint_that_is_withheld_is_told_with_its_reason_and_its_keys() {
    let mut world = world(ALL);
    let lines = [record("details", "a"), coverage(&["a", "unsent2", "unsent1"], &["a", "unsent1", "unsent2"], &[])];
    world.lines(&[&lines[0], &lines[1], &state("trips", 1), &done("succeeded", 1)]);
    let outcome = world.outcome();
    assert_eq!(outcome.reason, TerminalReason::Succeeded);
    assert!(outcome.is_incomplete());
    let [short] = &outcome.shortfalls[..] else { panic!("{:?}", outcome.shortfalls) };
    assert_eq!((short.state_stream.as_str(), short.unaccounted, short.unconfirmed), ("trips", Some(2), 2));
    assert_eq!(short.keys, ["unsent1", "unsent2"]);
    assert_eq!(world.store.cursor(Steady::NAME, "trips"), None);
}

#[test]
fn a_report_that_is_missing_is_told_only_where_a_cursor_waits_for_it() {
    let mut waits = world(ALL);
    waits.lines(&[&state("trips", 1), &done("succeeded", 0)]);
    assert_eq!(waits.outcome().shortfalls.iter().map(|short| short.unaccounted).collect::<Vec<_>>(), [None]);
    let mut nothing = world(ALL);
    nothing.lines(&[&done("succeeded", 0)]);
    assert!(!nothing.outcome().is_incomplete(), "{:?}", nothing.outcome());
}

#[test]
fn a_run_that_failed_tells_its_failure_and_no_shortfall() {
    let mut world = world(ALL);
    world.exit = Some(Exit::Code(1));
    world.lines(&[&coverage(&["unsent"], &["unsent"], &[]), &state("trips", 1), &failed("boom", 0)]);
    assert_eq!(world.outcome().shortfalls, []);
}

#[test]
fn what_was_skipped_makes_a_run_incomplete_unless_its_scope_did() {
    let mut left_out = world(ALL);
    left_out.lines(&[&skip("photos", "not_available_in_mode"), &done("succeeded", 0)]);
    let outcome = left_out.outcome();
    assert!(outcome.is_incomplete());
    assert_eq!(outcome.skips.count, 1);
    assert_eq!(outcome.skips.first[0].message.as_deref(), Some("in its own words"));
    let mut unasked = world(&["photos"]);
    unasked.lines(&[&skip("trips", "x"), &done("succeeded", 0)]);
    assert!(!unasked.outcome().is_incomplete());
    let mut asked = world(&["photos"]);
    asked.lines(&[&skip("photos", "out_of_scope"), &done("succeeded", 0)]);
    assert!(asked.outcome().is_incomplete(), "the run asked for all photos");
}

#[test]
fn a_report_before_the_last_detail_is_a_warning_and_no_violation() {
    let mut early = world(ALL);
    let report = coverage(&["a"], &["a"], &[]);
    let gap = gap("details", "trips", "c", "retry_exhausted");
    early.lines(&[&record("details", "a"), &report, &record("details", "b"), &gap, &record("photos", "p")]);
    early.line(&done("succeeded", 3));
    assert_eq!(early.outcome().violation, None);
    assert_eq!(warnings(&early), [(WarningCode::CoverageEarly, 2)]);
    let mut in_time = world(ALL);
    in_time.lines(&[&record("details", "a"), &report, &record("photos", "p"), &done("succeeded", 2)]);
    assert_eq!(warnings(&in_time), []);
}

/// As groupme does: attachments of two kinds of messages, a report for each.
#[test]
fn of_several_reports_of_a_stream_the_last_is_judged() {
    let report = |parent: &str| coverage(&["a"], &["a"], &[]).replace("details", "photos").replace("trips", parent);
    let mut world = world(ALL);
    world.lines(&[&record("photos", "a"), &report("trips"), &record("photos", "b"), &report("photos")]);
    world.line(&done("succeeded", 2));
    assert_eq!(world.outcome().violation, None);
    assert_eq!(warnings(&world), []);
}

#[test]
fn a_report_in_which_everything_is_an_optional_skip_is_told_as_such() {
    let mut world = world(ALL);
    let report = coverage(&["a", "b"], &[], &[]).replace(r#""gap_keys":[]"#, r#""optional_skip_keys":["a","b"]"#);
    world.lines(&[&report, &done("succeeded", 0)]);
    assert_eq!(warnings(&world), [(WarningCode::EverythingSkipped, 2)]);
    assert!(world.outcome().warnings[0].sentence().contains("skipped all 2 listed records"));
}

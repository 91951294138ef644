//! The run machine in front of a store in memory. Each test is lines in, durable state out.

use crate::invariants::{self, Fact};
use crate::support::{World, config, coverage, done, failed, gap, record, slice_state, state};
use crate::{AnswerTaken, CatchUp, CommitSeq, Effect, Exit, Refusal, Run, Steady, Track, WallTime, WithheldBecause};
use gleaner_protocol::{
    InteractionResponse, InteractionStatus, PressureReason, RuntimeMessage, TerminalReason, ViolationCode,
};
use proptest::prelude::*;
use std::time::Duration;

const ALL: &[&str] = &["trips", "comments", "details", "photos"];
const QUESTION: &str =
    r#"{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"code?","timeout_seconds":60}"#;

fn world(streams: &[&str]) -> World<Steady> {
    World::new(config(streams))
}

/// Lines that end a run with a violation, and the stream and key that it names.
fn check_violation(streams: &[&str], lines: &[&str], code: ViolationCode) -> World<Steady> {
    let mut world = world(streams);
    world.exit = Some(Exit::Signal(15));
    world.lines(lines);
    let outcome = world.outcome();
    assert_eq!(outcome.violation.as_ref().map(|violation| violation.code), Some(code), "{lines:?}");
    assert_eq!(outcome.reason, TerminalReason::ProtocolViolation);
    assert!(world.log.contains(&"stop"));
    assert!(!world.log.contains(&"commit"), "a violation commits nothing");
    world
}

fn answer(id: &str, status: InteractionStatus) -> InteractionResponse {
    InteractionResponse { request_id: id.to_owned(), status, data: None }
}

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
        assert!(!matches!(effect, Effect::CloseInput), "nothing was answered yet");
        match effect {
            Effect::WriteSlice(slice) => {
                waits += 1;
                assert!(world.store.slices == 0);
                world.run.handle_receipt(slice.into_receipt(crate::Epoch::new(1)), world.now);
            }
            Effect::TallyCoverage { report, .. } => {
                waits += 1;
                let tally = crate::CoverageTally { required: 1, without_outcome: 1, ..Default::default() };
                world.run.handle_tally(report, &tally, world.now);
            }
            Effect::WriteUnaccounted { .. } => waits += 1,
            _ => {}
        }
    }
    assert_eq!(waits, 3);
    world.run.handle_unaccounted_written(1, world.now);
    assert!(matches!(world.run.poll_effect(), Some(Effect::CloseInput)));
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
fn violations_name_what_was_wrong_and_end_the_run() {
    let delete = r#"{"type":"RECORD","stream":"photos","key":"a","op":"delete"}"#;
    let own = coverage(&["a"], &["a"], &[]);
    let cases: &[(&[&str], ViolationCode)] = &[
        (&[&record("trips", "a")], ViolationCode::StreamOutOfScope),
        (&[&state("trips", 1)], ViolationCode::StreamOutOfScope),
        (&[&gap("trips", "x", "a", "gone")], ViolationCode::StreamOutOfScope),
        (&[&own], ViolationCode::StreamOutOfScope),
        (&[delete], ViolationCode::DeleteOnAppendOnly),
        (&["nonsense"], ViolationCode::BadJson),
        (&[QUESTION, &record("photos", "a")], ViolationCode::OutputWhileWaiting),
        (&[QUESTION, QUESTION], ViolationCode::OutputWhileWaiting),
        (&[&record("photos", "a"), &done("succeeded", 2)], ViolationCode::CountMismatch),
        (&[&record("photos", "a"), &failed("boom", 0)], ViolationCode::CountMismatch),
    ];
    for (lines, code) in cases {
        check_violation(&["photos"], lines, *code);
    }
    let reports: &[(&[&str], ViolationCode)] = &[
        (&[&own, &own], ViolationCode::CoverageRepeated),
        (&[&own.replace("details", "comments")], ViolationCode::CoverageForChild),
        (&[&own.replace("\"trips\"", "\"photos\"")], ViolationCode::CoverageUndeclaredParent),
        (&[&coverage(&["a", "a"], &[], &[])], ViolationCode::CoverageDuplicateKey),
        (&[&coverage(&["a"], &["z"], &[])], ViolationCode::CoverageKeyNotRequired),
        (&[&coverage(&["a"], &["a"], &["a"])], ViolationCode::CoverageOverlap),
    ];
    for (lines, code) in reports {
        check_violation(ALL, lines, *code);
    }
    let world = check_violation(&["photos"], &["", &record("trips", "a")], ViolationCode::StreamOutOfScope);
    let violation = world.outcome().violation.clone().unwrap();
    assert_eq!((violation.position.unwrap().line, violation.stream.as_deref()), (2, Some("trips")));
}

#[test]
fn one_report_for_the_stream_itself_is_always_allowed() {
    let mut world = world(ALL);
    for stream in ALL {
        let own =
            coverage(&["a"], &["a"], &[]).replace("details", stream).replace("\"trips\"", &format!("\"{stream}\""));
        world.line(&own);
    }
    world.line(&done("succeeded", 0));
    assert_eq!(world.outcome().reason, TerminalReason::Succeeded);
}

#[test]
fn state_of_a_stream_that_rides_on_another_is_accepted() {
    let mut world = world(&["trips", "comments"]);
    world.lines(&[&state("comments", 1), &done("succeeded", 0)]);
    assert_eq!(world.store.cursor("steady", "comments"), Some(r#"{"page":1}"#));
}

#[test]
fn nothing_is_accepted_after_done() {
    let mut world = world(&["photos"]);
    world.exit = None;
    world.lines(&[&record("photos", "a"), &state("photos", 1), &done("succeeded", 1), &record("photos", "b")]);
    world.run.handle_exit(Exit::Signal(15), world.now);
    world.settle();
    assert_eq!(world.outcome().violation.as_ref().unwrap().code, ViolationCode::AfterDone);
    assert_eq!(world.store.cursor("steady", "photos"), None);
    assert_eq!(world.keys("photos").len(), 1);
    world.line(&record("photos", "c"));
    world.run.handle_cancel(world.now);
    world.settle();
    assert_eq!(world.outcome().reason, TerminalReason::ProtocolViolation, "one end, and it stays");
}

#[test]
fn the_exit_code_agrees_with_the_last_message_or_nothing_is_committed() {
    for (last, exit, agrees) in [
        (done("succeeded", 0), Exit::Code(0), true),
        (done("succeeded", 0), Exit::Code(1), false),
        (done("succeeded", 0), Exit::Signal(9), false),
        (failed("boom", 0), Exit::Code(1), true),
        (failed("boom", 0), Exit::Code(0), false),
    ] {
        let mut world = world(&["photos"]);
        world.exit = Some(exit);
        world.lines(&[&state("photos", 1), &last]);
        let disagrees = world.outcome().violation.as_ref().map(|violation| violation.code);
        assert_eq!(disagrees, (!agrees).then_some(ViolationCode::ExitDisagrees), "{last} {exit:?}");
        assert_eq!(world.store.cursors.len(), usize::from(agrees && last.contains("succeeded")));
    }
}

#[test]
fn an_exit_without_done_keeps_the_slices() {
    let mut world = world(&["photos"]);
    world.lines(&[&slice_state("photos", 1), &record("photos", "b"), &state("photos", 2)]);
    world.run.handle_exit(Exit::Code(0), world.now);
    world.settle();
    assert_eq!(world.outcome().violation.as_ref().unwrap().code, ViolationCode::ExitWithoutDone);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
    assert!(!world.log.contains(&"stop"), "there is nothing left to stop");
}

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
    while !matches!(late.run.phase, super::ending::Phase::Committing { .. }) {
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
    let Some(Effect::WriteSlice(_lost)) = world.run.poll_effect() else { panic!() };
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
    while !matches!(world.run.phase, super::ending::Phase::Committing { .. }) {
        assert!(world.step());
    }
    let Some(Effect::Commit(_plan)) = world.run.poll_effect() else { panic!() };
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
    let (Some(Effect::WriteSlice(_first)), Some(Effect::WriteSlice(second))) =
        (world.run.poll_effect(), world.run.poll_effect())
    else {
        panic!()
    };
    world.run.handle_receipt(second.into_receipt(crate::Epoch::new(1)), world.now);
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

#[test]
fn missing_credentials_with_interactive_binding() {
    let mut world = world(&["photos"]);
    world.line(&QUESTION.replace("otp", "missing_credentials").replace(r#","timeout_seconds":60"#, ""));
    assert_eq!(world.asked.len(), 1);
    assert_eq!(world.run.poll_timeout(world.now), None, "parked until it is answered");
    world.pass(86_400_000);
    assert_eq!(
        world.run.handle_answer(answer("q2", InteractionStatus::Success), world.now),
        AnswerTaken::NoSuchQuestion
    );
    assert_eq!(world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now), AnswerTaken::Yes);
    assert_eq!(
        world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now),
        AnswerTaken::AlreadyAnswered
    );
    world.settle();
    assert_eq!(world.sent.len(), 1);
    world.line(&done("succeeded", 0));
    assert_eq!(world.outcome().reason, TerminalReason::Succeeded);
}

#[test]
fn a_parked_run_ends_resumable_when_the_grant_expires() {
    let mut config = config::<Steady>(&["photos"]);
    config.grant_expires_at = Some(WallTime::from_unix_millis(1_030_000));
    let mut world = World::new(config);
    world.lines(&[&slice_state("photos", 1), QUESTION]);
    assert_eq!(
        world.run.poll_timeout(world.now).map(crate::Time::as_millis),
        Some(30_000),
        "before the question's 60 s"
    );
    world.pass(30_000);
    assert_eq!(world.outcome().reason, TerminalReason::GrantExpired);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
}

#[test]
fn a_run_that_collects_ends_with_its_grant_and_keeps_what_is_saved() {
    let mut config = config::<Steady>(&["photos"]);
    config.grant_expires_at = Some(WallTime::from_unix_millis(1_030_000));
    let mut world = World::new(config);
    world.line(&slice_state("photos", 1));
    world.pass(29_999);
    assert_eq!(world.run.outcome(), None);
    world.pass(1);
    assert_eq!(world.outcome().reason, TerminalReason::GrantExpired);
    assert_eq!(world.store.cursor("steady", "photos"), Some(r#"{"page":1}"#));
}

#[test]
fn a_jump_of_the_calendar_ends_no_question() {
    let mut world = world(&["photos"]);
    world.line(QUESTION);
    world.now.wall = WallTime::from_unix_millis(u64::MAX);
    world.pass(59_999);
    assert_eq!(world.sent.len(), 0);
    world.pass(1);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_question_that_nobody_answers_times_out_once_and_names_the_failure() {
    let mut world = world(&["photos"]);
    world.exit = Some(Exit::Code(1));
    world.line(QUESTION).pass(60_000).pass(60_000);
    let timeout = RuntimeMessage::InteractionResponse(answer("q1", InteractionStatus::Timeout));
    assert_eq!(world.sent, [timeout]);
    assert_eq!(
        world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now),
        AnswerTaken::AlreadyAnswered
    );
    world.line(&failed("no_code", 0));
    assert_eq!(world.outcome().reason, TerminalReason::InteractionExpired);
}

#[test]
fn missing_credentials_without_interactive_binding() {
    let mut config = config::<Steady>(&["photos"]);
    config.bindings.clear();
    let mut asks = World::new(config);
    asks.line(QUESTION);
    assert_eq!(asks.outcome().violation.as_ref().unwrap().code, ViolationCode::InteractionWithoutBinding);
    check_failure(&failed("missing_credentials", 0), TerminalReason::CredentialsMissing);
}

fn check_failure(last: &str, reason: TerminalReason) {
    let mut world = world(&["photos"]);
    world.exit = Some(Exit::Code(1));
    world.line(last);
    assert_eq!(world.outcome().reason, reason, "{last}");
}

#[test]
fn a_failure_is_called_by_its_code_or_its_name_and_never_by_a_sentence() {
    let message = |text: &str| {
        format!(
            r#"{{"type":"DONE","status":"failed","records_emitted":0,"error":{{"message":"{text}","retryable":true}}}}"#
        )
    };
    check_failure(&message("bank_credentials_missing"), TerminalReason::CredentialsMissing);
    check_failure(&message("bank_session_establish_timeout"), TerminalReason::SessionEstablishTimeout);
    check_failure(&message("bank_rate_limited"), TerminalReason::SourceCooldown);
    for text in ["no credentials_missing", "it said bank_rate_limited", "xcredentials_missing", "boom"] {
        check_failure(&message(text), TerminalReason::ConnectorFailed);
    }
}

#[test]
fn file_based_connector_starts_successfully() {
    let text = r#"{"connector_id":"c","connector_key":"c","version":"1",
        "runtime_requirements":{"bindings":{"filesystem":{"required":true}}},
        "streams":[{"name":"photos","semantics":"append_only"}]}"#;
    let manifest = gleaner_protocol::Manifest::parse(text.as_bytes(), gleaner_protocol::ManifestOrigin::FirstParty);
    let manifest = std::sync::Arc::new(manifest.unwrap());
    let with = |bindings: &[&str]| {
        let mut config = config::<Steady>(&["photos"]);
        config.manifest = std::sync::Arc::clone(&manifest);
        config.bindings = bindings.iter().map(|&name| name.to_owned()).collect();
        Run::new(config, crate::Now::default()).map(drop)
    };
    assert_eq!(with(&["filesystem"]), Ok(()));
    assert_eq!(with(&["network"]), Err(Refusal::BindingUnavailable("filesystem".to_owned())));
}

#[test]
fn a_run_starts_only_under_a_live_grant() {
    let mut config = config::<Steady>(&["photos"]);
    config.grant_expires_at = Some(WallTime::from_unix_millis(5));
    let now = crate::Now { wall: WallTime::from_unix_millis(5), ..crate::Now::default() };
    assert_eq!(Run::new(config, now).map(drop), Err(Refusal::GrantExpired));
}

#[test]
fn a_connector_that_falls_silent_is_ended_and_one_that_waits_for_an_answer_is_not() {
    let mut config = config::<Steady>(&["photos"]);
    config.silence_max = Some(Duration::from_secs(10));
    let mut world = World::new(config);
    world.line(&QUESTION.replace(r#","timeout_seconds":60"#, "")).pass(3_600_000);
    assert_eq!(world.run.outcome(), None);
    world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now);
    world.pass(9_999);
    assert_eq!(world.run.outcome(), None);
    world.pass(1);
    assert_eq!(world.outcome().reason, TerminalReason::NoProgress);
}

#[test]
fn a_process_that_does_not_end_is_stopped_then_killed_and_its_success_stands() {
    let mut world = world(&["photos"]);
    world.exit = None;
    world.lines(&[&state("photos", 1), &done("succeeded", 0)]);
    world.pass(30_000).pass(10_000);
    assert_eq!(world.log, ["write", "close", "stop", "kill"]);
    world.run.handle_exit(Exit::Signal(9), world.now);
    world.settle();
    assert_eq!(world.outcome().reason, TerminalReason::Succeeded);
    assert_eq!(world.store.cursors.len(), 1);
}

#[test]
fn a_process_that_cannot_even_be_killed_does_not_keep_the_run_open() {
    let mut world = world(&["photos"]);
    world.exit = None;
    world.line("nonsense").pass(10_000).pass(10_000);
    assert_eq!(world.outcome().reason, TerminalReason::ProtocolViolation);
    assert_eq!(world.log, ["stop", "kill"]);
}

#[test]
fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
    let mut world = world(&["photos"]);
    world.exit = Some(Exit::Code(1));
    world.line(&failed("github_rate_limited", 0));
    let outcome = world.outcome();
    assert_eq!((outcome.reason, outcome.pressure), (TerminalReason::SourceCooldown, Some(PressureReason::RateLimited)));
}

#[test]
fn a_gap_under_pressure_arms_the_cooldown_of_a_run_that_succeeded() {
    let mut world = world(ALL);
    world.lines(&[&gap("details", "trips", "a", "upstream_pressure"), &done("succeeded", 0)]);
    assert_eq!(world.outcome().pressure, Some(PressureReason::UpstreamPressure));
}

#[test]
fn recovery_goes_on_until_a_page_is_empty_and_a_gap_deferred_again_is_not_settled() {
    let mut world = world(ALL);
    for key in ["a", "b", "c"] {
        world.line(&gap("details", "trips", key, "temporary_unavailable"));
    }
    world.line(r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p0","reference_only":true}"#);
    for gap in world.store.gaps.values_mut() {
        gap.deferred_under = None;
    }
    world.sent.clear();
    let page = r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p1","reference_only":true}"#;
    let recovered = r#"{"type":"DETAIL_GAP_RECOVERED","gap_id":"key:KEY","stream":"details","reference_only":true}"#;
    let mut served = Vec::new();
    loop {
        world.line(page);
        let Some(RuntimeMessage::GapsPageResponse(response)) = world.sent.pop() else { panic!() };
        if response.detail_gaps.is_empty() {
            break;
        }
        for gap in &response.detail_gaps {
            served.push(gap.gap_id.clone());
        }
        if served.len() == 2 {
            // The rest of `a` is rewritten before the old one is called recovered.
            world.line(&gap("details", "trips", "a", "retry_exhausted"));
        }
        for gap in &response.detail_gaps {
            world.line(&recovered.replace("key:KEY", &gap.gap_id));
        }
    }
    assert_eq!(served, ["key:a", "key:b", "key:c"], "none twice in one run");
    world.line(&done("succeeded", 0));
    assert_eq!(world.store.open_gaps(), ["key:a"]);
    assert_eq!(world.held_gaps(), 0);
}

#[test]
fn mutable_state_deletion() {
    let mut world = world(&["trips"]);
    let delete = r#"{"type":"RECORD","stream":"trips","key":"a","op":"delete"}"#;
    world.lines(&[
        &record("trips", "a"),
        delete,
        r#"{"type":"RECORD","stream":"trips","key":"never seen","op":"delete"}"#,
    ]);
    world.line(&done("succeeded", 3));
    assert!(world.store.records.values().all(Option::is_none), "tombstones are kept, also of unknown keys");
    assert_eq!((world.keys("trips").len(), world.outcome().counts.deleted), (2, 2));
}

#[derive(Debug)]
struct RejectAll;

impl crate::Validate for RejectAll {
    fn check(&self, _: &str, _: &gleaner_protocol::RawJson<'_>) -> Result<(), String> {
        Err("/id".to_owned())
    }
}

#[derive(Debug)]
struct KnowsTheSecret;

impl crate::Validate for KnowsTheSecret {
    fn check(&self, _: &str, _: &gleaner_protocol::RawJson<'_>) -> Result<(), String> {
        Ok(())
    }
    fn reveals_credential(&self, text: &str) -> bool {
        text.contains("hunter2")
    }
}

#[test]
fn the_connections_own_credential_in_what_would_be_stored_ends_the_run() {
    let located = gap("photos", "photos", "a", "gone").replace("}", r#","detail_locator":{"t":"hunter2"}}"#);
    let lines = [
        record("photos", "a").replace("1.0", "\"hunter2\""),
        state("photos", 1).replace("1}", "\"hunter2\"}"),
        located.clone(),
        located.replace("detail_locator", "list_cursor"),
    ];
    for line in lines {
        let mut config = config::<Steady>(&["photos"]);
        config.validator = Box::new(KnowsTheSecret);
        let mut world = World::new(config);
        world.line(&line);
        let violation = world.outcome().violation.clone().unwrap();
        assert_eq!(violation.code, ViolationCode::CredentialInOutput, "{line}");
        assert!(!format!("{violation:?}").contains("hunter2"));
        assert_eq!(world.store.slices, 0, "nothing of it is written");
    }
}

#[test]
fn large_locators_do_not_pile_up_in_an_unfinished_slice() {
    let mut world = world(&["photos"]);
    let locator = format!(r#","detail_locator":"{}"}}"#, "x".repeat(300_000));
    for key in ["a", "b", "c", "d"] {
        world.line(&gap("photos", "photos", key, "gone").replace('}', &locator));
    }
    assert_eq!(world.store.slices, 1);
}

#[test]
fn a_rejected_record_is_counted_as_rejected_and_its_slice_still_commits() {
    let mut config = config::<Steady>(&["photos"]);
    config.validator = Box::new(RejectAll);
    let mut world = World::new(config);
    world.lines(&[&record("photos", "a"), &slice_state("photos", 1), &done("succeeded", 1)]);
    let counts = world.outcome().counts;
    assert_eq!((counts.seen, counts.collected, counts.rejected), (1, 0, 1));
    assert_eq!(world.store.quarantine, [("a".to_owned(), "/id".to_owned())]);
    assert_eq!(world.store.cursors.len(), 1);
    assert_eq!(world.keys("photos").len(), 0);
}

#[derive(Debug)]
struct RejectBad;

impl crate::Validate for RejectBad {
    fn check(&self, _: &str, body: &gleaner_protocol::RawJson<'_>) -> Result<(), String> {
        if body.as_str().contains("bad") { Err("/bad".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn of_one_key_the_last_record_of_a_slice_decides_about_the_quarantine() {
    let good = |key| record("photos", key);
    let bad = |key| record("photos", key).replace("1.0", "\"bad\"");
    let mut config = config::<Steady>(ALL);
    config.validator = Box::new(RejectBad);
    let mut world = World::new(config);
    world.lines(&[&bad("a"), &bad("b"), &good("b"), &good("c"), &bad("c")]);
    // Another stream's record of that key is another record.
    world.lines(&[&record("trips", "a"), &done("succeeded", 6)]);
    let in_quarantine = world.store.quarantine.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>();
    assert_eq!(in_quarantine, ["a", "c"]);
    let counts = world.outcome().counts;
    assert_eq!((counts.seen, counts.collected, counts.rejected), (6, 3, 3));
}

#[test]
fn a_page_without_streams_is_of_those_in_scope_and_no_others() {
    let mut world = world(&["photos", "trips"]);
    world.eager = false;
    world.line(r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p","reference_only":true}"#);
    let Some(Effect::LeaseGapsPage { streams, .. }) = world.run.poll_effect() else { panic!("no page") };
    assert_eq!(streams, ["photos", "trips"]);
}

#[test]
fn a_catch_up_run_leaves_the_steady_bookmark_untouched() {
    let mut steady = world(&["photos"]);
    steady.lines(&[&state("photos", 9), &done("succeeded", 0)]);
    let mut catch_up = World::<CatchUp>::new(config(&["photos"]));
    catch_up.store = std::mem::take(&mut steady.store);
    catch_up.lines(&[&slice_state("photos", 1), &state("photos", 2), &done("succeeded", 0)]);
    assert_eq!(catch_up.store.cursor(Steady::NAME, "photos"), Some(r#"{"page":9}"#));
    assert_eq!(catch_up.store.cursor(CatchUp::NAME, "photos"), Some(r#"{"page":2}"#));
}

/// A line, or something that happens to the run.
fn action() -> impl Strategy<Value = String> {
    let stream = prop_oneof![6 => Just("trips"), 3 => Just("details"), 3 => Just("photos"), 1 => Just("mail")];
    let line = (stream, 0_u64..5, 0_u8..14).prop_map(|(stream, n, kind)| match kind {
        0..=3 => record(stream, &n.to_string()),
        4 | 5 => state(stream, n),
        6 | 7 => slice_state(stream, n),
        8 => gap(stream, "trips", &n.to_string(), "retry_exhausted"),
        9 => coverage(&["0", "1"], &["0"], &["1"]),
        10 => QUESTION.to_owned(),
        11 => r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p","reference_only":true}"#.to_owned(),
        12 => done("succeeded", n),
        _ => failed("stream_collection_failed", n),
    });
    prop_oneof![
        12 => line,
        3 => Just("step".to_owned()),
        1 => Just("cancel".to_owned()),
        1 => Just("exit".to_owned()),
        1 => Just("wait".to_owned()),
        1 => Just("store failed".to_owned()),
        1 => Just("answer".to_owned()),
        1 => Just("broken".to_owned()),
    ]
}

fn act(world: &mut World<Steady>, action: &str) {
    match action {
        "step" => {
            world.step();
        }
        "cancel" => world.run.handle_cancel(world.now),
        "exit" => world.run.handle_exit(Exit::Code(0), world.now),
        "wait" => {
            world.now.time = world.now.time + Duration::from_secs(20);
            world.run.handle_timeout(world.now);
        }
        "store failed" => world.run.handle_store_failed(world.now),
        "answer" => {
            world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now);
        }
        line => {
            world.line(line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_run_ends_once_and_its_cursor_is_never_past_what_is_durable(
        actions in proptest::collection::vec(action(), 0..40), effects_max in 1_usize..9,
    ) {
        let mut config = config::<Steady>(ALL);
        config.effects_max = effects_max;
        let mut world = World::new(config);
        world.eager = false;
        for action in &actions {
            act(&mut world, action);
            // A time that was waited for is over then: a driver never spins.
            if let Some(time) = world.run.poll_timeout(world.now)
                && action == "wait"
            {
                world.now.time = world.now.time.max(time);
                world.run.handle_timeout(world.now);
                prop_assert!(world.run.poll_timeout(world.now).is_none_or(|next| next > world.now.time));
            }
            prop_assert!(world.run.effects.len() <= effects_max + 6, "{} effects wait", world.run.effects.len());
        }
        world.run.handle_exit(Exit::Code(0), world.now);
        world.settle();
        world.pass(60_000).pass(60_000).pass(60_000);
        prop_assert_eq!(world.finished.len(), 1);
        prop_assert_eq!(world.run.outcome(), world.finished.first());
        let before = (world.store.slices, world.store.cursors.clone());
        world.lines(&[&record("photos", "z"), &slice_state("photos", 9), &done("succeeded", 1)]);
        world.settle();
        prop_assert_eq!(world.finished.len(), 1);
        prop_assert_eq!(before, (world.store.slices, world.store.cursors.clone()), "nothing after the end");
        let outcome = world.outcome();
        if !matches!(outcome.reason, TerminalReason::Succeeded | TerminalReason::StreamCollectionFailed) {
            prop_assert_eq!(&outcome.committed, &Vec::new());
        }
    }

    #[test]
    fn no_record_behind_a_committed_cursor_is_lost_wherever_the_run_is_cut_off(
        slices in proptest::collection::vec((0_u64..5, any::<bool>()), 1..20), carried_out in 0_usize..30,
    ) {
        let mut config = config::<Steady>(&["photos"]);
        config.effects_max = 100;
        let mut world = World::new(config);
        world.eager = false;
        let (mut count, mut facts) = (0, Vec::new());
        for (slice, (records, whole)) in slices.into_iter().enumerate() {
            for _ in 0..records {
                count += 1;
                let (stream, key) = ("photos".to_owned(), count.to_string());
                world.line(&record(&stream, &key));
                let covered_by = CommitSeq::new(slice as u64 + 1);
                facts.push(Fact::Listed { stream, key, covered_by, position: 0 });
            }
            world.line(&if whole { slice_state("photos", count) } else { state("photos", count) });
        }
        world.line(&done("succeeded", count));
        for _ in 0..carried_out {
            world.step();
            prop_assert_eq!(invariants::a1_no_record_is_lost(&world.store, &facts), Ok(()));
            prop_assert_eq!(invariants::a3_checkpoint_is_the_last_whole_slice(&world.store, &["photos"]), Ok(()));
        }
        prop_assert_eq!(world.refused.len(), 0);
    }
}

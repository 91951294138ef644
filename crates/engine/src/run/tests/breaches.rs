//! What a connector must not say, and that nothing of the run is committed then.

use super::*;

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
fn a_process_that_dies_crashed_and_broke_no_rule_unless_we_ended_it() {
    let incomplete = gleaner_protocol::Violation::new(ViolationCode::IncompleteLine);
    let ended = |exit: Exit, cut: bool, last: Option<&str>| {
        let mut world = world(&["photos"]);
        world.exit = None;
        world.line(&slice_state("photos", 1));
        if let Some(last) = last {
            world.line(last);
        }
        if cut {
            world.run.handle_violation(incomplete.clone(), world.now);
            world.settle();
        }
        world.run.handle_exit(exit, world.now);
        world.settle();
        assert_eq!((world.outcome().exit, world.store.cursors.len()), (Some(exit), 1));
        world.outcome().reason
    };
    let (crashed, broken) = (TerminalReason::ConnectorCrashed, TerminalReason::ProtocolViolation);
    assert_eq!(ended(Exit::Code(1), false, None), crashed);
    assert_eq!(ended(Exit::Signal(9), false, None), crashed);
    assert_eq!(ended(Exit::Code(0), false, None), broken, "it says by its code that all is well");
    assert_eq!(ended(Exit::Signal(11), true, None), crashed, "in the middle of a line");
    assert_eq!(ended(Exit::Signal(9), true, None), crashed);
    assert_eq!(ended(Exit::Signal(15), true, None), broken, "because of the line we asked it to end");
    assert_eq!(ended(Exit::Code(0), true, None), broken);
    let done = done("succeeded", 0);
    assert_eq!(ended(Exit::Signal(6), false, Some(&done)), crashed);
    assert_eq!(ended(Exit::Code(1), false, Some(&done)), broken);
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

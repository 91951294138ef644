//! Questions to the owner, grants, silence, and a process that does not end.

use super::*;

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

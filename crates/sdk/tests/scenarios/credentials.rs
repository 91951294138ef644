//! Credentials: found, asked for, or missed by name.

use crate::script::{Script, manifest_with_auth, start};
use gleaner_sdk::{Question, Stop};
use serde_json::{Value, json};
use std::time::Duration;

fn script(interactive: bool) -> Script {
    let mut start = start();
    if interactive {
        start["bindings"] = json!({"interactive": {}});
    }
    Script { manifest: manifest_with_auth(), ..Script::new(start) }
}

fn answer(status: &'static str, data: Value) -> impl FnMut(&Value) -> Option<Value> + Send {
    move |line| {
        (line["type"] == "INTERACTION").then(|| {
            json!({"type": "INTERACTION_RESPONSE", "request_id": line["request_id"], "status": status, "data": data})
        })
    }
}

#[test]
fn credentials_from_the_environment_are_used_under_any_of_their_names() {
    let said = script(false).set("NOTES_USER", "me").set("NOTES_KEY", "k-123").run(|run| {
        assert_eq!(run.credential("NOTES_TOKEN"), Ok("k-123"));
        assert_eq!(run.credential("NOTES_USER"), Ok("me"));
        assert!(run.credential("OTHER").is_err());
        Ok(())
    });
    assert_eq!(said.check().types(), ["DONE"]);
}

#[test]
fn missing_credentials_with_interactive_binding() {
    let said = script(true)
        .set("NOTES_USER", "me")
        .set("NOTES_TOKEN", " ")
        .answering(answer("success", json!({"NOTES_TOKEN": "t-secret-1"})))
        .run(|run| {
            assert_eq!(run.credential("NOTES_KEY"), Ok("t-secret-1"));
            run.say("signed in with t-secret-1")
        });
    assert_eq!(said.check().types(), ["INTERACTION", "PROGRESS", "DONE"]);
    let question = &said.lines[0];
    assert_eq!(question["kind"], "missing_credentials");
    let message = question["message"].as_str().unwrap();
    assert!(message.contains("NOTES_TOKEN or NOTES_KEY"), "{message}");
    assert!(!message.contains("NOTES_USER"), "only what is missing: {message}");
    assert_eq!(question["schema"]["required"], json!(["NOTES_TOKEN"]));
    assert!(!said.lines[1].to_string().contains("t-secret-1"), "what was entered is masked like any secret");
}

#[test]
fn missing_credentials_without_interactive_binding() {
    let said = script(false).set("NOTES_USER", "").run(|_| panic!("nothing is collected without credentials"));
    assert_eq!(said.check().types(), ["DONE"], "nobody is asked who cannot answer");
    let error = &said.done()["error"];
    assert_eq!((&said.done()["status"], &error["retryable"]), (&json!("failed"), &json!(false)));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("NOTES_USER") && message.contains("NOTES_TOKEN or NOTES_KEY"), "{message}");
    assert_eq!(error["recovery_hint"]["action"], "refresh_credentials");
}

#[test]
fn an_owner_may_decline_or_not_answer() {
    let declined = script(true).answering(answer("cancelled", Value::Null)).run(|_| panic!("not collected"));
    assert_eq!(declined.check().done()["status"], "cancelled");
    let late = script(true).answering(answer("timeout", Value::Null)).run(|_| panic!("not collected"));
    assert_eq!(late.check().done()["status"], "failed");
    assert!(late.done()["error"]["message"].as_str().unwrap().contains("NOTES_USER"));
    let half = script(true).answering(answer("success", json!({"NOTES_USER": "me"}))).run(|_| panic!("not collected"));
    assert!(half.check().done()["error"]["message"].as_str().unwrap().contains("NOTES_TOKEN"));
    let gone = script(true).run(|_| panic!("not collected"));
    assert_eq!(gone.check().done()["status"], "failed", "the input ended before an answer");
}

fn asking(status: &'static str, data: Value) -> Script {
    let mut start = start();
    start["bindings"] = json!({"interactive": {}});
    Script::new(start).answering(answer(status, data))
}

#[test]
fn an_author_asks_for_a_code_and_what_is_entered_is_masked() {
    let question = || Question::code("Enter the code that was sent to your phone.").within(Duration::from_secs(90));
    let said = asking("success", json!({"code": "907 312"})).run(|run| {
        let reply = run.ask(&question().about("notes"))?;
        assert_eq!((reply.code(), reply.get("other")), ("907 312", None));
        assert!(!format!("{reply:?}").contains("907"), "{reply:?}");
        run.say("signed in with 907 312")
    });
    assert_eq!(said.check().types(), ["INTERACTION", "PROGRESS", "DONE"]);
    let asked = &said.lines[0];
    assert_eq!((&asked["kind"], &asked["timeout_seconds"]), (&json!("otp"), &json!(90)));
    assert_eq!((&asked["stream"], &asked["schema"]["required"]), (&json!("notes"), &json!(["code"])));
    assert!(!said.lines[1].to_string().contains("907"), "{}", said.lines[1]);
}

#[test]
fn a_sign_in_and_an_action_are_asked_for_by_what_they_are() {
    let said = asking("success", json!({"user": "me", "password": "hunter-2"})).run(|run| {
        let reply = run.ask(&Question::sign_in("Sign in.", ["user", "password"]))?;
        assert_eq!((reply.get("user"), reply.get("password")), (Some("me"), Some("hunter-2")));
        let done = run.ask(&Question::action("Allow this device in the app."))?;
        assert_eq!(done.code(), "");
        Ok(())
    });
    let asked = said.check().of("INTERACTION");
    assert_eq!((&asked[0]["kind"], &asked[1]["kind"]), (&json!("credentials"), &json!("manual_action")));
    assert_eq!(asked[1].get("schema"), None, "there is nothing to enter");
    assert_ne!(asked[0]["request_id"], asked[1]["request_id"]);
}

#[test]
fn a_question_that_is_not_answered_ends_the_run_and_says_what_the_owner_must_do() {
    let question = || Question::code("Enter the code.");
    let declined = asking("cancelled", Value::Null).run(|run| run.ask(&question()).map(drop));
    assert_eq!(declined.check().done()["status"], "cancelled");
    let late = asking("timeout", Value::Null).run(|run| run.ask(&question()).map(drop));
    let empty = asking("success", json!({"code": " "})).run(|run| run.ask(&question()).map(drop));
    let nobody = Script::new(start()).run(|run| run.ask(&question()).map(drop));
    assert_eq!(nobody.types(), ["DONE"], "nobody is asked who cannot answer");
    for (said, why) in [(late, "nobody answered"), (empty, "has no code"), (nobody, "cannot ask the owner")] {
        let error = &said.check().done()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why) && message.contains("Enter the code."), "{message}");
        assert_eq!(
            (&error["retryable"], &error["recovery_hint"]["action"]),
            (&json!(false), &json!("manual_action_required"))
        );
    }
}

#[test]
fn an_author_may_go_on_without_an_answer() {
    let said = Script::new(start()).run(|run| match run.ask(&Question::code("Enter the code.")) {
        Err(Stop::Failed(_)) => run.say("without the code there is less"),
        other => other.map(drop),
    });
    assert_eq!(said.check().done()["status"], "succeeded");
}

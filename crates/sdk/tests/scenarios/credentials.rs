//! Credentials: found, asked for, or missed by name.

use crate::script::{Script, manifest_with_auth, start};
use serde_json::{Value, json};

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

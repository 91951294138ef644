//! The owner's actions, carried out for real.

use crate::client::Reply;
use crate::world::{World, until};
use serde_json::{Value, json};

const NOTES: &str = "/api/v1/connections/notes";

/// Asks a question, and ends well when the answer is the one that it waits for. That is not written in one piece: the
/// command of a connection is stored, and the answer must not be.
pub(crate) const ASKS: &str = r#"read start
echo '{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"The <b>code</b>?","timeout_seconds":60}'
read answer
case "$answer" in
    *'"code":"c4n4ry'-'0tp"'*) n=1; echo '{"type":"RECORD","stream":"items","key":"answered","data":{"id":"answered"},"emitted_at":"2031-01-01T00:00:00Z"}' ;;
    *'"status":"cancelled"'*) n=0 ;;
    *) exit 1 ;;
esac
echo "{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":$n}"
cat > /dev/null"#;

/// Goes on until it is stopped.
const GOES_ON: &str = "read start; trap 'exit 1' TERM; while :; do sleep 0.05; done";

/// Waits ten minutes for its provider, and says so.
const WAITS: &str = r#"read start
until=$(date -u -d '+10 minutes' +%Y-%m-%dT%H:%M:%SZ)
echo '{"type":"PROGRESS","message":"x","waiting":{"object":"waiting","until":"'$until'","reason":"retry_after"}}'
trap 'exit 1' TERM; while :; do sleep 0.05; done"#;

pub(crate) fn question(world: &World) -> Value {
    until("a question", || world.json("/api/v1/interactions")["items"].as_array().expect("a list").first().cloned())
}

#[test]
fn a_question_is_answered_once() {
    let world = World::new();
    let run = world.begin("notes", ASKS);
    let asked = question(&world);
    assert_eq!((&asked["connection"], &asked["kind"]), (&json!("notes"), &json!("otp")));
    assert_eq!(asked["message"], "The <b>code</b>?");
    let whole = world.json(NOTES);
    assert_eq!(whole["health"]["grade"], "needs_you");
    assert_eq!(whole["questions"][0]["id"], asked["id"]);
    assert_eq!(world.json("/api/v1/status")["needs_you"], json!(["notes"]));
    let path = format!("/api/v1/interactions/{}/answer", asked["id"]);
    for wrong in ["{}", r#"{"data":"text"}"#, r#"{"data":{},"declined":true}"#, r#"{"declined":false}"#, "[]", "{"] {
        assert_eq!(world.act("POST", &path, wrong).status, 400, "{wrong}");
    }
    assert_eq!(world.act("POST", &path, r#"{"data":{"code":"c4n4ry-0tp"}}"#).status, 204);
    assert_eq!(run.reason(), "succeeded");
    assert_eq!(world.act("POST", &path, r#"{"data":{"code":"c4n4ry-0tp"}}"#).status, 404, "the first answer counts");
    let record = world.json(&format!("{NOTES}/streams/items/record?key=answered"));
    assert_eq!(record["body"]["id"], "answered");
}

#[test]
fn a_question_can_be_declined() {
    let world = World::new();
    let run = world.begin("notes", ASKS);
    let path = format!("/api/v1/interactions/{}/answer", question(&world)["id"]);
    assert_eq!(world.act("POST", &path, r#"{"declined":true}"#).status, 204);
    assert_eq!(run.reason(), "succeeded");
}

/// A page for people, which the description does not know.
pub(crate) fn shown(world: &World, page: &str) -> Reply {
    let reply = world.request("GET", page).send(world.host().parse().expect("an address"));
    assert_eq!(reply.status, 200, "{page}: {}", reply.text());
    reply
}

#[test]
fn a_wait_is_shown_on_the_overview_and_the_connection_while_its_run_goes_on() {
    let world = World::new();
    let run = world.begin("notes", WAITS);
    let waiting = until("a wait", || Some(world.json(NOTES)["waiting"].clone()).filter(|waiting| !waiting.is_null()));
    assert_eq!(waiting["code"], "retry_after");
    assert!(waiting["sentence"].as_str().expect("text").ends_with(": the provider sent Retry-After"), "{waiting}");
    for page in ["/", "/connections/notes"] {
        let reply = shown(&world, page);
        let body = reply.text();
        assert!(body.contains("waiting until ") && body.contains(": the provider sent Retry-After"), "{page}: {body}");
    }
    let overview = shown(&world, "/");
    assert!(
        !overview.text().contains("60 of at most 120 a minute"),
        "it asks for nothing while it waits: {}",
        overview.text()
    );
    let id = world.json(NOTES)["running"]["run_id"].as_str().expect("a run").to_owned();
    assert_eq!(world.act("POST", &format!("/api/v1/runs/{id}/cancel"), r#"{"at_once":true}"#).status, 202);
    assert_eq!(run.reason(), "cancelled");
    assert_eq!(world.json(NOTES)["waiting"], Value::Null, "a run that has ended waits for nothing");
    assert!(!shown(&world, "/connections/notes").text().contains("waiting until "));
}

#[test]
fn a_run_is_stopped_and_one_that_has_ended_is_not() {
    let world = World::new();
    let run = world.begin("notes", GOES_ON);
    let running = until("a run", || Some(world.json(NOTES)["running"].clone()).filter(|run| run["run_id"].is_string()));
    let path = format!("/api/v1/runs/{}/cancel", running["run_id"].as_str().unwrap());
    assert_eq!(world.act("POST", &path, r#"{"at_once":true}"#).status, 202);
    assert_eq!(run.reason(), "cancelled");
    assert_eq!(world.act("POST", &path, "{}").status, 409);
    assert_eq!(world.act("POST", "/api/v1/runs/nothing/cancel", "{}").status, 404);
}

#[test]
fn a_run_is_wanted_and_the_next_step_says_so() {
    let world = World::new();
    assert_eq!(world.json(NOTES)["next"]["code"], "remainder", "a cap has left something");
    assert_eq!(world.act("POST", &format!("{NOTES}/run"), "{}").status, 202);
    assert_eq!(world.json(NOTES)["next"]["code"], "owner_asked");
    assert_eq!(world.act("POST", &format!("{NOTES}/pause"), "{}").status, 204);
    assert_eq!(world.json(NOTES)["state"], "paused");
    assert_eq!(world.act("POST", &format!("{NOTES}/run"), "{}").status, 409);
    assert_eq!(world.act("POST", &format!("{NOTES}/resume"), "{}").status, 204);
    assert_eq!(world.json(NOTES)["state"], "active");
    for what in ["run", "pause", "resume"] {
        assert_eq!(world.act("POST", &format!("/api/v1/connections/nobody/{what}"), "{}").status, 404);
    }
}

#[test]
fn a_schedule_is_changed_as_a_whole_or_not_at_all() {
    let world = World::new();
    let path = format!("{NOTES}/schedule");
    let nightly = r#"{"cron":"0 3 * * *","quiet":"22:00-07:00","zone":"Europe/Berlin","mode":"automatic"}"#;
    assert_eq!(world.act("PATCH", &path, nightly).status, 204);
    let set = world.json(NOTES)["schedule"].clone();
    assert_eq!((&set["cron"], &set["zone"]), (&json!("0 3 * * *"), &json!("Europe/Berlin")));
    for senseless in [
        r#"{"cron":"soon"}"#,
        r#"{"every_seconds":5}"#,
        r#"{"every_seconds":60,"cron":"0 3 * * *"}"#,
        r#"{"zone":"Nowhere/Land"}"#,
        r#"{"quiet":"always"}"#,
    ] {
        assert_eq!(world.act("PATCH", &path, senseless).status, 422, "{senseless}");
    }
    for unreadable in [
        r#"{"mode":"sometimes"}"#,
        r#"{"crn":"0 3 * * *"}"#,
        r#"{"every_seconds":-1}"#,
        r#"{"every_seconds":60.5}"#,
        "nothing",
        "[]",
    ] {
        assert_eq!(world.act("PATCH", &path, unreadable).status, 400, "{unreadable}");
    }
    assert_eq!(world.json(NOTES)["schedule"], set);
    assert_eq!(world.act("PATCH", &path, r#"{"every_seconds":7200.0,"quiet":null}"#).status, 204);
    let set = world.json(NOTES)["schedule"].clone();
    assert_eq!((&set["every_seconds"], &set["cron"], &set["quiet"]), (&json!(7200), &Value::Null, &Value::Null));
    assert_eq!(set["zone"], "Europe/Berlin", "what is left out stays");
}

#[test]
fn a_gap_is_tried_again() {
    let world = World::new();
    let gap = world.json(&format!("{NOTES}/gaps"))["items"][0]["gap_id"].as_str().unwrap().to_owned();
    assert_eq!(world.act("POST", &format!("{NOTES}/gaps/{gap}/retry"), "{}").status, 202);
    assert_eq!(world.act("POST", &format!("{NOTES}/gaps/nothing/retry"), "{}").status, 404);
    let of_another = format!("/api/v1/connections/a%2Fb%20%26%3F%C3%BC/gaps/{gap}/retry");
    assert_eq!(world.act("POST", &of_another, "{}").status, 404);
}

#[test]
fn a_gap_is_ignored_with_a_note_and_taken_back() {
    let world = World::new();
    let gap = || world.json(&format!("{NOTES}/gaps"))["items"][0].clone();
    let before = (world.json(NOTES)["gaps_open"].as_u64().unwrap(), world.json("/api/v1/status")["gaps_open"].clone());
    let path = format!("{NOTES}/gaps/{}/ignore", gap()["gap_id"].as_str().unwrap());
    for wrong in ["{}", r#"{"note":7}"#, r#"{"note":"x","more":1}"#] {
        assert_eq!(world.act("POST", &path, wrong).status, 400, "{wrong}");
    }
    for empty in [r#"{"note":""}"#, r#"{"note":" \n"}"#, r#"{"note":"\u0093"}"#] {
        assert_eq!(world.act("POST", &path, empty).status, 422, "{empty}");
    }
    let long = format!(r#"{{"note":"{}"}}"#, "ä".repeat(501));
    let refused = world.act("POST", &path, &long);
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("501 characters"), "{}", refused.text());
    assert_eq!(world.send(&world.request("DELETE", &path)).status, 409, "it is not ignored");
    assert_eq!(gap()["ignored"], Value::Null);
    let note = "<b>seen</b> elsewhere";
    assert_eq!(world.act("POST", &path, &json!({ "note": note }).to_string()).status, 204);
    let ignored = gap();
    assert_eq!((&ignored["state"], &ignored["origin"]), (&json!("ignored"), &json!("ignored")));
    assert_eq!(ignored["ignored"]["note"], note);
    let whole = world.json(NOTES);
    assert_eq!((whole["gaps_open"].as_u64(), whole["gaps_ignored"].as_u64()), (Some(before.0 - 1), Some(1)));
    let codes = whole["health"]["findings"].as_array().unwrap().iter().map(|finding| &finding["code"]);
    assert!(codes.into_iter().any(|code| code == "gaps_ignored"), "{whole}");
    assert_eq!(world.json("/api/v1/status")["gaps_ignored"], 1);
    assert!(world.get("/metrics").text().contains("gleaner_gaps_ignored{connection=\"notes\"} 1"));
    assert_eq!(world.send(&world.request("DELETE", &path)).status, 202);
    assert_eq!((&gap()["state"], &gap()["ignored"]), (&json!("pending"), &Value::Null));
    assert_eq!(world.json("/api/v1/status")["gaps_open"], before.1);
    let nowhere = format!("{NOTES}/gaps/nothing/ignore");
    assert_eq!(world.act("POST", &nowhere, r#"{"note":"x"}"#).status, 404);
}

#[test]
fn a_body_of_another_type_or_size_is_refused() {
    let world = World::new();
    let path = format!("{NOTES}/pause");
    let mut plain = world.request("POST", &path).header("content-type", "text/plain");
    plain.body = Some(b"{}".to_vec());
    assert_eq!(world.send(&plain).status, 415);
    assert_eq!(world.send(&world.request("POST", &path)).status, 415);
    let long = format!("{{\"data\":{{\"code\":\"{}\"}}}}", "a".repeat(200_000));
    assert_eq!(world.act("POST", "/api/v1/interactions/1/answer", &long).status, 413);
    assert_eq!(world.json(NOTES)["state"], "active");
}

#[test]
fn a_run_whose_process_is_gone_is_interrupted_and_its_account_is_not_known() {
    let world = World::new();
    let run = world.begin("fresh", GOES_ON);
    let one = "/api/v1/connections/fresh/runs";
    let begun = || {
        let reply = world.get(one);
        (reply.status == 200).then(|| reply.json()["items"][0].clone()).filter(|run| run["run_id"].is_string())
    };
    let begun = until("a run", begun);
    assert_eq!(begun["state"], "running");
    let list = shown(&world, "/connections/fresh/gaps").text().to_owned();
    assert!(list.contains("no run has finished yet; one is running"), "{list}");
    drop(run);
    assert_eq!(world.json(one)["items"][0]["state"], "interrupted");
    let grade = &world.json("/api/v1/connections/fresh")["health"];
    assert_eq!((&grade["grade"], &grade["findings"][0]["code"]), (&json!("unknown"), &json!("no_full_run")));
    let page = shown(&world, &format!("/runs/{}", begun["run_id"].as_str().unwrap())).text().to_owned();
    assert!(page.contains("interrupted") && !page.contains("took") && !page.contains("at work for"), "{page}");
    let page = shown(&world, "/connections/fresh").text().to_owned();
    assert!(page.contains("interrupted") && !page.contains("not ended"), "{page}");
    for page in ["/connections/fresh/gaps", "/gaps"] {
        let list = shown(&world, page).text().to_owned();
        assert!(list.contains("no run has finished yet: the last one was interrupted"), "{page}: {list}");
        assert!(list.contains("Not known yet") && !list.contains("Nothing is missing"), "{page}: {list}");
    }
}

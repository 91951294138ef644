//! What can be read, and that reading changes nothing.

use crate::acts::shown;
use crate::client::Reply;
use crate::description;
use crate::world::{World, root};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const NOTES: &str = "/api/v1/connections/notes";
const ODD: &str = "/api/v1/connections/a%2Fb%20%26%3F%C3%BC";

#[test]
fn every_route_is_described_and_everything_described_is_a_route() {
    let routed = gleaner_console::routes().into_iter().map(|(method, path)| (method, path.to_owned()));
    let routed = routed.collect::<BTreeSet<_>>();
    let described = description::operations().into_keys().collect::<BTreeSet<_>>();
    assert_eq!(routed, described);
    assert_eq!(routed.len(), gleaner_console::routes().len(), "none is there twice");
}

#[test]
fn the_judge_of_answers_sees_what_is_wrong_with_them() {
    let reply = |status: u16, body: &str| Reply {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.as_bytes().to_vec(),
    };
    let problem = r#"{"error":{"code":"not_found","message":"m","hint":"h"}}"#;
    let fault = |status, body: &str| description::fault("GET", "/api/v1/runs/r1", &reply(status, body));
    assert_eq!(fault(404, problem), None);
    assert!(fault(418, problem).is_some(), "a status that is not described");
    assert!(fault(404, r#"{"error":{"code":"not_found","message":"m"}}"#).is_some(), "a member is missing");
    assert!(fault(404, r#"{"error":{"code":"c","message":"m","hint":"h","more":1}}"#).is_some(), "one too many");
    let date = json!({"type": "string", "format": "date-time"});
    assert!(description::invalid(&date, &json!("yesterday")).is_some(), "formats count");
}

#[test]
fn the_status_says_what_there_is() {
    let world = World::new();
    let status = world.json("/api/v1/status");
    assert_eq!(status["connections"], 2);
    assert_eq!(status["records"], 4);
    assert_eq!(status["gaps_open"], 2);
    assert_eq!(status["running"], 0);
    assert_eq!(world.get("/api/v1/openapi.json").json(), *description::DOCUMENT);
}

#[test]
fn api_and_pages_count_the_same_records_as_missing_and_list_all_of_them() {
    let world = World::new();
    let notes = world.json(NOTES);
    let by_stream = notes["streams"].as_array().unwrap().iter().map(|stream| stream["missing"].as_u64().unwrap());
    let missing = by_stream.sum::<u64>();
    assert_eq!(missing, notes["gaps_open"].as_u64().unwrap() + notes["quarantined"].as_u64().unwrap());
    let odd = world.json(ODD)["missing"].as_u64().unwrap();
    assert_eq!(
        (notes["missing"].as_u64(), world.json("/api/v1/status")["missing"].as_u64()),
        (Some(missing), Some(missing + odd))
    );
    let record = world.json(&format!("{NOTES}/quarantine"))["items"][0].clone();
    let (pointer, reason) = (record["pointer"].as_str().unwrap(), record["reason"].as_str().unwrap());
    assert!(!reason.is_empty());
    let list = shown(&world, "/connections/notes/gaps").text().to_owned();
    assert!(list.contains(&format!("{missing} missing")), "{list}");
    assert!(list.contains("misfit") && list.contains(pointer) && list.contains(&html(reason)), "{list}");
    assert!(!list.contains("Nothing is missing"), "{list}");
    let all = shown(&world, "/gaps").text().to_owned();
    assert!(all.contains("In quarantine") && all.contains("does not fit the schema"), "{all}");
    let only = shown(&world, "/connections/notes/gaps?stream=details").text().to_owned();
    assert!(!only.contains("misfit"), "{only}");
    let later = shown(&world, "/connections/notes/gaps?quarantined_after=999").text().to_owned();
    assert!(!later.contains("misfit") && later.contains("From the start"), "{later}");
}

/// As a page has it.
fn html(text: &str) -> String {
    text.replace('"', "&#34;")
}

#[test]
fn connections_come_in_pages_by_name() {
    let world = World::new();
    let first = world.json("/api/v1/connections?limit=1");
    assert_eq!(first["items"][0]["name"], "a/b &?ü");
    assert_eq!(first["next"], "a/b &?ü");
    let second = world.json("/api/v1/connections?limit=1&after=a%2Fb%20%26%3F%C3%BC");
    assert_eq!(second["items"][0]["name"], "notes");
    let last = world.json("/api/v1/connections?after=notes");
    assert_eq!((&last["items"], &last["next"]), (&json!([]), &Value::Null));
}

#[test]
fn one_connection_has_health_coverage_pace_schedule_and_what_comes_next() {
    let world = World::new();
    let notes = world.json(NOTES);
    assert_eq!(notes["health"]["grade"], "incomplete");
    let codes = notes["health"]["findings"].as_array().unwrap().iter().map(|finding| &finding["code"]);
    assert!(codes.clone().any(|code| code == "gaps_open") && codes.clone().any(|code| code == "records_rejected"));
    assert_eq!(notes["collection_rate"]["current_interval_ms"], 1000.0);
    assert_eq!(notes["display_name"], "Notes");
    assert_eq!(notes["next"]["kind"], "full");
    assert!(notes["next"]["at"].is_string());
    assert_eq!(notes["schedule"]["sentence"], "every 1 h");
    let streams = notes["streams"].as_array().unwrap();
    let details = streams.iter().find(|stream| stream["name"] == "details").unwrap();
    assert_eq!((&details["share"], &details["missing"]), (&json!(3333), &json!(2)));
    let origins = details["gaps"].as_array().unwrap().iter().map(|gap| gap["origin"].as_str().unwrap());
    assert_eq!(origins.collect::<BTreeSet<_>>(), BTreeSet::from(["other", "own_budget"]));
    let odd = world.json(ODD);
    assert_eq!(odd["name"], "a/b &?ü");
    assert_eq!(world.get("/api/v1/connections/nobody").status, 404);
}

#[test]
fn gaps_say_whose_doing_they_are_and_keep_what_the_connector_wrote() {
    let world = World::new();
    let page = world.json(&format!("{NOTES}/gaps?limit=1"));
    let next = page["next"].as_u64().unwrap();
    let rest = world.json(&format!("{NOTES}/gaps?after={next}"));
    let (first, second) = (&page["items"][0], &rest["items"][0]);
    assert_eq!((&first["origin"], &second["origin"]), (&json!("other"), &json!("own_budget")));
    assert_eq!(first["http_status"], 503);
    let text = world.get(&format!("{NOTES}/gaps")).text().to_owned();
    assert!(text.contains(r#"{"at":"b","n":1.50}"#), "as it was written");
    assert_eq!(world.json(&format!("{NOTES}/gaps?stream=items"))["items"], json!([]));
    assert_eq!(world.get(&format!("{NOTES}/gaps?stream=nothing")).status, 404);
    let quarantine = world.json(&format!("{NOTES}/quarantine"));
    assert_eq!(quarantine["items"][0]["key"], "misfit");
}

#[test]
fn records_come_by_key_byte_for_byte_with_their_history() {
    let world = World::new();
    let items = format!("{NOTES}/streams/items");
    let mut keys = Vec::new();
    let mut path = format!("{items}/records?limit=2");
    loop {
        let page = world.json(&path);
        keys.extend(page["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        let next = next.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        path = format!("{items}/records?limit=2&after={next}");
    }
    assert_eq!(keys, ["..", "<script>alert(1)</script>", "a", "gone"]);
    assert!(world.get(&format!("{items}/record?key=..")).text().contains("12345678901234567890"));
    let history = world.get(&format!("{items}/history?key=a"));
    assert!(history.text().contains(r#"{"id":"a","n":1e400}"#), "no number is read and written again");
    assert_eq!(history.json()["items"].as_array().unwrap().len(), 2);
    let newest = world.json(&format!("{items}/history?key=a&limit=1"));
    assert_eq!(newest["items"][0]["body"]["n"], 2);
    let gone = world.json(&format!("{items}/record?key=gone"));
    assert_eq!((&gone["deleted"], &gone["body"]), (&json!(true), &Value::Null));
    assert_eq!(world.get(&format!("{items}/record?key=nothing")).status, 404);
    assert_eq!(world.get(&format!("{items}/record")).status, 400);
}

#[test]
fn runs_come_newest_first_with_what_was_said() {
    let world = World::new();
    let page = world.json(&format!("{NOTES}/runs?limit=1"));
    let newest = page["next"].as_str().unwrap();
    let before = world.json(&format!("{NOTES}/runs?before={newest}"));
    assert_eq!(before["items"].as_array().unwrap().len(), 1);
    let first = before["items"][0]["run_id"].as_str().unwrap();
    let run = world.json(&format!("/api/v1/runs/{first}"));
    assert_eq!((&run["connection"], &run["reason"]), (&json!("notes"), &json!("succeeded")));
    assert_eq!(run["counts"]["collected"], 5);
    let events = world.json(&format!("/api/v1/runs/{first}/events"));
    let kinds = events["items"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["progress", "skip"]);
    assert_eq!(events["items"][0]["message"]["message"], "begins <b>here</b>");
    assert_eq!(world.get("/api/v1/runs/nothing").status, 404);
    assert_eq!(world.get("/api/v1/runs/nothing/events").status, 404);
}

#[test]
fn what_cannot_be_understood_is_refused_and_not_bent() {
    let world = World::new();
    let bad = [
        "/api/v1/connections?limit=0",
        "/api/v1/connections?limit=501",
        "/api/v1/connections?limit=many",
        "/api/v1/connections?lmit=5",
        "/api/v1/connections?limit=1&limit=2",
        "/api/v1/connections/notes/gaps?after=-1",
        "/api/v1/connections/notes/gaps?after=9223372036854775808",
        "/api/v1/connections/notes/gaps?recovered=yes",
        "/api/v1/connections/notes/streams/items/history?key=a&before=9223372036854775808",
        "/api/v1/connections/%FF",
    ];
    for path in bad {
        assert_eq!(world.get(path).status, 400, "{path}");
    }
    assert_eq!(world.get("/api/v1/nothing").status, 404);
    let reply = world.send(&world.request("POST", "/api/v1/status").json("{}"));
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET,HEAD")));
    assert_eq!(reply.json()["error"]["code"], "method_not_allowed");
}

#[test]
fn metrics_count_what_there_is_and_what_was_refused() {
    let world = World::new();
    assert_eq!(world.send(&world.bare("GET", "/metrics")).status, 401);
    let text = world.get("/metrics").text().to_owned();
    let has = |line: &str| text.lines().any(|known| known == line);
    assert!(has(r#"gleaner_records{connection="notes"} 4"#), "{text}");
    assert!(has(r#"gleaner_health{connection="notes",grade="incomplete"} 1"#), "{text}");
    assert!(has(r#"gleaner_console_refusals_total{reason="not_signed_in"} 1"#), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn no_get_changes_the_store() {
    let world = World::new();
    let before = files(&world);
    let run = world.json(&format!("{NOTES}/runs"))["items"][0]["run_id"].as_str().unwrap().to_owned();
    for ((method, template), _) in description::operations() {
        // What the whole program knows is not here; its own tests ask for it.
        let is_elsewhere = ["/api/v1/connectors", "/api/v1/doctor"].contains(&template.as_str());
        if method != "GET" || template == "/api/v1/events" || is_elsewhere {
            continue;
        }
        let path = template.replace("{connection}", "notes").replace("{stream}", "items").replace("{run}", &run);
        let path = if path.ends_with("/record") || path.ends_with("/history") { path + "?key=a" } else { path };
        for method in ["GET", "HEAD"] {
            let mut request = world.request(method, &path);
            // A body has no say either.
            request.body = Some(b"{\"declined\":true}".to_vec());
            assert_eq!(world.send(&request).status, 200, "{method} {path}");
        }
    }
    assert_eq!(files(&world), before);
}

/// Every file of the data root by its content, but for the log that readers of SQLite share.
fn files(world: &World) -> BTreeMap<String, blake3::Hash> {
    let mut found = BTreeMap::new();
    let mut folders = vec![world.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with("-shm") {
                let bytes = std::fs::read(&path).expect("a file");
                // A reader makes an empty log where there is none.
                if !bytes.is_empty() {
                    found.insert(path.display().to_string(), blake3::hash(&bytes));
                }
            }
        }
    }
    found
}

#[test]
fn a_store_that_is_not_there_yet_is_said_so() {
    let world = World::over(root());
    let reply = world.get("/api/v1/status");
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (503, &json!("store_unavailable")));
    assert_eq!(world.send(&world.bare("GET", "/healthz")).status, 200);
}

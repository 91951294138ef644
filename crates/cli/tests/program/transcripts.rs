//! What connectors say, replayed: each run ends as its DONE says.
//!
//! The transcripts are in `tests/transcripts`, one line for each line of a connector, with the manifests that belong to
//! them and `replay.py`, which stands for the connector. They were written for this, after how connectors speak.

use crate::place::{Place, answer, last_line, python};
use crate::support::Answer;
use crate::terminal::on_a_terminal;
use gleaner_store::{GapFilter, Reader};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name).to_str().unwrap().to_owned()
}

fn replay(place: &Place, manifest: &str, transcript: &str, options: &[&str]) -> Command {
    let (manifest, replay, transcript) = (file(manifest), file("replay.py"), file(transcript));
    let mut arguments = vec!["run", "--manifest", &manifest];
    arguments.extend(options);
    arguments.extend(["--", python(), "-Su", &replay, &transcript]);
    let mut command = place.command(&arguments);
    command.env_remove("FORGE_TOKEN");
    command
}

fn replayed(place: &Place, manifest: &str, transcript: &str) -> Answer {
    answer(&mut replay(place, manifest, transcript, &["--json"]))
}

fn assert_ends(answer: &Answer, code: i32, expected: &Value) {
    assert_eq!(answer.code, code, "{answer:?}");
    let end = last_line(&answer.stdout);
    assert_eq!(end["message_type"], "run_finished");
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&end[name], value, "{name} of {end}");
    }
}

fn reader(place: &Place) -> Reader {
    Reader::open(&place.home().join("store.db")).unwrap()
}

/// Keys and bodies as they are printed, with which of them are deleted.
fn records(place: &Place, stream: &str) -> Vec<Value> {
    let printed = place.gleaner(&["records", stream, "--json"]).stdout;
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rests(place: &Place, connection: &str) -> bool {
    reader(place).cooldown(connection).unwrap().is_some()
}

#[test]
fn a_connector_of_files() {
    let place = Place::new();
    let answer = replayed(&place, "calendar.manifest.json", "calendar.jsonl");
    assert_ends(
        &answer,
        0,
        &json!({"status": "succeeded", "reason": "succeeded", "records_accepted": 3, "records_rejected": 0,
               "gaps_open": 0, "checkpoints_committed": ["appointments"]}),
    );
    let stored = records(&place, "appointments");
    assert_eq!(stored.iter().map(|record| &record["key"]).collect::<Vec<_>>(), ["a-17", "a-18", "a-19"]);
    // Bit for bit: an escape stays the escape that it was.
    let printed = place.gleaner(&["records", "appointments", "--json"]).stdout;
    assert!(printed.contains(r#""title":"Tea \u2028 and \"scones\" — \ud83e\uded6","begins""#), "{printed}");
    assert!(!rests(&place, "calendar"));
    assert_eq!(place.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_connector_with_many_streams() {
    let place = Place::new();
    let answer = replayed(&place, "notebook.manifest.json", "notebook.jsonl");
    let streams = ["notebooks", "pages", "edits", "tags", "drawings"];
    // A page without an id is left out: the run says so, and is incomplete.
    assert_ends(
        &answer,
        3,
        &json!({"status": "succeeded", "records_accepted": 10, "records_deleted": 1, "records_rejected": 0, "gaps_open": 0,
               "checkpoints_committed": streams}),
    );
    let stored = streams.map(|stream| records(&place, stream).len());
    assert_eq!(stored, [2, 3, 2, 2, 1], "the tag that was sent twice is one, the deleted one is there as a tombstone");
    assert_eq!(records(&place, "tags")[0]["data"]["label"], "hoarfrost", "the last one counts");
    assert_eq!(records(&place, "tags")[1], json!({"key": "t9", "data": null, "deleted": true}));
    assert_eq!(records(&place, "edits")[0]["key"], r#"["p1","2031-01-08T20:00:00Z"]"#);
    let pages = place.gleaner(&["records", "pages", "--json"]).stdout;
    assert!(pages.contains(r#""score":1.50,"big":12345678901234567890}"#), "numbers are as they came: {pages}");
    // What cannot be collected is not asked for.
    let no_stream = place.gleaner(&["records", "comments"]);
    assert_eq!((no_stream.code, no_stream.stdout.as_str()), (0, ""));
    // The same once more: nothing new, and nothing twice.
    let answer = replayed(&place, "notebook.manifest.json", "notebook.jsonl");
    assert_ends(&answer, 3, &json!({"status": "succeeded", "records_accepted": 11, "records_unchanged": 9}));
    assert_eq!(streams.map(|stream| records(&place, stream).len()), [2, 3, 2, 2, 1]);
    assert_eq!(place.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_provider_that_throttles_and_leaves_gaps() {
    let place = Place::new();
    let answer = replayed(&place, "forge.manifest.json", "forge-throttled.jsonl");
    assert_ends(
        &answer,
        3,
        &json!({"status": "succeeded", "reason": "succeeded", "records_accepted": 5, "gaps_open": 2,
               "checkpoints_committed": ["account", "projects", "tickets"]}),
    );
    assert!(rests(&place, "forge"), "a gap by rate_limited is pressure");
    let gaps = reader(&place).gaps("forge", GapFilter::default(), 0, 10).unwrap();
    let told = gaps.iter().map(|gap| (gap.record_key.as_deref(), gap.reason.as_deref(), gap.run_cap));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(Some("2-2"), Some("rate_limited"), false), (Some("2-3"), Some("retry_exhausted"), true)]
    );
    let run = last_line(&place.gleaner(&["runs", "forge", "--json"]).stdout);
    assert_eq!(run["collection_rate"]["effective_rate_per_min"], 40.0, "{run}");
    assert_eq!(place.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_provider_that_goes_on_refusing() {
    let place = Place::new();
    let answer = replayed(&place, "forge.manifest.json", "forge-exhausted.jsonl");
    assert_ends(
        &answer,
        5,
        &json!({"status": "failed", "reason": "source_cooldown", "records_accepted": 1, "checkpoints_committed": []}),
    );
    assert_eq!(records(&place, "account").len(), 1, "what came before is true all the same");
    assert!(rests(&place, "forge"));
    let again = replayed(&place, "forge.manifest.json", "forge-exhausted.jsonl");
    assert_ends(&again, 5, &json!({"status": "refused", "reason": "resting", "records_accepted": 0}));
    assert_eq!(again.stdout.lines().count(), 1, "nothing was started");
    assert!(again.stderr.contains("forge is in a cooldown until"), "{again:?}");
}

/// Asked on the terminal, and declined with an empty line.
#[test]
fn a_token_that_is_missing_and_nobody_gives() {
    let place = Place::new();
    let command = replay(&place, "forge.manifest.json", "forge-unsigned.jsonl", &[]);
    let session = on_a_terminal(&command, &[("FORGE_TOKEN (not shown, empty to decline): ", "\n")]);
    assert_eq!(session.code, 4, "{session:?}");
    assert!(session.screen.contains("forge needs FORGE_TOKEN. Make one under Settings, Tokens."), "{session:?}");
    assert!(session.screen.contains("answered: cancelled"), "the connector was told: {session:?}");
    assert!(session.is_as_before, "what is typed is shown again");
    assert!(!rests(&place, "forge"));
    assert!(place.gleaner(&["status"]).stdout.starts_with("forge  needs you\n"));
}

#[test]
fn a_token_that_is_typed_reaches_the_connector_and_is_not_shown() {
    let place = Place::new();
    let command = replay(&place, "forge.manifest.json", "forge-unsigned.jsonl", &[]);
    let session = on_a_terminal(&command, &[("FORGE_TOKEN (not shown, empty to decline): ", "t0k3n-typed\n")]);
    assert!(session.screen.contains("answered: success"), "{session:?}");
    assert!(!session.screen.contains("t0k3n-typed"), "{session:?}");
}

/// No terminal, so no binding: a connector that looks says what is missing and ends, and nothing hangs.
#[test]
fn a_token_that_is_missing_without_anybody_to_ask() {
    let place = Place::new();
    let answer = replayed(&place, "forge.manifest.json", "forge-unattended.jsonl");
    assert_ends(&answer, 4, &json!({"status": "failed", "reason": "credentials_missing"}));
    // One that asks all the same has not looked at its bindings; what helps its owner is the token all the same.
    let answer = replayed(&place, "forge.manifest.json", "forge-unsigned.jsonl");
    assert_ends(&answer, 4, &json!({"status": "failed", "reason": "protocol_violation"}));
}

#[test]
fn two_gaps_of_one_run_are_settled_by_the_next() {
    let place = Place::new();
    let answer = replayed(&place, "letters.manifest.json", "letters-deferred.jsonl");
    assert_ends(&answer, 3, &json!({"status": "succeeded", "gaps_open": 2, "records_accepted": 2}));
    assert!(!rests(&place, "letters"), "neither of the reasons is pressure");
    let answer = replayed(&place, "letters.manifest.json", "letters-recovered.jsonl");
    assert_ends(
        &answer,
        0,
        &json!({"status": "succeeded", "gaps_open": 0, "records_accepted": 4, "checkpoints_committed": ["letters"]}),
    );
    assert_eq!(place.gleaner(&["gaps", "letters"]).stdout, "nothing is missing\n");
    let streams = reader(&place).streams("letters").unwrap();
    assert_eq!(streams.iter().map(|stream| stream.gaps_recovered).sum::<u64>(), 2, "settled, not forgotten");
    assert_eq!((records(&place, "threads").len(), records(&place, "letters.letters").len()), (2, 4));
    assert_eq!(place.gleaner(&["verify"]).code, 0);
}

/// The negative control: a run that ends otherwise than its transcript says is noticed here.
#[test]
fn a_transcript_whose_count_is_wrong_does_not_succeed() {
    let place = Place::new();
    let text = std::fs::read_to_string(file("calendar.jsonl")).unwrap();
    place.write("wrong.jsonl", &text.replace("\"records_emitted\":3", "\"records_emitted\":4"));
    let wrong = place.path("wrong.jsonl");
    let answer = replayed(&place, "calendar.manifest.json", wrong.to_str().unwrap());
    assert_ends(&answer, 1, &json!({"status": "failed", "reason": "protocol_violation", "checkpoints_committed": []}));
}

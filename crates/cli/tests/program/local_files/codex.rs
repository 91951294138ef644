//! Rollouts of Codex: its promises, and what is odd about its files.

use super::{Kind, Rig, append, counts, promises};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const NEW: &str = "sessions/2031/04/05/rollout-2031-04-05T10-00-00-aaaaaaaa-0000-4000-8000-000000000001.jsonl";
const OLD: &str = "sessions/2031/04/01/rollout-2031-04-01T10-00-00-bbbbbbbb-0000-4000-8000-000000000002.jsonl";
const GONE: &str = "sessions/2031/03/31/rollout-2031-03-31T10-00-00-cccccccc-0000-4000-8000-000000000003.jsonl";

static CODEX: Kind = Kind {
    connector: "codex",
    variable: "CODEX_HOME",
    setting: "home",
    fill,
    first: &[("sessions", 3), ("messages", 11), ("function_calls", 4), ("function_call_outputs", 3)],
    change,
    deleted: &[("sessions", "cccccccc-0000-4000-8000-000000000003")],
    fill_many,
    one_file: OLD,
    needed: "sessions",
};

promises!(CODEX =>
    a_first_run_collects_all_and_the_second_nothing,
    a_run_after_changes_brings_what_changed_and_nothing_else,
    a_cap_leaves_the_rest_to_the_next_run,
    a_killed_run_is_gone_on_with,
    a_source_that_is_missing_is_told_with_what_to_do,
    a_file_that_may_not_be_read_is_a_gap_until_it_may,
    conformance_passes,
);

fn session_of(file: &str) -> &str {
    &file[file.len() - 42..file.len() - 6]
}

/// A line as it is written today.
fn line(n: u32, kind: &str, payload: &Value) -> String {
    let time = format!("2031-04-05T{:02}:{:02}:00.000Z", n / 60 % 24, n % 60);
    format!("{}\n", json!({"timestamp": time, "type": kind, "payload": payload}))
}

fn meta(file: &str) -> String {
    line(
        0,
        "session_meta",
        &json!({"id": session_of(file), "timestamp": "2031-04-05T00:00:00.000Z", "cwd": "/home/owner/alpha",
        "originator": "codex_cli", "cli_version": "0.50.0", "instructions": "x".repeat(100_000),
        "git": {"branch": "main", "commit_hash": "c0ffee", "repository_url": "https://example.org/a.git"}}),
    )
}

/// A question, what is thought, a call, its output, an event for the screen, an answer.
fn exchange(n: u32, size: usize) -> String {
    let item = |payload: Value| line(n, "response_item", &payload);
    [
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("question {n}")}, {"type": "input_image", "image_url": "data:…"}]})),
        item(json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAAA"})),
        item(json!({"type": "function_call", "name": "shell", "arguments": format!("{{\"command\":[\"ls\",\"{n}\"]}}"), "call_id": format!("call_{n}")})),
        item(json!({"type": "function_call_output", "call_id": format!("call_{n}"), "output": format!("{{\"output\":\"{}\"}}", "x".repeat(size))})),
        line(n, "event_msg", &json!({"type": "token_count", "info": null})),
        item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]})),
    ]
    .concat()
}

fn fill(home: &Path) {
    append(&home.join(NEW), meta(NEW).as_bytes());
    append(&home.join(NEW), exchange(1, 100).as_bytes());
    append(&home.join(NEW), exchange(2, 100).as_bytes());
    append(
        &home.join(NEW),
        line(
            3,
            "response_item",
            &json!({"type": "local_shell_call", "status": "completed", "action": {"type": "exec"}}),
        )
        .as_bytes(),
    );
    // As the first versions wrote it, and somebody is in the middle of a line.
    let old = json!({"id": session_of(OLD), "timestamp": "2031-04-01T10:00:00.000Z", "instructions": null});
    append(&home.join(OLD), format!("{old}\n{{\"record_type\":\"state\"}}\n").as_bytes());
    for text in ["continue", "continue"] {
        let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        append(&home.join(OLD), format!("{message}\n").as_bytes());
    }
    append(&home.join(OLD), b"{\"type\":\"message\",\"role\":\"assi");
    append(&home.join(GONE), meta(GONE).as_bytes());
    append(&home.join(GONE), exchange(1, 10).as_bytes());
    append(&home.join("sessions/2031/04/05/notes.jsonl"), b"{}\n");
}

fn change(home: &Path) {
    append(&home.join(NEW), exchange(4, 100).as_bytes());
    append(&home.join(OLD), b"stant\",\"content\":[{\"type\":\"output_text\",\"text\":\"whole\"}]}\n");
    fs::remove_file(home.join(GONE)).unwrap();
}

fn fill_many(home: &Path) {
    for file in [NEW, OLD, GONE] {
        append(&home.join(file), meta(file).as_bytes());
        append(&home.join(file), (0..200).map(|n| exchange(n, 25_000)).collect::<String>().as_bytes());
    }
}

#[test]
fn a_rollout_becomes_records_word_for_word_in_its_old_form_and_in_its_new_one() {
    let rig = Rig::filled(&CODEX, fill);
    rig.run_well();
    let records = rig.records();
    let get = |stream: &str, key: String| {
        let (text, _) = &records[&(stream.to_owned(), key)];
        serde_json::from_str::<Value>(text).unwrap()
    };
    let (new, old) = (session_of(NEW), session_of(OLD));
    assert_eq!(get("messages", format!("{new}:000001"))["content"], "question 1\n[input_image]");
    let thought = get("messages", format!("{new}:000002"));
    assert_eq!((&thought["type"], &thought["content"]), (&json!("reasoning"), &json!("hm")));
    assert_eq!(get("function_calls", format!("{new}:call_2"))["arguments"], "{\"command\":[\"ls\",\"2\"]}");
    assert_eq!(get("function_calls", format!("{new}:#3"))["arguments"], json!({"type": "exec"}));
    let output = get("function_call_outputs", format!("{new}:call_2"));
    assert_eq!(output["output"], format!("{{\"output\":\"{}\"}}", "x".repeat(100)));
    let session = get("sessions", new.to_owned());
    let expected = json!({"id": new, "started_at": "2031-04-05T00:00:00.000Z", "cwd": "/home/owner/alpha", "originator": "codex_cli",
        "cli_version": "0.50.0", "model_provider": null, "git_branch": "main", "git_commit": "c0ffee",
        "git_repository": "https://example.org/a.git", "last_event_at": "2031-04-05T00:03:00.000Z", "message_count": 6,
        "function_call_count": 3});
    assert_eq!(session, expected);
    // Two messages that say the same are two.
    let repeated = [1, 2].map(|n| get("messages", format!("{old}:{n:06}"))["content"].clone());
    assert_eq!(repeated, ["continue", "continue"]);
    assert_eq!(get("sessions", old.to_owned())["message_count"], 2);
}

#[test]
fn hostile_and_odd_lines_cost_themselves_and_nothing_else() {
    let rig = Rig::new(&CODEX);
    let file = rig.source().join(NEW);
    append(&file, meta(NEW).as_bytes());
    append(
        &file,
        b"{\"type\":\"response_item\",\"payload\":{\"type\":\"mess\n\0\0\0\0\n[]\n{\"type\":\"x\0\"}\n\x80\x81\n",
    );
    append(&file, b"{\"type\":\"response_item\",\"payload\":7}\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"content\":{}}}\n");
    append(&file, b"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"content\":\"caf\xe9\"}}\n");
    append(&file, &vec![b'z'; 17_000_000]);
    append(&file, b"\n");
    append(&file, exchange(1, 10).as_bytes());
    rig.add();
    let gaps = rig.run_incomplete();
    let expected = [("line_not_readable", 5), ("line_too_long", 1), ("wrong_encoding", 1)];
    assert_eq!(counts(&gaps), expected, "{gaps:?}");
    // Two odd messages, and one exchange with three, a call and its output.
    let session = 1;
    assert_eq!(rig.records().len(), 2 + 5 + session);
    assert_eq!(rig.run_incomplete(), gaps, "the next run says the same");
    fs::write(&file, meta(NEW) + &exchange(1, 10)).unwrap();
    rig.run_well();
}

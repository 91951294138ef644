//! Sessions of Claude Code: its promises, and what is odd about its files.

use super::{Kind, Rig, append, assert_holds_all_of, counts, promises};
use crate::place::{answer, is_full_size, last_line};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ALPHA: &str = "projects/-home-owner-alpha/aaaaaaaa-0000-4000-8000-000000000001.jsonl";
const BETA: &str = "projects/-home-owner-alpha/bbbbbbbb-0000-4000-8000-000000000002.jsonl";
const GONE: &str = "projects/-home-owner-gamma/cccccccc-0000-4000-8000-000000000003.jsonl";
const AGENT: &str = "projects/-home-owner-alpha/agent-0badcafe.jsonl";

static CLAUDE_CODE: Kind = Kind {
    connector: "claude_code",
    variable: "CLAUDE_CODE_HOME",
    setting: "home",
    fill,
    first: &[("sessions", 3), ("messages", 14), ("tool_calls", 4), ("tool_results", 4), ("attachments", 5)],
    change,
    deleted: &[("sessions", "cccccccc-0000-4000-8000-000000000003")],
    fill_many,
    one_file: BETA,
    needed: "projects",
};

promises!(CLAUDE_CODE =>
    a_first_run_collects_all_and_the_second_nothing,
    a_run_after_changes_brings_what_changed_and_nothing_else,
    a_cap_leaves_the_rest_to_the_next_run,
    a_killed_run_is_gone_on_with,
    a_source_that_is_missing_is_told_with_what_to_do,
    a_file_that_may_not_be_read_is_a_gap_until_it_may,
    conformance_passes,
);

fn session_of(file: &str) -> &str {
    Path::new(file).file_stem().unwrap().to_str().unwrap()
}

/// Three lines: a question, a call with a picture of what is thought, its result.
fn exchange(session: &str, n: u32, size: usize) -> String {
    let time = |second: u32| format!("2031-04-05T{:02}:{:02}:{second:02}.000Z", n / 60 % 24, n % 60);
    let line = |kind: &str, id: &str, parent: Option<&str>, second: u32, message: Value| {
        json!({"type": kind, "uuid": format!("{session}-{id}"), "parentUuid": parent.map(|id| format!("{session}-{id}")),
            "sessionId": session, "timestamp": time(second), "cwd": "/home/owner/alpha", "gitBranch": "main",
            "version": "2.0.1", "userType": "external", "isSidechain": false, "message": message})
        .to_string()
    };
    let (ask, call, result) = (format!("{n}a"), format!("{n}b"), format!("{n}c"));
    let tool = format!("toolu_{session}_{n}");
    let asked =
        line("user", &ask, None, 0, json!({"role": "user", "content": format!("question {n} \"quoted\" \u{1F600}")}));
    let called = line(
        "assistant",
        &call,
        Some(&ask),
        5,
        json!({"role": "assistant", "model": "some-model", "usage": {"output_tokens": n},
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": format!("ls {n}")}}]}),
    );
    let answered = line(
        "user",
        &result,
        Some(&call),
        9,
        json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": tool, "content": format!("{n}\n{}", "x".repeat(size))}]}),
    );
    format!("{asked}\n{called}\n{answered}\n")
}

fn fill(home: &Path) {
    append(&home.join(ALPHA), b"{\"type\":\"summary\",\"summary\":\"About files\",\"leafUuid\":\"x\"}\n");
    append(&home.join(ALPHA), exchange(session_of(ALPHA), 1, 100).as_bytes());
    append(&home.join(ALPHA), exchange(session_of(ALPHA), 2, 100).as_bytes());
    let picture = json!({"type": "user", "uuid": "picture", "sessionId": session_of(ALPHA), "timestamp": "2031-04-05T01:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJDRA=="}}]}});
    append(&home.join(ALPHA), format!("{picture}\n").as_bytes());
    for event in ["system", "file-history-snapshot", "queue-operation"] {
        append(&home.join(ALPHA), format!("{{\"type\":{event:?},\"content\":\"so it is\",\"n\":1}}\n").as_bytes());
    }
    append(&home.join(BETA), exchange(session_of(BETA), 1, 50).as_bytes());
    append(&home.join(GONE), exchange(session_of(GONE), 1, 50).as_bytes());
    let helper = exchange(session_of(ALPHA), 7, 10)
        .lines()
        .next()
        .unwrap()
        .replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"0badcafe\"");
    append(&home.join(AGENT), format!("{helper}\n").as_bytes());
    // Somebody is in the middle of writing this.
    append(&home.join(BETA), b"{\"type\":\"user\",\"uuid\":\"half\",\"sessionId\":\"bb");
    append(&home.join("projects/-home-owner-alpha/notes.txt"), b"not ours");
}

fn change(home: &Path) {
    append(&home.join(ALPHA), exchange(session_of(ALPHA), 3, 100).as_bytes());
    append(
        &home.join(BETA),
        b"bb\",\"timestamp\":\"2031-04-05T02:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"whole\"}}\n",
    );
    fs::remove_file(home.join(GONE)).unwrap();
    let agent = fs::read_to_string(home.join(AGENT)).unwrap();
    fs::write(home.join(AGENT), agent.replace("question 7", "another question")).unwrap();
}

fn fill_many(home: &Path) {
    for file in [ALPHA, BETA, GONE] {
        let text = (0..200).map(|n| exchange(session_of(file), n, 25_000)).collect::<String>();
        append(&home.join(file), text.as_bytes());
    }
}

#[test]
fn no_setting_at_all_is_needed_where_the_files_are_in_their_usual_place() {
    let rig = Rig::new(&CLAUDE_CODE);
    fill(&rig.place.path("nobody/.claude"));
    assert_eq!(rig.gleaner(&["add", "claude_code"]).code, 0);
    assert_eq!(rig.run_well(), 30);
    let exported = rig.gleaner(&["export", "claude_code.sessions"]).stdout;
    assert_eq!(exported.lines().count(), 3);
    let asked =
        rig.gleaner(&["query", "SELECT count(*) AS n FROM \"claude_code.messages\" WHERE role = 'user'", "--json"]);
    assert!(asked.stdout.contains("\"n\":"), "{asked:?}");
}

#[test]
fn a_setting_is_named_as_its_variable_or_shorter_and_never_wrongly() {
    let rig = Rig::new(&CLAUDE_CODE);
    fill(&rig.source());
    let wrong = rig.gleaner(&["add", "claude_code", "--set", "hoem=/x"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean home?"), "{wrong:?}");
    assert_eq!(
        rig.gleaner(&["add", "claude_code", "--set", &format!("CLAUDE_CODE_HOME={}", rig.source().display())]).code,
        0
    );
    assert_eq!(rig.run_well(), 30);
    let doctor = rig.gleaner(&["doctor"]);
    assert!(!doctor.stdout.contains("nothing says how to start it"), "{doctor:?}");
}

/// Every record of what was written, and nothing of what was not.
#[test]
fn a_transcript_becomes_records_word_for_word() {
    let rig = Rig::filled(&CLAUDE_CODE, fill);
    rig.run_well();
    let records = rig.records();
    let get = |stream: &str, key: &str| {
        let (text, _) = &records[&(stream.to_owned(), key.to_owned())];
        serde_json::from_str::<Value>(text).unwrap()
    };
    let session = session_of(ALPHA);
    let said = get("messages", &format!("{session}-1b"));
    assert_eq!(said["content"], "Let me see.\n[tool_use: Bash]");
    assert_eq!(
        (&said["thinking"], &said["model"], &said["usage"]["output_tokens"]),
        (&json!("hm"), &json!("some-model"), &json!(1))
    );
    assert_eq!(get("messages", &format!("{session}-1a"))["content"], "question 1 \"quoted\" \u{1F600}");
    assert_eq!(get("tool_calls", &format!("toolu_{session}_2"))["input"], json!({"command": "ls 2"}));
    assert_eq!(get("tool_results", &format!("toolu_{session}_2"))["content"], format!("2\n{}", "x".repeat(100)));
    let helper = get("messages", &format!("{session}-7a"));
    assert_eq!(
        (&helper["session_id"], &helper["agent_id"], &helper["is_sidechain"]),
        (&json!(session), &json!("0badcafe"), &json!(true))
    );
    let picture = get("attachments", "picture:0");
    assert_eq!((&picture["media_type"], &picture["content_bytes"]), (&json!("image/png"), &json!(4)));
    let overview = get("sessions", session);
    let expected = json!({"id": session, "project_path": "-home-owner-alpha", "cwd": "/home/owner/alpha", "git_branch": "main",
        "version": "2.0.1", "started_at": "2031-04-05T00:01:00.000Z", "last_event_at": "2031-04-05T01:00:00.000Z",
        "message_count": 7, "user_type": "external", "entrypoint": null});
    assert_eq!(overview, expected);
}

#[test]
fn hostile_and_odd_lines_cost_themselves_and_nothing_else() {
    let rig = Rig::new(&CLAUDE_CODE);
    let (file, session) = (rig.source().join(ALPHA), session_of(ALPHA));
    let whole = |n| exchange(session, n, 10);
    append(&file, b"\xef\xbb\xbf");
    append(&file, whole(1).as_bytes());
    // What a lost block leaves behind, before a line and as one.
    append(&file, &[0; 5000]);
    append(&file, whole(2).as_bytes());
    append(&file, b"\0\0\0\n\n   \r\n");
    // Cut in the middle, no JSON at all, no object, a zero inside, nested without end, the same name twice.
    append(&file, b"{\"type\":\"user\",\"uuid\":\"cut\",\"mess\n\x7fELF\x02\n[1,2]\n\"text\"\n{\"type\":\"us\0er\"}\n");
    append(
        &file,
        format!("{{\"type\":\"user\",\"uuid\":\"deep\",\"message\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000))
            .as_bytes(),
    );
    append(&file, b"{\"type\":\"user\",\"type\":\"user\",\"uuid\":\"twice\"}\n");
    // Fields of other kinds: an event of which little is known, and nothing is lost.
    append(&file, b"{\"type\":7,\"uuid\":[],\"sessionId\":{},\"timestamp\":false,\"message\":\"m\"}\n");
    append(&file, b"{\"type\":\"user\",\"uuid\":\"odd\",\"message\":{\"role\":1,\"content\":[7,{\"type\":\"text\",\"text\":8}],\"usage\":\"none\"}}\n");
    // Latin-1, half a surrogate, UTF-16 without a mark.
    append(&file, b"{\"type\":\"user\",\"uuid\":\"latin\",\"timestamp\":\"2031-04-05T03:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"caf\xe9\"}}\n");
    append(
        &file,
        b"{\"type\":\"user\",\"uuid\":\"surrogate\",\"message\":{\"role\":\"user\",\"content\":\"\\ud800 \\u0000\"}}\n",
    );
    append(&file, &"{\"type\":\"user\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    // A line of 100 MB, and one after it.
    append(&file, b"{\"type\":\"user\",\"uuid\":\"long\",\"message\":{\"role\":\"user\",\"content\":\"");
    append(&file, &vec![b'y'; if is_full_size() { 100_000_000 } else { 17_000_000 }]);
    append(&file, b"\"}}\n");
    append(&file, whole(3).as_bytes());
    rig.add();
    let gaps = rig.run_incomplete();
    let expected = [("line_not_readable", 7), ("line_too_long", 1), ("part_without_id", 1), ("wrong_encoding", 1)];
    assert_eq!(counts(&gaps), expected, "{gaps:?}");
    let bytes = fs::read(&file).unwrap();
    for locator in gaps.values().flatten() {
        assert_eq!(locator["file"], ALPHA.strip_prefix("projects/").unwrap());
        let byte = locator["byte"].as_u64().unwrap() as usize;
        assert!(byte == 0 || bytes[byte - 1] == b'\n', "each names the first byte of its line: {locator}");
    }
    let shown = rig.gleaner(&["gaps", "claude_code"]).stdout;
    assert!(shown.contains("a line is longer than 16 MiB and was left out") && shown.contains(session), "{shown}");
    let records = rig.records();
    let content = |key: &str| {
        let found = records.get(&("messages".to_owned(), key.to_owned()));
        found.map(|(text, _)| serde_json::from_str::<Value>(text).unwrap()["content"].clone())
    };
    for n in 1..=3 {
        assert!(content(&format!("{session}-{n}c")).is_some(), "exchange {n}");
    }
    assert_eq!(content("latin"), Some("caf\u{fffd}".into()));
    assert_eq!((content("odd"), content("cut"), content("long")), (Some(Value::Null), None, None));
    assert!(rig.gleaner(&["records", "claude_code.messages"]).stdout.contains("\\ud800 \\u0000"), "as it was written");
    // The next run reads the file again, finds the same, and stores nothing twice.
    assert_eq!(rig.run_incomplete(), gaps);
    assert_eq!(rig.versions(), records.len() as u64);
    // When the file is whole, nothing is missing.
    fs::write(&file, (1..=4).map(whole).collect::<String>()).unwrap();
    rig.run_well();
    assert!(rig.gleaner(&["gaps", "claude_code"]).stdout.contains("nothing is missing"));
    assert!(rig.records().keys().any(|(_, key)| *key == format!("{session}-4c")));
}

/// More of a kind than are listed one by one are one more gap, and every line is either stored or in a gap.
#[test]
fn a_thousand_bad_lines_are_few_gaps_and_no_line_is_unaccounted_for() {
    let rig = Rig::new(&CLAUDE_CODE);
    let file = rig.source().join(ALPHA);
    let line = |n: usize| match n % 2 {
        0 => format!("{{\"type\":\"user\",\"uuid\":\"u{n}\",\"message\":{{\"role\":\"user\",\"content\":\"{n}\"}}}}\n"),
        _ => format!("not a line {n}\n"),
    };
    append(&file, (0..2000).map(line).collect::<String>().as_bytes());
    rig.add();
    let gaps = rig.run_incomplete();
    assert_eq!(counts(&gaps), [("line_not_readable", 21)]);
    let rest = gaps["line_not_readable"].iter().filter(|locator| locator["rest"] == true).count();
    assert_eq!((rest, rig.records().keys().filter(|(stream, _)| stream == "messages").count()), (1, 1000));
    fs::remove_file(&file).unwrap();
    assert_eq!(rig.run(&[]).0, 0, "a file that is gone has nothing to miss");
}

#[test]
fn a_link_out_of_the_folder_is_not_followed_and_odd_names_are_only_names() {
    let rig = Rig::new(&CLAUDE_CODE);
    let projects = rig.source().join("projects/-p");
    let outside = rig.place.path("outside");
    append(&outside.join("dddddddd.jsonl"), exchange("dddddddd", 1, 10).as_bytes());
    fs::create_dir_all(&projects).unwrap();
    std::os::unix::fs::symlink(&outside, projects.join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.join("dddddddd.jsonl"), projects.join("file.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", projects.join("zero.jsonl")).unwrap();
    let names: [&[u8]; 3] = [b"two\nlines.jsonl", b"\x1b[2J\x1b]0;x\x07.jsonl", b"\xff\xfe.jsonl"];
    for (number, name) in names.iter().enumerate() {
        append(&projects.join(OsStr::from_bytes(name)), exchange(&format!("odd{number}"), 1, 10).as_bytes());
    }
    rig.add();
    // What lies behind a link is not read, and that is said; a device behind one is nothing that could be missed.
    let gaps = rig.run_incomplete();
    let mut links = gaps["link_not_followed"].iter().map(|link| link["link"].as_str().unwrap()).collect::<Vec<_>>();
    links.sort_unstable();
    assert_eq!((links, gaps.len()), (vec!["-p/file.jsonl", "-p/folder"], 1));
    assert_eq!(rig.records().len(), 3 * 6);
    let sessions = rig.gleaner(&["records", "claude_code.sessions"]).stdout;
    assert!(
        sessions.lines().count() == 3 && !sessions.contains('\x1b') && !sessions.contains("dddddddd"),
        "{sessions}"
    );
    for link in ["folder", "file.jsonl"] {
        fs::remove_file(projects.join(link)).unwrap();
    }
    assert_eq!(rig.run_well(), 0, "without them nothing is missing");
    fs::remove_file(projects.join(OsStr::from_bytes(names[0]))).unwrap();
    assert_eq!(rig.run(&[]).1["records_deleted"], 1);
    assert!(outside.join("dddddddd.jsonl").exists());
}

#[test]
fn a_file_that_moved_or_whose_folder_cannot_be_looked_at_is_not_deleted() {
    let rig = Rig::filled(&CLAUDE_CODE, fill);
    rig.run_well();
    fs::create_dir_all(rig.source().join("projects/-elsewhere")).unwrap();
    fs::rename(
        rig.source().join(GONE),
        rig.source().join("projects/-elsewhere").join(Path::new(GONE).file_name().unwrap()),
    )
    .unwrap();
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["records_deleted"].as_u64()), (0, Some(0)), "{end}");
    let project = |records: &super::Records| records[&("sessions".to_owned(), session_of(GONE).to_owned())].clone();
    let (now, deleted) = project(&rig.records());
    assert!(now.contains("-elsewhere") && !deleted, "{now}");
    // The whole folder is away for a moment: that is a failure, and no deletion of everything.
    fs::rename(rig.source().join("projects"), rig.source().join("away")).unwrap();
    assert_eq!(rig.run(&[]).0, 1);
    fs::rename(rig.source().join("away"), rig.source().join("projects")).unwrap();
    let (code, end) = rig.run(&[]);
    assert_eq!(
        (code, end["records_deleted"].as_u64(), end["records_accepted"].as_u64()),
        (0, Some(0), Some(0)),
        "{end}"
    );
}

/// What one run did not ask for, the next one that asks for it gets, from the beginning of the files.
#[test]
fn a_cursor_covers_what_was_asked_for_and_nothing_more() {
    let rig = Rig::filled(&CLAUDE_CODE, fill);
    assert_eq!(rig.run(&["--stream", "messages"]).1["records_accepted"], 14);
    assert_eq!(rig.run(&["--stream", "messages"]).1["records_accepted"], 0);
    assert_eq!(rig.run(&[]).0, 0);
    assert_eq!(rig.records().len(), 30);
    assert_eq!(rig.run_well(), 0);
    // A scoped run has a track of its own: the ordinary run after it lists everything, and what was gone by then was never
    // there for it. What the scoped run stored stays.
    let rig = Rig::filled(&CLAUDE_CODE, fill);
    assert_eq!(rig.run(&["--stream", "sessions"]).1["records_accepted"], 3);
    fs::remove_file(rig.source().join(GONE)).unwrap();
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["records_deleted"].as_u64()), (0, Some(0)), "{end}");
    assert_holds_all_of(&rig.records(), &rig.fresh());
}

#[test]
fn the_documented_variables_cap_a_run_as_the_options_do_and_the_least_counts() {
    let rig = Rig::filled(&CLAUDE_CODE, fill_many);
    let run = |variable: &str, value: &str, options: &[&str]| {
        let arguments = ["run", "claude_code", "--json"].iter().chain(options).copied().collect::<Vec<_>>();
        let answer = answer(rig.command(&arguments).env(variable, value));
        (answer.code, last_line(&answer.stdout)["gaps_open"].as_u64())
    };
    assert_eq!(run("GLEANER_MAX_REQUESTS", "1", &[]), (3, Some(1)));
    assert_eq!(run("GLEANER_MAX_DURATION_MS", "1", &[]), (3, Some(1)));
    assert_eq!(run("GLEANER_MAX_REQUESTS", "1000", &["--max-requests", "1"]), (3, Some(1)));
    assert_eq!(run("GLEANER_MAX_REQUESTS", "none", &[]), (0, Some(0)), "no number is no cap");
}

/// A hundred thousand with `GLEANER_TEST_ALL`, three thousand otherwise.
#[test]
fn very_many_files_are_one_account_in_bounded_memory() {
    let rig = Rig::new(&CLAUDE_CODE);
    let files = if is_full_size() { 100_000 } else { 3_000 };
    let line = exchange("s", 1, 10).lines().next().unwrap().to_owned();
    for n in 0..files {
        let folder = rig.source().join(format!("projects/-p{}", n % 7));
        if n < 7 {
            fs::create_dir_all(&folder).unwrap();
        }
        let name = format!("{n:08x}-0000-4000-8000-000000000000");
        fs::write(
            folder.join(format!("{name}.jsonl")),
            format!("{}\n", line.replace("\"s-1a\"", &format!("\"m{n}\""))),
        )
        .unwrap();
    }
    rig.add();
    let (came, peak) = rig.run_watched();
    assert_eq!(came, files * 2);
    // The marks, and a cursor of eleven megabytes in several copies on its way, for a hundred thousand.
    let bound = if is_full_size() { 160_000 } else { 60_000 };
    assert!(peak > 0 && peak < bound, "{peak} KiB");
    assert_eq!(rig.run_well(), 0);
    fs::remove_file(rig.source().join("projects/-p0/00000000-0000-4000-8000-000000000000.jsonl")).unwrap();
    assert_eq!(rig.run(&[]).1["records_deleted"], 1);
}

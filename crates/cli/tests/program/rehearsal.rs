//! `gleaner run --limit`, `--record` and `--replay`: what was asked and what came out of it, and nothing is stored.

use crate::place::{Place, answer, last_line, python};
use crate::support::Answer;
use crate::terminal::on_a_terminal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// With what URLs, JSON and base64 write differently.
const SECRET: &str = "c4n4ry/+ token\"é";
/// Pieces of it that no way of writing it can do without.
const PIECES: [&str; 6] = ["c4n4ry", "63346e347279", "63346E347279", "YzRuNHJ5", "M0bjRyeS", "jNG40cnk"];

/// What `gleaner new connector` makes, in a place of its own.
struct Notes {
    place: Place,
}

impl Notes {
    fn new() -> Self {
        let place = Place::new();
        let made = place.gleaner(&["new", "connector", "my-notes"]);
        assert_eq!(made.code, 0, "{made:?}");
        Self { place }
    }

    fn folder(&self) -> PathBuf {
        self.place.path("my-notes")
    }

    fn command(&self, options: &[&str]) -> Command {
        let start = ["run", "--manifest", "manifest.json"];
        let mut command = self.place.command(&[&start, options, &["--", python(), "connector.py"]].concat());
        command.current_dir(self.folder()).env_remove("MY_NOTES_TOKEN");
        command
    }

    /// Without a credential.
    fn run(&self, options: &[&str]) -> Answer {
        answer(&mut self.command(options))
    }

    fn run_signed_in(&self, options: &[&str]) -> Answer {
        answer(self.command(options).env("MY_NOTES_TOKEN", "t-0815-secret"))
    }
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_limited_run_shows_each_exchange_with_what_came_out_of_it() {
    let notes = Notes::new();
    let shown = notes.run_signed_in(&["--limit", "2", "--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let lines = lines(&shown);
    let urls = lines.iter().filter_map(|line| line["url"].as_str()).collect::<Vec<_>>();
    let url = |path: &str| format!("https://notes.invalid/notes{path}");
    assert_eq!(urls, [url("?after="), url("/n001"), url("/n002")], "what was asked for after that is not shown");
    assert_eq!(lines[0]["items"], json!([]));
    assert_eq!(lines[0]["request_headers"], json!([["authorization", "[secret]"]]));
    let item = &lines[1]["items"][0];
    assert_eq!((&item["kind"], &item["stream"], &item["key"]), (&json!("record"), &json!("notes"), &json!("n001")));
    assert_eq!((&item["data"]["title"], &lines[1]["status"]), (&json!("Note 1"), &json!(200)));
    assert!(lines[1]["response_body"].as_str().unwrap().contains("Once upon a time."), "{}", lines[1]);
    let end = lines.last().unwrap();
    assert_eq!((&end["stored"], &end["limit_reached"]), (&json!(false), &json!(true)));
    assert_eq!(end["streams"]["notes"], json!({"records": 2, "rejected": 0, "gaps": 0}));
}

#[test]
fn a_limited_run_stores_nothing_and_moves_no_cursor() {
    let notes = Notes::new();
    let budget = ["--max-requests", "9"];
    assert_eq!(notes.run_signed_in(&budget).code, 3);
    let looks: [&[&str]; 4] = [
        &["records", "my-notes.notes", "--json"],
        &["gaps", "my-notes", "--json"],
        &["runs", "my-notes", "--json"],
        &["query", "--json", "SELECT * FROM cursors"],
    ];
    let seen = || looks.map(|look| notes.place.gleaner(look).stdout);
    let before = seen();
    assert!(before[0].lines().count() > 0, "{before:?}");
    assert_eq!(notes.run_signed_in(&["--limit", "30"]).code, 0);
    assert_eq!(notes.run(&["--replay", "exchanges.jsonl"]).code, 3);
    assert_eq!(seen(), before);
}

#[test]
fn a_limited_run_is_bounded_in_requests_too() {
    let notes = Notes::new();
    // Nothing of this list can be had: no record comes, however long it is.
    let ids = (0..500).map(|number| format!("x{number:03}")).collect::<Vec<_>>();
    let list = json!({"request": {"method": "GET", "url": "https://notes.invalid/notes?after="},
        "response": {"status": 200, "body": {"ids": ids, "more": false}}});
    fs::write(notes.folder().join("exchanges.jsonl"), format!("{{\"gleaner_exchanges\":1}}\n{list}\n")).unwrap();
    let shown = notes.run_signed_in(&["--limit", "3", "--json"]);
    let end = last_line(&shown.stdout);
    assert_eq!((&end["exchanges"], &end["limit_reached"]), (&json!(23), &json!(false)), "{end}");
    let asked = notes.run_signed_in(&["--limit", "3", "--json", "--max-requests", "5"]);
    assert_eq!(last_line(&asked.stdout)["exchanges"], 5);
}

#[test]
fn on_a_wide_terminal_records_stand_beside_their_answer_and_on_a_narrow_one_below() {
    let notes = Notes::new();
    let screen = |columns: &str| {
        let mut command = Command::new("sh");
        let words = ["run", "--manifest", "manifest.json", "--limit", "1", "--", python(), "connector.py"];
        command.args([
            "-c",
            &format!("stty cols {columns} rows 50; exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_gleaner"),
        ]);
        command.args(words).current_dir(notes.folder()).env("GLEANER_HOME", notes.place.home());
        let session = on_a_terminal(command.env("MY_NOTES_TOKEN", "t-0815-secret").env("NO_COLOR", "1"), &[]);
        assert_eq!(session.code, 0, "{}", session.screen);
        session.screen.replace('\r', "")
    };
    let wide = screen("160");
    let beside = wide.lines().any(|line| line.starts_with("> authorization") && line.contains(" │ => notes n001"));
    assert!(beside, "{wide}");
    let narrow = screen("80");
    assert!(!narrow.contains('│') && narrow.contains("\n  => notes n001\n"), "{narrow}");
    for (screen, columns) in [(&wide, 160), (&narrow, 80)] {
        assert!(screen.lines().all(|line| line.chars().count() <= columns), "{screen}");
    }
}

#[test]
fn a_connector_that_records_nothing_shows_its_records_alone() {
    let place = Place::new();
    let script = "record(1); record('nine')\ngap('7', reason='not_found')\nrecord(3)\nslice(1); done(3); end()";
    place.script(script);
    let mut command = place.run_command(&["--limit", "9"]);
    let shown = answer(command.env("SHOP_TOKEN", "t-0815-secret"));
    assert_eq!(shown.code, 3, "{shown:?}");
    assert!(shown.stderr.contains("no HTTP exchange was recorded"), "{shown:?}");
    let heads = shown.stdout.lines().filter(|line| line.starts_with("=>")).collect::<Vec<_>>();
    let rejected = "=> orders nine: rejected: it does not fit its schema, at /id";
    assert_eq!(heads, ["=> orders 1", rejected, "=> orders 7: a gap: not_found", "=> orders 3"], "{}", shown.stdout);
    assert!(shown.stdout.contains("orders: 2 records, 1 rejected, 1 gaps"), "{}", shown.stdout);
}

#[test]
fn a_record_that_the_connector_itself_rejects_is_shown_with_the_place_of_the_fault() {
    let notes = Notes::new();
    let connector = fs::read_to_string(notes.folder().join("connector.py")).unwrap();
    let wrong = connector.replace(r#""title": answer["h"]"#, r#""title": 7"#);
    assert_ne!(wrong, connector);
    fs::write(notes.folder().join("connector.py"), wrong).unwrap();
    let shown = notes.run_signed_in(&["--limit", "1", "--json"]);
    let item = &lines(&shown)[1]["items"][0];
    assert_eq!((&item["kind"], &item["key"]), (&json!("rejected"), &json!("n001")), "{shown:?}");
    assert!(item["why"].as_str().unwrap().ends_with("at /title"), "{item}");
}

#[test]
fn a_replayed_run_needs_no_network_no_credential_and_no_data_root() {
    let notes = Notes::new();
    let replayed = notes.run(&["--replay", "exchanges.jsonl"]);
    assert_eq!(replayed.code, 3, "finished, with a gap: {replayed:?}");
    assert!(replayed.stdout.contains("Nothing was stored.\n  notes: 59 records, 0 rejected, 1 gaps"), "{replayed:?}");
    assert!(!notes.place.home().exists(), "not even a folder was made");
    let limited = notes.run(&["--replay", "exchanges.jsonl", "--limit", "1", "--json"]);
    assert_eq!((limited.code, last_line(&limited.stdout)["exchanges"].as_u64() >= Some(2)), (0, true), "{limited:?}");
    let unsigned = notes.run(&["--limit", "1"]);
    assert_eq!(unsigned.code, 4, "{unsigned:?}");
    assert!(
        unsigned.stderr.contains("MY_NOTES_TOKEN is missing") && unsigned.stderr.contains("--replay FILE needs none")
    );
}

#[test]
fn a_request_that_was_not_recorded_fails_the_run_and_is_named() {
    let notes = Notes::new();
    let all = fs::read_to_string(notes.folder().join("exchanges.jsonl")).unwrap();
    let few = all.lines().filter(|line| !line.contains("/notes/n003")).collect::<Vec<_>>().join("\n");
    fs::write(notes.folder().join("few.jsonl"), few + "\n").unwrap();
    let replayed = notes.run(&["--replay", "few.jsonl"]);
    assert_eq!(replayed.code, 1, "{replayed:?}");
    let said = "GET https://notes.invalid/notes/n003 is not in the recording; the nearest is GET https://notes.invalid/notes/n00";
    assert!(replayed.stdout.contains(said) && replayed.stdout.contains("0 gaps"), "{replayed:?}");
}

#[test]
fn a_bad_recording_is_refused_with_its_line() {
    let notes = Notes::new();
    for (text, said) in [("{}\n", "line 1: a recording begins with"), ("{\"gleaner_exchanges\":1}\n[]\n", "line 2: ")] {
        fs::write(notes.folder().join("bad.jsonl"), text).unwrap();
        let refused = notes.run(&["--replay", "bad.jsonl"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(said) && refused.stderr.contains("hint: "), "{refused:?}");
    }
    assert_eq!(notes.run(&["--replay", "none.jsonl"]).code, 2);
    assert_eq!(notes.run(&["--replay", "exchanges.jsonl", "--record", "x"]).code, 2);
    assert_eq!(notes.run(&["--limit", "0"]).code, 2);
}

#[test]
fn a_limited_run_respects_rests_and_other_runs_and_a_replayed_one_needs_not() {
    let place = Place::new();
    place.write("exchanges.jsonl", "{\"gleaner_exchanges\":1}\n");
    let run = |script: &str, options: &[&str]| {
        place.script(script);
        answer(place.run_command(options).env("SHOP_TOKEN", "t-0815-secret"))
    };
    let fine = "record(1); slice(1); done(1); end()";
    let mut other = place.start("record(1); slice(1)\nwhile True: time.sleep(1)", &[]);
    other.wait_for_saved();
    assert_eq!(run(fine, &["--limit", "1"]).code, 11);
    assert_eq!(run(fine, &["--replay", "exchanges.jsonl"]).code, 0);
    other.signal("KILL");
    let limited = r#"done(0, "failed", error={"message": "shop_rate_limited", "retryable": True}); end(1)"#;
    assert_eq!(run(limited, &[]).code, 5);
    assert_eq!(run(fine, &["--limit", "1"]).code, 5);
    assert_eq!(run(fine, &["--limit", "1", "--now"]).code, 0);
    assert_eq!(run(fine, &["--replay", "exchanges.jsonl"]).code, 0);
    assert_eq!(run(fine, &[]).code, 5, "it rests as before");
}

#[test]
fn a_run_is_recorded_into_a_new_file_and_replayed_from_it() {
    let notes = Notes::new();
    let recorded = notes.run_signed_in(&["--record", "mine.jsonl"]);
    assert_eq!(recorded.code, 3, "{recorded:?}");
    assert!(
        recorded.stderr.contains("63 exchanges are in ")
            && recorded.stderr.contains("look at it before you give it away")
    );
    let text = fs::read_to_string(notes.folder().join("mine.jsonl")).unwrap();
    assert!(!text.contains("t-0815") && text.contains("[secret]"), "{text}");
    assert_eq!(notes.run(&["--replay", "mine.jsonl"]).code, 3);
    let again = notes.run_signed_in(&["--record", "mine.jsonl"]);
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{again:?}");
    assert_eq!(fs::read_to_string(notes.folder().join("mine.jsonl")).unwrap(), text);
    let short = notes.run_signed_in(&["--record", "short.jsonl", "--limit", "2"]);
    assert!(short.code == 0 && notes.folder().join("short.jsonl").exists(), "{short:?}");
    let nowhere = notes.run_signed_in(&["--record", "no/such/folder.jsonl"]);
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
}

#[test]
fn a_recording_with_a_credential_in_it_is_removed() {
    let place = Place::new();
    place.script(
        r#"
line = {"request": {"method": "GET", "url": "https://shop/?t=" + os.environ["SHOP_TOKEN"]}, "no_answer": "lost"}
with open(os.environ["GLEANER_RECORD"], "w") as file:
    file.write('{"gleaner_exchanges": 1}\n' + json.dumps(line) + "\n")
record(1); slice(1); done(1); end()"#,
    );
    let recorded = answer(place.run_command(&["--record", "mine.jsonl"]).env("SHOP_TOKEN", SECRET));
    assert_eq!(recorded.code, 1, "{recorded:?}");
    assert!(
        recorded.stderr.contains("wrote its credential into") && !recorded.stderr.contains("c4n4ry"),
        "{recorded:?}"
    );
    assert!(!place.path("mine.jsonl").exists());
}

/// A provider that repeats the credential in every way of writing it: in headers, in its body, in where it redirects to.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ways = ways();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let path = first.split(' ').nth(1).unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let echoes = ways.iter().filter(|way| way.is_ascii()).enumerate();
            let echoes =
                echoes.map(|(number, way)| format!("x-echo-{number}: {way}\r\nset-cookie: s{number}={way}\r\n"));
            let (status, mut body) = match path {
                path if path.starts_with("/notes?") => ("200 OK", json!({"ids": ["n1", "n2"], "more": false})),
                "/notes/n1" => ("302 Found", json!({})),
                _ => ("200 OK", json!({"t": "2030-01-01T00:00:00Z", "h": "Note", "b": "text"})),
            };
            let location =
                if path == "/notes/n1" { format!("location: /moved?t={}\r\n", ways[1]) } else { String::new() };
            body["echo"] =
                json!({"ways": ways, "nested": json!(ways).to_string(), "url": format!("https://x/?q={}", ways[1])});
            let body = body.to_string();
            let head = format!("HTTP/1.1 {status}\r\n{location}{}", echoes.collect::<String>());
            let head = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            drop((&stream).write_all(head.as_bytes()));
        }
    });
    url
}

fn ways() -> Vec<String> {
    let script = r#"
import base64, json, sys, urllib.parse
token = sys.argv[1]
b64 = lambda text: base64.b64encode(text.encode()).decode()
print(json.dumps([
    token, urllib.parse.quote(token, safe=""), urllib.parse.quote_plus(token), json.dumps(token)[1:-1],
    json.dumps(token, ensure_ascii=False)[1:-1], token.encode().hex(), token.encode().hex().upper(), b64(token),
    b64("user:" + token), b64("abc:" + token), base64.urlsafe_b64encode(("u:" + token).encode()).decode()]))"#;
    let output = Command::new(python()).args(["-c", script, SECRET]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The connector of the template, asking a real server, with its credential also in every URL.
fn echoed(options: &[&str], as_credential: bool) -> (Notes, Answer) {
    let notes = Notes::new();
    let file = notes.folder().join("connector.py");
    let connector = fs::read_to_string(&file).unwrap();
    let asking = connector
        .replace("https://notes.invalid", &echo())
        .replace(", sample=\"exchanges.jsonl\"", "")
        .replace(
            "?after={after}",
            "?after={after}&q={gleaner.exchanges.urllib.parse.quote(__import__('os').environ['MY_NOTES_TOKEN'])}",
        )
        .replace("f\"Bearer {token}\"", "\"none\"");
    let asking = match as_credential {
        true => asking,
        false => asking.replace("    token = run.credential(\"MY_NOTES_TOKEN\")\n", ""),
    };
    assert_eq!(asking.matches("MY_NOTES_TOKEN").count(), 1 + usize::from(as_credential), "{asking}");
    fs::write(&file, asking).unwrap();
    let answer = answer(notes.command(options).env("MY_NOTES_TOKEN", SECRET));
    (notes, answer)
}

fn pieces_in(text: &str) -> Vec<&'static str> {
    PIECES.into_iter().filter(|piece| text.contains(piece)).collect()
}

#[test]
fn a_secret_that_a_provider_echoes_is_neither_in_the_recording_nor_on_the_screen() {
    for (options, code) in [(&["--record", "mine.jsonl"][..], 0), (&["--record", "mine.jsonl", "--limit", "2"], 0)] {
        let (notes, shown) = echoed(options, true);
        assert_eq!(shown.code, code, "{shown:?}");
        let text = fs::read_to_string(notes.folder().join("mine.jsonl")).unwrap();
        let bad = text.lines().filter(|line| !pieces_in(line).is_empty()).collect::<Vec<_>>();
        assert_eq!(bad, Vec::<&str>::new());
        assert!(text.lines().count() == 4 && text.contains("x-echo-1"), "{text}");
        assert_eq!(pieces_in(&format!("{shown:?}")), Vec::<&str>::new());
    }
}

/// The negative control: what is no credential is found by the same eyes. It is not in a cookie, whose value is masked.
#[test]
fn what_is_no_secret_is_in_the_recording() {
    let (notes, shown) = echoed(&["--record", "mine.jsonl"], false);
    // The manifest still calls it a credential, so the program finds it there, and removes the file.
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(!notes.folder().join("mine.jsonl").exists(), "{shown:?}");
}

//! Recording a run and playing it again: what is asked is answered as before, and no secret gets into the file.

use crate::script::{MANIFEST, Said, Script, manifest_with_auth, start};
use crate::server::serve;
use gleaner_sdk::exchanges::{Outcome, Recording};
use gleaner_sdk::lane::{Detail, ListItem, ListPage, Timestamp};
use gleaner_sdk::{Collect, Page, Stop};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// With what URLs, JSON and base64 write differently.
const SECRET: &str = "c4n4ry/+ token\"é";
/// Pieces of it that no way of writing it can do without: as it is, in hex, and in base64 at its three alignments.
const PIECES: [&str; 6] = ["c4n4ry", "63346e347279", "63346E347279", "YzRuNHJ5", "M0bjRyeS", "jNG40cnk"];

fn recorded(script: Script, file: &Path) -> Script {
    script.set("GLEANER_RECORD", file.to_str().unwrap())
}

fn replayed(script: Script, file: &Path) -> Script {
    script.set("GLEANER_REPLAY", file.to_str().unwrap())
}

/// Two pages; the second is refused once.
fn two_pages(run: &mut Collect<'_>, url: &str) -> Result<(), Stop> {
    let client = run.client()?;
    let left = run.pages("notes", |at| {
        let page = at.and_then(|at| at["page"].as_u64()).unwrap_or(0);
        let answer = client.get(format!("{url}/notes")).query(&[("page", page.to_string())]).send()?;
        let answer = answer.error_for_status()?.json::<Value>()?;
        let next = json!({"page": page + 1});
        let page = if answer["last"] == true { Page::last(next) } else { Page::then(next) };
        Ok(page.record(answer["id"].to_string(), &json!({"id": answer["id"]})))
    });
    left.map(drop)
}

fn records(said: &Said) -> Vec<Value> {
    said.of("RECORD").into_iter().map(|record| record["data"].clone()).collect()
}

#[test]
fn a_recorded_run_is_replayed_without_a_provider_and_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    let mut refusals = 1;
    let url = serve(move |path| match path {
        "/notes?page=0" => ("200 OK", r#"{"id":1,"last":false}"#.to_owned()),
        _ if refusals > 0 => {
            refusals -= 1;
            ("503 Service Unavailable", "later".to_owned())
        }
        _ => ("200 OK", r#"{"id":2,"last":true}"#.to_owned()),
    });
    let first = recorded(Script::new(start()), &file).run(|run| two_pages(run, &url));
    assert_eq!(first.check().done()["status"], "succeeded");
    let recording = Recording::read(&file).unwrap();
    let status = |outcome: &Outcome| match outcome {
        Outcome::Answered { status, .. } => *status,
        Outcome::NoAnswer(_) => 0,
    };
    let statuses = recording.exchanges.iter().map(|exchange| status(&exchange.outcome)).collect::<Vec<_>>();
    assert_eq!(statuses, [200, 503, 200], "every attempt is an exchange");
    let began = Instant::now();
    // Nobody listens there any more, and a pace of its own would take seconds.
    let gone = "http://127.0.0.1:1".to_owned();
    let text = std::fs::read_to_string(&file).unwrap().replace(&url, &gone);
    std::fs::write(&file, text).unwrap();
    let second = replayed(Script::new(start()), &file).run(|run| two_pages(run, &gone));
    assert_eq!(second.check().done()["status"], "succeeded", "{:?}", second.lines);
    assert_eq!(records(&second), records(&first));
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    assert_eq!(second.of("PROGRESS").len(), 0, "there is no pace");
    let cursor = &second.of("STATE").last().unwrap()["cursor"];
    assert_eq!(cursor, &json!({"page": 2}), "and none is remembered");
}

#[test]
fn a_replayed_run_needs_no_credential_and_asks_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    let line = r#"{"request":{"method":"GET","url":"https://notes.invalid/bot[secret]/me?token=[secret]"},"response":{"status":200}}"#;
    std::fs::write(&file, format!("{{\"gleaner_exchanges\":1}}\n{line}\n")).unwrap();
    let mut script = replayed(Script::new(start()), &file);
    script.manifest = manifest_with_auth();
    script.start["bindings"] = json!({"network": {}, "interactive": {}});
    let said = script.run(|run| {
        let token = run.credential("NOTES_TOKEN")?.to_owned();
        assert!(token.starts_with("placeholder"), "{token}");
        let url = format!("https://notes.invalid/bot{token}/me");
        run.client_with(|client| client.bearer(&token))?.get(url).query(&[("token", &token)]).send()?;
        Ok(())
    });
    assert_eq!(said.check().types(), ["DONE"], "{:?}", said.lines);
    assert_eq!(said.done()["status"], "succeeded", "{:?}", said.lines);
}

#[test]
fn a_request_that_was_not_recorded_ends_the_run_and_is_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    let line =
        r#"{"request":{"method":"GET","url":"https://notes.invalid/notes/1"},"response":{"status":200,"body":"{}"}}"#;
    std::fs::write(&file, format!("{{\"gleaner_exchanges\":1}}\n{line}\n")).unwrap();
    let list = || ListPage {
        items: ["2", "1"].map(|key| ListItem::new(key, Timestamp::new(format!("2031-01-0{key}")))).to_vec(),
        next: None,
        left: None,
    };
    for swallows in [false, true] {
        let said = replayed(Script::new(start()), &file).run(|run| {
            let client = run.client()?;
            let left = run.lane("notes", "events").collect(
                |_| Ok(list()),
                |item| match client.get(format!("https://notes.invalid/notes/{}", item.key)).send() {
                    Err(_) if swallows => Ok(Detail::new()),
                    answer => answer.map(|_| Detail::new()).map_err(Into::into),
                },
            );
            if swallows { Ok(()) } else { left.map(drop) }
        });
        assert_eq!(said.of("DETAIL_GAP").len(), 0, "{:?}", said.lines);
        let done = said.check().done();
        assert_eq!((&done["status"], &done["error"]["retryable"]), (&json!("failed"), &json!(false)));
        let message = done["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("GET https://notes.invalid/notes/2 is not in the recording"), "{message}");
        assert!(message.contains("the nearest is GET https://notes.invalid/notes/1 (line 2)"), "{message}");
    }
}

#[test]
fn the_requests_of_a_replayed_run_count() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    let line = r#"{"request":{"method":"GET","url":"https://notes.invalid/"},"response":{"status":200,"body":"{}"}}"#;
    std::fs::write(&file, format!("{{\"gleaner_exchanges\":1}}\n{line}\n")).unwrap();
    let mut script = replayed(Script::new(start()), &file);
    script.start["run_budget"] = json!({"max_requests": 3});
    let said = script.run(|run| {
        let client = run.client()?;
        let page = |_: Option<&gleaner_sdk::Cursor>| loop {
            client.get("https://notes.invalid/").send()?;
        };
        run.pages("notes", page).map(drop)
    });
    assert_eq!(said.check().done()["status"], "succeeded", "a planned stop: {:?}", said.lines);
    assert_eq!(said.of("DETAIL_GAP")[0]["last_error"], json!({"class": "run_cap_deferred"}));
}

#[test]
fn a_bad_recording_and_one_that_is_there_already_are_refused_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    std::fs::write(&file, "{\"gleaner_exchanges\":1}\n{}\n").unwrap();
    let bad = replayed(Script::new(start()), &file).run(|_| panic!("nothing is collected"));
    let message = bad.check().done()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cannot be replayed: line 2: missing field `request`"), "{message}");
    let taken = recorded(Script::new(start()), &file).run(|_| panic!("nothing is collected"));
    let message = taken.check().done()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the file is not empty"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"gleaner_exchanges\":1}\n{}\n");
}

/// A provider that repeats whatever it is told, in every way of writing it: in headers, in its body, and in where it
/// redirects to.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let ways = ways();
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut length = 0;
            for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
                let (name, value) = line.split_once(':').unwrap();
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap();
                }
            }
            std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
            let (status, location) = match path.starts_with("/away") {
                true => ("302 Found", format!("location: /home?state={}&token=w\r\n", ways[1])),
                false => ("200 OK", String::new()),
            };
            let echoes = ways.iter().filter(|way| way.is_ascii()).enumerate();
            let is_named = path.contains("named");
            let cookie = |number, way: &str| match is_named {
                true => format!("set-cookie: s{number}={way}\r\n"),
                false => String::new(),
            };
            let echoes = echoes.map(|(number, way)| format!("x-echo-{number}: {way}\r\n{}", cookie(number, way)));
            let body = match path.starts_with("/bytes") {
                true => [&b"\xff\xfe"[..], ways.join(" ").as_bytes()].concat(),
                false => json!({"ways": ways, "nested": json!({"ways": ways}).to_string()}).to_string().into_bytes(),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\n{location}{}content-length: {}\r\nconnection: close\r\n\r\n",
                echoes.collect::<String>(),
                body.len()
            );
            drop((&stream).write_all(&[head.as_bytes(), &body].concat()));
        }
    });
    format!("http://{address}")
}

/// The ways of writing it, written out by something that is not under test.
fn ways() -> Vec<String> {
    let script = r#"
import base64, json, sys, urllib.parse
token = sys.argv[1]
b64 = lambda text: base64.b64encode(text.encode()).decode()
print(json.dumps([
    token, urllib.parse.quote(token, safe=""), urllib.parse.quote_plus(token), json.dumps(token)[1:-1],
    json.dumps(token, ensure_ascii=False)[1:-1], token.encode().hex(), token.encode().hex().upper(), b64(token),
    b64("user:" + token), b64("abc:" + token), base64.urlsafe_b64encode(("u:" + token).encode()).decode()]))"#;
    let output = std::process::Command::new("python3").args(["-c", script, SECRET]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asks everything with the secret in it, also under names that give it away; says what the file holds.
fn everything_recorded(manifest: &str, is_named: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = &folder.path().join("exchanges.jsonl");
    let url = echo();
    let mut script = recorded(Script::new(start()), file).set("NOTES_TOKEN", SECRET).set("NOTES_USER", "me");
    script.manifest = manifest.to_owned();
    // A pace from before, so that the test does not wait for its own.
    let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let at = u64::try_from(at).unwrap();
    script.start["state"] = json!({"notes": {"pacing_interval_ms": 20.0, "pacing_recorded_at_ms": at}});
    let said = script.run(|run| {
        let client = run.client()?;
        for way in ways().into_iter().filter(|way| way.is_ascii()) {
            for path in ["away", "home", "bytes"] {
                let request = client.post(format!("{url}/{path}")).query(&[("q", &way)]).header("x-mine", &way);
                let request = match is_named {
                    true => request.query(&[("named", "yes"), ("token", &way)]).header("authorization", &way),
                    false => request,
                };
                drop(request.json(&json!({"say": way})).send()?.bytes()?);
            }
        }
        client.get(format!("{url}/plain/{}", ways()[1])).send()?;
        client.post(format!("{url}/form")).form(&[("said", SECRET)]).send()?;
        Ok(())
    });
    assert_eq!(said.check().done()["status"], "succeeded", "{:?}", said.done());
    std::fs::read_to_string(file).unwrap()
}

fn pieces_in(text: &str) -> Vec<&'static str> {
    PIECES.into_iter().filter(|piece| text.contains(piece)).collect()
}

#[test]
fn a_secret_that_a_provider_echoes_everywhere_is_nowhere_in_the_recording() {
    for is_named in [true, false] {
        let text = everything_recorded(&manifest_with_auth(), is_named);
        let lines = text.lines().filter(|line| !pieces_in(line).is_empty()).collect::<Vec<_>>();
        assert_eq!(lines, Vec::<&str>::new());
        let recording = Recording::parse(&text).unwrap();
        assert!(recording.exchanges.len() > 30, "{}", recording.exchanges.len());
        assert!(text.contains(r#""location":"/home?state=[secret]&token=[secret]""#), "{text}");
    }
    // Nobody told us that it is a secret, and its names do.
    let text = everything_recorded(MANIFEST, true);
    let last = text.lines().last().unwrap();
    assert_eq!(pieces_in(last), Vec::<&str>::new(), "{last}");
}

/// The negative control: what is no credential, and has no name that says so, is found by the same eyes.
#[test]
fn what_is_no_secret_is_found_everywhere_in_the_recording() {
    let text = everything_recorded(MANIFEST, false);
    assert_eq!(pieces_in(&text), PIECES);
}

#[test]
fn a_replayed_run_asks_nobody_for_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.jsonl");
    let url = serve(|_| ("200 OK", r#"{"id":1,"last":true}"#.to_owned()));
    recorded(Script::new(start()), &file).run(|run| two_pages(run, &url)).check();
    let again = replayed(Script::new(start()), &file).run(|run| {
        let reply = run.ask(&gleaner_sdk::Question::code("Enter the code."))?;
        assert_eq!(reply.code(), "placeholder-of-code");
        two_pages(run, &url)
    });
    assert_eq!(again.check().done()["status"], "succeeded", "{again:?}");
    assert!(again.of("INTERACTION").is_empty());
}

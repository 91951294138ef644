//! Scenarios of the specification, through the program: each test is called as its scenario is.
//!
//! On the filter of records, the binding for files, deletions, missing credentials, and the last words of a connector.

use crate::place::{Place, answer, last_line, python};
use crate::terminal::on_a_terminal;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ONE_TWO_THREE: &str =
    "open('start', 'w').write(json.dumps(start))\nfor n in (1, 2, 3): record(n)\nslice(4); done(3); end()";

#[test]
fn connector_emits_a_record_outside_the_declared_resources_set() {
    let place = Place::new();
    let options = ["--resource", "orders=1", "--resource", "orders=2"];
    let answer = place.run(ONE_TWO_THREE, &options);
    assert_eq!(answer.code, 1, "{answer:?}");
    // A violation that names the offending stream and key, on the screen and on record.
    let named = r#"stream "orders", key "3""#;
    assert!(answer.stdout.contains("key_out_of_resources") && answer.stdout.contains(named), "{answer:?}");
    let run = last_line(&place.gleaner(&["runs", "shop", "--json", "--limit", "1"]).stdout);
    assert!(run["violation"].as_str().unwrap().contains(named), "{run}");
    // The run was ended there: no cursor of it counts, and the record is not stored.
    assert_eq!((&run["reason"], &run["committed"]), (&json!("protocol_violation"), &json!([])));
    assert_eq!(place.gleaner(&["records", "orders"]).stdout, "1  {\"id\": 1}\n2  {\"id\": 2}\n");
}

#[test]
fn empty_resources_set_is_a_no_op() {
    let place = Place::new();
    let answer = place.run(ONE_TWO_THREE, &[]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let start = last_line(&place.read("start"));
    assert_eq!(start["scope"]["streams"], json!([{"name": "orders"}]), "absent, not empty");
    assert_eq!(place.gleaner(&["records", "orders"]).stdout.lines().count(), 3);
}

fn requiring(place: &Place, binding: &str) {
    let needs = format!(r#""runtime_requirements":{{"bindings":{{"{binding}":{{"required":true}}}}}},"streams""#);
    place.write("manifest.json", &crate::place::SHOP.replace(r#""streams""#, &needs));
}

#[test]
fn file_based_connector_starts_successfully() {
    let place = Place::new();
    requiring(&place, "filesystem");
    place.write("export.txt", "7\n8\n");
    let script = "assert start['bindings']['filesystem'] == {}\nfor line in open('export.txt'): record(int(line))\nslice(1); done(2); end()";
    let answer = place.run(script, &[]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(place.gleaner(&["records", "orders"]).stdout.lines().count(), 2);
    // What is not there is refused by name, and nothing is started.
    requiring(&place, "telepathy");
    let answer = place.run("open('started', 'w'); done(0); end()", &[]);
    assert!(answer.code == 2 && answer.stderr.contains("\"telepathy\""), "{answer:?}");
    assert!(!place.path("started").exists());
}

#[test]
fn single_account_default_and_a_second_account_have_profiles_of_their_own() {
    for binding in ["browser", "browser_automation", "browser_profile"] {
        let place = Place::new();
        requiring(&place, binding);
        let profile = |answer: &crate::support::Answer| {
            assert_eq!(answer.code, 0, "{answer:?}");
            last_line(&place.read("start"))["bindings"][binding].clone()
        };
        let script = "open('start', 'w').write(json.dumps(start)); done(0); end()";
        let first = profile(&place.run(script, &[]));
        let profiles = place.path("home").join("profiles");
        assert_eq!(first["profile_name"], "shop", "{first}");
        assert_eq!(first["profile_path"], json!(profiles.join("shop")), "{first}");
        assert_eq!(first["profiles_path"], json!(profiles), "{first}");
        let second = profile(&place.run(script, &["--name", "At Work"]));
        assert_eq!(second["profile_name"], "shop--_41t_20_57ork", "{second}");
    }
    // Who does not ask for a browser is told nothing of profiles.
    let place = Place::new();
    assert_eq!(place.run("open('start', 'w').write(json.dumps(start)); done(0); end()", &[]).code, 0);
    let start = place.read("start");
    assert!(start.contains("filesystem") && !start.contains("profile"), "{start}");
}

#[test]
fn mutable_state_deletion() {
    let place = Place::new();
    assert_eq!(place.run(ONE_TWO_THREE, &[]).code, 0);
    let script = "say(type='RECORD', stream='orders', key='2', op='delete'); slice(5); done(1); end()";
    let answer = place.run(script, &["--json"]);
    assert_eq!((answer.code, last_line(&answer.stdout)["records_deleted"].as_u64()), (0, Some(1)), "{answer:?}");
    let records = place.gleaner(&["records", "orders", "--json"]).stdout;
    assert!(records.contains(r#"{"key":"2","data":null,"deleted":true}"#), "whoever reads sees it: {records}");
}

#[test]
fn append_only_streams() {
    let place = Place::new();
    place.write("manifest.json", &crate::place::SHOP.replace("mutable_state", "append_only"));
    let answer = place.run("say(type='RECORD', stream='orders', key='2', op='delete'); done(1); end()", &[]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(
        answer.stdout.contains("delete_on_append_only") && answer.stdout.contains("stream \"orders\""),
        "{answer:?}"
    );
}

/// Asks for what it has not got if somebody can answer, and otherwise names it and ends.
const SIGNS_IN: &str = r#"
token = os.environ.get("SHOP_TOKEN")
if token is None and "interactive" in start["bindings"]:
    say(type="INTERACTION", request_id="q", kind="missing_credentials", message="Set SHOP_TOKEN, from your account's page.", schema={"properties": {"SHOP_TOKEN": {"type": "string"}}})
    token = (json.loads(sys.stdin.readline()).get("data") or {}).get("SHOP_TOKEN")
if token is None:
    done(0, "failed", error={"message": "Missing credentials: SHOP_TOKEN", "code": "missing_credentials", "retryable": False}); end(1)
record(len(token)); slice(1); done(1); end()"#;

#[test]
fn missing_credentials_with_interactive_binding() {
    let place = Place::new();
    place.script(SIGNS_IN);
    let asked = "SHOP_TOKEN (not shown, empty to decline): ";
    // It waits as long as it takes, and goes on with the answer.
    let session = on_a_terminal(&place.run_command(&[]), &[(asked, "fourteen-signs\n")]);
    assert_eq!(session.code, 0, "{session:?}");
    assert!(session.screen.contains("Set SHOP_TOKEN, from your account's page."), "{session:?}");
    assert_eq!(place.gleaner(&["records", "orders"]).stdout, "14  {\"id\": 14}\n");
    let session = on_a_terminal(&place.run_command(&[]), &[(asked, "\n")]);
    assert_eq!(session.code, 4, "declined: {session:?}");
}

#[test]
fn missing_credentials_without_interactive_binding() {
    let place = Place::new();
    let began = Instant::now();
    let answer = place.run(SIGNS_IN, &[]);
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stdout.contains("Missing credentials: SHOP_TOKEN"), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "nobody was waited for");
    place.script(SIGNS_IN);
    let answer = crate::place::answer(place.run_command(&[]).env("SHOP_TOKEN", "four"));
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// A connector that ends right after its last line: some megabytes are still in the pipe then.
#[test]
fn final_done_message_on_a_pipe() {
    let place = Place::new();
    let script = r#"
text = "x" * 1000
for n in range(3000): sys.stdout.write(json.dumps({"type": "RECORD", "stream": "orders", "key": str(n), "data": {"id": n, "text": text}, "emitted_at": "2031-01-01T00:00:00Z"}) + "\n")
sys.stdout.write(json.dumps({"type": "DONE", "status": "succeeded", "records_emitted": 3000}) + "\n")
sys.stdout.flush()
os._exit(0)"#;
    let answer = place.run(script, &["--json"]);
    let end = last_line(&answer.stdout);
    assert_eq!((answer.code, end["records_accepted"].as_u64()), (0, Some(3000)), "{answer:?}");
    // One whose last line is cut off has not said DONE, and it is said which of the two it was.
    let cut = "record(1)\nsys.stdout.write('{\"type\": \"DONE\", \"status\": \"succ'); sys.stdout.flush(); os._exit(0)";
    let answer = place.run(cut, &[]);
    assert!(answer.code == 1 && answer.stdout.contains("incomplete_line"), "{answer:?}");
}

/// A connector of ours whose reader is there and reads nothing, or is gone while its input stays open.
const NOBODY_READS: &str = r#"
import os, subprocess, sys, time, fcntl
theirs, ours = os.pipe()
if sys.argv[1] == "full":
    os.set_blocking(ours, False)
    try:
        while True: os.write(ours, b"x" * 4096)
    except BlockingIOError: pass
    os.set_blocking(ours, True)
else:
    os.close(theirs)
began = time.monotonic()
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=ours, stderr=subprocess.DEVNULL)
child.stdin.write(b'{"type":"START"}\n'); child.stdin.flush()
code = child.wait(20)
print(code, time.monotonic() - began)
"#;

#[test]
fn safety_timeout() {
    for reader in ["full", "gone"] {
        let program = env!("CARGO_BIN_EXE_gleaner");
        let mut command = Command::new(python());
        command.args(["-c", NOBODY_READS, reader, program, "connector", "demo"]).stdin(Stdio::null());
        let answer = answer(&mut command);
        let (code, seconds) = answer.stdout.trim().split_once(' ').unwrap_or_else(|| panic!("{answer:?}"));
        assert_eq!(code, "1", "{reader}");
        // Three by the contract, and some for the start on a machine with other work.
        assert!(seconds.parse::<f64>().unwrap() < 5.0, "{reader}: {seconds}");
    }
}

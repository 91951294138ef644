//! What a service needs of its owner, and how it says so: once.

use super::{NAMES, Served};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const REFUSED: &str = r#"done(0, "failed", error={"message": "no", "retryable": False, "code": "credentials_refused",
    "recovery_hint": "refresh_credentials"}); end(1)"#;
const TOLD: &str = r#"printf '%s|%s|%s\n' "$GLEANER_CONNECTION" "$GLEANER_EVENT" "$GLEANER_MESSAGE" >> told"#;

#[test]
fn the_owner_is_told_once_also_after_a_restart() {
    let mut served = Served::new();
    served.add(NAMES[0], REFUSED);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, posts) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let (mut text, mut buffer) = (String::new(), [0; 4096]);
            while !text.contains("\"message\"") {
                let read = stream.read(&mut buffer).unwrap_or(0);
                if read == 0 {
                    break;
                }
                text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            let _sent = stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n");
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    let options = ["--notify-command", TOLD, "--notify-webhook", &hook];
    served.serve(&options);
    served.wait("the owner is told", || served.place.read("told").lines().count() == 1);
    let post = posts.recv_timeout(super::PATIENCE).unwrap();
    assert!(post.starts_with("POST /hook ") && post.contains("held credentials_refused"), "{post}");
    let told = served.place.read("told");
    assert!(told.starts_with(&format!("{}|held credentials_refused|", NAMES[0])), "{told}");
    assert!(told.contains(&format!("gleaner check {} --sign-in", NAMES[0])), "{told}");
    served.kill();
    served.serve(&options);
    served.add(NAMES[1], super::TWO);
    served.wait("it serves again", || served.reasons(NAMES[1]) == ["succeeded"]);
    assert_eq!(served.reasons(NAMES[0]), ["credentials_refused"], "trying again helps nobody");
    assert_eq!(served.place.read("told").lines().count(), 1);
    assert!(posts.try_recv().is_err());
    // When it is over and comes again, the owner is told again.
    served.add(NAMES[0], super::TWO);
    assert_eq!(served.place.gleaner(&["run", NAMES[0], "--quiet"]).code, 0);
    served.wait("it is over", || {
        let notices = served.place.gleaner(&["query", "SELECT count(*) AS n FROM notices", "--json"]);
        crate::place::last_line(&notices.stdout)["n"] == 0
    });
    served.add(NAMES[0], REFUSED);
    assert_eq!(served.place.gleaner(&["run", NAMES[0], "--quiet"]).code, 12);
    served.wait("the owner is told again", || served.place.read("told").lines().count() == 2);
}

#[test]
fn a_question_waits_for_the_owner_and_takes_nobodys_place() {
    let mut served = Served::new();
    let asks = r#"
say(type="INTERACTION", request_id="q", kind="otp", message="The code?", schema={"type": "object", "properties": {"code": {"type": "string"}}})
answer = json.loads(sys.stdin.readline())
assert answer["data"]["code"] == "1234", answer["status"]
record(7); slice(1); done(1); end()"#;
    served.add(NAMES[0], asks);
    served.serve(&["--max-runs", "1", "--notify-command", TOLD]);
    served.wait("it asks", || served.place.gleaner(&["answer"]).stdout.contains("The code?"));
    served.wait("the owner is told", || served.place.read("told").contains("|question "));
    assert!(!served.place.read("told").contains("The code?"), "what a connector says is not passed on");
    // The one place is free meanwhile.
    served.add(NAMES[1], super::TWO);
    served.wait("another runs", || served.reasons(NAMES[1]) == ["succeeded"]);
    let id = served.place.gleaner(&["answer"]).stdout.split_whitespace().next().unwrap().to_owned();
    let mut command = served.place.command(&["answer", &id, "--stdin"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"code\": \"1234\"}").unwrap();
    assert!(child.wait().unwrap().success());
    served.wait("it went on", || served.reasons(NAMES[0]) == ["succeeded"]);
}

#[test]
fn another_version_of_the_connector_is_tried_at_once() {
    let mut served = Served::new();
    let needs_upgrade = r#"done(0, "failed", error={"message": "changed", "retryable": False,
        "recovery_hint": "retry_on_connector_upgrade"}); end(1)"#;
    served.add(NAMES[0], needs_upgrade);
    served.serve(&[]);
    served.wait("it fails", || served.reasons(NAMES[0]) == ["connector_failed"]);
    let next = served.next(NAMES[0]);
    assert_eq!((&next["code"], &next["next_at"]), (&"retry_on_connector_upgrade".into(), &serde_json::Value::Null));
    assert!(next["to_do"].as_str().unwrap().contains("Update the connector"), "{next}");
    served.place.write("manifest.json", &super::MANIFEST.replace("VERSION", "2"));
    served.add(NAMES[0], super::TWO);
    served.wait("it is tried", || served.reasons(NAMES[0]) == ["succeeded", "connector_failed"]);
}

/// Gives a gap up, as five tries would, or eight of an earlier version.
fn give_up(served: &Served, reason: &str) {
    let script = format!(
        "import sqlite3; c = sqlite3.connect({:?}); c.execute(\"UPDATE gaps SET state = 'terminal', terminal_reason = '{reason}'\"); c.execute('UPDATE streams SET gaps_pending = 0, gaps_terminal = 1'); c.commit()",
        served.place.home().join("store.db").display().to_string()
    );
    let changed = std::process::Command::new(crate::place::python()).args(["-c", &script]).output().unwrap();
    assert!(changed.status.success(), "{changed:?}");
}

/// Writes down which gaps it is given, and leaves one.
const GIVEN: &str = r#"
open("given", "a").write(str(len(start["detail_gaps"])) + "\n")
if not start["detail_gaps"]: gap("k")
for one in start["detail_gaps"]: gap("k", gap_id=one["gap_id"], lease_id=one["lease_id"])
done(0); end()"#;

#[test]
fn gaps_that_were_given_up_come_back_with_what_they_need() {
    let served = Served::new();
    let with_token = super::MANIFEST
        .replace(r#""capabilities":{"#, r#""capabilities":{"auth":{"kind":"env","required":["SHOP_TOKEN"]},"#);
    let manifest = |version: &str| served.place.write("manifest.json", &with_token.replace("VERSION", version));
    let run = |token: &str| {
        let mut command = served.place.command(&["run", NAMES[0], "--quiet"]);
        assert_eq!(crate::place::answer(command.env("SHOP_TOKEN", token)).code, 3);
        served.place.read("given").lines().last().unwrap().to_owned()
    };
    manifest("1");
    served.add(NAMES[0], GIVEN);
    assert_eq!(run("token-one"), "0");
    give_up(&served, "quarantined");
    assert_eq!(run("token-two"), "1", "an earlier version gave it up for errors that may pass");
    assert_eq!(run("token-two"), "0", "it was tried, and waits");
    manifest("2");
    served.add(NAMES[0], GIVEN);
    assert_eq!(run("token-two"), "1", "another version may");
    give_up(&served, "auth_failure");
    assert_eq!(run("token-two"), "0");
    assert_eq!(run("token-one"), "1", "another credential may");
    // And any, when its owner says so.
    give_up(&served, "not_found");
    let gaps = served.place.gleaner(&["gaps", NAMES[0], "--json"]).stdout;
    let id = crate::place::last_line(&gaps)["gap_id"].as_str().unwrap().to_owned();
    let home = served.place.home();
    let program = gleaner_app::Program { executable: None, check_config: |_| Ok(()) };
    gleaner_app::App::new(home.to_owned(), program).retry_gap(NAMES[0], &id).unwrap();
    assert_eq!(run("token-one"), "1");
    assert_eq!(served.place.gleaner(&["verify"]).code, 0);
}

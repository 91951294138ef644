//! A run that asks for less than all loses nothing for the runs after it, whatever its connector says (issue 18, point 1).
//!
//! The connector here does what most do: it walks its list, sends what was asked for, and moves its cursor past
//! everything that it walked over. Messages are found only while their conversation is new.

use crate::place::{Place, last_line};
use serde_json::{Value, json};

const CONVERSATIONS: &str =
    r#"{"name":"conversations","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"}"#;

/// How a manifest may speak of messages: not at all, as details of nobody knows what, or as what they are.
const MESSAGES: [&str; 4] = [
    "",
    r#","coverage_strategy":"parent_detail_accounting""#,
    r#","coverage_strategy":"checkpoint_window","state_stream":"conversations""#,
    r#","coverage_strategy":"checkpoint_window""#,
];

const CONNECTOR: &str = r#"
asked = {stream["name"]: stream for stream in start["scope"]["streams"]}
first = ((start["state"] or {}).get("conversations") or {"n": 0})["n"]
sent = 0
def wants(stream, key, at):
    if stream not in asked: return False
    scope = asked[stream]
    time = scope.get("time_range") or {}
    return (not scope.get("resources") or key in scope["resources"]) \
        and at >= time.get("since", "") and at < time.get("until", "9")
def move(n):
    if "conversations" in asked: say(type="STATE", stream="conversations", cursor={"n": n}, slice=n % 10 == 0)
for n in range(first, 30):
    at = "2030-01-%02dT00:00:00Z" % (n + 1)
    for stream in ("conversations", "messages"):
        if wants(stream, str(n), at):
            say(type="RECORD", stream=stream, key=str(n), data={"id": str(n), "at": at}, emitted_at=at)
            sent += 1
    move(n + 1)
move(30)
done(sent); end()"#;

fn manifest(messages: Option<&str>) -> String {
    let messages = messages.map_or_else(String::new, |more| {
        format!(
            r#",{{"name":"messages","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"{more}}}"#
        )
    });
    format!(
        r#"{{"connector_id":"chat","connector_key":"chat","version":"1","display_name":"Chat","streams":[{CONVERSATIONS}{messages}]}}"#
    )
}

struct Chat(Place);

impl Chat {
    fn new(messages: Option<&str>) -> Self {
        let place = Place::new();
        place.write("manifest.json", &manifest(messages));
        Self(place)
    }

    fn run(&self, options: &[&str]) -> String {
        let answer = self.0.run(CONNECTOR, options);
        assert_eq!(answer.code, 0, "{options:?}: {answer:?}");
        answer.stdout
    }

    /// How many conversations and messages are stored.
    fn stored(&self) -> (u64, u64) {
        let count = |stream: &str| {
            let sql = format!(
                "SELECT count(*) AS n FROM records r JOIN streams s ON s.id = r.stream WHERE s.name = '{stream}'"
            );
            let answer = self.0.gleaner(&["query", &sql, "--json"]);
            last_line(&answer.stdout)["n"].as_u64().unwrap_or_else(|| panic!("{answer:?}"))
        };
        (count("conversations"), count("messages"))
    }

    fn tracks(&self) -> Vec<String> {
        let lines = self.0.gleaner(&["runs", "chat", "--json"]).stdout;
        let track = |line: &str| last_line(line)["track"].as_str().unwrap_or_default().to_owned();
        let mut tracks = lines.lines().map(track).collect::<Vec<_>>();
        tracks.reverse();
        tracks
    }
}

/// Narrow runs first, then one ordinary run: everything is there.
fn check(narrow: &[&[&str]]) {
    for messages in MESSAGES {
        let chat = Chat::new(Some(messages));
        for options in narrow {
            let said = chat.run(options);
            assert!(said.contains("the steady cursor is not moved"), "{messages}: {options:?}: {said}");
        }
        chat.run(&[]);
        assert_eq!(chat.stored(), (30, 30), "{messages}: {narrow:?}");
        let mut tracks = chat.tracks();
        assert_eq!(tracks.pop().as_deref(), Some("steady"));
        assert!(tracks.iter().all(|track| track.starts_with("scope:")), "{tracks:?}");
    }
}

#[test]
fn one_stream_and_then_all_brings_the_messages() {
    check(&[&["--stream", "conversations"]]);
}

#[test]
fn one_record_and_then_all_brings_thirty_of_thirty() {
    check(&[&["--resource", "conversations=3"], &["--resource", "conversations=3", "--resource", "messages=3"]]);
}

#[test]
fn what_is_new_and_then_all_brings_thirty_of_thirty() {
    check(&[&["--since", "2030-01-21"], &["--since", "2030-01-21", "--full-refresh"]]);
}

#[test]
fn catching_up_with_a_scope_of_its_own_moves_neither_track() {
    check(&[&["--catch-up", "--since", "2030-01-21"], &["--catch-up", "--stream", "conversations"]]);
}

#[test]
fn a_scope_goes_on_where_the_same_scope_ended() {
    let chat = Chat::new(Some(MESSAGES[1]));
    let keeping = format!("open('start', 'w').write(json.dumps(start)){CONNECTOR}");
    let start = |options: &[&str]| {
        assert_eq!(chat.0.run(&keeping, options).code, 0);
        serde_json::from_str::<Value>(&chat.0.read("start")).unwrap()["state"].clone()
    };
    assert_eq!(start(&["--resource", "messages=3"]), Value::Null);
    assert_eq!(start(&["--resource", "messages=3"]), json!({"conversations": {"n": 30}}), "its own");
    assert_eq!(start(&["--resource", "messages=4"]), Value::Null, "another scope");
    assert_eq!(start(&[]), Value::Null, "all of it");
    assert_eq!(start(&[]), json!({"conversations": {"n": 30}}));
    assert_eq!(start(&["--resource", "messages=4"]), json!({"conversations": {"n": 30}}));
    assert_eq!(chat.0.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_stream_that_a_new_version_of_the_connector_has_comes_in_whole() {
    for messages in MESSAGES {
        let chat = Chat::new(None);
        chat.run(&[]);
        assert_eq!(chat.stored(), (30, 0));
        chat.0.write("manifest.json", &manifest(Some(messages)));
        chat.run(&[]);
        assert_eq!(chat.stored(), (30, 30), "{messages}");
        assert_eq!(chat.0.gleaner(&["verify"]).code, 0);
    }
}

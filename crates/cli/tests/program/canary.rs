//! A credential whose connector tells it to everyone, in every way of writing it: it is found nowhere.
//!
//! What is for people (messages, errors, diagnostics, what goes to stderr) is masked. What is kept as it came (records,
//! cursors, locators, keys) must not hold it: that is a violation, and the run ends before anything is stored.

use crate::place::{Place, SHOP, answer, files_below, last_line};
use crate::support::Answer;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::process::Command;

/// With what URLs, JSON and base64 write differently.
const SECRET: &str = "c4n4ry/+ token\"é";
/// Pieces of it that no way of writing it can do without: as it is, in hex, and in base64 at its three alignments.
const PIECES: [&str; 6] = ["c4n4ry", "63346e347279", "63346E347279", "YzRuNHJ5", "M0bjRyeS", "jNG40cnk"];

/// The ways of writing it, for connectors.
const WAYS: &str = r#"
import base64, urllib.parse
token = os.environ["SHOP_TOKEN"]
b64 = lambda text: base64.b64encode(text.encode()).decode()
ways = {
    "raw": token, "url": urllib.parse.quote(token, safe=""), "form": urllib.parse.quote_plus(token),
    "json": json.dumps(token)[1:-1], "json_utf8": json.dumps(token, ensure_ascii=False)[1:-1],
    "hex": token.encode().hex(), "upper_hex": token.encode().hex().upper(), "base64": b64(token),
    "basic": b64("user:" + token), "basic_2": b64("abc:" + token), "base64_url": base64.urlsafe_b64encode(("u:" + token).encode()).decode(),
}
"#;

/// Tells it in everything that is for people.
const TALKATIVE: &str = r#"
record(1)
for way in ways.values():
    print("debug", way, file=sys.stderr)
    say(type="PROGRESS", message="using " + way, stream=way)
    say(type="PROGRESS", message="waits", waiting={"object": "waiting", "until": "2099-01-01T00:00:00Z", "reason": "t" + ways["hex"]})
    say(type="SKIP_RESULT", stream=way, reason=way, message=way, diagnostics={"url": "https://shop/?t=" + way}, resource_ids=[way])
    say(type="ASSISTANCE", assistance_request_id=way, message=way, owner_action="none", progress_posture="running", response_contract="none", attachments=[{"url": way}])
    say(type="ASSISTANCE_STATUS", assistance_request_id=way, status="resolved", message=way)
    gap("7", reason="not_found", last_error={"class": way, "url": "https://shop/?t=" + way}, detail={"header": way})
    say(type="INTERACTION", request_id="q", kind="otp", message="code for " + way, stream=way, schema={"type": "object", "properties": {"code": {"type": "string", "description": way}}})
    assert json.loads(sys.stdin.readline())["status"] == "cancelled"
slice(1)
done(1, "failed", error={"message": " ".join(ways.values()), "code": "e_" + ways["hex"], "retryable": False}); end(1)"#;

/// What people could see or find: all that was printed, and every byte below the data root.
fn everything(place: &Place, answers: &[Answer]) -> Vec<u8> {
    let mut seen = Vec::new();
    for answer in answers {
        seen.extend([answer.stdout.as_bytes(), answer.stderr.as_bytes()].concat());
    }
    let looks: [&[&str]; 19] = [
        &["status"],
        &["status", "--json"],
        &["runs", "shop"],
        &["runs", "shop", "--json"],
        &["gaps", "shop"],
        &["gaps", "shop", "--json"],
        &["records", "orders"],
        &["records", "orders", "--json"],
        &["records", "orders", "--since", "0", "--json"],
        &["export", "shop"],
        &["export", "shop.orders", "--format", "csv"],
        &["query", "--json", "SELECT * FROM versions"],
        &["query", "--json", "SELECT * FROM events"],
        &["coverage", "shop", "--json"],
        &["why", "shop"],
        &["why", "shop", "--json"],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["verify", "--json"],
    ];
    for look in looks {
        let answer = place.gleaner(look);
        seen.extend([answer.stdout.as_bytes(), answer.stderr.as_bytes()].concat());
    }
    let files = files_below(&place.home());
    assert!(files.iter().any(|file| file.ends_with("store.db")), "{files:?}");
    for file in files {
        seen.extend(fs::read(file).unwrap());
    }
    seen
}

fn pieces_in(seen: &[u8]) -> Vec<&'static str> {
    let is_in = |piece: &&str| seen.windows(piece.len()).any(|window| window == piece.as_bytes());
    PIECES.into_iter().filter(is_in).collect()
}

fn assert_nowhere(place: &Place, answers: &[Answer], what: &str) {
    let seen = everything(place, answers);
    let found = pieces_in(&seen);
    let around = found.first().and_then(|piece| {
        let at = seen.windows(piece.len()).position(|window| window == piece.as_bytes())?;
        Some(String::from_utf8_lossy(&seen[at.saturating_sub(80)..(at + 80).min(seen.len())]).into_owned())
    });
    assert!(found.is_empty(), "{what}: {found:?} is in {around:?}");
}

/// Where the credential comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Vault,
    Variable,
    File,
    Command,
}

fn give(place: &Place, source: Source, command: &mut Command) {
    match source {
        Source::Vault => {
            let home = place.home();
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&home).unwrap();
            let vault = gleaner_vault::Vault::open(&home).unwrap();
            vault.set("shop", "SHOP_TOKEN", gleaner_vault::Secret::new(SECRET.to_owned())).unwrap();
        }
        Source::Variable => {
            command.env("SHOP_TOKEN", SECRET);
        }
        Source::File => {
            place.write("token", SECRET);
            fs::set_permissions(place.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
            command.env("SHOP_TOKEN_FILE", place.path("token"));
        }
        Source::Command => {
            place.write("token", SECRET);
            command.env("SHOP_TOKEN_COMMAND", format!("cat '{}'", place.path("token").display()));
        }
    }
}

fn run(place: &Place, source: Source, script: &str, options: &[&str]) -> Answer {
    place.script(&format!("{WAYS}{script}"));
    let mut command = place.run_command(options);
    give(place, source, &mut command);
    answer(&mut without_terminal(&command))
}

/// In a session of its own: a question is declined, because nobody is there to answer it.
fn without_terminal(command: &Command) -> Command {
    let mut alone = Command::new("setsid");
    alone.arg("--wait").arg(command.get_program()).args(command.get_args());
    alone.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    alone.current_dir(command.get_current_dir().unwrap()).stdin(std::process::Stdio::null());
    alone
}

fn tells_people(source: Source) {
    let place = Place::new();
    let options = ["--interact", "prompt"];
    let shown = run(&place, source, TALKATIVE, &options);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.stdout.contains("[secret]"), "{shown:?}");
    let json = run(&place, source, TALKATIVE, &[&options[..], &["--json", "--now"]].concat());
    assert_eq!(last_line(&json.stdout)["reason"], "connector_failed", "{json:?}");
    assert!(json.stdout.contains("using [secret]") && json.stdout.contains("code for [secret]"), "{json:?}");
    assert_nowhere(&place, &[shown, json], &format!("{source:?}"));
    assert_eq!(place.gleaner(&["records", "orders"]).stdout.lines().count(), 1);
}

#[test]
fn a_token_of_the_vault_is_told_to_nobody() {
    tells_people(Source::Vault);
}

#[test]
fn a_token_of_a_variable_is_told_to_nobody() {
    tells_people(Source::Variable);
}

#[test]
fn a_token_of_a_file_is_told_to_nobody() {
    tells_people(Source::File);
}

#[test]
fn a_token_of_a_command_is_told_to_nobody() {
    tells_people(Source::Command);
}

/// Everything that is kept as it came.
const KEPT: [(&str, &str); 11] = [
    ("data", "record(1, note='see ' + way)"),
    ("key", "say(type='RECORD', stream='orders', key=way, data={'id': 1}, emitted_at='2031-01-01T00:00:00Z')"),
    ("key", "say(type='RECORD', stream='orders', key=['a', way], data={'id': 1}, emitted_at='2031-01-01T00:00:00Z')"),
    ("key", "say(type='RECORD', stream='orders', key=way, op='delete')"),
    ("emitted_at", "say(type='RECORD', stream='orders', key='1', data={'id': 1}, emitted_at=way)"),
    ("cursor", "say(type='STATE', stream='orders', cursor={'next': way}, slice=True)"),
    ("detail_locator", "gap('7', detail_locator={'url': 'https://shop/?t=' + way})"),
    ("list_cursor", "gap('7', list_cursor={'page': way})"),
    ("record_key", "gap(way)"),
    ("parent_stream", "gap('7', parent_stream=way)"),
    ("request_id", "say(type='INTERACTION', request_id=way, kind='otp', message='?')"),
];

fn is_a_violation(source: Source, way: &str, field: &str, script: &str) {
    let place = Place::new();
    let script = format!("way = ways['{way}']\n{script}\nslice(1); done(1); end()");
    let answer = run(&place, source, &script, &["--interact", "prompt", "--json"]);
    assert_eq!(
        (answer.code, last_line(&answer.stdout)["reason"].as_str()),
        (1, Some("protocol_violation")),
        "{way}: {answer:?}"
    );
    let runs = place.gleaner(&["runs", "shop"]).stdout;
    assert!(runs.contains(&format!("credential_in_output at line 1, byte 0, field {field}")), "{way}: {runs}");
    assert_nowhere(&place, &[answer], &format!("{way} in {field}"));
    assert_eq!(place.gleaner(&["records", "orders"]).stdout, "", "nothing of it was stored");
    let gaps = place.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.starts_with("no gap is on record, but no run has finished yet: "), "{gaps}");
}

#[test]
fn a_token_in_anything_that_is_kept_ends_the_run() {
    for (field, script) in KEPT {
        is_a_violation(Source::Vault, "raw", field, script);
    }
}

#[test]
fn a_token_in_a_record_is_found_in_every_way_of_writing_it() {
    for way in ["url", "form", "json", "json_utf8", "hex", "upper_hex", "base64", "basic", "basic_2", "base64_url"] {
        is_a_violation(Source::Variable, way, KEPT[0].0, KEPT[0].1);
    }
}

/// A violation names stream and key, and those are the connector's words too.
#[test]
fn a_violation_does_not_repeat_the_token() {
    let place = Place::new();
    let stream = "say(type='STATE', stream=token, cursor={'next': 1}); done(0); end()";
    let first = run(&place, Source::Variable, stream, &[]);
    assert!(first.stdout.contains("stream_out_of_scope") && first.stdout.contains("[secret]"), "{first:?}");
    let key = "say(type='RECORD', stream='orders', key=token, data={'id': 1}, emitted_at='2031-01-01T00:00:00Z'); done(1); end()";
    let second = run(&place, Source::Variable, key, &["--resource", "orders=1"]);
    assert_eq!(second.code, 1, "{second:?}");
    let report = "say(type='DETAIL_COVERAGE', reference_only=True, stream='orders', state_stream='orders', required_keys=[token], hydrated_keys=[])\nslice(1); done(0); end()";
    let third = run(&place, Source::Variable, report, &[]);
    assert_eq!(third.code, 1, "{third:?}");
    assert_nowhere(&place, &[first, second, third], "violations");
}

/// The negative control: what is no credential is not masked, and the same eyes find every piece of it, both in what is
/// printed and in what is stored.
#[test]
fn what_is_no_credential_is_found_everywhere() {
    let place = Place::new();
    let declared = r#""runtime_requirements":{"environment_variables":["SHOP_TOKEN"]},"streams""#;
    let without_auth = SHOP.replace(r#""streams""#, declared).replace("capabilities", "x_capabilities");
    place.write("manifest.json", &without_auth);
    let shown = run(&place, Source::Variable, TALKATIVE, &["--interact", "prompt", "--json"]);
    assert_eq!(pieces_in(shown.stdout.as_bytes()), PIECES);
    let stored = files_below(&place.home()).into_iter().flat_map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
    assert_eq!(pieces_in(&stored), PIECES);
    let record = run(&place, Source::Variable, "record(1, note=token); slice(1); done(1); end()", &[]);
    assert_eq!(record.code, 3, "anybody else's secret is data: {record:?}");
    assert_eq!(pieces_in(place.gleaner(&["records", "orders"]).stdout.as_bytes()), ["c4n4ry"]);
}

//! `add`, `run`, `status`, `runs`, `gaps`, `records` and `verify`, with real connector processes and a data
//! root of their own. Connectors are small Python programs.

use crate::support::{Answer, folder};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id",
     "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"total":{"type":"number"}}}}],
    "capabilities":{"auth":{"kind":"env","required":["SHOP_TOKEN"]}}}"#;

const PRELUDE: &str = r#"
import sys, json, os, time, signal
def say(**m): sys.stdout.write(json.dumps(m) + "\n"); sys.stdout.flush()
def record(n, **more): say(type="RECORD", stream="orders", key=str(n), data={"id": n, **more}, emitted_at="2031-01-01T00:00:00Z")
def slice(n): say(type="STATE", stream="orders", cursor={"next": n}, slice=True)
def done(n, status="succeeded", **more): say(type="DONE", status=status, records_emitted=n, **more)
def end(code=0): sys.stdin.read(); sys.exit(code)
start = json.loads(sys.stdin.readline())
"#;

/// A data root of its own, and a connector whose script each test writes.
pub(crate) struct Shop {
    pub(crate) root: PathBuf,
}

impl Shop {
    pub(crate) fn new(test: &str) -> Self {
        let root = folder(test);
        fs::remove_dir_all(&root).unwrap();
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("manifest.json"), MANIFEST).unwrap();
        Self { root }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(arguments).env("GLEANER_HOME", self.root.join("home")).stdin(Stdio::null());
        command.current_dir(&self.root);
        command
    }

    pub(crate) fn gleaner(&self, arguments: &[&str]) -> Answer {
        let output = self.command(arguments).output().unwrap();
        Answer {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn script(&self, script: &str) {
        fs::write(self.root.join("shop.py"), format!("{PRELUDE}{script}")).unwrap();
    }

    /// Runs a connector that was not added, with these options.
    pub(crate) fn run(&self, script: &str, options: &[&str]) -> Answer {
        self.script(script);
        let mut arguments = vec!["run", "--manifest", "manifest.json"];
        arguments.extend(options);
        arguments.extend(["--", "python3", "-u", "shop.py"]);
        self.gleaner(&arguments)
    }

    pub(crate) fn start(&self, script: &str) -> Child {
        self.script(script);
        let mut command =
            self.command(&["run", "--manifest", "manifest.json", "--json", "--", "python3", "-u", "shop.py"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }
}

pub(crate) fn last_line(answer: &Answer) -> Value {
    serde_json::from_str(answer.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_run_stores_records_and_the_next_one_goes_on() {
    let shop = Shop::new("run-goes-on");
    let first = shop.run("for n in range(3): record(n, total=1.50)\nslice(3); done(3); end()", &["--json"]);
    assert_eq!(first.code, 0, "{first:?}");
    let end = last_line(&first);
    assert_eq!(end["message_type"], "run_finished");
    assert_eq!((end["status"].as_str(), end["records_accepted"].as_u64()), (Some("succeeded"), Some(3)));
    assert_eq!(end["checkpoints_committed"], serde_json::json!(["orders"]));
    let second = shop.run("assert start['state'] == {'orders': {'next': 3}}; record(3); slice(4); done(1); end()", &[]);
    assert_eq!(second.code, 0, "{second:?}");
    let records = shop.gleaner(&["records", "orders", "--json"]);
    assert_eq!(records.stdout.lines().count(), 4);
    assert_eq!(records.stdout.lines().next(), Some(r#"{"key":"0","data":{"id": 0, "total": 1.5},"deleted":false}"#));
    assert!(shop.gleaner(&["status"]).stdout.starts_with("shop  healthy\n  4 records"));
    assert_eq!(shop.gleaner(&["runs", "shop", "--json"]).stdout.lines().count(), 2);
    let verify = shop.gleaner(&["verify"]);
    assert_eq!((verify.code, verify.stdout.starts_with("the store is whole: 4 versions")), (0, true), "{verify:?}");
}

#[test]
fn what_is_missing_is_said_with_exit_3() {
    let shop = Shop::new("exit-3");
    let script = r#"
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", record_key="7", reason="not_found", last_error={"class":"http","http_status":404})
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", record_key="8", reason="retry_exhausted", last_error={"class":"run_cap_deferred"})
say(type="RECORD", stream="orders", key="9", data={"id": "nine"}, emitted_at="2031-01-01T00:00:00Z")
slice(1); done(1); end()"#;
    let answer = shop.run(script, &["--json"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert_eq!(
        (last_line(&answer)["gaps_open"].as_u64(), last_line(&answer)["records_rejected"].as_u64()),
        (Some(2), Some(1))
    );
    let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.contains("The record was listed but not found."), "{gaps}");
    assert!(gaps.contains("This run saved a batch and stopped within its own budget."), "{gaps}");
    assert!(gaps.contains("orders 9  in quarantine") && gaps.contains("/id"), "{gaps}");
    let kinds = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
    assert_eq!(
        kinds.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect::<Vec<_>>(),
        ["gap", "gap", "quarantine"]
    );
    assert_eq!(shop.gleaner(&["records", "orders"]).stdout, "", "what is rejected is not collected");
}

#[test]
fn a_provider_that_pushed_back_is_left_alone_until_the_owner_insists() {
    let shop = Shop::new("exit-5");
    let limited = r#"done(0, "failed", error={"message": "shop_rate_limited", "retryable": True}); end(1)"#;
    let answer = shop.run(limited, &[]);
    assert_eq!(answer.code, 5, "{answer:?}");
    let again = shop.run("done(0); end()", &[]);
    assert_eq!(again.code, 5, "{again:?}");
    assert!(
        again.stderr.contains("shop is in a cooldown until") && again.stderr.contains("hint: wait, or say --now"),
        "{again:?}"
    );
    assert_eq!(shop.run("done(0); end()", &["--now"]).code, 0);
}

#[test]
fn missing_and_refused_credentials_have_codes_of_their_own() {
    let shop = Shop::new("exit-4-12");
    let missing = r#"done(0, "failed", error={"message": "shop_credentials_missing", "retryable": False}); end(1)"#;
    assert_eq!(shop.run(missing, &[]).code, 4);
    let refused =
        r#"done(0, "failed", error={"message": "no", "retryable": False, "code": "shop_auth_failed"}); end(1)"#;
    let answer = shop.run(refused, &[]);
    assert_eq!(answer.code, 12, "{answer:?}");
    assert!(shop.gleaner(&["status"]).stdout.contains("The credentials of this connection were refused: "));
}

#[test]
fn a_token_is_handed_to_the_connector_and_is_nowhere_else() {
    let shop = Shop::new("canary");
    shop.script(
        r#"
token = os.environ["SHOP_TOKEN"]
import base64, urllib.parse
print("debug", token, base64.b64encode(("user:" + token).encode()).decode(), token.encode().hex(), file=sys.stderr)
say(type="PROGRESS", message="token " + token + " " + urllib.parse.quote(token))
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", record_key="7", reason="not_found", last_error={"class":"http","url":"https://shop/?t=" + token})
done(0, "failed", error={"message": "bad " + token, "retryable": False}); end(1)"#,
    );
    let token = "c4n4ry/+ token\"é";
    let mut command = shop.command(&["run", "--manifest", "manifest.json", "--json", "--", "python3", "-u", "shop.py"]);
    let output = command.env("SHOP_TOKEN", token).output().unwrap();
    let mut shown = output.stdout;
    shown.extend(output.stderr);
    shown.extend(shop.gleaner(&["runs", "shop"]).stdout.into_bytes());
    shown.extend(shop.gleaner(&["gaps", "shop", "--json"]).stdout.into_bytes());
    let home = shop.root.join("home");
    for entry in fs::read_dir(&home).unwrap().chain(fs::read_dir(home.join("secrets")).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            shown.extend(fs::read(path).unwrap());
        }
    }
    let is_shown = |part: &str| shown.windows(part.len()).any(|window| window == part.as_bytes());
    // As it is, and pieces of it as they stand in URLs, JSON, hex and base64.
    for part in [token, "c4n4ry", "c4n4ry%2F%2B", "63346e347279", "YzRuNHJ5", "M0bjRyeS", "jNG40cnk"] {
        assert!(!is_shown(part), "{part}");
    }
    assert!(is_shown("[secret]"));
}

#[test]
fn a_second_run_is_told_who_is_at_work_with_exit_11() {
    let shop = Shop::new("exit-11");
    let mut first = shop.start("record(1); slice(2)\nwhile True: time.sleep(1)");
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"saved\""));
    let second = shop.run("done(0); end()", &["--json"]);
    assert_eq!(second.code, 11, "{second:?}");
    assert!(second.stderr.contains(&format!("process {}", first.id())), "{second:?}");
    let end = last_line(&second);
    assert_eq!((&end["message_type"], &end["status"]), (&"run_finished".into(), &"refused".into()), "{end}");
    assert_eq!((&end["reason"], &end["run_id"]), (&"held".into(), &Value::Null), "{end}");
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(shop.run("done(0); end()", &[]).code, 0, "at once after it was killed");
}

#[test]
fn ctrl_c_finishes_the_slice_and_ends_with_130() {
    let shop = Shop::new("ctrl-c");
    let script = r#"
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
n = 0
while not stop or n % 10 != 0:
    record(n); n += 1
    if n % 10 == 0: slice(n)
    time.sleep(0.002)
done(n, "cancelled"); end(1)"#;
    let mut run = shop.start(script);
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"saved\""));
    let began = Instant::now();
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    let last = lines.map_while(Result::ok).last().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(10));
    let end = serde_json::from_str::<Value>(&last).unwrap();
    assert_eq!(end["status"], "cancelled");
    assert!(end["records_accepted"].as_u64().unwrap().is_multiple_of(10), "{end}");
}

#[test]
fn two_accounts_of_one_service_are_two_connections() {
    let shop = Shop::new("two-accounts");
    shop.script("record(int(os.environ['ACCOUNT'])); slice(1); done(1); end()");
    for (name, account) in [("shop-mine", "ACCOUNT=1"), ("shop-ours", "ACCOUNT=2")] {
        let added = shop.gleaner(&[
            "add",
            "--manifest",
            "manifest.json",
            "--name",
            name,
            "--set",
            account,
            "--",
            "python3",
            "-u",
            "shop.py",
        ]);
        assert_eq!(added.code, 0, "{added:?}");
        assert_eq!(shop.gleaner(&["run", name]).code, 0);
    }
    let both = shop.gleaner(&["records", "orders"]);
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains("hint: say whose, for example shop-mine.orders"), "{both:?}");
    assert_eq!(shop.gleaner(&["records", "shop-ours.orders"]).stdout, "2  {\"id\": 2}\n");
}

#[test]
fn what_was_typed_wrongly_is_answered_with_what_to_do() {
    let shop = Shop::new("typed-wrongly");
    assert_eq!(shop.gleaner(&["status"]).code, 10);
    let no_command = shop.gleaner(&["run", "--manifest", "manifest.json"]);
    assert!(no_command.code == 2 && no_command.stderr.contains("hint:"), "{no_command:?}");
    let stream = shop.run("done(0); end()", &["--stream", "order"]);
    assert!(stream.code == 2 && stream.stderr.contains("did you mean orders?"), "{stream:?}");
    let unknown = shop.gleaner(&["run", "shopp"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("there is no connection \"shopp\""), "{unknown:?}");
    fs::write(shop.root.join("bad.json"), "{\"streams\":[]}").unwrap();
    let manifest = shop.gleaner(&["add", "--manifest", "bad.json", "--", "true"]);
    assert!(manifest.code == 2 && manifest.stderr.contains("connector_id"), "{manifest:?}");
    let set = shop.gleaner(&["add", "--manifest", "manifest.json", "--set", "1x", "--", "true"]);
    assert!(set.code == 2 && set.stderr.contains("KEY=VALUE"), "{set:?}");
}

#[test]
fn a_record_outside_of_the_asked_ones_ends_the_run_and_is_named() {
    let shop = Shop::new("resources");
    let answer = shop.run(
        "assert start['scope']['streams'][0]['resources'] == ['1']; record(2); end()",
        &["--resource", "orders=1"],
    );
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.contains("stream \"orders\", key \"2\""), "{answer:?}");
}

#[test]
fn a_damaged_record_is_named_by_table_and_row() {
    let shop = Shop::new("damaged");
    assert_eq!(shop.run("record(1); slice(1); done(1); end()", &[]).code, 0);
    let store = shop.root.join("home/store.db");
    let sql = "UPDATE versions SET body = '{\"id\": 2}'";
    assert!(Command::new("sqlite3").arg(&store).arg(sql).status().unwrap().success());
    let answer = shop.gleaner(&["verify"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.starts_with("versions row 1: it is not what was stored"), "{answer:?}");
}

#[test]
fn the_demonstration_is_killed_half_way_and_accounts_for_everything() {
    let shop = Shop::new("demo");
    let mut command = shop.command(&["demo", "--json"]);
    // It leaves its store for a look; here it is looked at at once.
    let output = command.env("TMPDIR", &shop.root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let end = serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!((end["records"].as_u64(), end["gaps_open"].as_u64()), (Some(198), Some(2)), "{end}");
    // At most one slice: a page of the list and its notes.
    assert!(end["requests_made_twice"].as_u64().unwrap() <= 21 + 20, "{end}");
    assert!(end["saved_before_the_kill"].as_u64().unwrap() >= 100, "{end}");
    assert!(end["rate_per_s"].as_f64().unwrap() > 2.0, "{end}");
    assert!(end["seconds"].as_f64().unwrap() < 60.0, "{end}");
    let home = shop.root.join(format!("gleaner-demo-{}/home", pid_of_demo(&end)));
    let verify = shop.gleaner(&["verify", "--home", home.to_str().unwrap()]);
    assert_eq!(verify.code, 0, "{verify:?}");
    assert_eq!(shop.gleaner(&["runs", "demo", "--json", "--home", home.to_str().unwrap()]).stdout.lines().count(), 2);
}

/// The connector dies in the first run or in the second one: either way the account is not what it should be.
#[test]
fn a_demonstration_whose_connector_dies_fails_with_the_cause_and_claims_nothing() {
    for notes in [20, 120] {
        let shop = Shop::new("demo-fails");
        let mut command = shop.command(&["demo", "--json"]);
        command.env("TMPDIR", &shop.root).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut demo = command.spawn().unwrap();
        let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        let is_far_enough = |line: &String| {
            let line = serde_json::from_str::<Value>(line).unwrap();
            line["message_type"] == "demo_progress" && line["records"].as_u64().unwrap() >= notes
        };
        assert!(lines.any(|line| is_far_enough(&line)), "it never came to {notes} notes");
        kill_connector_of(demo.id());
        let last = serde_json::from_str::<Value>(&lines.last().unwrap()).unwrap();
        let output = demo.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &last["message_type"]), (Some(1), &json!("demo_failed")), "{last} {stderr}");
        let error = last["error"].as_str().unwrap();
        assert!(error.contains("the demo failed") && error.contains("of 198 notes are saved"), "{error}");
        assert!(stderr.contains(error) && stderr.contains("gleaner runs demo --home"), "{stderr}");
        assert!(!stderr.contains("are missing and known to be"), "{stderr}");
    }
}

/// Kills the connector that a demonstration started, and nothing else of it.
fn kill_connector_of(demo: u32) {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let is_below = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).take(10).any(|pid| pid == demo);
    let is_connector = |pid: u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect::<Vec<_>>();
        matches!(words[..], [program, b"connector", b"demo"] if program.ends_with(b"gleaner"))
    };
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = pids.filter(|pid| is_connector(*pid) && is_below(*pid)).collect::<Vec<u32>>();
    let [connector] = found[..] else { panic!("{found:?}") };
    let killed = Command::new("kill").args(["-9", &connector.to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn a_demonstration_that_cannot_write_says_so() {
    let shop = Shop::new("demo-unwritable");
    let output = shop.command(&["demo"]).env("TMPDIR", shop.root.join("nothing/here")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("nothing/here") && stderr.contains("No such file"), "{stderr}");
}

/// The folder has the number of the process in its name.
fn pid_of_demo(end: &Value) -> String {
    let store = end["store"].as_str().unwrap();
    store.split("gleaner-demo-").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

#[test]
fn a_connector_that_breaks_the_protocol_is_told_so_with_the_line() {
    let shop = Shop::new("conformance");
    shop.script("record(1); print('a line of log'); slice(1); done(1); end()");
    let arguments = ["conformance", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"];
    let answer = shop.gleaner(&arguments);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stdout.contains("FAILED") && answer.stdout.contains("no_noise"), "{answer:?}");
    assert!(answer.stdout.contains("line 2:"), "{answer:?}");
    let nothing = shop.gleaner(&["conformance", "--", "true"]);
    assert!(nothing.code == 2 && nothing.stderr.contains("--manifest FILE"), "{nothing:?}");
}

#[test]
fn a_stored_credential_is_used_and_is_not_in_the_store() {
    let shop = Shop::new("vault");
    let home = shop.root.join("home");
    let vault = gleaner_vault::Vault::open(&{
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        home.clone()
    })
    .unwrap();
    vault.set("shop", "SHOP_TOKEN", gleaner_vault::Secret::new("v4ult-c4n4ry".to_owned())).unwrap();
    let script = "assert os.environ['SHOP_TOKEN'] == 'v4ult-c4n4ry'\nprint(os.environ['SHOP_TOKEN'], file=sys.stderr)\nrecord(1); slice(1); done(1); end()";
    let answer = shop.run(script, &["--json"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let is_shown = |bytes: &[u8]| bytes.windows(12).any(|window| window == b"v4ult-c4n4ry");
    assert!(!is_shown(answer.stdout.as_bytes()) && !is_shown(answer.stderr.as_bytes()));
    for entry in fs::read_dir(&home).unwrap().chain(fs::read_dir(home.join("secrets")).unwrap()) {
        let path = entry.unwrap().path();
        assert!(!path.is_file() || !is_shown(&fs::read(&path).unwrap()), "{}", path.display());
    }
}

//! `init`, `connectors`, `config`, `backup`, `restore`, `verify`, `completions` and `man`, each with a data root of
//! its own. Connectors are small Python programs.

use crate::support::{Answer, folder};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1",
    "display_name":"Shop","runtime_requirements":{"bindings":{"network":{"required":true}}},
    "streams":[{"name":"orders","semantics":"mutable_state","primary_key":"id",
    "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}}],
    "capabilities":{"auth":{"kind":"env","required":["SHOP_TOKEN"]}}}"#;

const PRELUDE: &str = r#"
import sys, json, os, time
def say(**m): sys.stdout.write(json.dumps(m) + "\n"); sys.stdout.flush()
def record(n): say(type="RECORD", stream="orders", key=str(n), data={"id": n}, emitted_at="2031-01-01T00:00:00Z")
def slice(n): say(type="STATE", stream="orders", cursor={"next": n}, slice=True)
def done(n): say(type="DONE", status="succeeded", records_emitted=n); sys.stdin.read(); sys.exit(0)
start = json.loads(sys.stdin.readline())
"#;

/// A folder with a data root in it.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
}

impl Place {
    pub(crate) fn new(test: &str) -> Self {
        let root = folder(&format!("care-{test}"));
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
        answer(&mut self.command(arguments))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.join("home").join(name)
    }

    pub(crate) fn script(&self, script: &str) {
        fs::write(self.root.join("shop.py"), format!("{PRELUDE}{script}")).unwrap();
    }

    /// Runs a connector that was not added.
    pub(crate) fn run(&self, script: &str) -> Answer {
        self.script(script);
        self.gleaner(&["run", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"])
    }

    pub(crate) fn sql(&self, sql: &str) {
        assert!(Command::new("sqlite3").arg(self.at("store.db")).arg(sql).status().unwrap().success(), "{sql}");
    }

    fn config(&self, text: &str) {
        assert_eq!(self.gleaner(&["init"]).code, 0);
        fs::write(self.at("config.toml"), text).unwrap();
    }
}

pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn init_makes_what_is_missing_and_leaves_the_rest_alone() {
    let place = Place::new("init");
    let first = place.gleaner(&["init"]);
    assert!(first.code == 0 && first.stdout.contains("store.db     made"), "{first:?}");
    assert_eq!((mode(place.at("")), mode(place.at("store.db")), mode(place.at("config.toml"))), (0o700, 0o600, 0o600));
    fs::write(place.at("config.toml"), "colour = \"never\"\n").unwrap();
    let second = place.gleaner(&["init"]);
    assert!(second.code == 0 && second.stdout.contains("config.toml  was there"), "{second:?}");
    assert_eq!(fs::read_to_string(place.at("config.toml")).unwrap(), "colour = \"never\"\n");
    assert_eq!(place.gleaner(&["status"]).code, 0, "there is a store");
}

/// A connector in the folder of the data root, which is started there.
fn install(place: &Place, name: &str, manifest: &str) {
    let folder = place.at("connectors").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(place.at(""), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.join("manifest.json"), manifest).unwrap();
    fs::write(folder.join("collect.py"), format!("{PRELUDE}record(1); slice(1); done(1)")).unwrap();
}

fn with_command(key: &str) -> String {
    let named = MANIFEST.replace("\"connector_key\":\"shop\"", &format!("\"connector_key\":\"{key}\""));
    named.replacen('{', "{\"command\":[\"python3\",\"-u\",\"collect.py\"],", 1)
}

#[test]
fn a_connector_in_the_folder_is_listed_added_by_its_name_and_run_from_there() {
    let place = Place::new("connectors");
    let ours = place.gleaner(&["connectors"]);
    for part in ["claude_code  Claude Code", "~/.claude", "home=… (CLAUDE_CODE_HOME)", "gleaner add claude_code"] {
        assert!(ours.code == 0 && ours.stdout.contains(part), "{part}: {ours:?}");
    }
    install(&place, "shop-1.0", &with_command("shop"));
    let listed = place.gleaner(&["connectors"]);
    for part in ["shop  Shop, version 1", "orders", "SHOP_TOKEN, network", "gleaner add shop"] {
        assert!(listed.stdout.contains(part), "{part}: {listed:?}");
    }
    let lines = place.gleaner(&["connectors", "--json"]).stdout;
    let json = serde_json::from_str::<Value>(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&json["connector"], &json["credentials"][0][0]), (&"shop".into(), &"SHOP_TOKEN".into()));
    assert_eq!(json["streams"], serde_json::json!(["orders"]));
    let added = place.gleaner(&["add", "shop", "--name", "mine"]);
    assert_eq!(added.code, 0, "{added:?}");
    let mut run = place.command(&["run", "mine"]);
    let run = answer(run.current_dir("/"));
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(place.gleaner(&["records", "mine.orders"]).stdout, "1  {\"id\": 1}\n");
}

#[test]
fn connectors_with_faults_are_named_and_the_others_are_still_there() {
    let place = Place::new("connectors-faulty");
    install(&place, "a", &with_command("shop"));
    install(&place, "b", "{\"streams\":[]}");
    install(&place, "c", &with_command("shop"));
    install(&place, "d", &with_command("codex"));
    let listed = place.gleaner(&["connectors"]);
    assert!(listed.code == 0 && listed.stdout.contains("\nshop  Shop"), "{listed:?}");
    assert!(listed.stderr.contains("b/manifest.json") && listed.stderr.contains("connector_id"), "{listed:?}");
    assert!(listed.stderr.contains("its connector_key is that of"), "{listed:?}");
    assert!(listed.stderr.contains("that of one that comes with the program"), "{listed:?}");
    let lines = place.gleaner(&["connectors", "--json"]).stdout;
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kinds = lines.filter(|line| line["needs"].is_null()).map(|line| line["message_type"].clone());
    assert_eq!(kinds.collect::<Vec<_>>(), ["connector", "fault", "fault", "fault"]);
    let unknown = place.gleaner(&["add", "shp"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean shop?"), "{unknown:?}");
    let far = place.gleaner(&["add", "xyzzy"]);
    assert!(far.code == 2 && far.stderr.contains("or give --manifest FILE"), "{far:?}");
    let other = place.gleaner(&["add", "shopping", "--manifest", "manifest.json", "--", "true"]);
    assert!(other.code == 2 && other.stderr.contains("is the manifest of shop, not of shopping"), "{other:?}");
    assert_eq!(place.gleaner(&["add", "shop", "--manifest", "manifest.json", "--", "true"]).code, 0);
    assert_eq!(place.gleaner(&["add"]).code, 2);
}

#[test]
fn a_run_reads_the_file_a_variable_says_more_and_an_option_most() {
    let place = Place::new("config-run");
    place.config("[run]\nmax_requests = 5\nmax_duration = \"2m\"\n");
    place.script("sys.stderr.write(json.dumps(start.get('run_budget'))); sys.exit(3)");
    let budget = |options: &[&str], variable: &str| {
        let mut arguments = vec!["run", "--manifest", "manifest.json"];
        arguments.extend(options);
        arguments.extend(["--", "python3", "-u", "shop.py"]);
        answer(place.command(&arguments).env("GLEANER_RUN_MAX_REQUESTS", variable)).stdout
    };
    assert!(budget(&[], "").contains(r#"| {"max_requests": 5, "max_duration_ms": 120000}"#), "{}", budget(&[], ""));
    assert!(budget(&[], "6").contains(r#""max_requests": 6"#));
    assert!(budget(&["--max-requests", "7"], "6").contains(r#""max_requests": 7"#));
}

#[test]
fn a_file_that_is_not_right_stops_the_run_and_says_where() {
    let place = Place::new("config-wrong");
    for (text, parts) in [
        ("[run]\nmax_request = 5\n", ["line 2: there is no option run.max_request", "did you mean run.max_requests?"]),
        ("[run]\ninteract = \"maybe\"\n", ["line 2: run.interact: invalid value 'maybe'", "docs/configuration.md"]),
        ("shop_token = \"c4n4ry\"\n", ["line 1: shop_token looks like a secret", "let `gleaner add` ask for it"]),
    ] {
        place.config(text);
        for answer in [place.run("done(0)"), place.gleaner(&["config", "show"])] {
            assert_eq!(answer.code, 2, "{answer:?}");
            assert!(parts.iter().all(|part| answer.stderr.contains(part)), "{answer:?}");
            assert!(!answer.stderr.contains("c4n4ry"), "{answer:?}");
        }
        assert_eq!(place.gleaner(&["status"]).code, 0, "what does not read it is not in the way");
    }
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let place = Place::new("config-show");
    place.config("\n[proxy]\nmax_waiting = 0x10\n");
    let mut command = place.command(&["--colour", "never", "config", "show", "--json"]);
    let shown = answer(command.env("GLEANER_PROXY_LISTEN", "127.0.0.1:9000"));
    let lines = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let of = |key: &str| lines.iter().find(|line| line["key"] == key).unwrap().clone();
    let waiting = of("proxy.max_waiting");
    assert_eq!((&waiting["value"], &waiting["source"], &waiting["line"]), (&"16".into(), &"file".into(), &3.into()));
    assert_eq!(waiting["place"].as_str(), place.at("config.toml").to_str());
    assert_eq!(
        (&of("proxy.listen")["source"], &of("proxy.listen")["value"]),
        (&"environment".into(), &"127.0.0.1:9000".into())
    );
    assert_eq!((&of("colour")["source"], &of("colour")["value"]), (&"flag".into(), &"never".into()));
    assert_eq!((&of("home")["source"], &of("home")["place"]), (&"environment".into(), &"GLEANER_HOME".into()));
    assert_eq!(of("run.max_requests")["source"], "default");
    let text = place.gleaner(&["config", "show"]).stdout;
    assert!(
        text.contains("proxy.max_waiting          16                   file ") && text.contains("line 3"),
        "{text}"
    );
}

#[test]
fn colour_comes_from_option_variable_or_file() {
    let place = Place::new("colour");
    place.config("colour = \"always\"\n");
    assert_eq!(place.run("record(1); slice(1); done(1)").code, 0);
    let coloured = |command: &mut Command| answer(command).stdout.contains('\x1b');
    assert!(coloured(&mut place.command(&["status"])), "the file");
    assert!(!coloured(place.command(&["status"]).env("GLEANER_COLOUR", "never")), "the variable");
    assert!(coloured(place.command(&["status", "--color", "always"]).env("GLEANER_COLOUR", "never")), "the option");
    let elsewhere = place.at("").to_str().unwrap().to_owned();
    let mut command = place.command(&["status", "--home", &elsewhere]);
    assert!(coloured(command.env("GLEANER_HOME", "/nowhere")), "the file of the data root that was typed");
    fs::remove_file(place.at("config.toml")).unwrap();
    assert!(!coloured(&mut place.command(&["status"])), "a pipe is no terminal");
}

#[test]
fn the_sidecar_reads_the_file_too() {
    let place = Place::new("config-proxy");
    place.config("[proxy]\nlisten = \"127.0.0.1:0\"\n");
    let mut command = place.command(&["proxy", "--upstream", "http://127.0.0.1:9"]);
    let mut proxy = command.stderr(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(proxy.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert!(line.contains("http://127.0.0.1:") && !line.contains("8717"), "{line}");
    place.config("[proxy]\nmax_waiting = 0\n");
    let refused = place.gleaner(&["proxy", "--upstream", "http://127.0.0.1:9"]);
    assert!(refused.code == 2 && refused.stderr.contains("proxy.max_waiting"), "{refused:?}");
}

/// Goes on from its cursor, ten records a slice, up to 300. Slow enough to be met in the middle.
const SLOW: &str = r#"
n = (start["state"] or {}).get("orders", {"next": 0})["next"]
began = n
while n < 300:
    record(n); n += 1
    if n % 10 == 0:
        slice(n)
        time.sleep(float(os.environ.get("PAUSE", "0")))
done(n - began)"#;

fn start_slow_run(place: &Place) -> (Child, impl Iterator<Item = String>) {
    place.script(SLOW);
    let arguments =
        ["run", "--manifest", "manifest.json", "--json", "--", "env", "PAUSE=0.05", "python3", "-u", "shop.py"];
    let mut run = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    (run, lines)
}

fn saved(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["records_accepted"].as_u64().unwrap()
}

#[test]
fn a_backup_made_during_a_run_is_restored_and_the_next_run_loses_nothing() {
    let place = Place::new("backup");
    let (mut run, mut lines) = start_slow_run(&place);
    assert!(lines.any(|line| saved(&line) >= 50));
    let written = place.gleaner(&["backup", "backup.db"]);
    assert!(written.code == 0 && written.stdout.contains("read back and found whole"), "{written:?}");
    assert!(written.stderr.contains("not in it: credentials (secrets/)"), "{written:?}");
    let held = place.gleaner(&["restore", "backup.db"]);
    assert_eq!(held.code, 11, "{held:?}");
    assert!(held.stderr.contains(&format!("process {} is at work (connection shop)", run.id())), "{held:?}");
    assert_eq!(saved(&lines.last().unwrap()), 300);
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(mode(place.root.join("backup.db")), 0o600);
    let again = place.gleaner(&["backup", "backup.db"]);
    assert!(again.code == 1 && again.stderr.contains("backup.db exists"), "{again:?}");

    let restored = place.gleaner(&["restore", "backup.db"]);
    assert!(restored.code == 0 && restored.stdout.contains("it is older than what was here"), "{restored:?}");
    let count = || place.gleaner(&["records", "orders", "--json"]).stdout.lines().count();
    let of_backup = count();
    assert!((50..300).contains(&of_backup), "{of_backup}");
    assert_eq!(place.gleaner(&["verify"]).code, 0);
    let kept = fs::read_dir(place.at("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(kept.filter(|name| name.starts_with("store.db.before-restore-2")).count(), 1);
    let next = place.run(&format!("assert start['state'] == {{'orders': {{'next': {of_backup}}}}}\n{SLOW}"));
    assert_eq!(next.code, 0, "{next:?}");
    assert_eq!(count(), 300);
    let verify = place.gleaner(&["verify"]);
    assert_eq!(verify.code, 0, "{verify:?}");
}

#[test]
fn a_store_that_was_replaced_by_hand_is_noticed_until_it_is_accepted() {
    let place = Place::new("replaced");
    assert_eq!(place.run("record(1); slice(1); done(1)").code, 0);
    assert_eq!(place.gleaner(&["backup", "backup.db", "--json"]).code, 0);
    assert_eq!(place.run("record(2); slice(2); done(1)").code, 0);
    let early = place.gleaner(&["restore", "--accept"]);
    assert!(early.code == 0 && early.stdout.contains("nothing to accept"), "{early:?}");
    fs::copy(place.root.join("backup.db"), place.at("store.db")).unwrap();
    let refused = place.run("done(0)");
    assert!(refused.code == 1 && refused.stderr.contains("restored from an older copy"), "{refused:?}");
    assert!(refused.stderr.contains("gleaner restore --accept"), "{refused:?}");
    let accepted = place.gleaner(&["restore", "--accept"]);
    assert!(accepted.code == 0 && accepted.stdout.contains("accepted: runs go on"), "{accepted:?}");
    assert_eq!(place.run("assert start['state'] == {'orders': {'next': 1}}; done(0)").code, 0);
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_store_or_the_new_one() {
    let place = Place::new("restore-killed");
    let many =
        |from: u64, to: u64| format!("for n in range({from}, {to}): record(n)\nslice({to}); done({to} - {from})");
    assert_eq!(place.run(&many(0, 5_000)).code, 0);
    assert_eq!(place.gleaner(&["backup", "backup.db"]).code, 0);
    let count = || place.gleaner(&["records", "orders", "--json"]).stdout.lines().count();
    let mut old = 0;
    for round in 0..6_u64 {
        assert_eq!(place.run(&many(5_000, 5_100)).code, 0, "round {round}");
        let began = Instant::now();
        let mut restore = place.command(&["restore", "backup.db", "-q"]).stdout(Stdio::null()).spawn().unwrap();
        // Spread over what it takes, from nearly at once.
        std::thread::sleep(Duration::from_millis(round * round * 12));
        restore.kill().unwrap();
        restore.wait().unwrap();
        match count() {
            5_000 => {}
            5_100 => old += 1,
            other => panic!("{other} records after a kill at {:?}", began.elapsed()),
        }
        let verify = place.gleaner(&["verify"]);
        assert_eq!(verify.code, 0, "round {round}: {verify:?}");
    }
    assert!(old > 0, "no kill came before the end");
    // What was left is cleared by the next one.
    assert_eq!(place.run(&many(5_000, 5_100)).code, 0);
    assert_eq!(place.gleaner(&["restore", "backup.db"]).code, 0);
    let left = fs::read_dir(place.at("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("store.db.") && name.contains("unfinished")).count(), 0);
    assert_eq!(count(), 5_000);
}

#[test]
fn restore_refuses_what_is_no_backup_and_says_so() {
    let place = Place::new("restore-refuses");
    assert_eq!(place.gleaner(&["restore", "--accept"]).code, 10, "there is no store");
    assert_eq!(place.gleaner(&["restore"]).code, 2);
    assert_eq!(place.gleaner(&["backup", "b.db"]).code, 10);
    assert_eq!(place.run("record(1); slice(1); done(1)").code, 0);
    let before = fs::read(place.at("store.db")).unwrap();
    fs::write(
        place.root.join("text"),
        "a text that is no database, long enough to look like a header of one ...........",
    )
    .unwrap();
    let text = place.gleaner(&["restore", "text"]);
    assert!(text.code == 1 && text.stderr.contains("is not a Gleaner store"), "{text:?}");
    let absent = place.gleaner(&["restore", "absent"]);
    assert!(absent.code == 1 && absent.stderr.contains("absent cannot be opened"), "{absent:?}");
    let itself = place.gleaner(&["restore", "home/store.db"]);
    assert!(itself.code == 2 && itself.stderr.contains("is the store itself"), "{itself:?}");
    assert_eq!(fs::read(place.at("store.db")).unwrap(), before);
    // Somewhere else it makes a data root, with the settings.
    fs::write(place.at("config.toml"), "colour = \"never\"\n").unwrap();
    assert_eq!(place.gleaner(&["backup", "b.db"]).code, 0);
    let elsewhere = place.root.join("elsewhere");
    let moved = place.gleaner(&["restore", "b.db", "--home", elsewhere.to_str().unwrap(), "--json"]);
    assert_eq!(moved.code, 0, "{moved:?}");
    let line = serde_json::from_str::<Value>(&moved.stdout).unwrap();
    assert_eq!((&line["kept"], &line["was_older"], &line["config"]), (&Value::Null, &false.into(), &true.into()));
    assert_eq!(fs::read_to_string(elsewhere.join("config.toml")).unwrap(), "colour = \"never\"\n");
    fs::write(place.at("config.toml"), "my_token = \"c4n4ry\"\n").unwrap();
    let without = place.gleaner(&["backup", "c.db"]);
    assert!(without.code == 0 && without.stderr.contains("config.toml is not right and is left out"), "{without:?}");
    let bytes = fs::read(place.root.join("c.db")).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"c4n4ry"));
    assert_eq!(mode(elsewhere), 0o700);
}

#[test]
fn what_is_damaged_is_named_by_table_and_row() {
    for (sql, part) in [
        ("UPDATE versions SET body = '{\"id\": 2}' WHERE seq = 1", "versions row 1: it is not what was stored"),
        ("UPDATE versions SET hash = hash + 1 WHERE seq = 2", "versions row 2: it is not what was stored"),
        ("UPDATE streams SET records = 9", "streams row 1: records says 9, there are 2"),
        ("UPDATE cursors SET seq = seq + 1", "cursors row 1: A3: \"orders\" is at"),
        ("UPDATE commits SET epoch = 9", "commits row 1: L1: \"orders steady\" was committed under epoch 9, the lease"),
        ("UPDATE runs SET skipped = 'not json'", "runs row 1: what it left open cannot be read"),
        ("UPDATE runs SET skipped = '[]'", "runs row 1: what it left open cannot be read"),
        ("UPDATE runs SET shortfalls = '{{{'", "runs row 1: what it left open cannot be read"),
        ("UPDATE runs SET withheld = '{}'", "runs row 1: which checkpoints it committed or withheld cannot be read"),
        ("UPDATE runs SET committed = '[[\"orders\"]]'", "runs row 1: which checkpoints it committed or withheld"),
        ("UPDATE runs SET warnings = '{}'", "runs row 1: its warnings cannot be read"),
        ("UPDATE runs SET scope = '{'", "runs row 1: what it says about its pace or its scope cannot be read"),
        ("UPDATE runs SET connection = 2", "runs row 1: it is of another connection than what it left in versions"),
        ("UPDATE streams SET name = 'other' WHERE id = 1", "streams row 1: the manifest has no stream of this name"),
        (
            "DELETE FROM connections WHERE id = 1",
            "connections row 1: the row is gone, and streams of the connection are there",
        ),
        ("UPDATE streams SET schema = '{{{' WHERE id = 1", "streams row 1: its schema cannot be read"),
    ] {
        let place = Place::new("verify");
        assert_eq!(place.run("record(1); record(2); slice(1); done(2)").code, 0);
        let other = ["add", "--manifest", "manifest.json", "--name", "other", "--no-check", "--", "true"];
        assert_eq!(place.gleaner(&other).code, 0);
        assert_eq!(place.gleaner(&["verify"]).code, 0);
        place.sql(sql);
        let answer = place.gleaner(&["verify"]);
        assert!(answer.code == 1 && answer.stdout.contains(part), "{sql}: {answer:?}");
        assert!(!answer.stdout.contains("Some(") && !answer.stdout.contains("Seq("), "{answer:?}");
        let json = place.gleaner(&["verify", "--json"]);
        assert!(
            json.code == 1 && serde_json::from_str::<Value>(json.stdout.lines().next().unwrap()).is_ok(),
            "{json:?}"
        );
    }
}

#[test]
fn shells_accept_the_completions_and_hidden_commands_are_not_in_them() {
    let place = Place::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.gleaner(&["completions", shell]);
        assert_eq!(script.code, 0, "{script:?}");
        for command in ["conformance", "connectors", "doctor", "backup"] {
            assert!(script.stdout.contains(command), "{shell}: {command}");
        }
        assert!(!script.stdout.contains("guard"), "{shell}");
    }
    fs::write(place.root.join("c.bash"), place.gleaner(&["completions", "bash"]).stdout).unwrap();
    assert!(Command::new("bash").arg("-n").arg(place.root.join("c.bash")).status().unwrap().success());
    let ask =
        "source ./c.bash; COMP_WORDS=(gleaner con); COMP_CWORD=1; _gleaner gleaner con gleaner; echo ${COMPREPLY[*]}";
    let reply = answer(Command::new("bash").args(["-c", ask]).current_dir(&place.root));
    let mut words = reply.stdout.split_whitespace().collect::<Vec<_>>();
    words.sort_unstable();
    assert_eq!(words, ["config", "conformance", "connectors"], "{reply:?}");
    assert_eq!(place.gleaner(&["completions", "tcsh"]).code, 2);
}

#[test]
fn there_is_a_page_of_the_manual_for_each_command_that_people_type() {
    let place = Place::new("man");
    let answer_of_man = place.gleaner(&["man", "--dir", "pages"]);
    assert_eq!(answer_of_man.code, 0, "{answer_of_man:?}");
    let mut pages = fs::read_dir(place.root.join("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    pages.sort();
    for page in ["gleaner.1", "gleaner-run.1", "gleaner-config.1", "gleaner-config-show.1", "gleaner-lab-run.1"] {
        assert!(pages.iter().any(|known| known == page), "{page}: {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("guard") || page == "gleaner-connector.1"), "{pages:?}");
    let main = fs::read_to_string(place.root.join("pages/gleaner.1")).unwrap();
    assert!(!main.contains("guard") && !main.contains("connector(1)") && !main.contains("help(1)"), "{main}");
    assert_eq!(place.gleaner(&["man"]).stdout, main);
    let has_man = Command::new("man").arg("--version").output().is_ok_and(|output| output.status.success());
    for page in &pages {
        let text = fs::read_to_string(place.root.join("pages").join(page)).unwrap();
        let title = page.trim_end_matches(".1").to_uppercase();
        assert!(text.contains(&format!(".TH {title} 1")), "{page}");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}");
        if has_man && ["gleaner.1", "gleaner-run.1"].contains(&page.as_str()) {
            let mut man = Command::new("man");
            man.args(["--warnings", "-l"]).arg(place.root.join("pages").join(page));
            let shown = man.env("MANWIDTH", "80").env("MAN_DISABLE_SECCOMP", "1").output().unwrap();
            assert!(shown.status.success() && shown.stderr.is_empty(), "{page}: {shown:?}");
        }
    }
}

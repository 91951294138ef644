//! How runs end, in the words that a person reads: each way for a connector or this machine to fail, and what is said
//! about it afterwards. Nothing that is said may be false.

use crate::collect::{Shop, last_line};
use crate::support::Answer;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs a connector that was not added, where no file may grow beyond so many blocks of 512 bytes: a full disk.
fn run_on_a_full_disk(shop: &Shop, script: &str, blocks: u32) -> Answer {
    shop.script(script);
    // Without the signal a write that does not fit fails, as it does on a disk that is full.
    let line = format!(
        "ulimit -f {blocks}; trap '' XFSZ; exec '{}' run --manifest manifest.json --json -- python3 -u shop.py",
        env!("CARGO_BIN_EXE_gleaner")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("GLEANER_HOME", shop.root.join("home")).current_dir(&shop.root);
    let output = command.stdin(Stdio::null()).output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn json_of(shop: &Shop, arguments: &[&str]) -> Value {
    let answer = shop.gleaner(arguments);
    serde_json::from_str(answer.stdout.lines().next().unwrap_or_default()).unwrap_or_else(|_| panic!("{answer:?}"))
}

#[test]
fn on_a_full_disk_only_what_is_durable_is_called_saved() {
    let shop = Shop::new("full-disk");
    let script = "for n in range(20000): record(n, total=1.5)\nslice(1); done(20000); end()";
    let answer = run_on_a_full_disk(&shop, script, 3000);
    assert_eq!(answer.code, 1, "{answer:?}");
    let stored = json_of(&shop, &["status", "--json"])["records"].as_u64().unwrap();
    let end = last_line(&answer);
    assert!(0 < stored && stored < 20_000, "{stored}");
    assert_eq!((end["records_accepted"].as_u64(), end["records_new"].as_u64()), (Some(stored), Some(stored)));
    let run = json_of(&shop, &["runs", "shop", "--json"]);
    assert_eq!(run["records_new"].as_u64(), Some(stored), "{run}");
    let status = shop.gleaner(&["status"]).stdout;
    assert!(!status.contains("never ran") && !status.contains("has not run"), "{status}");
    let saved = format!("the last run was interrupted; records it saved: {stored} new; `gleaner run shop` resumes it");
    assert!(status.contains(&saved), "{status}");
}

#[test]
fn records_that_were_there_already_are_called_unchanged_and_not_stored() {
    let shop = Shop::new("unchanged");
    let script = "record(1); record(2, total=start['state'] is None and 1 or 2); slice(1); done(2); end()";
    assert!(shop.run(script, &[]).stdout.contains("\n  records: 2 new\n"));
    let again = shop.run(script, &[]);
    assert!(again.stdout.contains("\n  records: 1 changed, 1 unchanged\n"), "{again:?}");
    let end = last_line(&shop.run(script, &["--json"]));
    let counts = ["records_new", "records_changed", "records_unchanged", "records_accepted"];
    assert_eq!(counts.map(|name| end[name].as_u64()), [Some(0), Some(0), Some(2), Some(2)]);
    let runs = shop.gleaner(&["runs", "shop"]).stdout;
    let figures = runs.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(figures[4..8], ["0", "0", "2", "0"], "{runs}");
}

#[test]
fn while_the_first_run_goes_on_it_is_not_said_that_it_never_ran() {
    let shop = Shop::new("first-run");
    let mut child = shop.start("record(1); slice(1)\nwhile True: time.sleep(1)");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"saved\""));
    let status = shop.gleaner(&["status"]).stdout;
    assert!(status.contains("records saved by this run so far: 1 new"), "{status}");
    assert!(!status.contains("never ran") && !status.contains("has not run"), "{status}");
    let run = json_of(&shop, &["runs", "shop", "--json"]);
    assert_eq!(run["records_new"], 1, "{run}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// How a run ends that does this, on the terminal and afterwards.
struct Told {
    run: Answer,
    status: String,
    why: String,
    runs: String,
}

fn told(test: &str, script: &str) -> (Shop, Told) {
    let shop = Shop::new(test);
    let run = shop.run(script, &[]);
    let say = |arguments: &[&str]| shop.gleaner(arguments).stdout;
    let told = Told { run, status: say(&["status"]), why: say(&["why", "shop"]), runs: say(&["runs", "shop"]) };
    (shop, told)
}

/// The cause is the first line of the run, and everybody who is asked afterwards tells it.
fn check_cause(test: &str, script: &str, cause: &str) -> (Shop, Told) {
    let (shop, told) = told(test, script);
    assert_eq!(told.run.code, 1, "{:?}", told.run);
    assert_eq!(told.run.stdout.lines().next(), Some(format!("shop: {cause}").as_str()), "{:?}", told.run);
    for text in [&told.status, &told.why, &told.runs] {
        assert!(text.contains(cause.trim_end_matches('.')), "{text}");
    }
    for text in [&told.run.stdout, &told.status, &told.why] {
        assert!(!text.to_lowercase().contains("look at"), "{text}");
    }
    (shop, told)
}

#[test]
fn a_traceback_is_a_crash_with_its_last_line_and_no_breach() {
    let script = "record(1); slice(1); record(2)\nraise KeyError('accounts')";
    let (shop, told) = check_cause("traceback", script, "Connector crashed (exit code 1): KeyError: 'accounts'");
    assert!(
        told.run.stdout.contains("\n  | KeyError: 'accounts'\n  records: 2 new\nhint: Run it again"),
        "{:?}",
        told.run
    );
    assert!(!told.run.stdout.contains("rules") && !told.run.stdout.contains("exit_without_done"), "{:?}", told.run);
    let run = json_of(&shop, &["runs", "shop", "--json"]);
    assert_eq!((&run["reason"], &run["exit"]), (&"connector_crashed".into(), &"exit code 1".into()), "{run}");
    assert!(run["stderr"].as_str().unwrap().ends_with("KeyError: 'accounts'"), "{run}");
}

#[test]
fn a_signal_is_a_crash_and_is_named() {
    let script = "record(1); slice(1); os.kill(os.getpid(), signal.SIGKILL)";
    check_cause("signal", script, "Connector crashed (signal 9, SIGKILL). It wrote nothing to stderr.");
    let script = "sys.stdout.write('{\"type\":\"REC'); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGSEGV)";
    check_cause("signal-in-a-line", script, "Connector crashed (signal 11, SIGSEGV). It wrote nothing to stderr.");
}

#[test]
fn a_failure_is_told_in_the_connectors_words() {
    let error = r#"error={"message": "no table #accounts", "retryable": False}"#;
    let script = format!("record(1); slice(1); done(1, 'failed', {error}); end(1)");
    let (_, told) = check_cause("gave-up", &script, "Connector failed: no table #accounts");
    assert!(told.run.stdout.contains("\n  records: 1 new\nhint: Run it again to continue"), "{:?}", told.run);
}

#[test]
fn a_breach_says_what_was_said_wrongly_and_where() {
    let cause = "The connector wrote a line that is not valid JSON (bad_json at line 1, byte 0).";
    check_cause("garbage", "print('hello'); end()", cause);
    check_cause("no-done", "sys.exit(0)", "The connector stopped without saying that it was done (exit_without_done).");
}

#[test]
fn a_secret_in_the_last_lines_of_a_crash_is_masked_everywhere() {
    let shop = Shop::new("crash-secret");
    shop.script("raise KeyError('no ' + os.environ['SHOP_TOKEN'])");
    let mut command = shop.command(&["run", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"]);
    let output = command.env("SHOP_TOKEN", "hunter2-hunter2").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("shop: Connector crashed (exit code 1): KeyError"), "{text}");
    let asked = ["status", "why shop", "runs shop --json", "status --json"];
    let said = asked.map(|words| shop.gleaner(&words.split(' ').collect::<Vec<_>>()).stdout).concat();
    assert!(said.contains("KeyError"), "{said}");
    assert!(!text.contains("hunter2") && !said.contains("hunter2"), "{text}{said}");
}

#[test]
fn a_ceiling_is_the_owners_only_where_the_owner_set_one() {
    let shop = Shop::new("ceiling");
    let rate = r#"{"object": "collection_rate", "current_interval_ms": 2000, "effective_rate_per_min": 30,
                   "ceiling_interval_ms": 1000, "ceiling_rate_per_min": 60, "last_backoff": None}"#;
    shop.run(&format!("say(type='PROGRESS', message='x', collection_rate={rate}); done(0); end()"), &[]);
    let why = shop.gleaner(&["why", "shop"]).stdout;
    assert!(why.contains("It asks 30 times a minute; its ceiling is 60.") && !why.contains("your ceiling"), "{why}");
}

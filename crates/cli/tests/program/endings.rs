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

//! Stores of earlier versions: they open, they are whole, and what those versions lost is named and brought back.
//!
//! `old_store/make.sh` made each store once, with the Gleaner of its day and the connector beside it.

use crate::support::{Answer, folder, gleaner};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SCHEMAS: [&str; 2] = ["schema-4.db", "schema-6.db"];

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/old_store")
}

/// A data root with a copy of an old store.
fn home(test: &str, schema: &str) -> String {
    let root = folder(&format!("old-store-{test}"));
    fs::remove_dir_all(&root).expect("it was just made");
    fs::create_dir_all(&root).expect("the build folder can be written");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("it is ours");
    fs::copy(files().join(schema), root.join("store.db")).expect("the old store is there");
    root.to_str().expect("the path is text").to_owned()
}

/// `gleaner COMMAND NAME --home HOME -- python3 connector.py KIND honest`
fn start(home: &str, command: &str, name: &str) -> Answer {
    let connector = files().join("connector.py");
    let connector = connector.to_str().expect("the path is text");
    gleaner(&[command, name, "--home", home, "--json", "--", "python3", connector, name, "honest"])
}

fn records(home: &str, name: &str, stream: &str) -> usize {
    let answer = gleaner(&["records", &format!("{name}.{stream}"), "--home", home, "--json", "--limit", "1000"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.stdout.lines().count()
}

#[test]
fn every_command_that_looks_opens_a_store_of_an_earlier_version() {
    for schema in SCHEMAS {
        for command in ["status", "runs mixed", "gaps mixed", "coverage mixed", "records mixed.notes", "why mixed"] {
            let home = home("opens", schema);
            let words = command.split(' ').chain(["--home", &home]).collect::<Vec<_>>();
            let answer = gleaner(&words);
            assert_eq!(answer.code, 0, "{schema} {command}: {answer:?}");
        }
    }
}

#[test]
fn what_an_earlier_version_kept_is_still_there() {
    for schema in SCHEMAS {
        let home = home("kept", schema);
        assert_eq!(records(&home, "mixed", "notes"), 3, "one of them is a tombstone");
        let gaps = gleaner(&["gaps", "mixed", "--home", &home, "--json"]).stdout;
        for key in ["waits", "ignored", "odd"] {
            assert!(gaps.contains(&format!("\"record_key\":\"{key}\"")), "{key}: {gaps}");
        }
        assert!(gaps.contains(r#""locator":{"page": 7.5}"#), "{gaps}");
        let shown = gleaner(&["gaps", "mixed", "--home", &home]).stdout;
        let skips = shown.lines().filter(|line| line.starts_with("skipped: ")).count();
        assert!(skips <= 1, "two tracks skipped the same note: {shown}");
    }
}

#[test]
fn verify_names_what_an_earlier_version_may_have_lost_and_repair_brings_it_back() {
    let home = home("repair", SCHEMAS[0]);
    let verify = || gleaner(&["verify", "--home", &home]);
    let found = verify();
    assert_eq!(found.code, 3, "{found:?}");
    assert!(found.stdout.starts_with("the store is whole: "), "{found:?}");
    for doubt in
        ["chat conversations: an earlier version", "since notes: an earlier version", "gaps notes: 2 closed gaps"]
    {
        assert!(found.stdout.contains(doubt), "{doubt}: {found:?}");
    }
    assert!(
        found.stdout.contains("claims messages: the connector reported 3 records as collected; 0 are stored"),
        "{found:?}"
    );

    // Without a repair nothing comes back, and nothing claims to be whole.
    start(&home, "run", "resource");
    assert_eq!((records(&home, "resource", "notes"), verify().code), (1, 3));

    let expected =
        [("chat", "messages", 3), ("claims", "messages", 3), ("since", "notes", 30), ("resource", "notes", 30)];
    for (name, stream, count) in expected {
        let repaired = start(&home, "repair", name);
        assert_eq!((repaired.code, records(&home, name, stream)), (0, count), "{name}: {repaired:?}");
    }
    let repaired = start(&home, "repair", "gaps");
    assert_eq!((repaired.code, records(&home, "gaps", "notes")), (0, 3), "{repaired:?}");
    let left = verify().stdout;
    for name in ["chat ", "claims ", "since ", "resource ", "gaps "] {
        assert!(!left.lines().any(|line| line.starts_with(name)), "{name}: {left}");
    }
}

#[test]
fn a_run_after_the_upgrade_does_not_make_a_doubt_go_away() {
    let home = home("lineage", SCHEMAS[0]);
    let ran = start(&home, "run", "since");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(gleaner(&["verify", "--home", &home]).stdout.contains("since notes: an earlier version"));
}

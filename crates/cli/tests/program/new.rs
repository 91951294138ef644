//! `gleaner new connector`: what is made runs as it is, passes the checks, and overwrites nothing.

use crate::support::{Answer, folder};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn empty_folder(test: &str) -> PathBuf {
    let root = folder(test);
    fs::remove_dir_all(&root).unwrap();
    fs::create_dir_all(&root).unwrap();
    root
}

fn gleaner_in(root: &Path, arguments: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments).current_dir(root).env("GLEANER_HOME", root.join("home"));
    let output = command.env("MY_NOTES_TOKEN", "t-0815-secret").output().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_new_python_connector_passes_every_check_and_can_be_run() {
    let root = empty_folder("new_python");
    let made = gleaner_in(&root, &["new", "connector", "my-notes", "--lang", "python"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(made.stdout.lines().count(), 6, "one line per file: {}", made.stdout);
    let folder = root.join("my-notes");
    for file in fs::read_dir(&folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.to_lowercase().contains("example"), "the name is put in everywhere: {text}");
    }
    let check =
        gleaner_in(&folder, &["conformance", "--json", "--manifest", "manifest.json", "--", "python3", "connector.py"]);
    let verdicts = check.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let bad = verdicts.iter().filter(|check| !matches!(check["verdict"].as_str(), Some("passed" | "skipped")));
    let bad = bad.collect::<Vec<_>>();
    assert!(check.code == 0 && bad.is_empty(), "{bad:?} {}", check.stderr);
    let run = gleaner_in(&folder, &["run", "--json", "--manifest", "manifest.json", "--", "python3", "connector.py"]);
    assert_eq!(run.code, 3, "finished, with a gap: {} {}", run.stdout, run.stderr);
    let records = gleaner_in(&folder, &["records", "notes", "--json"]);
    assert_eq!(records.stdout.lines().count(), 59, "{}", records.stderr);
    let gaps = gleaner_in(&folder, &["gaps", "my-notes", "--json"]);
    assert!(gaps.stdout.contains("n042") && gaps.stdout.lines().count() == 1, "{}", gaps.stdout);
}

#[test]
fn a_new_rust_connector_is_the_template_with_its_name_in_it() {
    let root = empty_folder("new_rust");
    let made = gleaner_in(&root, &["new", "connector", "my-notes", "--lang", "rust"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let read = |file: &str| fs::read_to_string(root.join("my-notes").join(file)).unwrap();
    for file in made.stdout.lines() {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(!text.to_lowercase().contains("example"), "{file}: {text}");
    }
    // The template itself is compiled and checked with the crate that it links.
    let template = include_str!("../../templates/rust/src/main.rs");
    assert_eq!(read("src/main.rs"), template.replace("EXAMPLE", "MY_NOTES"));
    assert!(read("Cargo.toml").contains("name = \"my-notes\""));
    let manifest = serde_json::from_str::<Value>(&read("manifest.json")).unwrap();
    assert_eq!((&manifest["connector_key"], &manifest["display_name"]), (&"my-notes".into(), &"My Notes".into()));
}

#[test]
fn the_history_of_a_new_connector_fills_in_over_several_capped_runs() {
    let root = empty_folder("new_capped");
    let made = gleaner_in(&root, &["new", "connector", "my-notes"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let folder = root.join("my-notes");
    let added = gleaner_in(&folder, &["add", "--manifest", "manifest.json", "--", "python3", "connector.py"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    // A page has 20: 15 are stored and 5 become gaps, besides the one for the rest.
    for (records, gaps) in [(15, 6), (30, 11), (44, 16), (58, 3), (59, 1), (59, 1)] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        run.args(["run", "my-notes"]).env("GLEANER_HOME", folder.join("home")).env("MY_NOTES_TOKEN", "t-0815-secret");
        // The manifest does not declare it: an owner needs no leave of the connector's.
        let output = run.env("PDPP_MY_NOTES_MAX_DETAIL_FETCHES_PER_RUN", "15").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        let count = |arguments: &[&str]| gleaner_in(&folder, arguments).stdout.lines().count();
        assert_eq!(count(&["records", "notes", "--json"]), records);
        assert_eq!(count(&["gaps", "my-notes", "--json"]), gaps);
    }
}

#[test]
fn a_new_connector_needs_a_name_and_overwrites_nothing() {
    let root = empty_folder("new_refused");
    for name in ["", "2fast", "a b", "../up", "a/b", "ü", &"x".repeat(41)] {
        let answer = gleaner_in(&root, &["new", "connector", name]);
        assert_eq!(answer.code, 2, "{name}");
        assert!(answer.stderr.contains("hint: "), "{}", answer.stderr);
    }
    fs::create_dir(root.join("taken")).unwrap();
    fs::write(root.join("taken").join("connector.py"), "mine").unwrap();
    let answer = gleaner_in(&root, &["new", "connector", "taken"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(answer.stderr.contains("is there already"), "{}", answer.stderr);
    assert_eq!(fs::read_to_string(root.join("taken").join("connector.py")).unwrap(), "mine");
    let answer = gleaner_in(&root, &["new", "connector", "x", "--into", "nowhere"]);
    assert!(answer.code == 2 && answer.stderr.contains("nowhere"), "{}", answer.stderr);
}

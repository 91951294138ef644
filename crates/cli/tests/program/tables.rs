//! What a person reads: width, order, help, and manners towards a pipe.

use crate::support::gleaner;
use std::io::Read;
use std::process::{Command, Stdio};

fn assert_narrow(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\u{1b}'), "colour without a terminal");
}

#[test]
fn tables_fit_100_columns_and_begin_with_our_law() {
    let arguments = ["lab", "run", "bucket-bare", "limit-falls", "--law", "aimd,gleaner,backoff-retry-after"];
    let answer = gleaner(&arguments);
    assert_narrow(&answer.stdout, 100);
    let laws: Vec<&str> = answer
        .stdout
        .lines()
        .filter_map(|line| {
            line.split_whitespace().find(|word| ["gleaner", "aimd", "backoff-retry-after"].contains(word))
        })
        .collect();
    assert_eq!(laws.len(), 15, "3 laws, 2 scenarios with 2 numbers of workers, and the summary");
    assert!(laws.chunks(3).all(|chunk| chunk[0] == "gleaner"), "{laws:?}");
    assert_narrow(&gleaner(&["lab", "run", "--random", "4", "--seed", "2"]).stdout, 100);
    assert_narrow(&gleaner(&["lab", "list"]).stdout, 100);
}

#[test]
fn a_run_is_shown_in_80_columns_without_a_terminal() {
    let answer = gleaner(&["lab", "show", "limit-falls"]);
    assert_narrow(&answer.stdout, 80);
    for part in
        ["limit-falls: gleaner, 8 workers, seed 1", "/s ┤", "60 min", " refused ", "goodput ", "Reached nine tenths"]
    {
        assert!(answer.stdout.contains(part), "no {part:?} in:\n{}", answer.stdout);
    }
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn help_and_version_are_no_errors() {
    let version = gleaner(&["--version"]);
    assert_eq!((version.code, version.stdout.as_str()), (0, concat!("gleaner ", env!("CARGO_PKG_VERSION"), "\n")));
    for arguments in [&["help", "exit-codes"][..], &["exit-codes"], &["lab", "run", "--help"], &["help", "lab", "show"]]
    {
        let answer = gleaner(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}");
        let codes = answer.stdout.split_once("Exit codes:\n").map_or("", |(_, codes)| codes);
        let [success, failure] = ["0  complete", "1  failed"];
        let mut codes = codes.lines().map(str::trim_start);
        assert!(codes.next().is_some_and(|line| line.starts_with(success)), "{arguments:?}");
        assert!(codes.next().is_some_and(|line| line.starts_with(failure)), "{arguments:?}");
    }
}

#[test]
fn an_operator_inspects_the_cli_surface_and_finds_no_browser_to_start_or_stop() {
    let main = gleaner(&["--help"]).stdout;
    let commands = main.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ")).map(|(names, _)| names);
    let names =
        commands.flat_map(|names| names.split(", ")).filter(|name| !name.trim().is_empty() && !name.starts_with('-'));
    let names = names.collect::<Vec<_>>();
    assert!(names.contains(&"run") && names.contains(&"status"), "{names:?}");
    for name in &names {
        assert!(!name.contains("browser") && !name.contains("daemon"), "{name}");
        let help = gleaner(&[name, "--help"]).stdout.to_lowercase();
        // A page of ours may be opened in the owner's browser; none is ever started, joined or stopped by a command.
        for word in ["--browser", "browser start", "browser stop", "daemon", "cdp", "attach"] {
            assert!(!help.contains(word), "{name}: {word}");
        }
    }
    for word in ["start", "stop", "status", "restart", "logs", "bootstrap", "probe"] {
        assert_eq!(gleaner(&["browser", word]).code, 2, "{word}");
    }
}

#[test]
fn a_reader_that_leaves_early_ends_the_program_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(["lab", "run", "--law", "gleaner", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(first.as_slice(), b"{\"scenario\":\"buc");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn listed_scenarios_can_be_run_by_name() {
    let listed = gleaner(&["lab", "list", "--json"]).stdout;
    let names: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["scenario"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 24, "{names:?}");
    let answer = gleaner(&["lab", "run", &names[3], "--law", "aimd", "--workers", "1", "--json"]);
    assert!(answer.stdout.contains(&format!("\"scenario\":\"{}\"", names[3])), "{answer:?}");
}

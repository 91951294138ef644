//! `--json` is for programs: keys, their order, and the same bytes every time.

use crate::support::{BUCKET, gleaner, scenario_file};

const KEYS: [&str; 18] = [
    "scenario",
    "law",
    "workers",
    "seed",
    "accepted",
    "rejected",
    "sent",
    "bans",
    "oracle",
    "goodput",
    "violation_ratio",
    "latency_ratio",
    "converge_s",
    "sends_inside_retry_after",
    "score",
    "retries",
    "recover_s",
    "completion_s",
];

/// The keys of a flat JSON object, in order.
fn keys(line: &str) -> Vec<String> {
    let row: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
    assert!(row.as_object().is_some_and(|object| object.len() == KEYS.len()), "{line}");
    line.split('"').skip(1).step_by(2).filter(|part| KEYS.contains(part)).map(str::to_owned).collect()
}

#[test]
fn each_line_has_the_keys_of_the_format_in_their_order() {
    let answer = gleaner(&["lab", "run", "bucket-bare", "--law", "gleaner,aimd", "--json"]);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "two laws with 8 workers and with 1: {answer:?}");
    for line in &lines {
        assert_eq!(keys(line), KEYS);
    }
    assert!(lines[0].starts_with(r#"{"scenario":"bucket-bare","law":"gleaner","workers":8,"seed":1,"accepted":"#));
    assert!(lines[3].starts_with(r#"{"scenario":"bucket-bare","law":"aimd","workers":1,"seed":1,"accepted":"#));
    assert!(lines[0].ends_with(r#""recover_s":null,"completion_s":null}"#), "no change, no backlog: {}", lines[0]);
}

#[test]
fn two_runs_print_the_same_bytes() {
    let arguments = ["lab", "run", "bucket-bare", "random-5xx", "--seeds", "2", "--law", "gleaner,aimd", "--json"];
    let (first, second) = (gleaner(&arguments), gleaner(&arguments));
    assert_eq!(first.stdout.lines().count(), 16);
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn random_scenarios_are_the_same_for_the_same_seed_only() {
    let rows = |seed: &str| gleaner(&["lab", "run", "--random", "3", "--seed", seed, "--json"]).stdout;
    assert_eq!(rows("7").lines().count(), 3);
    assert_eq!(rows("7"), rows("7"));
    assert_ne!(rows("7"), rows("8"));
}

#[test]
fn seeds_and_workers_are_what_was_asked_for() {
    let answer = gleaner(&["lab", "run", "bucket-bare", "--law", "aimd", "--workers", "3", "--seeds", "2", "--json"]);
    let started = |line: &str, seed: u64| line.contains(&format!(r#""workers":3,"seed":{seed},"#));
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(started(lines[0], 1) && started(lines[1], 2), "{lines:?}");
}

#[test]
fn a_backlog_has_a_completion_time() {
    let file = scenario_file("backlog", BUCKET, "");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("backlog = 50\n{text}")).unwrap();
    let answer = gleaner(&["lab", "run", &file, "--law", "gleaner", "--workers", "2", "--json"]);
    let row: serde_json::Value = serde_json::from_str(answer.stdout.trim()).unwrap();
    assert_eq!(row["accepted"], 50);
    assert!(row["completion_s"].as_f64().is_some_and(|s| s > 1.0 && s < 600.0), "{row}");
}

//! `[expect]`: what a scenario file demands of our law decides the exit code.

use crate::support::{BUCKET, gleaner, scenario_file};

#[test]
fn what_is_met_is_silent() {
    let file = scenario_file("met", BUCKET, "[expect]\ngoodput_min = 0.1\nbans_max = 0");
    let answer = gleaner(&["lab", "run", &file, "--law", "gleaner,aimd", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn what_is_missed_is_said_line_by_line_and_fails() {
    let file = scenario_file("missed", BUCKET, "[expect]\nlatency_ratio_max = 1");
    let answer = gleaner(&["lab", "run", &file, "--law", "gleaner,aimd", "--seeds", "2", "--json"]);
    assert_eq!(answer.code, 1);
    let lines: Vec<&str> = answer.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "two numbers of workers, two seeds, our law only: {lines:?}");
    assert!(lines[0].starts_with("missed: missed, 2 workers, seed 1: latency ratio 1."), "{lines:?}");
    assert!(lines[0].ends_with(" > 1"), "{lines:?}");
    assert!(lines[3].starts_with("missed: missed, 1 worker, seed 2: "), "{lines:?}");
}

#[test]
fn other_laws_are_not_held_to_anything() {
    let file = scenario_file("others", BUCKET, "[expect]\nlatency_ratio_max = 1");
    let answer = gleaner(&["lab", "run", &file, "--law", "aimd"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

//! `lab tuning`, `--set` and `--sweep`: numbers of the law from outside.

use crate::support::gleaner;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn every_number_is_listed_with_value_unit_range_and_reason() {
    let answer = gleaner(&["lab", "tuning"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    assert!(answer.stdout.contains("  climb = 0.05 share, allowed 0.001 to 1\n    Step of Climb"), "{}", answer.stdout);
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80));
    let listed = lines(&gleaner(&["lab", "tuning", "--json"]).stdout);
    assert!(listed.len() > 150);
    for number in listed {
        let text = |key: &str| number[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(text("name") && text("group") && text("unit") && text("reason"), "{number}");
        let (min, max) = (number["min"].as_f64().unwrap(), number["max"].as_f64().unwrap());
        let values = number["value"].as_array().cloned().unwrap_or_else(|| vec![number["value"].clone()]);
        assert!(values.iter().all(|value| (min..=max).contains(&value.as_f64().unwrap())), "{number}");
        assert!(answer.stdout.contains(&format!("  {} = ", number["name"].as_str().unwrap())), "{number}");
    }
}

#[test]
fn a_number_that_is_set_changes_our_law_and_the_shipped_value_changes_nothing() {
    // One worker alone would meet no refusal, and so would never climb.
    let eight = ["lab", "run", "bucket-bare", "--workers", "8", "--json"];
    let run = |more: &[&str]| gleaner(&[&eight[..], &["--law", "gleaner,aimd"], more].concat()).stdout;
    let (shipped, other) = (run(&[]), run(&["--set", "climb=0.2", "--set", "turns=1:60"]));
    assert_eq!(run(&["--set", "climb=0.05"]), shipped);
    for (before, after) in shipped.lines().zip(other.lines()) {
        assert_eq!(before == after, before.contains("\"aimd\""), "{after}");
    }
    let alone = gleaner(&[&eight[..], &["--set", "climb=0.2"]].concat()).stdout;
    assert!(alone.lines().count() == 1 && other.contains(&alone), "gleaner alone: {alone}");
    let show = |value: &str| gleaner(&["lab", "show", "limit-falls", "--set", value]).stdout;
    assert_ne!(show("probe=0.02"), show("probe=0.2"));
}

#[test]
fn a_sweep_has_a_row_per_value() {
    let arguments = ["lab", "run", "bucket-bare", "limit-falls", "--sweep", "climb=0.02,0.05,0.2"];
    let answer = gleaner(&arguments);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let rows: Vec<&str> = answer.stdout.lines().filter(|line| line.starts_with("0.")).collect();
    assert_eq!(rows.len(), 3, "{}", answer.stdout);
    assert!(rows.iter().zip(["0.02 ", "0.05 ", "0.2 "]).all(|(row, value)| row.starts_with(value)), "{rows:?}");
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    assert!(answer.stdout.starts_with("climb: 4 runs per value; shipped: 0.05; allowed: 0.001 to 1 share\n"));

    let objects = lines(&gleaner(&[&arguments[..], &["--set", "hold_s=60", "--json"]].concat()).stdout);
    let values: Vec<f64> = objects.iter().map(|object| object["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [0.02, 0.05, 0.2]);
    assert!(
        objects
            .iter()
            .all(|object| object["number"] == "climb" && object["runs"] == 4 && object["set"]["hold_s"] == 60)
    );
    assert!(objects[1]["set"].get("climb").is_none(), "as shipped: {}", objects[1]);
    let random = gleaner(&["lab", "run", "--random", "3", "--sweep", "turns=1:60,1:3600", "--json"]).stdout;
    assert_eq!(lines(&random).iter().map(|object| object["runs"].clone()).collect::<Vec<_>>(), [3, 3]);
}

//! Each kind of bad input: exit 2, the file and the key, what is allowed, and a hint.

use crate::support::{BUCKET, folder, gleaner, scenario_file};

/// Runs and expects a refusal whose message contains all of `parts`.
fn refused(arguments: &[&str], parts: &[&str]) {
    let answer = gleaner(arguments);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert_eq!(answer.stdout, "");
    for part in parts {
        assert!(answer.stderr.contains(part), "no {part:?} in:\n{}", answer.stderr);
    }
}

fn refused_file(test: &str, limit: &str, extra: &str, parts: &[&str]) {
    let file = scenario_file(test, limit, extra);
    refused(&["lab", "run", &file], &[&[file.as_str(), "error: ", "\nhint: correct "], parts].concat());
}

#[test]
fn an_unknown_key_is_named_with_those_that_are_known() {
    let parts = ["unknown field `colour`", "expected one of", "`rate_per_s`"];
    refused_file("unknown-key", &format!("{BUCKET}\ncolour = 3"), "", &parts);
    refused_file("unknown-section-key", BUCKET, "[signal]\nstats = 429", &["unknown field `stats`", "`status`"]);
}

#[test]
fn a_negative_rate_is_named_with_what_is_allowed() {
    let limit = "kind = \"token_bucket\"\nrate_per_s = -5\nburst = 5";
    refused_file(
        "negative",
        limit,
        "",
        &["limit[0].rate_per_s = -5", "allowed: more than 0", "hint: correct limit[0]"],
    );
}

#[test]
fn a_zero_window_is_named_with_what_is_allowed() {
    let limit = "kind = \"fixed_window\"\nlimit = 5\nwindow_s = 0";
    refused_file("zero-window", limit, "", &["limit[0].window_s = 0", "allowed: more than 0"]);
}

#[test]
fn a_missing_key_and_a_wrong_kind_are_named() {
    refused_file("missing-key", "kind = \"token_bucket\"\nrate_per_s = 5", "", &["limit[0].burst is missing"]);
    refused_file("wrong-kind", "kind = \"bucket\"", "", &["unknown variant `bucket`", "`token_bucket`"]);
}

#[test]
fn an_unknown_law_is_answered_with_the_laws_and_the_nearest() {
    refused(
        &["lab", "run", "--law", "gleanr"],
        &["\"gleanr\"", "allowed: gleaner, ", "aimd", "hint: did you mean gleaner?"],
    );
    refused(&["lab", "show", "bucket-bare", "--law", "zzz"], &["\"zzz\"", "allowed: gleaner", "hint: "]);
}

#[test]
fn a_number_of_the_law_that_makes_no_sense_is_named_with_what_is_allowed() {
    for (option, assignment, parts) in [
        (
            "--set",
            "clmb=0.1",
            ["no number of the law is called \"clmb\"", "did you mean climb?", "`gleaner lab tuning`"],
        ),
        ("--sweep", "zzz=0.1", ["no number of the law is called \"zzz\"", "hint: ", "`gleaner lab tuning`"]),
        ("--set", "climb", ["\"climb\" has no =", "--set climb=0.04", "`gleaner lab tuning`"]),
        ("--set", "climb=fast", ["climb: \"fast\" is not a number", "allowed: 0.001 to 1 share", "shipped: 0.05"]),
        ("--set", "climb=7", ["climb: \"7\" is out of range", "allowed: 0.001 to 1 share", "shipped: 0.05"]),
        ("--set", "hold_look=2.5", ["\"2.5\" is not a whole number", "allowed: 1 to 1000 successes", "shipped: 4"]),
        ("--sweep", "climb=0.1,,0.2", ["climb: \"\" is not a number", "allowed: 0.001 to 1 share", "shipped: 0.05"]),
        ("--sweep", "turns=1:60,60:1", ["turns: \"60:1\" is not a list", "each larger", "shipped: 1:10:60"]),
    ] {
        refused(&["lab", "run", "bucket-bare", option, assignment], &parts);
    }
    refused(&["lab", "run", "--set", "climb=0.1", "--set", "climb=0.2"], &["climb is set twice"]);
    refused(&["lab", "run", "--set", "climb=0.1", "--sweep", "climb=0.2"], &["climb is also in --set"]);
    refused(&["lab", "run", "--sweep", "climb=0.2", "--law", "aimd"], &["cannot be used with"]);
    refused(&["lab", "show", "bucket-bare", "--set", "climb=0"], &["out of range"]);
}

#[test]
fn an_unknown_scenario_is_answered_with_the_nearest() {
    refused(&["lab", "show", "buckt-bare"], &["\"buckt-bare\"", "hint: did you mean bucket-bare?"]);
    refused(&["lab", "run", "zzz"], &["\"zzz\"", "gleaner lab list"]);
}

#[test]
fn an_unreadable_file_is_named() {
    refused(&["lab", "run", "no/such.toml"], &["no/such.toml: cannot be read", "hint: "]);
    let empty = folder("empty-folder");
    refused(&["lab", "run", empty.to_str().unwrap()], &["empty-folder: holds no .toml file", "hint: "]);
}

#[test]
fn escapes_in_a_file_do_not_reach_the_terminal() {
    refused_file("escapes", BUCKET, "\"\\u001b[31mred\" = 1", &["red"]);
    let answer = gleaner(&["lab", "run", &scenario_file("escapes", BUCKET, "\"\\u001b[31mred\" = 1")]);
    assert!(!answer.stderr.contains('\u{1b}'), "{answer:?}");
}

#[test]
fn options_out_of_range_are_refused() {
    refused(&["lab", "run", "--seeds", "0"], &["--seeds"]);
    refused(&["lab", "run", "--workers", "0"], &["--workers"]);
    refused(&["lab", "run", "--seed", "3"], &["--random"]);
    refused(&["lab", "run", "--random", "3", "bucket-bare"], &["cannot be used with"]);
}

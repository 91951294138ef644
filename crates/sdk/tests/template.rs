//! The connector of `gleaner new connector --lang rust` passes the checks that any connector must pass, and is short.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

/// The template itself, so that the test that comes with it is run.
#[path = "../../cli/templates/rust/src/main.rs"]
#[expect(dead_code, reason = "nobody calls its main")]
mod template;

use gleaner_conformance::{Limits, Subject, Verdict};
use gleaner_runtime::Environment;
use std::ffi::OsString;

const SOURCE: &str = include_str!("../../cli/templates/rust/src/main.rs");
const MANIFEST: &str = include_str!("../../cli/templates/rust/manifest.json");

/// An example, which cargo puts beside the folder of the tests.
fn example(name: &str) -> OsString {
    let ourselves = std::env::current_exe().unwrap();
    let path = ourselves.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p gleaner-sdk --examples");
    path.into_os_string()
}

fn subject(command: OsString, manifest: &str) -> Subject {
    let mut environment = Environment::default();
    environment.set("EXAMPLE_TOKEN", "t-0815-secret");
    Subject {
        command: vec![command],
        manifest: Some(manifest.to_owned()),
        streams: Vec::new(),
        environment,
        secrets: Vec::new(),
        provider_variable: None,
        folder: None,
        scratch: None,
        guard: vec![example("counter"), "guard".into()],
        exec: vec![example("counter"), "exec".into()],
        limits: Limits::default(),
        seed: 1,
    }
}

#[test]
fn the_rust_template_passes_every_check() {
    let subject = subject(example("template"), MANIFEST);
    let report = gleaner_conformance::check(&subject, &mut |_| {});
    let is_good = |verdict: &Verdict| matches!(verdict, Verdict::Passed | Verdict::Skipped { .. });
    let bad = report.checks.iter().filter(|check| !is_good(&check.verdict)).collect::<Vec<_>>();
    assert!(report.is_conclusive() && bad.is_empty(), "{bad:#?}");
    let passed = report.checks.iter().filter(|check| matches!(check.verdict, Verdict::Passed)).count();
    assert!(passed >= 58, "the sample leaves a gap and a page, so that there is something to check: {passed}");
}

/// With the one check that needs a provider: a connector of the SDK remembers a Retry-After that it is killed after.
#[test]
fn a_connector_of_the_sdk_keeps_a_retry_after_across_a_kill() {
    const COUNTER: &str = r#"{"connector_id": "counter", "connector_key": "counter", "version": "1",
        "streams": [{"name": "numbers", "semantics": "append_only", "incremental": true}]}"#;
    let mut subject = subject(example("counter"), COUNTER);
    subject.provider_variable = Some("COUNT_URL".to_owned());
    (subject.limits.kills, subject.limits.slow) = (0, std::time::Duration::ZERO);
    let report = gleaner_conformance::check(&subject, &mut |_| {});
    assert_eq!(report.result("retry_after_kept").unwrap().verdict, Verdict::Passed);
}

#[test]
fn the_rust_template_is_at_most_120_lines_without_its_test() {
    let without_test = SOURCE.split_once("#[cfg(test)]").unwrap().0;
    let lines = without_test.lines().count();
    assert!(lines <= 120, "{lines}");
    for word in ["slice", "Budget", "coverage", "STATE", "DONE", "retry", "sleep"] {
        let code = without_test.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
        assert!(!code.contains(word), "an author need not write about {word}");
    }
}

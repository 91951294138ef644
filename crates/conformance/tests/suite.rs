//! A good connector passes every check, and for each check there is a bad one that it catches.
//!
//! The connectors are one Python program with a switch (`connector.py`), and the manifest with a change.
//! What a bad connector must fail is written down here, and it may fail nothing else.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

use gleaner_conformance::{CHECKS, CheckResult, Finding, Limits, Report, Subject, Verdict, check};
use gleaner_runtime::Environment;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

const SECRET: &str = "s3cr3t-token-value";
/// How many subjects are checked at the same time.
const WORKERS: usize = 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The interpreter itself, which also compiles the programs. What is found on the PATH may be a script
/// that looks for it, and takes longer than all that a connector here does.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let compile = r"
import py_compile, sys
for name in ('connector.py', 'plain_connector.py'):
    py_compile.compile(f'{sys.argv[1]}/{name}', cfile=f'{sys.argv[2]}/{name}c', doraise=True)
print(sys.executable)";
        let mut command = Command::new("python3");
        let output = command.args(["-c", compile]).arg(folder()).arg(env!("CARGO_TARGET_TMPDIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

fn manifest() -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder().join("manifest.json")).unwrap()).unwrap()
}

/// Short, so that the suite is; long enough for a machine that is busy.
fn limits() -> Limits {
    Limits {
        total: Duration::from_secs(60),
        start: Duration::from_secs(5),
        first_line: Duration::from_secs(4),
        after_term: Duration::from_secs(2),
        after_ack: Duration::from_secs(2),
        slow: Duration::from_millis(300),
        linger: Duration::from_millis(300),
        kills: 2,
        refusal: Duration::from_millis(1500),
    }
}

fn subject(program: &str, fault: &str, manifest: &Value) -> Subject {
    let driver = env!("CARGO_BIN_EXE_conformance-driver");
    let mut environment = Environment::for_connector(std::env::vars_os(), &[]);
    environment.set("SHOP_TOKEN", SECRET);
    if fault == "complete_after_scope" {
        let memory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-{}", std::process::id()));
        drop(std::fs::remove_file(&memory));
        environment.set("SHOP_MEMORY", memory);
    }
    let python = python();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}c")).into_os_string();
    let mut command = vec![python.into(), "-S".into(), "-E".into(), program];
    if !fault.is_empty() {
        command.extend(["--fault", fault].map(Into::into));
    }
    Subject {
        command,
        manifest: Some(manifest.to_string()),
        streams: Vec::new(),
        environment,
        secrets: Vec::new(),
        provider_variable: ["", "retry_after_kept"].contains(&fault).then(|| "SHOP_URL".to_owned()),
        folder: None,
        // In memory where there is such a folder: the disk is synced after every slice.
        scratch: Some(PathBuf::from("/dev/shm")).filter(|folder| folder.is_dir()),
        guard: vec![driver.into(), "guard".into()],
        exec: vec![driver.into(), "exec".into()],
        limits: limits(),
        seed: 20_310_101,
    }
}

fn run(subject: &Subject) -> Report {
    check(subject, &mut |_| {})
}

/// The checks that did not hold, with a `?` behind those that only warn.
fn caught(report: &Report) -> Vec<String> {
    let name = |result: &CheckResult| match result.verdict {
        Verdict::Failed { .. } => Some(result.id.to_owned()),
        Verdict::Warned { .. } => Some(format!("{}?", result.id)),
        Verdict::Passed | Verdict::Skipped { .. } => None,
    };
    report.checks.iter().filter_map(name).collect()
}

/// A bad connector: its fault, and what catches it.
struct Bad {
    fault: &'static str,
    manifest: Value,
    caught: Vec<String>,
}

/// The manifest with one place changed.
fn changed(place: &str, value: Value) -> Value {
    let mut manifest = manifest();
    *manifest.pointer_mut(place).unwrap() = value;
    manifest
}

/// Faults of the manifest, which the program has no part in.
fn bad_manifests() -> Vec<Bad> {
    let warned = |id: &str| vec![format!("{id}?")];
    let bad = |manifest, caught| Bad { fault: "", manifest, caught };
    let unavailable = json!({"name": "orders", "semantics": "append_only", "coverage_policy": "unavailable"});
    let mut contradiction = manifest();
    contradiction["streams"].as_array_mut().unwrap().push(unavailable);
    let mut no_policy = manifest();
    no_policy["capabilities"].as_object_mut().unwrap().remove("refresh_policy");
    vec![
        bad(changed("/streams/0/semantics", json!("sometimes")), vec!["manifest_valid".to_owned()]),
        bad(contradiction, warned("manifest_clean")),
        bad(changed("/streams/0/schema", json!({"type": 7})), vec!["manifest_schemas".to_owned()]),
        bad(changed("/streams/0/schema", Value::Null), warned("manifest_schemas")),
        bad(
            changed("/streams/0/primary_key", json!("number")),
            vec![
                "manifest_primary_keys".to_owned(),
                // Records do not have it either.
                "primary_key_matches".to_owned(),
            ],
        ),
        bad(no_policy, warned("manifest_refresh_policy")),
    ]
}

/// Faults of the program. Each bears the name of the check that catches it, alone unless it says so.
fn bad_programs() -> Vec<Bad> {
    const ONLY_WARNED: [&str; 3] = ["full_run", "deterministic", "evidence"];
    // After a kill nothing is given back of a list whose report never came.
    const WITH_NOTHING_SAVED: [&str; 2] = ["first_incremental", "complete_after_scope"];
    let of_manifest = |id: &&str| id.starts_with("manifest_");
    let ids = CHECKS.iter().map(|check| check.id).filter(|id| !of_manifest(id));
    let own = ids.map(|id| {
        let caught = if ONLY_WARNED.contains(&id) { format!("{id}?") } else { id.to_owned() };
        let too = WITH_NOTHING_SAVED.contains(&id).then(|| "resume_complete".to_owned());
        Bad { fault: id, manifest: manifest(), caught: [caught].into_iter().chain(too).collect() }
    });
    let more = [
        ("utf8_nul", "utf8"),
        ("utf8_mark", "utf8"),
        ("credentials_in_progress", "no_credentials_in_output"),
        ("cap_class", "run_budget"),
    ];
    let more = more.map(|(fault, id)| Bad { fault, manifest: manifest(), caught: vec![id.to_owned()] });
    own.chain(more).collect()
}

/// Runs something for each, two at a time.
fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fault = work(item);
                    faults.lock().unwrap().extend(fault);
                }
            });
        }
    });
    faults.into_inner().unwrap()
}

#[test]
fn a_good_connector_passes_every_check() {
    let mut starts = 0;
    let mut decided = 0;
    let report = check(&subject("connector.py", "", &manifest()), &mut |finding| match finding {
        Finding::Start(_) => starts += 1,
        Finding::Decided(_) => decided += 1,
    });
    for result in &report.checks {
        assert_eq!(result.verdict, Verdict::Passed, "{}", result.id);
    }
    assert_eq!((decided, starts), (CHECKS.len(), report.starts));
}

#[test]
fn every_check_has_a_bad_connector_that_it_catches() {
    let bad = bad_manifests().into_iter().chain(bad_programs()).collect::<Vec<_>>();
    for check in CHECKS {
        let has_one = bad.iter().any(|bad| bad.caught.iter().any(|id| id.trim_end_matches('?') == check.id));
        assert!(has_one, "{} has no bad connector", check.id);
    }
    let faults = for_each(&bad, |bad| {
        let began = Instant::now();
        let mut subject = subject("connector.py", bad.fault, &bad.manifest);
        if bad.fault.is_empty() {
            // A fault of the manifest shows at once; the rest is skipped.
            subject.limits.total = Duration::from_secs(2);
        }
        let report = run(&subject);
        println!("{:?} {:?} after {} starts, {:?}", bad.fault, bad.caught, report.starts, began.elapsed());
        let found = caught(&report);
        let results =
            report.checks.iter().filter(|result| !matches!(result.verdict, Verdict::Passed | Verdict::Skipped { .. }));
        let shown = || results.map(|result| format!("\n    {result:?}")).collect::<String>();
        (found != bad.caught).then(|| format!("{:?}: expected {:?}, found {found:?}{}", bad.fault, bad.caught, shown()))
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_fault_is_named_with_its_line_and_what_to_do() {
    let report = run(&subject("connector.py", "fits_schema", &manifest()));
    let Verdict::Failed { what, line, hint } = &report.result("fits_schema").unwrap().verdict else { panic!() };
    // After the news and the albums 0 and 1.
    assert_eq!(*line, Some(4));
    assert!(what.contains("\"albums\"") && what.contains("/size") && !hint.is_empty(), "{what}");
    let report = run(&subject("connector.py", "no_noise", &manifest()));
    let Verdict::Failed { line, what, .. } = &report.result("no_noise").unwrap().verdict else { panic!() };
    assert_eq!(*line, Some(2));
    assert!(!what.contains("shop"), "a line is never repeated: {what}");
    let Verdict::Skipped { why } = &report.result("resume_complete").unwrap().verdict else { panic!() };
    assert!(why.contains("bad_json at line 2"), "{why}");
}

/// The other connector: nothing but what is demanded.
fn plain(names: &[&str]) -> Subject {
    let stream = |name: &&str| {
        json!({"name": name, "semantics": "append", "primary_key": ["id"], "incremental": true,
            "schema": {"type": "object", "properties": {"id": {"type": "integer"}}}})
    };
    let manifest = json!({"connector_id": "plain", "connector_key": "plain", "version": "1",
        "streams": names.iter().map(stream).collect::<Vec<_>>()});
    subject("plain_connector.py", "", &manifest)
}

fn is_skipped(report: &Report, id: &str, because: &str) -> bool {
    matches!(&report.result(id).unwrap().verdict, Verdict::Skipped { why } if why.contains(because))
}

#[test]
fn a_connector_without_slices_and_gaps_fails_nothing() {
    let report = run(&plain(&["events", "tasks"]));
    assert_eq!(caught(&report), ["manifest_refresh_policy?"]);
    assert!(is_skipped(&report, "resume_bounded", "no states with `slice`"));
    assert!(is_skipped(&report, "gaps_answered", "left no gap"));
    assert!(is_skipped(&report, "missing_credentials", "declares no credentials"));
    assert_eq!(report.result("resume_complete").unwrap().verdict, Verdict::Passed);
}

#[test]
fn without_a_manifest_a_stream_is_asked_for_by_name() {
    let named = Subject { manifest: None, streams: vec!["events".to_owned()], ..plain(&[]) };
    let report = run(&named);
    assert_eq!(caught(&report), [""; 0]);
    assert!(is_skipped(&report, "manifest_valid", "no manifest"));
    assert_eq!(report.result("resume_complete").unwrap().verdict, Verdict::Passed);
    let nothing = run(&Subject { streams: Vec::new(), ..named });
    assert_eq!((caught(&nothing), nothing.starts), (Vec::new(), 0));
    assert!(is_skipped(&nothing, "starts", "neither a manifest nor a stream"));
}

#[test]
fn missing_credentials_are_named_and_the_rest_is_skipped() {
    let with = subject("connector.py", "", &manifest());
    let report = run(&Subject { environment: Environment::for_connector(std::env::vars_os(), &[]), ..with });
    assert_eq!((caught(&report), report.starts), (Vec::new(), 1));
    assert!(is_skipped(&report, "resume_complete", "set SHOP_TOKEN"));
    assert_eq!(report.result("missing_credentials").unwrap().verdict, Verdict::Passed);
}

#[test]
fn a_connector_that_cannot_sign_in_says_so_in_the_report() {
    let mut subject = plain(&["events"]);
    subject.environment.set("PLAIN_SIGN_IN", "1");
    let report = run(&subject);
    assert_eq!(caught(&report), ["manifest_refresh_policy?", "full_run?"]);
    assert!(is_skipped(&report, "fields", "plain_credentials_rejected"));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let subject = Subject { command: vec!["/no/such/connector".into()], ..plain(&["events"]) };
    let report = run(&subject);
    let Verdict::Failed { what, .. } = &report.result("starts").unwrap().verdict else { panic!() };
    assert!(what.contains("/no/such/connector"), "{what}");
}

#[test]
fn the_time_of_the_whole_is_bounded() {
    let mut subject = subject("connector.py", "", &manifest());
    subject.limits.total = Duration::from_millis(1500);
    subject.limits.slow = Duration::from_secs(30);
    let began = Instant::now();
    let report = run(&subject);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(is_skipped(&report, "stops_on_sigterm", "no time was left"));
    assert_eq!(caught(&report), [""; 0], "what we cut short is nobody's fault");
}

#[test]
fn the_same_seed_kills_at_the_same_lines() {
    let lost = |seed| {
        let subject = Subject { seed, ..subject("connector.py", "resume_complete", &manifest()) };
        run(&subject).result("resume_complete").unwrap().verdict.clone()
    };
    assert_eq!(lost(5), lost(5));
    assert!(matches!(lost(6), Verdict::Failed { .. }));
}

#[test]
fn what_a_connector_says_about_itself_is_shown_without_its_credentials() {
    let mut subject = plain(&["events"]);
    subject.environment.set("PLAIN_SIGN_IN", "1");
    subject.secrets = vec!["plain_credentials_rejected".to_owned()];
    let report = run(&subject);
    assert!(!format!("{subject:?} {report:?}").contains("plain_credentials"), "{report:?}");
    assert!(caught(&report).contains(&"no_credentials_in_output".to_owned()), "{report:?}");
}

#[test]
fn every_check_is_explained_in_the_documentation() {
    let text = std::fs::read_to_string(folder().join("../../../docs/conformance.md")).unwrap();
    for check in CHECKS {
        assert!(text.contains(&format!("| `{}` | {} |", check.id, check.title)), "{} is missing", check.id);
    }
}

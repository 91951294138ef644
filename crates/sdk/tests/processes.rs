//! A connector as a process: its last words arrive whole, it ends when nobody reads, and a real runtime
//! keeps what it said. The connector is `examples/counter.rs`.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]
#![expect(clippy::disallowed_methods, reason = "it waits for another process")]

mod world;

use gleaner_engine::{CatchUp, Steady};
use gleaner_protocol::{RunBudget, TerminalReason};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use world::World;

const SOURCE: &str = include_str!("../examples/counter.rs");

const START: &str = r#"{"type":"START","run_id":"r","collection_mode":"incremental","state":null,"bindings":{},"scope":{"streams":[{"name":"numbers"}]},"detail_gaps":[]}"#;

fn spawn(settings: &[(&str, &str)]) -> Child {
    let mut command = Command::new(world::example("counter"));
    command.envs(settings.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{START}").unwrap();
    child
}

/// How long until it ends, and whether it succeeded. It is killed after a bound, and then that is the time.
fn wait(child: &mut Child, bound: Duration) -> (Duration, bool) {
    let start = Instant::now();
    while start.elapsed() < bound {
        if let Some(status) = child.try_wait().unwrap() {
            return (start.elapsed(), status.success());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    (start.elapsed(), child.wait().unwrap().success())
}

#[test]
fn final_done_message_on_a_pipe() {
    // Far more than a pipe holds, and a reader that is not in a hurry at the end.
    let mut child = spawn(&[("COUNT_TO", "20000"), ("COUNT_PAD", "100"), ("COUNT_PRINT", "1")]);
    let mut lines = Vec::new();
    let mut output = BufReader::with_capacity(4096, child.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).unwrap() == 0 {
            panic!("the output ended without DONE");
        }
        assert!(line.ends_with('\n'), "half a line: {line:?}");
        if lines.len() == 19_900 {
            std::thread::sleep(Duration::from_millis(300));
        }
        lines.push(serde_json::from_str::<Value>(&line).unwrap());
        if lines.last().unwrap()["type"] == "DONE" {
            break;
        }
    }
    let records = lines.iter().filter(|line| line["type"] == "RECORD").count();
    assert_eq!((records, &lines.last().unwrap()["records_emitted"]), (20_000, &Value::from(20_000)));
    // It waits until everything is saved, which the end of its input says.
    assert_eq!(child.try_wait().unwrap(), None);
    drop(child.stdin.take());
    let (_, succeeded) = wait(&mut child, Duration::from_secs(5));
    assert!(succeeded);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing after DONE");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("a library prints this"), "what a library prints breaks nothing: {errors:?}");
}

#[test]
fn safety_timeout() {
    // Nobody reads, and all of it fits the queue: the runtime hangs.
    let mut child = spawn(&[("COUNT_TO", "200"), ("COUNT_PAD", "1000")]);
    let (took, succeeded) = wait(&mut child, Duration::from_secs(10));
    assert!(took <= Duration::from_secs(3) && !succeeded, "{took:?}");
    // Nobody reads, it is more than the queue holds, and the input is closed: the runtime is gone. Filling the
    // queue takes a second or two without optimisation, and the bound counts from then.
    let mut child = spawn(&[("COUNT_TO", "10000"), ("COUNT_PAD", "100000"), ("COUNT_PAGE", "10")]);
    drop(child.stdin.take());
    let (took, succeeded) = wait(&mut child, Duration::from_secs(20));
    assert!(took <= Duration::from_secs(5) && !succeeded, "{took:?}");
    // The reader is gone altogether.
    let mut child = spawn(&[("COUNT_TO", "200000"), ("COUNT_PAD", "100")]);
    drop(child.stdout.take());
    let (took, succeeded) = wait(&mut child, Duration::from_secs(10));
    assert!(took <= Duration::from_secs(2) && !succeeded, "{took:?}");
}

#[test]
fn early_end_of_the_input_does_not_stop_a_run() {
    let mut child = spawn(&[("COUNT_TO", "5000")]);
    drop(child.stdin.take());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.lines().last().unwrap().contains("\"succeeded\""));
    assert!(wait(&mut child, Duration::from_secs(5)).1);
}

#[test]
fn a_panic_says_its_place_and_not_its_text() {
    let mut child = spawn(&[("COUNT_TO", "500"), ("COUNT_PANIC", "300")]);
    drop(child.stdin.take());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let done = serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap();
    let message = done["error"]["message"].as_str().unwrap();
    assert!(message.contains("counter.rs:") && !message.contains("stays on"), "{message}");
    assert_eq!(done["records_emitted"], 300, "three pages were sent before");
    assert!(!wait(&mut child, Duration::from_secs(5)).1);
}

#[test]
fn a_history_fills_in_over_several_bounded_runs() {
    let world = World::new("counter", SOURCE, &["numbers"]);
    let settings = [("COUNT_TO", "950"), ("COUNT_PAGE", "100")];
    let budget = Some(RunBudget { max_requests: Some(4), max_duration_ms: None });
    for (records, gap) in [(400, "pending"), (800, "pending"), (950, "recovered")] {
        let report = world.run(&settings, budget);
        assert_eq!(report.outcome.reason, TerminalReason::Succeeded, "{:?} {}", report.outcome, report.errors);
        assert_eq!(world.records("numbers"), records);
        assert_eq!(world.gaps(), [(gap.to_owned(), true)], "one gap for the rest, by the owner's cap");
    }
    let report = world.run(&settings, budget);
    assert_eq!((report.outcome.counts.collected(), world.records("numbers")), (0, 950), "nothing is collected twice");
}

#[test]
fn a_catch_up_run_does_not_advance_the_steady_state_incremental_cursor() {
    let world = World::new("counter", SOURCE, &["numbers"]);
    world.run(&[("COUNT_TO", "300")], None);
    let steady = world.cursor::<Steady>("numbers");
    assert!(steady.as_ref().is_some_and(|cursor| cursor.contains("300")), "{steady:?}");
    let caught_up = world.run_on::<CatchUp>(&[("COUNT_TO", "120"), ("COUNT_PAGE", "50")], None);
    assert_eq!(caught_up.outcome.reason, TerminalReason::Succeeded, "{}", caught_up.errors);
    assert_eq!(world.cursor::<Steady>("numbers"), steady, "byte for byte");
    let catch_up = world.cursor::<CatchUp>("numbers");
    assert!(
        catch_up.as_ref().is_some_and(|cursor| cursor.contains("120")),
        "it has a bookmark of its own: {catch_up:?}"
    );
    let next = world.run(&[("COUNT_TO", "310")], None);
    assert_eq!(next.outcome.counts.collected(), 10, "and what is new goes on where it was");
}

#[test]
fn the_checkpoint_never_advances_past_the_last_page_for_which_a_durable_write_was_confirmed() {
    let world = World::new("counter", SOURCE, &["numbers"]);
    let report = world.run(&[("COUNT_TO", "500"), ("COUNT_PANIC", "300")], None);
    assert_ne!(report.outcome.reason, TerminalReason::Succeeded);
    assert_eq!(world.records("numbers"), 300, "pages before the failure are kept");
    let report = world.run(&[("COUNT_TO", "500")], None);
    assert_eq!((report.outcome.counts.collected(), world.records("numbers")), (200, 500), "and not collected again");
}

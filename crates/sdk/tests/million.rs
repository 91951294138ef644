//! A million listed keys in one run: what the connector and its runtime hold in memory, each a process of its own.
//!
//! The runtime is this test again in another process, because a peak is that of a whole process; the connector is
//! `examples/long_list.rs`, which says its own on its errors.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "it says what was measured")]

mod world;

use gleaner_protocol::TerminalReason;
use std::process::Command;
use world::World;

const KEYS: u64 = 1_000_000;
/// By the order, in the connector and in the runtime each.
const PEAK_KIB_MAX: u64 = 100 * 1024;
/// Set in the process that is measured; says how many keys share a time.
const MEASURED: &str = "GLEANER_TEST_MILLION";

/// The number of a line like `VmHWM:  1234 kB` or `connector peak 1234 kB`.
fn kib_after(text: &str, start: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_else(|| panic!("{start}: {text}"))
}

#[test]
fn the_measured_process() {
    let Ok(ties) = std::env::var(MEASURED) else { return };
    let world = World::new("long_list", include_str!("../examples/long_list.rs"), &["items", "details"]);
    let report = world.run(&[("LIST_KEYS", &KEYS.to_string()), ("LIST_TIES", &ties)], None);
    let runtime = kib_after(&std::fs::read_to_string("/proc/self/status").unwrap(), "VmHWM:");
    let connector = kib_after(&report.errors, "connector peak");
    assert_eq!(report.outcome.reason, TerminalReason::Succeeded, "{:?}", report.outcome);
    assert_eq!((report.outcome.counts.collected(), report.outcome.counts.unaccounted), (KEYS / 10, 0));
    println!("peak: connector {connector} KiB, runtime {runtime} KiB");
    assert!(connector < PEAK_KIB_MAX && runtime < PEAK_KIB_MAX, "connector {connector} KiB, runtime {runtime} KiB");
}

fn measure(ties: u64) {
    let mut measured = Command::new(std::env::current_exe().unwrap());
    let measured = measured.args(["--exact", "the_measured_process", "--nocapture"]).env(MEASURED, ties.to_string());
    let output = measured.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success() && text.contains("peak: "), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_million_listed_keys_in_one_run_cost_connector_and_runtime_less_than_100_mb_each() {
    measure(1);
}

#[test]
fn a_million_keys_of_which_a_hundred_thousand_share_a_time_cost_no_more() {
    measure(100_000);
}

//! A million listed keys in one run: what the connector's side holds in memory.
//!
//! The measured process is this test again, in a process of its own, because a peak is that of a whole process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "it says what was measured")]

use gleaner_protocol::{
    CollectionMode, CoverageField, Decoder, Event, Limits, RuntimeMessage, Scope, Start, StreamScope,
};
use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Source, Target};
use gleaner_sdk::{Collect, Connector, FetchError, Stop, Surroundings, SystemClock, Wire, WireFault, run_on};
use std::process::{Command, ExitCode};
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const PAGE: u64 = 500;
/// By the order.
const PEAK_KIB_MAX: u64 = 100 * 1024;
/// Set in the process that is measured; says how many keys share a time.
const MEASURED: &str = "GLEANER_TEST_MILLION";
const MANIFEST: &str = r#"{"connector_id":"model","connector_key":"model","version":"1","streams":[
    {"name":"items","semantics":"mutable_state","primary_key":"id"},
    {"name":"details","semantics":"mutable_state","primary_key":"id","parent_streams":["items"],
     "coverage_strategy":"parent_detail_accounting"}]}"#;

/// Lists keys of 20 bytes; so many share a time.
struct Long {
    ties: u64,
}

impl Source for Long {
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        // Numbers count down from the newest.
        let newest = at.at_or_older_than.as_ref().map_or(u64::MAX, |at| at.as_str().parse::<u64>().unwrap());
        let first = (KEYS / self.ties).saturating_sub(newest) * self.ties;
        let first = at.page.as_ref().map_or(first, |page| page.parse().unwrap());
        let last = (first + PAGE).min(KEYS);
        let items =
            (first..last).map(|n| ListItem::new(format!("{:020}", n * 7919 % KEYS), KEYS / self.ties - n / self.ties));
        Ok(ListPage { items: items.collect(), next: (last < KEYS).then(|| last.to_string()), left: None })
    }

    /// Half of them have a record: memory does not depend on what was sent.
    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        let number = target.key.parse::<u64>().unwrap();
        Ok(if number.is_multiple_of(20) {
            Detail::new().record(target.key.as_str(), &serde_json::json!({}))
        } else {
            Detail::new()
        })
    }
}

impl Connector for Long {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        run.lane("items", "details").slice_of(10_000).collect_from(self).map(|_| ())
    }
}

/// Reads everything and keeps nothing.
struct Reads {
    start: Option<RuntimeMessage>,
    decoder: Decoder,
    keys: [u64; 4],
    is_complete: bool,
}

impl Wire for Reads {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        let mut feed = self.decoder.feed(bytes);
        while let Some(event) = feed.next() {
            match event {
                Event::CoverageKeys { field, keys, .. } => {
                    let list = CoverageField::ALL.iter().position(|other| *other == field).unwrap();
                    self.keys[list] += keys.len() as u64;
                }
                Event::CoverageEnd { .. } => self.is_complete = true,
                Event::Violation(violation) => panic!("{violation}"),
                Event::Message { .. } => {}
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        Ok(self.start.take())
    }

    fn drain(&mut self, _patience: Duration) -> Result<(), WireFault> {
        Ok(())
    }

    fn wait_for_end(&mut self, _patience: Duration) -> bool {
        true
    }
}

/// The most memory that this process had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_measured_process() {
    let Some(ties) = std::env::var(MEASURED).ok().and_then(|ties| ties.parse().ok()) else { return };
    let start = Start {
        run_id: "r".to_owned(),
        collection_mode: CollectionMode::Incremental,
        scope: Scope::new(["items", "details"].map(StreamScope::all_of).to_vec()).unwrap(),
        state: None,
        bindings: Vec::new(),
        detail_gaps: Vec::new(),
        recovery_only: false,
        run_budget: None,
    };
    let start = Some(RuntimeMessage::Start(Box::new(start)));
    let mut wire = Reads { start, decoder: Decoder::new(Limits::default()), keys: [0; 4], is_complete: false };
    let clock = SystemClock::new();
    let before = peak_kib();
    let code = run_on(&mut wire, MANIFEST, &Long { ties }, &Surroundings { variable: &|_| None, clock: &clock });
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(wire.is_complete && wire.keys == [KEYS, KEYS, 0, 0], "{:?}", wire.keys);
    println!("peak {} KiB, {before} KiB before", peak_kib());
    assert!(peak_kib() < PEAK_KIB_MAX, "{} KiB", peak_kib());
}

fn measure(ties: u64) {
    let mut measured = Command::new(std::env::current_exe().unwrap());
    let measured = measured.args(["--exact", "the_measured_process", "--nocapture"]).env(MEASURED, ties.to_string());
    let output = measured.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success() && text.contains("peak "), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_million_listed_keys_in_one_run_cost_the_connector_less_than_100_mb() {
    measure(1);
}

#[test]
fn a_million_keys_of_which_a_hundred_thousand_share_a_time_cost_no_more() {
    measure(100_000);
}

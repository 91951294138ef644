//! The end of a service: in order, within its bound, and handed over.

use super::{NAMES, Served};
use crate::place::{left_after, signal};
use std::fs;
use std::time::Duration;

/// Sixteen seconds, and a machine with other work.
const BOUND: Duration = Duration::from_secs(25);

/// Goes on for long, a slice a moment, and says where it began.
const LONG: &str = r#"
first = (start["state"] or {"orders": {"next": 0}})["orders"]["next"]
open("began", "a").write(f"{first}\n")
for n in range(first, 2000): record(n); slice(n + 1); time.sleep(0.02)
done(2000 - first); end()"#;

#[test]
fn a_run_is_handed_over_and_the_next_service_goes_on_with_it() {
    let mut served = Served::new();
    served.add(NAMES[0], LONG);
    served.serve(&[]);
    served.wait("it got on", || served.place.gleaner(&["status"]).stdout.contains("process "));
    served.wait("it began", || served.place.read("began").lines().count() == 1);
    std::thread::sleep(Duration::from_millis(500));
    let processes = served.processes();
    let took = served.stop();
    assert!(took < BOUND, "{took:?}");
    assert_eq!(left_after(Duration::from_secs(5), &processes), [] as [u32; 0]);
    assert_eq!(served.reasons(NAMES[0]), ["cancelled"], "{}", served.log());
    assert_eq!(served.next(NAMES[0])["code"], "cut_short");
    served.serve(&[]);
    served.wait("it goes on", || served.place.read("began").lines().count() == 2);
    let second = served.place.read("began").lines().last().unwrap().parse::<u64>().unwrap();
    assert!(second > 0, "from where it was");
    // A run that its owner stops is not begun again.
    served.wait("it runs", || served.place.gleaner(&["cancel", NAMES[0]]).stdout.contains("ends after the slice"));
    served.wait("it ended", || served.reasons(NAMES[0]) == ["cancelled", "cancelled"]);
    served.wait("it is said", || served.next(NAMES[0])["code"] == "cadence");
}

#[test]
fn a_run_that_hangs_holds_up_neither_the_others_nor_the_end() {
    let mut served = Served::new();
    let deaf = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGPIPE, signal.SIG_IGN)
record(0); slice(1); open("deaf", "w").write(str(os.getpid()))
while True: time.sleep(60)"#;
    served.add(NAMES[0], deaf);
    served.serve(&["--max-runs", "2"]);
    served.wait("it began", || served.place.path("deaf").exists());
    // The process of its run is stopped: it answers nobody any more.
    let runs = served.processes().into_iter().filter(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("scheduled-run")
    });
    let stopped = runs.collect::<Vec<_>>();
    assert_eq!(stopped.len(), 1);
    signal(&stopped[0].to_string(), "STOP");
    served.add(NAMES[1], super::TWO);
    served.wait("another runs", || served.reasons(NAMES[1]) == ["succeeded"]);
    let processes = served.processes();
    let took = served.stop();
    assert!(took < BOUND, "{took:?}");
    assert_eq!(left_after(Duration::from_secs(10), &processes), [] as [u32; 0]);
}

#[test]
fn what_cannot_be_started_is_tried_less_and_less_and_holds_up_nobody() {
    let mut served = Served::new();
    served.add(NAMES[0], super::TWO);
    served.add(NAMES[1], super::TWO);
    // Its manifest is no longer one: written by another program, or damaged.
    let store = served.place.home().join("store.db");
    let script = format!(
        "import sqlite3; c = sqlite3.connect({:?}); c.execute(\"UPDATE connections SET settings = '{{\\\"command\\\":[\\\"/nonexistent\\\"]}}' WHERE name = '{}'\"); c.commit()",
        store.display().to_string(),
        NAMES[0]
    );
    let changed = std::process::Command::new(crate::place::python()).args(["-c", &script]).output().unwrap();
    assert!(changed.status.success(), "{changed:?}");
    served.serve(&[]);
    served.wait("the other runs", || served.reasons(NAMES[1]) == ["succeeded"]);
    served.wait("it failed", || !served.reasons(NAMES[0]).is_empty());
    let began = served.reasons(NAMES[0]).len();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(served.reasons(NAMES[0]).len(), began, "{}", served.log());
}

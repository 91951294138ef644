//! `kill -9` of the service in the middle of its runs: everything goes on at once, nothing is lost, nobody is left.
//!
//! By default three kills; twenty with `GLEANER_TEST_ALL` in the environment.

use super::{NAMES, Served};
use crate::place::{is_full_size, left_after};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SLICE: u64 = 20;
/// A lease of the dead would hold a restart up for 30 seconds. This is for a machine with other work.
const AT_ONCE: Duration = Duration::from_secs(20);
const GONE_AFTER: Duration = Duration::from_secs(10);
/// What may be fetched again after a kill: the slice that was under way, and one that was on its way to the store.
const REFETCHED_MAX: u64 = 2 * SLICE;

/// Fetches ids in order, writes down each, and has a child that outlives everything it can.
const FETCH: &str = r#"
name, ids, size = sys.argv[0][:-3], IDS, SIZE
if os.fork() == 0:
    os.setsid()
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(one, signal.SIG_IGN)
    os.close(0); os.close(1); os.close(2)
    while True: time.sleep(60)
first = (start["state"] or {"orders": {"next": 0}})["orders"]["next"]
fetched = os.open("fetched-" + name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.write(fetched, b"start\n")
for n in range(first, ids):
    time.sleep(0.02)
    os.write(fetched, f"{n}\n".encode())
    record(n)
    if (n + 1) % size == 0: slice(n + 1)
done(ids - first); end()"#;

/// How often each id was fetched, and how many runs began.
fn fetched(served: &Served, name: &str) -> (BTreeMap<u64, u64>, usize) {
    let text = served.place.read(&format!("fetched-{name}"));
    let mut times = BTreeMap::new();
    for id in text.lines().filter_map(|line| line.parse::<u64>().ok()) {
        *times.entry(id).or_default() += 1;
    }
    (times, text.lines().filter(|line| *line == "start").count())
}

#[test]
fn everything_goes_on_at_once_after_each_kill_and_nothing_is_lost() {
    let kills = if is_full_size() { 20 } else { 3 };
    let ids = (kills + 1) * 130;
    let names = &NAMES[..2];
    let mut served = Served::new();
    for name in names {
        served.add(name, &FETCH.replace("IDS", &ids.to_string()).replace("SIZE", &SLICE.to_string()));
    }
    let (mut slowest, mut in_the_middle) = (Duration::ZERO, 0);
    for kill in 0..kills {
        let before = names.iter().map(|name| fetched(&served, name).0.len()).collect::<Vec<_>>();
        let runs = names.iter().map(|name| fetched(&served, name).1).collect::<Vec<_>>();
        let began = Instant::now();
        served.serve(&[]);
        // Each has begun again and got on, at another place in each round.
        let more = SLICE as usize + kill as usize % 5 * 8;
        served.wait("all get on", || {
            let got_on = |(at, name): (usize, &&str)| {
                let (times, begun) = fetched(&served, name);
                begun > runs[at] && times.len() >= (before[at] + more).min(ids as usize) || times.len() == ids as usize
            };
            names.iter().enumerate().all(got_on)
        });
        slowest = slowest.max(began.elapsed());
        let processes = served.processes();
        // A run, its guard, its connector, and the child of that, of each.
        in_the_middle += usize::from(processes.len() >= 4 * names.len());
        served.kill();
        assert_eq!(left_after(GONE_AFTER, &processes), [] as [u32; 0], "kill {kill}");
    }
    served.serve(&[]);
    served.wait("all are complete", || names.iter().all(|name| served.reasons(name)[0] == "succeeded"));
    println!(
        "{kills} kills of the service: all runs had got on {:.1} s after a start at the latest",
        slowest.as_secs_f64()
    );
    assert!(slowest < AT_ONCE, "{slowest:?}");
    assert!(in_the_middle * 2 >= kills as usize, "only {in_the_middle} kills met both at work");
    for name in names {
        let (times, _) = fetched(&served, name);
        assert_eq!(times.len() as u64, ids, "{name}");
        let again = times.values().map(|times| times - 1).sum::<u64>();
        assert!(again <= kills * REFETCHED_MAX, "{name}: {again} fetched again");
        let records = crate::place::last_line(&served.place.gleaner(&["status", "--json"]).stdout);
        assert_eq!(records["records"], ids, "{records}");
    }
    let verified = served.place.gleaner(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

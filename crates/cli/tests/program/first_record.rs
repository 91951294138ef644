//! How long it takes from the start of a run until its first record is stored.

use crate::place::{Place, Running};
use std::time::{Duration, Instant};

/// 150 ms is promised of a release build on a machine that does nothing else. This one is built for tests, and the
/// machine may be busy.
const FIRST_RECORD_MAX: Duration = Duration::from_millis(1500);

#[test]
fn the_first_record_is_stored_soon_after_the_start() {
    let place = Place::new();
    place.script("record(1); slice(1)\ndone(1); end()");
    let mut took = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let mut running = Running::of(place.run_command(&["--json"]));
        running.wait_for_saved();
        took.push(began.elapsed());
        assert_eq!(running.end().1, Some(0));
    }
    took.sort();
    println!("first record after {:?} in the median of {took:?}", took[2]);
    assert!(took[2] < FIRST_RECORD_MAX, "{took:?}");
}

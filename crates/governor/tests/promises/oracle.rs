//! The crate `governor` as an oracle: with the interval held still, both are GCRA with a burst of one.

use crate::harness::at;
use crate::plans;
use gleaner_governor::{Admission, Config, Governor, Jitter, Time, network_error};
use governor::clock::{Clock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use proptest::prelude::*;
use std::time::Duration;

type Theirs = RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>;

/// How much later than told a send may be without pushing the next one back.
const LATENESS_CREDIT: Duration = Duration::from_millis(2);

/// Polls both at the same times; what each admits is sent. Returns the send times of ours, theirs.
fn sends(interval: Duration, pauses: &[Duration]) -> (Vec<Time>, Vec<Time>) {
    let config = Config { discovery_interval: interval, ceiling_interval: interval, ..Config::default() };
    let mut ours = Governor::with_config("ours", plans::without_circuit(config));
    let clock = FakeRelativeClock::default();
    let theirs = RateLimiter::direct_with_clock(Quota::with_period(interval).expect("not zero"), clock.clone());
    let (mut now, mut sends) = (at(5), (Vec::new(), Vec::new()));
    for &pause in pauses {
        now = now + pause;
        clock.advance(pause);
        if let Admission::Send(permit) = ours.poll_admit(now) {
            ours.on_outcome(permit, &network_error(), 9, Jitter::from_bits(0), now);
            sends.0.push(now);
        }
        if theirs.check().is_ok() {
            sends.1.push(now);
        }
    }
    sends
}

proptest! {
    #[test]
    fn our_gcra_and_that_of_the_crate_governor_admit_the_same_sends(
        interval_us in 200_u64..500_000, pauses in proptest::collection::vec(0_u64..3_000_000, 1..400),
    ) {
        // The ceiling forbids two sends closer than it, so the lateness credit is never visible here:
        // the two agree to the nanosecond.
        let pauses: Vec<Duration> = pauses.iter().map(|pause| Duration::from_micros(pause * interval_us / 1_000_000)).collect();
        let (ours, theirs) = sends(Duration::from_micros(interval_us), &pauses);
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn requests_that_queue_up_go_out_within_the_lateness_credit_of_the_oracle(
        interval_ms in 4_u64..2000, arrivals in proptest::collection::vec(0_u64..3_000_000, 1..300),
    ) {
        // Far above the ceiling, at an interval that only errors meet and that therefore stands still.
        let interval = Duration::from_millis(interval_ms);
        let config = Config { discovery_interval: interval, ceiling_interval: Duration::from_nanos(1), ..Config::default() };
        let mut ours = Governor::with_config("ours", plans::without_circuit(config));
        let clock = FakeRelativeClock::default();
        let theirs = RateLimiter::direct_with_clock(Quota::with_period(interval).expect("not zero"), clock.clone());
        let (mut arrival, mut our_now) = (at(5), at(5));
        for pause in arrivals {
            arrival = arrival + Duration::from_nanos(pause * interval_ms);
            our_now = send_ours(&mut ours, our_now.max(arrival));
            let their_now = at(5) + Duration::from_nanos(send_theirs(&theirs, &clock, arrival.since(at(5))));
            prop_assert!(our_now <= their_now, "{our_now:?} after {their_now:?}");
            prop_assert!(their_now.since(our_now) <= LATENESS_CREDIT, "{our_now:?} before {their_now:?}");
        }
    }
}

fn send_ours(ours: &mut Governor, mut now: Time) -> Time {
    loop {
        match ours.poll_admit(now) {
            Admission::WaitUntil(until) => now = until,
            Admission::Send(permit) => {
                ours.on_outcome(permit, &network_error(), 9, Jitter::from_bits(0), now);
                return now;
            }
            other => panic!("{other:?}"),
        }
    }
}

fn send_theirs(theirs: &Theirs, clock: &FakeRelativeClock, arrival: Duration) -> u64 {
    let elapsed = || clock.now().as_u64();
    clock.advance(arrival.saturating_sub(Duration::from_nanos(elapsed())));
    if let Err(refused) = theirs.check() {
        clock.advance(refused.wait_time_from(clock.now()));
        assert!(theirs.check().is_ok(), "the oracle keeps its own word");
    }
    elapsed()
}

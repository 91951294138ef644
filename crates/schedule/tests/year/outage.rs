//! A provider that is down for two days, and one that suspends for six hours.

use crate::world::{BEGIN, DAY, Ending, HOUR, MINUTE, World, every, facts, plan};
use gleaner_schedule::{Kind, Limits, OwnerWish};

/// A full run sends this many requests before it gives up; a probe sends one.
const REQUESTS_PER_RUN: u64 = 5;

/// Lives through a week in which the provider is away for so long; the requests meanwhile, and how long it took after.
fn week(away: std::ops::Range<u64>) -> (u64, u64) {
    let plan = plan(OwnerWish { cadence: Some(every(HOUR)), ..OwnerWish::default() });
    let mut world = World::new(Limits::default(), vec![facts("c0", "p0", plan)]);
    world.live_until(BEGIN + 7 * DAY, &mut |_, now| {
        (2_000, if away.contains(&now) { Ending::Pressure } else { Ending::Success })
    });
    let meanwhile = world.started.iter().filter(|start| away.contains(&start.at));
    let requests = meanwhile.map(|start| if start.launch.kind == Kind::Probe { 1 } else { REQUESTS_PER_RUN }).sum();
    let back = world.started.iter().filter(|start| start.at >= away.end && start.launch.kind == Kind::Full);
    let back = back.map(|start| start.at - away.end).min().unwrap();
    (requests, back)
}

#[test]
fn a_provider_that_is_down_for_two_days_gets_few_requests_and_all_is_well_an_hour_after_it_is_back() {
    let from = BEGIN + DAY;
    let (requests, back) = week(from..from + 2 * DAY);
    println!("down for two days: {requests} requests, whole again after {} min", back / MINUTE);
    assert!(requests < 150, "{requests}");
    assert!(back < HOUR, "{} min", back / MINUTE);
}

#[test]
fn a_provider_that_suspends_for_six_hours_gets_few_requests_and_all_is_well_an_hour_after_it_is_back() {
    let from = BEGIN + DAY;
    let (requests, back) = week(from..from + 6 * HOUR);
    println!("suspended for six hours: {requests} requests, whole again after {} min", back / MINUTE);
    assert!(requests < 40, "{requests}");
    assert!(back < HOUR, "{} min", back / MINUTE);
}

#[test]
fn whatever_the_hour_at_which_it_comes_back() {
    for hour in 1..48 {
        let from = BEGIN + DAY;
        let (_, back) = week(from..from + hour * HOUR + 17 * MINUTE);
        assert!(back < HOUR, "after {hour} hours: {} min", back / MINUTE);
    }
}

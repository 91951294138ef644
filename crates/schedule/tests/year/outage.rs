//! A provider that is down for two days, and one that suspends for six hours: how often they are asked meanwhile, and how
//! soon all is well after they are back.

use crate::world::{BEGIN, DAY, Ending, HOUR, MINUTE, World, every, facts, plan};
use gleaner_schedule::{Facts, Kind, Limits, OwnerWish};
use std::ops::Range;

/// Requests of a full run before it gives up: four tries of its first request. A probe sends one.
const REQUESTS_PER_RUN: u64 = 4;

/// Behavior of a provider during its outage, and how often the connection runs.
#[derive(Clone, Copy, Debug)]
struct Away {
    ending: Ending,
    from: u64,
    lasts: u64,
    every: u64,
    other_gaps: bool,
}

impl Away {
    fn span(self) -> Range<u64> {
        self.from..self.from + self.lasts
    }
}

/// Lives through a week in which providers are away; for each, the requests meanwhile, and how long it took after.
fn week(away: &[Away]) -> Vec<(u64, u64)> {
    let name = |number: usize| format!("c{number}");
    let all = away.iter().enumerate().map(|(number, away)| {
        let plan = plan(OwnerWish { cadence: Some(every(away.every)), ..OwnerWish::default() });
        Facts { other_gaps: away.other_gaps, ..facts(&name(number), &format!("p{number}"), plan) }
    });
    let mut world = World::new(Limits::default(), all.collect());
    world.live_until(BEGIN + 7 * DAY, &mut |launch, now| {
        let away = away[launch.connection[1..].parse::<usize>().unwrap()];
        (2_000, if away.span().contains(&now) { away.ending } else { Ending::Success })
    });
    let account = away.iter().enumerate().map(|(number, away)| {
        let starts = || world.started.iter().filter(|start| start.launch.connection == name(number));
        let meanwhile = starts().filter(|start| away.span().contains(&start.at));
        let requests = meanwhile.map(|start| if start.launch.kind == Kind::Probe { 1 } else { REQUESTS_PER_RUN }).sum();
        let back = starts().filter(|start| start.at >= away.span().end && start.launch.kind == Kind::Full);
        (requests, back.map(|start| start.at - away.span().end).min().unwrap())
    });
    account.collect()
}

const DOWN: Away = Away { ending: Ending::Down, from: BEGIN + DAY, lasts: 2 * DAY, every: HOUR, other_gaps: false };
const SUSPENDED: Away = Away { ending: Ending::Pressure, lasts: 6 * HOUR, ..DOWN };

#[test]
fn a_week_with_an_outage_of_two_days_and_a_suspension_of_six_hours() {
    let account = week(&[DOWN, SUSPENDED]);
    let [(down, down_back), (suspended, suspended_back)] = account[..] else { panic!("two") };
    println!("down for two days: {down} requests, complete {} min after it was back", down_back / MINUTE);
    println!("suspended for six hours: {suspended} requests, complete {} min after", suspended_back / MINUTE);
    assert!(down <= 110 && suspended <= 20, "{down} {suspended}");
    assert!(down_back < HOUR && suspended_back < HOUR);
}

#[test]
fn whatever_the_interval_and_whatever_the_hour_at_which_it_comes_back() {
    for (ending, other_gaps) in [(Ending::Down, false), (Ending::Pressure, false), (Ending::Pressure, true)] {
        let all = (1..60).step_by(6).flat_map(|hours| {
            [HOUR / 2, 6 * HOUR, DAY].map(|every| Away {
                ending,
                from: BEGIN + DAY,
                lasts: hours * HOUR + 17 * MINUTE,
                every,
                other_gaps,
            })
        });
        let all = all.collect::<Vec<_>>();
        for (away, (requests, back)) in all.iter().zip(week(&all)) {
            assert!(back < HOUR || back <= away.every && requests == 0, "{away:?}: {} min", back / MINUTE);
            let hours = away.lasts / HOUR;
            assert!(requests <= REQUESTS_PER_RUN * (9 + hours) + 3 * hours, "{away:?}: {requests} requests");
        }
    }
}

//! More to do than the machine can: who gets how much.

use crate::world::{BEGIN, DAY, Ending, HOUR, World, every, facts, plan};
use gleaner_schedule::{Facts, Kind, Limits, OwnerWish};
use std::collections::BTreeMap;

const MANY: u64 = 8;

/// Provider `n` has `n + 1` connections, and its runs take `n + 1` minutes: the last could use everything.
fn greedy() -> Vec<Facts> {
    let mut all = Vec::new();
    for provider in 0..MANY {
        for number in 0..=provider {
            let plan = plan(OwnerWish { cadence: Some(every(60_000)), ..OwnerWish::default() });
            all.push(facts(&format!("c{provider}-{number}"), &format!("p{provider}"), plan));
        }
    }
    all
}

fn takes(connection: &str) -> u64 {
    (connection[1..2].parse::<u64>().unwrap() + 1) * 60_000
}

#[test]
fn providers_share_the_machine_within_a_tenth() {
    let mut world = World::new(Limits { runs: 3, ..Limits::default() }, greedy());
    world.live_until(BEGIN + 20 * DAY, &mut |launch, _| (takes(&launch.connection), Ending::Success));
    let mut shares = BTreeMap::<&str, u64>::new();
    for start in &world.started {
        *shares.entry(&world.facts[&start.launch.connection].provider).or_default() += takes(&start.launch.connection);
    }
    let mean = shares.values().sum::<u64>() as f64 / MANY as f64;
    for (provider, share) in shares {
        let off = (share as f64 - mean).abs() / mean;
        assert!(off < 0.1, "{provider} is off by {off:.2}");
    }
}

#[test]
fn a_provider_that_was_idle_has_saved_nothing_up() {
    let mut all = greedy();
    let quiet = plan(OwnerWish { cadence: Some(every(5 * DAY)), ..OwnerWish::default() });
    all.push(facts("c9-0", "late", quiet));
    let mut world = World::new(Limits { runs: 1, ..Limits::default() }, all);
    world.live_until(BEGIN + 5 * DAY, &mut |_, _| (60_000, Ending::Success));
    // It wakes up with a lot to do, beside others that have worked for days.
    let late = world.facts.get_mut("c9-0").unwrap();
    late.plan = plan(OwnerWish { cadence: Some(every(60_000)), ..OwnerWish::default() });
    let late = late.clone();
    world.scheduler.learn(late, world.wall());
    let before = world.started.len();
    world.live_until(world.now + HOUR, &mut |_, _| (60_000, Ending::Success));
    let its = world.started[before..].iter().filter(|start| start.launch.connection == "c9-0").count();
    assert!((4..=12).contains(&its), "{its} of sixty starts");
}

#[test]
fn the_history_of_one_is_caught_up_although_the_steady_runs_of_others_fill_the_machine() {
    let mut all = greedy();
    let plan = plan(OwnerWish { cadence: Some(every(HOUR)), ..OwnerWish::default() });
    all.push(Facts { history_left: true, ..facts("c9-0", "old", plan) });
    let mut world = World::new(Limits { runs: 1, ..Limits::default() }, all);
    world.live_until(BEGIN + DAY, &mut |_, _| (60_000, Ending::Budget));
    let parts = world.started.iter().filter(|start| start.launch.kind == Kind::CatchUp).count();
    let share = parts as f64 / world.started.len() as f64;
    assert!((0.15..0.25).contains(&share), "{share:.2} of the starts");
}

/// Runs at the same time, of connections that this is true for.
fn most_at_once(world: &World, takes: u64, is_meant: impl Fn(&str) -> bool) -> usize {
    let starts = world.started.iter().filter(|start| is_meant(&start.launch.connection));
    let times = starts.map(|start| start.at).collect::<Vec<_>>();
    times.iter().map(|at| times.iter().filter(|other| (**other..**other + takes).contains(at)).count()).max().unwrap()
}

#[test]
fn two_connections_of_one_account_never_run_at_once() {
    let all = (0..6).map(|number| {
        let plan = plan(OwnerWish { cadence: Some(every(60_000)), ..OwnerWish::default() });
        let account = if number < 3 { "one".to_owned() } else { format!("other {number}") };
        Facts { account, ..facts(&format!("c{number}"), "p", plan) }
    });
    let mut world = World::new(Limits { runs: 6, ..Limits::default() }, all.collect());
    let takes = 30_000;
    world.live_until(BEGIN + HOUR, &mut |_, _| (takes, Ending::Success));
    let shares_it = |name: &str| name < "c3";
    assert_eq!(most_at_once(&world, takes, shares_it), 1);
    assert!(most_at_once(&world, takes, |name| !shares_it(name)) > 1, "the check can fail");
    for name in ["c0", "c1", "c2"] {
        assert!(
            world.started.iter().filter(|start| start.launch.connection == name).count() > 15,
            "{name} has its turn"
        );
    }
}

#[test]
fn a_run_that_waits_for_its_owner_takes_nobodys_place() {
    let all = ["c0", "c1"]
        .map(|name| facts(name, name, plan(OwnerWish { cadence: Some(every(60_000)), ..OwnerWish::default() })));
    let mut scheduler = gleaner_schedule::Scheduler::new(Limits { runs: 1, ..Limits::default() });
    let now = crate::world::wall(BEGIN + HOUR);
    for facts in all {
        scheduler.learn(facts, now);
    }
    let first = scheduler.poll(now).unwrap().connection;
    let later = crate::world::wall(BEGIN + HOUR + 5_000);
    assert_eq!(scheduler.poll(later), None, "the one place is taken");
    scheduler.set_parked(&first, true, later);
    let second = scheduler.poll(later).unwrap().connection;
    assert_ne!(first, second);
    scheduler.set_parked(&first, false, later);
    scheduler.ended(&second, later);
    assert_eq!(scheduler.poll(crate::world::wall(BEGIN + HOUR + 10_000)), None, "it is at work again");
}

//! The year itself.

use crate::world::{BEGIN, DAY, Ending, HOUR, MINUTE, Random, Started, World, every, facts, plan};
use gleaner_engine::WallTime;
use gleaner_schedule::{Cadence, Facts, Held, Kind, Limits, Next, OwnerWish, QuietHours, Zone};
use std::collections::BTreeMap;

const CONNECTIONS: u64 = 200;
const PROVIDERS: u64 = 40;
/// How late a run may be that nobody holds back: four slots, and runs of up to five minutes.
const LATE_MAX: u64 = 30 * MINUTE;
/// In how many parts the history of each of twenty comes in.
const HISTORY_PARTS: u64 = 300;

fn zones() -> [Zone; 3] {
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"].map(|name| Zone::named(name).unwrap())
}

/// How long a connection may be without a run.
fn patience(number: u64) -> u64 {
    match number % 5 {
        0 => HOUR,
        1 => 6 * HOUR,
        2 => 12 * HOUR,
        // Patterns: once a day, and a change of the clock may make a day longer. Quiet hours put it off.
        _ => 25 * HOUR + 9 * HOUR,
    }
}

fn wish(number: u64) -> OwnerWish {
    let zone = zones()[usize::try_from(number % 3).unwrap()].clone();
    let zone = Some(zone);
    match number % 5 {
        0 => OwnerWish { cadence: Some(every(HOUR)), zone, ..OwnerWish::default() },
        1 => OwnerWish { cadence: Some(every(6 * HOUR)), zone, ..OwnerWish::default() },
        2 => OwnerWish { cadence: Some(every(12 * HOUR)), zone, ..OwnerWish::default() },
        3 => OwnerWish { cadence: Some(Cadence::cron("30 2 * * *").unwrap()), zone, ..OwnerWish::default() },
        _ => {
            let quiet = QuietHours::new(jiff::civil::time(22, 0, 0, 0), jiff::civil::time(7, 0, 0, 0)).unwrap();
            OwnerWish {
                cadence: Some(Cadence::cron("0 1 * * *").unwrap()),
                zone,
                quiet: Some(quiet),
                ..OwnerWish::default()
            }
        }
    }
}

fn is_failing(number: u64) -> bool {
    number % 20 == 7
}

fn is_frugal(number: u64) -> bool {
    number % 40 == 12
}

fn connections(with_failing: bool) -> Vec<Facts> {
    let numbers = (0..CONNECTIONS).filter(|number| with_failing || !is_failing(*number));
    let all = numbers.map(|number| {
        let name = format!("c{number:03}");
        let mut plan = plan(wish(number));
        if is_frugal(number) {
            // Otherwise a run a minute, which is a million in a year.
            plan.apart = std::time::Duration::from_secs(1800);
        }
        Facts { history_left: number % 10 == 3, ..facts(&name, &format!("p{}", number % PROVIDERS), plan) }
    });
    all.collect()
}

fn number(name: &str) -> u64 {
    name[1..].parse().unwrap()
}

/// Jumps of the clock on the wall, and sleep: at this true time, by so much, so long.
const UPSETS: [(u64, i64, u64); 6] = [
    (20 * DAY, 2 * HOUR as i64, 0),
    (50 * DAY, -(3 * HOUR as i64), 0),
    (90 * DAY, 0, 9 * HOUR),
    (140 * DAY, DAY as i64, 0),
    (200 * DAY, -(2 * DAY as i64), 0),
    (250 * DAY, 0, 20 * DAY),
];

/// As much of the year as that, with those that always fail or without them.
fn a_year(days: u64, with_failing: bool) -> World {
    let mut world = World::new(Limits::default(), connections(with_failing));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut rests = BTreeMap::<u64, u64>::new();
    let mut history = BTreeMap::<u64, u64>::new();
    let mut provider = |launch: &gleaner_schedule::Launch, now: u64| {
        let number = number(&launch.connection);
        let takes = 5_000 + random.below(55_000);
        let chance = random.below(1000);
        // Now and then a provider pushes everybody back for an hour or two.
        let rests_until = rests.entry(number % PROVIDERS).or_default();
        if chance == 0 {
            *rests_until = now + HOUR + random.below(HOUR);
        }
        let ending = match () {
            () if is_failing(number) => Ending::Failure,
            // Connections of these never meet anything but their own budget.
            () if is_frugal(number) && launch.kind != Kind::CatchUp => Ending::Budget,
            () if now < *rests_until => Ending::Pressure,
            () if launch.kind == Kind::CatchUp => {
                let parts = history.entry(number).or_default();
                *parts += 1;
                if *parts < HISTORY_PARTS { Ending::Budget } else { Ending::Success }
            }
            () if chance < 30 => Ending::Budget,
            () if chance < 50 => Ending::Failure,
            () if chance < 60 => Ending::Down,
            () => Ending::Success,
        };
        (takes, ending)
    };
    for (at, jump, sleep) in UPSETS.into_iter().filter(|(at, ..)| *at < days * DAY) {
        world.live_until(BEGIN + at, &mut provider);
        world.ahead += jump;
        world.now += sleep;
    }
    world.live_until(BEGIN + days * DAY, &mut provider);
    world
}

fn by_connection(started: &[Started]) -> BTreeMap<&str, Vec<&Started>> {
    let mut all = BTreeMap::<&str, Vec<&Started>>::new();
    for start in started {
        all.entry(&start.launch.connection).or_default().push(start);
    }
    all
}

/// Whether the clock was set or the machine slept in between, or shortly before: a pattern has another hour then.
fn is_upset(from: u64, to: u64) -> bool {
    UPSETS.iter().any(|(at, jump, sleep)| from <= BEGIN + at + sleep + jump.unsigned_abs() && BEGIN + at <= to)
}

/// The longest pause between two runs of each connection that worked before and after, beyond its patience.
fn latest(world: &World) -> BTreeMap<&str, u64> {
    let steady = world.started.iter().filter(|start| start.launch.kind != Kind::CatchUp).cloned().collect::<Vec<_>>();
    let mut latest = BTreeMap::new();
    for (name, starts) in &by_connection(&steady) {
        let name = world.facts.get_key_value(*name).unwrap().0.as_str();
        for pair in starts.windows(2) {
            let healthy = matches!(pair[0].ending, Ending::Success | Ending::Budget);
            if !healthy || is_upset(pair[0].at, pair[1].at) {
                continue;
            }
            let late = (pair[1].at - pair[0].at).saturating_sub(patience(number(name)));
            let before = latest.entry(name).or_insert(0);
            *before = late.max(*before);
        }
    }
    latest
}

fn no_run_is_missed_by_more_than_its_policy(world: &World) {
    let latest = latest(world);
    assert_eq!(latest.len() as u64, CONNECTIONS - CONNECTIONS / 20, "those that never worked are not in it");
    for (name, late) in &latest {
        assert!(*late <= LATE_MAX, "{name} was late by {} min", late / MINUTE);
    }
    // Often enough that this says something.
    let runs = by_connection(&world.started);
    assert!(runs["c000"].len() > 8000 && runs["c003"].len() > 330, "{} {}", runs["c000"].len(), runs["c003"].len());
}

fn nobody_is_stormed_after_a_sleep_or_a_jump(world: &World) {
    assert!(world.most_at_once <= Limits::default().runs);
    let starts = world.started.iter().map(|start| start.at).collect::<Vec<_>>();
    for pair in starts.windows(2) {
        assert!(pair[1] - pair[0] >= 1000, "two starts within {} ms", pair[1] - pair[0]);
    }
    // Twenty days of sleep: each connection runs once for them, not once for each run that it missed.
    let (at, _, sleep) = UPSETS[5];
    let woke = BEGIN + at + sleep;
    let just_after = world.started.iter().filter(|start| (woke..woke + 50 * MINUTE).contains(&start.at));
    let mut times = BTreeMap::<&str, u32>::new();
    for start in just_after.filter(|start| start.launch.kind == Kind::Full && start.ending == Ending::Success) {
        *times.entry(&start.launch.connection).or_default() += 1;
    }
    assert!(times.len() > 100, "{}", times.len());
    assert_eq!(times.iter().find(|(_, times)| **times > 1), None);
}

fn nothing_begins_in_quiet_hours(world: &World) {
    let zones = zones().map(|_| ()).len();
    for start in world.started.iter().filter(|start| number(&start.launch.connection) % 5 == 4) {
        let zone = number(&start.launch.connection) % zones as u64;
        let zone = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"][usize::try_from(zone).unwrap()];
        let at = jiff::Timestamp::from_millisecond(i64::try_from(start.wall).unwrap()).unwrap();
        let hour = at.in_tz(zone).unwrap().hour();
        assert!((7..22).contains(&hour), "{} began at {hour} in {zone}", start.launch.connection);
    }
}

fn a_failing_connection_never_delays_another(with: &World, without: &World) {
    let (with, without) = (latest(with), latest(without));
    for (name, late) in &without {
        let with = with[name];
        assert!(with <= late + 10 * MINUTE, "{name}: {} min instead of {}", with / MINUTE, late / MINUTE);
    }
}

fn what_fails_again_and_again_is_tried_less_and_less_and_then_waits_for_the_owner(world: &World) {
    let starts = by_connection(&world.started);
    let failing = &starts["c007"];
    assert_eq!(failing.len(), 7);
    let apart = failing.windows(2).map(|pair| (pair[1].at - pair[0].at) / HOUR).collect::<Vec<_>>();
    assert_eq!(apart, [12, 12, 24, 24, 24, 24]);
    let (next, _) = world.scheduler.next_of("c007").unwrap();
    assert_eq!(next, Next::Held(Held::Blocked(7)));
    // Another version of the connector, and it goes on.
    let mut renewed = world.facts["c007"].clone();
    renewed.renewed = true;
    let now = WallTime::from_unix_millis(BEGIN + 365 * DAY);
    assert!(matches!(Next::steady(&renewed, now), Next::Run { at, kind: Kind::Full, .. } if at == now));
}

/// Connections that stop at their own budget in each of their runs: they go on soon, and never rest.
fn a_budget_never_arms_a_rest(world: &World) {
    let frugal = world.facts.values().filter(|facts| is_frugal(number(&facts.connection))).collect::<Vec<_>>();
    assert_eq!(frugal.len(), 5);
    let starts = by_connection(&world.started);
    for facts in frugal {
        assert_eq!(facts.cooldown, None, "{}", facts.connection);
        let starts = &starts[facts.connection.as_str()];
        assert!(starts.iter().all(|start| start.launch.kind == Kind::Full), "{}", facts.connection);
        assert!(starts.len() > 10_000, "{}: {} runs, not one in 12 hours", facts.connection, starts.len());
    }
    // The same check finds a rest where there was pressure.
    assert!(world.facts.values().any(|facts| facts.cooldown.is_some()));
}

fn a_history_comes_in_beside_the_steady_runs(world: &World) {
    let parts = world.started.iter().filter(|start| start.launch.kind == Kind::CatchUp);
    let mut ended = BTreeMap::<&str, Ending>::new();
    for part in parts {
        ended.insert(&part.launch.connection, part.ending);
    }
    assert_eq!((ended.len(), ended.values().all(|ending| *ending == Ending::Success)), (20, true), "{ended:?}");
}

/// One year for all of it: it is the expensive part.
#[test]
fn a_year_of_two_hundred_connections() {
    let world = a_year(365, true);
    no_run_is_missed_by_more_than_its_policy(&world);
    nobody_is_stormed_after_a_sleep_or_a_jump(&world);
    nothing_begins_in_quiet_hours(&world);
    what_fails_again_and_again_is_tried_less_and_less_and_then_waits_for_the_owner(&world);
    a_history_comes_in_beside_the_steady_runs(&world);
    a_budget_never_arms_a_rest(&world);
    a_failing_connection_never_delays_another(&a_year(60, true), &a_year(60, false));
}

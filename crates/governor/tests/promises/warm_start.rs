//! State that survives a restart, and state that must not. R12.

use crate::harness::{Hand, at};
use crate::plans;
use gleaner_governor::{Admission, Config, Governor, Learned, Outcome, STALE_AFTER, Time, Verdict, WallTime};
use proptest::prelude::*;
use std::time::Duration;

const WALL_NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);

fn restored(learned: &Learned, config: Config) -> Governor {
    let mut governor = Governor::with_config("test", config);
    governor.restore(learned, at(5), WALL_NOW);
    governor
}

fn interval(governor: &Governor) -> Duration {
    governor.snapshot(at(5)).expect("paced").interval
}

/// A governor that has learned something: an interval of 20 ms.
fn experienced() -> Hand {
    let mut hand = Hand::new(Config::default());
    hand.warm_to(Duration::from_millis(20));
    hand
}

fn learned(hand: &Hand) -> Learned {
    hand.governor.learned(hand.now, WALL_NOW).expect("paced")
}

prop_compose! {
    fn memory()(
        recorded_ms in prop_oneof![any::<u64>(), Just(WALL_NOW.as_unix_millis())],
        interval in prop_oneof![1_u64.., 1_u64..10_000_000_000],
        limit in prop_oneof![Just(None), any::<f64>().prop_map(|limit| Some(limit.abs()).filter(|limit| limit.is_normal()))],
        window in proptest::option::of((1_u32..=1_000_000_000, 1_u64..)),
        gate in proptest::option::of(any::<u64>()),
        shut: u8,
        strikes in proptest::collection::vec(any::<u64>(), 0..6),
    ) -> String {
        let mut text = format!("gleaner-learned-1 recorded_at_ms={recorded_ms} interval_ns={interval}");
        let mut push = |key: &str, value: String| text.push_str(&format!(" {key}={value}"));
        if let Some(limit) = limit {
            push("limit_per_s", limit.to_string());
        }
        if let Some((limit, length)) = window {
            push("window", format!("{limit}/{length}"));
        }
        if let Some(gate) = gate {
            push("gate_until_ms", gate.to_string());
        }
        if shut > 0 {
            push("shut", shut.to_string());
        }
        for strike in strikes {
            push("strike_ms", strike.to_string());
        }
        text
    }
}

proptest! {
    #[test]
    fn r12_what_is_restored_is_never_faster_than_the_ceiling(text in memory(), config in plans::config()) {
        let learned = Learned::decode(text.as_bytes()).expect("well formed");
        prop_assert!(interval(&restored(&learned, config)) >= config.ceiling_interval);
    }

    #[test]
    fn r12_the_text_form_is_read_back_as_it_was(text in memory()) {
        let learned = Learned::decode(text.as_bytes()).expect("well formed");
        prop_assert_eq!(&learned.to_string(), &text);
        prop_assert_eq!(Learned::decode(learned.to_string().as_bytes()), Some(learned));
    }

    #[test]
    fn r12_any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Learned::decode(&bytes);
    }

    #[test]
    fn r12_text_that_is_damaged_is_no_memory_or_a_whole_one(text in memory(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = text.into_bytes();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        if let Some(learned) = Learned::decode(&bytes) {
            prop_assert_eq!(Learned::decode(learned.to_string().as_bytes()), Some(learned));
        }
    }

    #[test]
    fn r12_a_restored_governor_is_driven_without_a_panic(text in memory(), verdicts in proptest::collection::vec(0_usize..7, 0..40)) {
        const VERDICTS: [Verdict; 7] = [
            Verdict::Success, Verdict::Throttled, Verdict::Banned, Verdict::ServerError,
            Verdict::Network, Verdict::Forbidden, Verdict::Permanent,
        ];
        let learned = Learned::decode(text.as_bytes()).expect("well formed");
        let mut governor = restored(&learned, plans::without_circuit(Config::default()));
        let mut now = at(5);
        for verdict in verdicts {
            match governor.poll_admit(now) {
                Admission::Send(permit) => {
                    now = now + Duration::from_millis(30);
                    governor.on_outcome(permit, &Outcome::bare(VERDICTS[verdict]), 0, gleaner_governor::Jitter::from_bits(0), now);
                }
                Admission::WaitUntil(until) => now = until,
                Admission::Defer(deferral) => now = deferral.not_before.unwrap_or(now),
                Admission::WaitForOutcome => prop_assert!(false, "nothing is in flight"),
            }
        }
    }

    #[test]
    fn r12_a_stale_or_future_dated_rate_is_forgotten(age_s in 21_601_u64..10_000_000, is_future: bool) {
        let mut memory = learned(&experienced());
        let age = Duration::from_secs(age_s);
        memory.recorded_at = if is_future { WALL_NOW + Duration::from_secs(age_s - 21_600) } else { WALL_NOW.before(age) };
        prop_assert_eq!(interval(&restored(&memory, Config::default())), Config::default().discovery_interval);
    }
}

#[test]
fn a_fresh_resume_restores_the_prior_runs_learned_interval() {
    let hand = experienced();
    let mut memory = learned(&hand);
    for age in [Duration::ZERO, Duration::from_secs(3600), STALE_AFTER] {
        memory.recorded_at = WALL_NOW.before(age);
        let governor = restored(&memory, Config::default());
        assert_eq!(interval(&governor), hand.snapshot().interval, "{age:?} old");
    }
}

#[test]
fn a_stale_resume_cold_starts_conservatively() {
    let mut memory = learned(&experienced());
    memory.recorded_at = WALL_NOW.before(STALE_AFTER + Duration::from_millis(1));
    assert_eq!(interval(&restored(&memory, Config::default())), Config::default().discovery_interval);
    assert_eq!(Learned::decode(b""), None, "absent");
    for malformed in [
        "gleaner-learned-2 recorded_at_ms=1 interval_ns=5",
        "gleaner-learned-1",
        "gleaner-learned-1 recorded_at_ms=1",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=0",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=-5",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 interval",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 limit_per_s=NaN",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 limit_per_s=inf",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 limit_per_s=-1",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 window=0/5",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 window=5",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 shut=256",
        "gleaner-learned-1 recorded_at_ms=1 interval_ns=5 account=me",
    ] {
        assert_eq!(Learned::decode(malformed.as_bytes()), None, "{malformed}");
    }
}

#[test]
fn a_restored_interval_is_clamped_to_the_ceiling() {
    let memory = learned(&experienced());
    let ceiling_interval = Duration::from_millis(250);
    let governor = restored(&memory, Config { ceiling_interval, ..Config::default() });
    assert_eq!(interval(&governor), ceiling_interval);
}

#[test]
fn a_gate_survives_a_restart_however_old_the_rate_is() {
    let mut hand = experienced();
    hand.exchange(&Outcome::throttled(Some(Duration::from_secs(200))), 5);
    let mut memory = learned(&hand);
    memory.recorded_at = WALL_NOW.before(STALE_AFTER * 2);
    let mut governor = restored(&memory, Config::default());
    let Admission::WaitUntil(until) = governor.poll_admit(at(5)) else { panic!("the gate is open") };
    assert_eq!(until, at(205));
}

#[test]
fn an_open_circuit_survives_as_a_gate() {
    let mut hand = Hand::new(Config::default());
    for _ in 0..5 {
        hand.exchange(&gleaner_governor::network_error(), 10);
    }
    let mut governor = restored(&learned(&hand), Config::default());
    assert!(matches!(governor.poll_admit(at(5)), Admission::WaitUntil(until) if until == at(65)));
}

#[test]
fn a_ban_survives_a_restart() {
    let mut hand = experienced();
    hand.exchange(&Outcome::bare(Verdict::Banned), 5);
    let memory = learned(&hand);
    assert!(memory.shut > 0);
    assert!(memory.gate_until.is_some_and(|until| until > WALL_NOW));
    let governor = restored(&memory, Config::default());
    let again = governor.learned(at(5), WALL_NOW).expect("paced");
    assert_eq!((again.shut, again.gate_until), (memory.shut, memory.gate_until));
}

#[test]
fn a_ban_told_after_a_restored_one_only_lasts_longer() {
    let text =
        format!("gleaner-learned-1 recorded_at_ms={} interval_ns=1000000000 shut=255", WALL_NOW.as_unix_millis());
    let memory = Learned::decode(text.as_bytes()).expect("well formed");
    let mut hand = Hand::new(Config { horizon: Duration::MAX, ..Config::default() });
    hand.governor.restore(&memory, hand.now, WALL_NOW);
    hand.exchange(&Outcome::bare(Verdict::Banned), 5);
    assert!(hand.snapshot().next_allowed > hand.now + Duration::from_secs(60));
}

#[test]
fn strikes_survive_a_restart() {
    let mut hand = experienced();
    hand.exchange(&Outcome::throttled(None), 5);
    hand.exchange(&Outcome::throttled(None), 5);
    let memory = learned(&hand);
    assert_eq!(memory.strikes().count(), 2);
    assert!(memory.strikes().all(|at| at <= WALL_NOW));
    let governor = restored(&memory, Config::default());
    let again = governor.learned(at(5), WALL_NOW).expect("paced");
    assert_eq!(again.strikes().count(), 2);
    let (before, after) = (Governor::new("test").snapshot(at(5)), governor.snapshot(at(5)));
    assert!(after.map(|snapshot| snapshot.refusals_left) < before.map(|snapshot| snapshot.refusals_left));
}

#[test]
fn a_restart_in_the_middle_of_a_climb_does_not_search_again() {
    let mut hand = Hand::new(Config::default());
    hand.warm_to(Duration::from_millis(100));
    hand.exchange(&Outcome::throttled(None), 5);
    hand.exchange(&Outcome::success(), 5);
    let memory = learned(&hand);
    assert_eq!((memory.limit_per_s, memory.strikes().count()), (None, 1), "it was met, and is not measured yet");
    let mode = |learned: &Learned| restored(learned, Config::default()).snapshot(at(5)).map(|snapshot| snapshot.mode);
    assert_eq!(mode(&memory), Some("climb"));
    // A run that met nothing goes on searching, and so does one that met something yesterday.
    assert_eq!(mode(&Learned::from_interval(memory.interval, WALL_NOW)), Some("search"));
    let yesterday = WALL_NOW.before(Duration::from_secs(86_400)).as_unix_millis();
    let text = format!("gleaner-learned-1 recorded_at_ms={} interval_ns=1000000000", WALL_NOW.as_unix_millis());
    let old = Learned::decode(format!("{text} strike_ms={yesterday}").as_bytes()).expect("well formed");
    assert_eq!(mode(&old), Some("search"));
}

#[test]
fn a_strike_that_has_expired_costs_nothing() {
    // Strikes are kept until they expire: a refusal of last month says nothing about today.
    let last_month = WALL_NOW.before(Duration::from_secs(30 * 86_400)).as_unix_millis();
    let text = format!("gleaner-learned-1 recorded_at_ms={last_month} interval_ns=1000000000 strike_ms={last_month}");
    let governor = restored(&Learned::decode(text.as_bytes()).expect("well formed"), Config::default());
    let left = |governor: &Governor| governor.snapshot(at(5)).map(|snapshot| snapshot.refusals_left);
    assert_eq!(left(&governor), left(&Governor::new("test")));
}

#[test]
fn a_strike_is_never_forgotten_early_because_the_clock_starts_anew() {
    // A monotonic clock starts near zero after a reboot, which is later than the strike.
    let mut hand = experienced();
    hand.exchange(&Outcome::throttled(None), 5);
    hand.now = hand.now + Duration::from_secs(300);
    let memory = learned(&hand);
    let mut governor = Governor::new("test");
    governor.restore(&memory, Time::ZERO, WALL_NOW);
    let again = governor.learned(Time::ZERO, WALL_NOW).expect("paced");
    assert!(again.strikes().next() >= memory.strikes().next());
}

#[test]
fn a_gate_written_by_a_clock_that_was_years_ahead_does_not_close_the_key_for_years() {
    // Future-dated state means a cold start; ten years are no gate that a provider asked for.
    let ten_years = Duration::from_secs(10 * 365 * 86_400);
    let (recorded, until) = ((WALL_NOW + ten_years).as_unix_millis(), (WALL_NOW + ten_years * 2).as_unix_millis());
    let text = format!("gleaner-learned-1 recorded_at_ms={recorded} interval_ns=1000000000 gate_until_ms={until}");
    let mut governor = restored(&Learned::decode(text.as_bytes()).expect("well formed"), Config::default());
    assert!(matches!(governor.poll_admit(at(5)), Admission::Send(_)));
}

#[test]
fn a_memory_holds_rates_and_times_only() {
    let mut governor = Governor::new("alice@example.org");
    governor.restore(&learned(&experienced()), at(5), WALL_NOW);
    let text = governor.learned(at(5), WALL_NOW).expect("paced").to_string();
    assert!(!text.contains("alice"));
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{text}");
}

#[test]
fn a_limit_far_above_the_rate_at_which_it_was_held_is_no_measurement() {
    let text = format!(
        "gleaner-learned-1 recorded_at_ms={} interval_ns=10000000000 limit_per_s=1e300",
        WALL_NOW.as_unix_millis()
    );
    let memory = Learned::decode(text.as_bytes()).expect("well formed");
    let mut hand = Hand::new(Config::default());
    hand.governor.restore(&memory, hand.now, WALL_NOW);
    for _ in 0..5 {
        hand.exchange(&Outcome::success(), 5);
    }
    assert!(hand.snapshot().interval > Duration::from_secs(5));
}

#[test]
fn a_restored_window_is_held_wherever_the_clock_has_its_origin() {
    for origin_s in [0, 86_400, 1_000_000] {
        let text = format!(
            "gleaner-learned-1 recorded_at_ms={} interval_ns=100000000 limit_per_s=10 window=100/60000000000",
            WALL_NOW.as_unix_millis()
        );
        let memory = Learned::decode(text.as_bytes()).expect("well formed");
        let mut hand = Hand::new(Config::default());
        hand.now = hand.now + Duration::from_secs(origin_s);
        hand.governor.restore(&memory, hand.now, WALL_NOW);
        hand.exchange(&Outcome::success(), 5);
        assert_eq!(hand.snapshot().window.map(|(limit, _)| limit), Some(100), "origin {origin_s}");
    }
}

//! Whatever lies in the store as learned state: no panic, what was read is written the same way, and
//! what is restored never paces faster than the owner's ceiling (R12), also when it is then used.
#![no_main]

use gleaner_governor::{Admission, Config, Governor, Jitter, Learned, Outcome, Time, Verdict, WallTime};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

/// 2026-11-16 12:00:00 UTC, the time of the stored examples. Fixed, so that a reproducer stays one.
const WALL_NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);
const NOW: Time = Time::from_nanos(5_000_000_000);
const CEILING: Duration = Duration::from_millis(250);

/// Every answer that touches what was restored.
const ANSWERS: [Verdict; 6] = [
    Verdict::Success,
    Verdict::Throttled,
    Verdict::Forbidden,
    Verdict::Banned,
    Verdict::ServerError,
    Verdict::Throttled,
];

fuzz_target!(|input: &[u8]| {
    // Malformed state is a cold start, so `None` is a fine answer.
    let Some(learned) = Learned::decode(input) else { return };
    let text = learned.to_string();
    assert_eq!(Learned::decode(text.as_bytes()).as_ref(), Some(&learned), "{text}");
    // Our own clock may be wrong in either direction.
    for wall_now in [WALL_NOW, WallTime::from_unix_millis(0), WallTime::from_unix_millis(u64::MAX)] {
        let mut governor = Governor::with_config("fuzz", Config { ceiling_interval: CEILING, ..Config::default() });
        governor.restore(&learned, NOW, wall_now);
        drive(&mut governor, wall_now);
    }
});

/// Uses what was restored, and writes it down again.
fn drive(governor: &mut Governor, wall_now: WallTime) {
    let (mut now, mut last) = (NOW, None);
    for verdict in ANSWERS.into_iter().cycle().take(24) {
        // The clock ends after 584 years, and with it what can be said about times.
        if now > NOW + Duration::from_secs(100 * 365 * 86_400) {
            return;
        }
        let interval = governor.snapshot(now).map(|snapshot| snapshot.interval);
        assert!(interval.is_some_and(|interval| interval >= CEILING), "{interval:?}");
        match governor.poll_admit(now) {
            Admission::Send(permit) => {
                assert!(
                    last.is_none_or(|last| now.since(last) >= CEILING),
                    "two sends within {:?}",
                    last.map(|last| now.since(last))
                );
                last = Some(now);
                now = now + Duration::from_millis(30);
                governor.on_outcome(permit, &Outcome::bare(verdict), 0, Jitter::from_bits(7), now);
            }
            Admission::WaitUntil(until) => {
                assert!(until > now);
                now = until;
            }
            Admission::Defer(deferral) => now = deferral.not_before.unwrap_or(now),
            Admission::WaitForOutcome => panic!("nothing is in flight"),
        }
        let again = governor.learned(now, wall_now).map(|learned| learned.to_string());
        assert!(again.is_some_and(|text| Learned::decode(text.as_bytes()).is_some()), "what is written can be read");
    }
}

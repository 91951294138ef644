//! What is measured: the success path of a governor, and the same question to the crate `governor`.
//!
//! Instructions are counted, not time: the figure is the same on every machine and every day. Both
//! sides get the time as an argument, ours by its API and theirs by a clock that only says what it
//! was told, so that neither pays for reading one.

use gleaner_governor::{Admission, Config, Governor, Jitter, Outcome, Time};
use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::time::Duration;

/// Pace of both sides.
const INTERVAL: Duration = Duration::from_millis(20);
/// Latency of every answer.
const LATENCY: Duration = Duration::from_millis(5);

/// A governor that has been at its ceiling for a while, and a request that is due.
pub struct Warmed {
    governor: Governor,
    now: Time,
    success: Outcome,
}

impl Warmed {
    /// Ten minutes of successes.
    pub fn new() -> Box<Self> {
        let config = Config { ceiling_interval: INTERVAL, ..Config::default() };
        let governor = Governor::with_config("bench", config);
        let mut warmed = Box::new(Self { governor, now: Time::from_nanos(1), success: Outcome::success() });
        while warmed.now < Time::ZERO + Duration::from_secs(600) {
            warmed.exchange();
        }
        let snapshot = warmed.governor.snapshot(warmed.now).expect("paced");
        assert_eq!(snapshot.interval, INTERVAL, "not warm");
        warmed
    }

    /// Asks for admission when it is due, and tells that it succeeded.
    #[inline]
    pub fn exchange(&mut self) {
        let permit = match self.governor.poll_admit(self.now) {
            Admission::Send(permit) => permit,
            Admission::WaitUntil(until) => {
                self.now = until;
                return;
            }
            other => panic!("not admitted: {other:?}"),
        };
        self.governor.on_outcome(permit, &self.success, 0, Jitter::from_bits(1), self.now + LATENCY);
        self.now = self.now + INTERVAL;
    }
}

/// `governor` without keys, with a request that is due.
pub type Direct = RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>;

/// A direct limiter that has been used.
pub fn direct() -> Box<Direct> {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(quota(), clock.clone());
    for _ in 0..1000 {
        assert!(limiter.check().is_ok(), "not due");
        clock.advance(INTERVAL);
    }
    Box::new(limiter)
}

/// `governor` with a key per provider.
pub type Keyed = RateLimiter<u32, DashMapStateStore<u32>, FakeRelativeClock, NoOpMiddleware<Nanos>>;

/// A limiter that knows 100 keys.
pub fn keyed() -> Box<Keyed> {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::dashmap_with_clock(quota(), clock.clone());
    for _ in 0..100 {
        for key in 0..100 {
            assert!(limiter.check_key(&key).is_ok(), "not due");
        }
        clock.advance(INTERVAL);
    }
    Box::new(limiter)
}

fn quota() -> Quota {
    Quota::with_period(INTERVAL).expect("not zero")
}

//! The sides that are compared: each lets one request through for each of 100 hot keys, again and again.
//!
//! All get the time as an argument, ours by its API and the other by a clock that only says what it was told, so
//! that nobody pays for reading one. Keys are the same names for all who look one up.

use gleaner_governor::keyed::{Domain, Feedback, Handle, Lookup, Registry, RegistryConfig};
use gleaner_governor::{Admission, Time};
use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::hint::black_box;
use std::time::Duration;

/// Keys that are hot.
const KEYS: usize = 100;
/// Pace of all sides.
const INTERVAL: Duration = Duration::from_millis(20);
/// Latency of every answer.
const LATENCY: Duration = Duration::from_millis(5);

/// What a provider with a limit lets through at once.
const BURST: f64 = 10.0;

/// One who can be asked for every key, once per round.
pub trait Side {
    /// One request for each of the keys.
    fn round(&mut self);
}

/// The sides by name, ready for their next round.
pub fn side(name: &str) -> Option<Box<dyn Side>> {
    Some(match name {
        "check_key" => Box::new(Theirs::new((0..KEYS).map(host).collect())),
        "check_key_u32" => Box::new(Theirs::new((0..KEYS as u32).collect())),
        "kept" => Box::new(Ours::new(Limit::Ceiling)),
        "kept_holding" => Box::new(Ours::new(Limit::Held)),
        "by_key" => Box::new(ByKey { ours: Ours::new(Limit::Ceiling) }),
        "by_key_lookup" => {
            let ours = Ours::new(Limit::Ceiling);
            // For as long as the process lives.
            let lookup = Lookup::new(ours.registry);
            Box::new(ByLookup { ours, lookup })
        }
        _ => return None,
    })
}

/// Requests of a round.
pub const fn keys() -> usize {
    KEYS
}

fn host(number: usize) -> String {
    format!("host-{number}.example.com")
}

/// The crate `governor`.
struct Theirs<K: Clone + Eq + std::hash::Hash> {
    limiter: RateLimiter<K, DashMapStateStore<K>, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    clock: FakeRelativeClock,
    keys: Vec<K>,
}

impl<K: Clone + Eq + std::hash::Hash> Theirs<K> {
    fn new(keys: Vec<K>) -> Self {
        let clock = FakeRelativeClock::default();
        let quota = Quota::with_period(INTERVAL).expect("not zero");
        let limiter = RateLimiter::dashmap_with_clock(quota, clock.clone());
        let mut theirs = Self { limiter, clock, keys };
        (0..100).for_each(|_| theirs.round());
        theirs
    }
}

impl<K: Clone + Eq + std::hash::Hash> Side for Theirs<K> {
    fn round(&mut self) {
        for key in &self.keys {
            assert!(self.limiter.check_key(black_box(key)).is_ok(), "not due");
        }
        self.clock.advance(INTERVAL);
    }
}

/// What the provider of our keys allows.
#[derive(Clone, Copy, PartialEq)]
enum Limit {
    /// More than the owner.
    Ceiling,
    /// Half of that: the law holds just under it, and looks at whether to go on.
    Held,
}

/// A registry of ours, with the strategy that it has unless somebody sets another.
struct Ours {
    registry: &'static Registry,
    domains: Vec<Domain>,
    handles: Vec<Handle>,
    now: Time,
    interval: Duration,
    success: Feedback,
}

impl Ours {
    fn new(limit: Limit) -> Self {
        let registry: &Registry = Box::leak(Box::new(Registry::new(RegistryConfig::default(), 42).expect("a good config")));
        let now = Time::from_nanos(1);
        let domains: Vec<_> = (0..KEYS).map(|number| Domain::parse(&host(number)).expect("a host")).collect();
        let handles = domains.iter().map(|domain| registry.handle(domain, now).expect("room")).collect();
        let success = Feedback::status(200, None);
        let mut ours = Self { registry, domains, handles, now, interval: INTERVAL, success };
        ours.warm(limit);
        ours
    }

    /// Two minutes of answers.
    fn warm(&mut self, limit: Limit) {
        let end = self.now + Duration::from_secs(120);
        let mut tokens = vec![BURST; KEYS];
        while self.now < end {
            for (handle, tokens) in self.handles.iter().zip(&mut tokens) {
                // Half of a token per interval: the rate that is held is half of the ceiling.
                *tokens = (*tokens + 0.1).min(BURST);
                if let Admission::Send(permit) = self.registry.acquire(handle, self.now, self.now) {
                    let is_refused = limit == Limit::Held && *tokens < 1.0;
                    let feedback = if is_refused { Feedback::status(429, None) } else { self.success };
                    if !is_refused {
                        *tokens -= 1.0;
                    }
                    self.registry.feedback(handle, permit, &feedback, self.now + LATENCY);
                }
            }
            self.now = self.now + INTERVAL / 5;
        }
        let snapshot = self.registry.snapshot(KEYS, self.now);
        let slowest = snapshot.keys.iter().map(|key| key.rate_per_s).fold(f64::INFINITY, f64::min);
        match limit {
            Limit::Ceiling => assert!(slowest > 49.9, "not warm: {slowest}"),
            // Room for the pace of the slowest of them.
            Limit::Held => self.interval = Duration::from_secs_f64(1.0 / slowest) + Duration::from_millis(1),
        }
        self.now = self.now + Duration::from_secs(5);
    }

    /// One request of a key that is due, and its success.
    fn exchange(&self, handle: &Handle) {
        let Admission::Send(permit) = self.registry.acquire(black_box(handle), self.now, self.now) else {
            panic!("not due")
        };
        self.registry.feedback(handle, permit, black_box(&self.success), self.now + LATENCY);
    }
}

/// With kept handles.
impl Side for Ours {
    fn round(&mut self) {
        self.handles.iter().for_each(|handle| self.exchange(handle));
        self.now = self.now + self.interval;
    }
}

/// By name, from the registry each time.
struct ByKey {
    ours: Ours,
}

impl Side for ByKey {
    fn round(&mut self) {
        for domain in &self.ours.domains {
            let handle = self.ours.registry.handle(black_box(domain), self.ours.now).expect("room");
            self.ours.exchange(&handle);
        }
        self.ours.now = self.ours.now + self.ours.interval;
    }
}

/// By name, with the handles that were used last.
struct ByLookup {
    ours: Ours,
    lookup: Lookup<'static>,
}

impl Side for ByLookup {
    fn round(&mut self) {
        for domain in &self.ours.domains {
            let handle = self.lookup.handle(black_box(domain), self.ours.now).expect("room");
            self.ours.exchange(handle);
        }
        self.ours.now = self.ours.now + self.ours.interval;
    }
}

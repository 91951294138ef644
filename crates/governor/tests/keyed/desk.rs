//! A registry, a clock, and shorthands: who asks for a host, gets a permit and tells what came back.

use gleaner_governor::keyed::{Domain, Feedback, Handle, KeySnapshot, Registry, RegistryConfig, Snapshot};
use gleaner_governor::{Admission, Advice, BreakerConfig, Config, DeferReason, Jitter, Permit, Strategy, Time};
use std::time::Duration;

pub(crate) struct Desk {
    pub(crate) registry: Registry,
    pub(crate) now: Time,
}

/// A token bucket that keeps its rate, so that times can be computed by hand.
pub(crate) fn fixed(per_s: f64) -> RegistryConfig {
    with(RegistryConfig::aimd(), |key| {
        key.strategy = Strategy::Fixed;
        key.discovery_interval = every(per_s);
        key.ceiling_interval = Duration::from_millis(1);
        key.max_concurrency = 100;
    })
}

/// The same with other settings of its keys.
pub(crate) fn with(mut config: RegistryConfig, change: impl FnOnce(&mut Config)) -> RegistryConfig {
    change(&mut config.key);
    config
}

/// The interval of a rate per second.
pub(crate) fn every(per_s: f64) -> Duration {
    Duration::from_secs_f64(1.0 / per_s)
}

/// Opens after so many failures, one after the other, and for no other reason.
pub(crate) fn opens_after(failures: u16) -> BreakerConfig {
    BreakerConfig {
        throughput_min: failures,
        consecutive_failures: failures,
        failure_percent: 100,
        ..BreakerConfig::default()
    }
}

/// Never opens.
pub(crate) fn never_opens() -> BreakerConfig {
    BreakerConfig { throughput_min: u16::MAX, consecutive_failures: 0, ..BreakerConfig::default() }
}

pub(crate) fn domain(name: &str) -> Domain {
    Domain::parse(name).unwrap()
}

impl Desk {
    pub(crate) fn new(config: RegistryConfig) -> Self {
        Self { registry: Registry::new(config, 7).unwrap(), now: Time::from_nanos(1_000_000_000_000) }
    }

    pub(crate) fn handle(&self, host: &str) -> Handle {
        self.registry.handle(&domain(host), self.now).unwrap()
    }

    pub(crate) fn ask(&self, host: &str) -> Admission {
        self.registry.acquire(&self.handle(host), self.now, self.now)
    }

    /// A permit that must be there at once.
    pub(crate) fn send(&self, host: &str) -> Permit {
        match self.ask(host) {
            Admission::Send(permit) => permit,
            other => panic!("{host} is not admitted: {other:?}"),
        }
    }

    /// How long a request would have to wait; zero when it was let through, and given back.
    pub(crate) fn wait(&self, host: &str) -> Duration {
        match self.ask(host) {
            Admission::Send(permit) => {
                self.registry.cancel(&self.handle(host), permit, self.now);
                Duration::ZERO
            }
            Admission::WaitUntil(at) => at.since(self.now),
            other => panic!("{host}: {other:?}"),
        }
    }

    pub(crate) fn answer(&self, host: &str, permit: Permit, feedback: &Feedback) -> Advice {
        self.registry.feedback(&self.handle(host), permit, feedback, self.now)
    }

    pub(crate) fn pass(&mut self, time: Duration) -> &mut Self {
        self.now = self.now + time;
        self
    }

    pub(crate) fn pass_ms(&mut self, millis: u64) -> &mut Self {
        self.pass(Duration::from_millis(millis))
    }

    /// Waits for a permit, sends, and answers `status` after `latency_ms`.
    pub(crate) fn exchange(&mut self, host: &str, status: u16, latency_ms: u64) -> Advice {
        self.tell(host, &Feedback::status(status, None), latency_ms)
    }

    pub(crate) fn tell(&mut self, host: &str, feedback: &Feedback, latency_ms: u64) -> Advice {
        let permit = loop {
            match self.ask(host) {
                Admission::Send(permit) => break permit,
                Admission::WaitUntil(at) => self.now = at,
                other => panic!("{host}: {other:?}"),
            }
        };
        self.pass_ms(latency_ms).answer(host, permit, feedback)
    }

    pub(crate) fn tend(&self) {
        self.registry.tend(self.now);
    }

    pub(crate) fn tend_first_shard(&self) {
        self.registry.tend_shard(0, self.now);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.registry.snapshot(1000, self.now)
    }

    pub(crate) fn key(&self, host: &str) -> KeySnapshot {
        let keys = self.snapshot().keys;
        keys.into_iter().find(|key| &*key.domain == host).unwrap_or_else(|| panic!("{host} is not shown"))
    }

    /// When an open circuit lets a probe through, if it is open.
    pub(crate) fn denied_until(&self, host: &str) -> Option<Time> {
        match self.ask(host) {
            Admission::Defer(deferral) if deferral.reason == DeferReason::CircuitOpen => deferral.not_before,
            _ => None,
        }
    }

    pub(crate) fn is_denied(&self, host: &str) -> bool {
        self.denied_until(host).is_some()
    }
}

/// Feedback of attempt `attempt` with all random bits set: the longest pause.
pub(crate) fn attempt(status: u16, attempt: u32) -> Feedback {
    Feedback::status(status, None).of_attempt(attempt, Jitter::from_bits(u64::MAX))
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

//! What can be set for all keys of a registry, with the reason for every default, and what is refused.
//!
//! Why refuse and not repair: a rate that is not a number, or a floor above a ceiling, is a mistake in
//! somebody's file, and a registry that guesses would keep another pace than its owner believes. Every
//! refusal names the setting.

use super::domain::Domain;
use super::feedback::Statuses;
use crate::config::{CEILING_INTERVAL, DISCOVERY_INTERVAL};
use crate::law::tuning::Tuning;
use crate::retry::backoff::{Backoff, BackoffConfig};
use crate::retry::budget::RetryBudgetConfig;
use crate::time::{SECOND, nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Most buckets of a stats window. An active key has a kibibyte, and a bucket takes four bytes of it.
pub const BUCKETS_MAX: usize = 16;
/// Most shards: beyond it they cost memory and no thread waits less.
const SHARDS_MAX: usize = 4096;
/// Most keys: slots are numbered in 32 bits, and this many take 40 GB.
const KEYS_LIMIT: usize = 100_000_000;
/// A rate beyond one per nanosecond cannot be kept.
const PER_S_MAX: f64 = SECOND as f64;
/// A rate below one per year is no rate.
const PER_S_MIN: f64 = 1.0 / (366.0 * 86_400.0);

/// How a key finds its pace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Strategy {
    /// The law of [`Governor`](crate::Governor): finds the limit from below and holds just under it.
    #[default]
    Gleaner,
    /// A token bucket whose rate is raised by a step and cut by a factor.
    Aimd(Aimd),
    /// A token bucket with `initial_per_s`, whatever the answers say. A Retry-After and the circuit still count.
    Fixed,
}

impl Strategy {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gleaner => "gleaner",
            Self::Aimd(_) => "aimd",
            Self::Fixed => "fixed",
        }
    }
}

/// Steps of [`Strategy::Aimd`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    /// Added to the rate by a success that came in time. 0.1: ten successes for one more per second.
    pub increase_per_s: f64,
    /// The rate is multiplied by this when the provider is overloaded or late. 0.5, as in TCP.
    pub decrease_factor: f64,
    /// An answer within this time is in time. A provider that is always slower moves it, up to
    /// `late_factor` times. 500 ms: what a healthy web server needs at most.
    pub latency_target: Duration,
    /// An answer is late beyond this many times the target. 2.
    pub late_factor: f64,
}

impl Default for Aimd {
    fn default() -> Self {
        Self { increase_per_s: 0.1, decrease_factor: 0.5, latency_target: Duration::from_millis(500), late_factor: 2.0 }
    }
}

/// Settings of a [`Registry`](super::Registry).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Off: nobody waits and nobody is denied; what comes back is still counted.
    pub enabled: bool,
    /// How a key finds its pace.
    pub strategy: Strategy,
    /// Rate of a key of which nothing is known. 1: what everyone tolerates.
    pub initial_per_s: f64,
    /// No rate is lower. One per hour: slower providers have windows.
    pub min_per_s: f64,
    /// No rate is higher: the owner's ceiling. 50, as for a single governor.
    pub max_per_s: f64,
    /// Requests that a token bucket lets through at once after a pause. 1: idle time buys no burst. The
    /// strategy `gleaner` never bursts.
    pub burst: f64,
    /// Most requests of one key in flight. 6: what browsers allow themselves.
    pub max_in_flight: u16,
    /// Share of failures in the stats window that opens the circuit, above 0 and up to 1. 0.5: retries hide less.
    pub error_share: f64,
    /// Answers in the window without which that share means nothing. 10: a few broken pages are not an outage.
    pub samples_min: u16,
    /// Failures in a row that open the circuit, however long they take. 10; 0 is off.
    pub failures_in_row: u16,
    /// Time that the circuit stays open at first; doubled by each failed probe, up to 64 times. 60 s: a
    /// deploy or a failover.
    pub open_for: Duration,
    /// Probes that must succeed, one after the other, before the circuit closes. 2: one may be luck.
    pub successes_to_close: u8,
    /// Upper end of the first pause before a retry. 1 s.
    pub retry_base: Duration,
    /// Upper end of every pause. 60 s: longer outages belong to the circuit.
    pub retry_cap: Duration,
    /// Sends of one request, the first included. 4.
    pub attempts: u32,
    /// Bound on the retries of one key; `None`: only the attempts of each request bound them.
    pub retry_budget: Option<RetryBudgetConfig>,
    /// Time over which failures are counted; after so long without a request a key is put away in its
    /// small form. 30 s.
    pub stats_window: Duration,
    /// The window moves in steps of this. 2 s. At most [`BUCKETS_MAX`] of them.
    pub stats_bucket: Duration,
    /// A key that nobody used for so long is forgotten. An hour: longer than the longest open circuit.
    pub forget_after: Duration,
    /// Parts of the registry, each with its own lock; a power of two. 16.
    pub shards: usize,
    /// Most keys. One more pushes out the one that was idle the longest. A million: 300 MB when idle.
    pub keys_max: usize,
    /// A wait longer than this is counted as throttled. 100 ms: less is the jitter of timers and queues.
    pub throttled_after: Duration,
    /// Most keys of a snapshot. 100: more is nobody's to read.
    pub snapshot_keys_max: usize,
    /// Domains that share one key with all their subdomains. None.
    pub groups: BTreeSet<Box<str>>,
    /// Statuses that are worth a retry, or not, at some domains. None.
    pub statuses: BTreeMap<Box<str>, Statuses>,
    /// The numbers of the law, for the strategy `gleaner`. [`Tuning::SHIPPED`].
    pub tuning: &'static Tuning,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: Strategy::Gleaner,
            initial_per_s: 1.0 / DISCOVERY_INTERVAL.as_secs_f64(),
            min_per_s: 1.0 / 3600.0,
            max_per_s: 1.0 / CEILING_INTERVAL.as_secs_f64(),
            burst: 1.0,
            max_in_flight: 6,
            error_share: 0.5,
            samples_min: 10,
            failures_in_row: 10,
            open_for: Duration::from_secs(60),
            successes_to_close: 2,
            retry_base: Duration::from_secs(1),
            retry_cap: Duration::from_secs(60),
            attempts: 4,
            retry_budget: Some(RetryBudgetConfig::default()),
            stats_window: Duration::from_secs(30),
            stats_bucket: Duration::from_secs(2),
            forget_after: Duration::from_secs(3600),
            shards: 16,
            keys_max: 1_000_000,
            throttled_after: Duration::from_millis(100),
            snapshot_keys_max: 100,
            groups: BTreeSet::new(),
            statuses: BTreeMap::new(),
            tuning: Tuning::SHIPPED,
        }
    }
}

impl Config {
    /// [`Strategy::Aimd`] with its defaults: a burst of ten, and never slower than one in ten seconds,
    /// because from there it climbs by single steps.
    #[must_use]
    pub fn aimd() -> Self {
        Self { strategy: Strategy::Aimd(Aimd::default()), burst: 10.0, min_per_s: 0.1, ..Self::default() }
    }

    /// Looks for what makes no sense.
    ///
    /// # Errors
    /// The first setting that is wrong, by name.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_rates()?;
        self.check_circuit()?;
        self.check_retries()?;
        self.check_sizes()
    }

    fn check_rates(&self) -> Result<(), ConfigError> {
        for (field, rate) in
            [("initial_per_s", self.initial_per_s), ("min_per_s", self.min_per_s), ("max_per_s", self.max_per_s)]
        {
            within(field, rate, PER_S_MIN, PER_S_MAX)?;
        }
        if self.min_per_s > self.max_per_s {
            return refuse("min_per_s", "is above max_per_s");
        }
        if self.initial_per_s < self.min_per_s || self.initial_per_s > self.max_per_s {
            return refuse("initial_per_s", "is not between min_per_s and max_per_s");
        }
        within("burst", self.burst, 1.0, 1e9)?;
        if self.max_in_flight == 0 {
            return refuse("max_in_flight", "is zero");
        }
        let Strategy::Aimd(aimd) = self.strategy else { return Ok(()) };
        within("increase_per_s", aimd.increase_per_s, 0.0, PER_S_MAX)?;
        if !(aimd.decrease_factor > 0.0 && aimd.decrease_factor < 1.0) {
            return refuse("decrease_factor", "is not between 0 and 1");
        }
        positive("latency_target", aimd.latency_target)?;
        within("late_factor", aimd.late_factor, 1.0, 1e6)
    }

    fn check_circuit(&self) -> Result<(), ConfigError> {
        if !(self.error_share > 0.0 && self.error_share <= 1.0) {
            return refuse("error_share", "is not above 0 and up to 1");
        }
        if self.samples_min == 0 {
            return refuse("samples_min", "is zero");
        }
        if self.successes_to_close == 0 {
            return refuse("successes_to_close", "is zero");
        }
        positive("open_for", self.open_for)
    }

    fn check_retries(&self) -> Result<(), ConfigError> {
        if self.retry_base > self.retry_cap {
            return refuse("retry_base", "is above retry_cap");
        }
        if self.attempts == 0 {
            return refuse("attempts", "is zero");
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        positive("stats_window", self.stats_window)?;
        positive("stats_bucket", self.stats_bucket)?;
        if self.stats_bucket > self.stats_window {
            return refuse("stats_bucket", "is longer than stats_window");
        }
        if buckets(self.stats_window, self.stats_bucket) > BUCKETS_MAX as u64 {
            return refuse("stats_bucket", "makes more than 16 buckets of stats_window");
        }
        positive("forget_after", self.forget_after)?;
        if self.forget_after < self.stats_window {
            return refuse("forget_after", "is shorter than stats_window");
        }
        if !self.shards.is_power_of_two() || self.shards > SHARDS_MAX {
            return refuse("shards", "is not a power of two up to 4096");
        }
        if self.keys_max == 0 || self.keys_max > KEYS_LIMIT {
            return refuse("keys_max", "is not between 1 and 100000000");
        }
        if self.snapshot_keys_max == 0 {
            return refuse("snapshot_keys_max", "is zero");
        }
        let is_domain = |name: &str| Domain::parse(name).is_ok_and(|domain| domain.as_str() == name);
        if !self.groups.iter().all(|group| is_domain(group) && !group.contains(':')) {
            return refuse("groups", "has what is no domain in its one spelling, or one with a port");
        }
        if !self.statuses.keys().all(|name| is_domain(name)) {
            return refuse("statuses", "has what is no domain in its one spelling");
        }
        Ok(())
    }
}

/// How many buckets a window has.
fn buckets(window: Duration, bucket: Duration) -> u64 {
    nanos(window).div_ceil(nanos(bucket).max(1))
}

/// NaN is within nothing.
fn within(field: &'static str, value: f64, min: f64, max: f64) -> Result<(), ConfigError> {
    if value.is_nan() {
        return refuse(field, "is not a number");
    }
    if value < 0.0 {
        return refuse(field, "is negative");
    }
    if value < min {
        return refuse(field, "is too small");
    }
    if value > max {
        return refuse(field, "is too large");
    }
    Ok(())
}

fn positive(field: &'static str, value: Duration) -> Result<(), ConfigError> {
    if value.is_zero() { refuse(field, "is zero") } else { Ok(()) }
}

const fn refuse(field: &'static str, problem: &'static str) -> Result<(), ConfigError> {
    Err(ConfigError { field, problem })
}

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// A checked [`Config`] in the units that are counted in.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) config: Config,
    /// Interval of a key of which nothing is known, the shortest and the longest, in nanoseconds.
    pub(crate) discovery: u64,
    pub(crate) fastest: u64,
    pub(crate) slowest: u64,
    pub(crate) open: u64,
    pub(crate) window: u64,
    pub(crate) bucket: u64,
    pub(crate) buckets: u8,
    pub(crate) throttled: u64,
    pub(crate) forget: u64,
    pub(crate) backoff: Backoff,
}

impl Rules {
    pub(crate) fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let interval = |per_s: f64| (SECOND as f64 / per_s).round() as u64;
        Ok(Self {
            discovery: interval(config.initial_per_s),
            fastest: interval(config.max_per_s),
            slowest: interval(config.min_per_s),
            open: nanos(config.open_for),
            window: nanos(config.stats_window),
            bucket: nanos(config.stats_bucket),
            buckets: buckets(config.stats_window, config.stats_bucket) as u8,
            throttled: nanos(config.throttled_after),
            forget: nanos(config.forget_after),
            backoff: Backoff::new(BackoffConfig {
                base: config.retry_base,
                cap: config.retry_cap,
                attempts: config.attempts,
            }),
            config,
        })
    }
}

impl Rules {
    /// The name that `name` is governed under: the longest group that it belongs to, or its own.
    #[inline]
    pub(crate) fn group_of<'a>(&self, name: &'a str) -> &'a str {
        if self.config.groups.is_empty() { name } else { self.find_group(name) }
    }

    #[cold]
    fn find_group<'a>(&self, name: &'a str) -> &'a str {
        let mut rest = name;
        loop {
            if self.config.groups.contains(rest) {
                return rest;
            }
            match rest.split_once('.') {
                Some((_, parent)) => rest = parent,
                None => return name,
            }
        }
    }

    pub(crate) fn statuses_of(&self, name: &str) -> Option<&Statuses> {
        self.config.statuses.get(name)
    }
}

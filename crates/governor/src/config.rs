//! Settings of a key, with the reason for every default. The owner needs to set one number: the ceiling.
//!
//! A single [`Governor`](crate::Governor) and every key of a [`Registry`](crate::keyed::Registry) use the same
//! settings; a registry adds its own ([`RegistryConfig`](crate::keyed::RegistryConfig)). A registry rejects invalid
//! values ([`Config::check`]); a governor, whose constructor cannot fail, uses the nearest valid value.

use crate::admission::run_budget::RunBudgetConfig;
use crate::law::tuning::Tuning;
use crate::retry::backoff::{Backoff, BackoffConfig};
use crate::retry::breaker::{BreakerConfig, BreakerRules};
use crate::retry::budget::{RetryBudgetConfig, RetryRules};
use crate::time::nanos;
use std::fmt;
use std::time::Duration;

/// Strategy that sets the pace of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Strategy {
    /// The pacing law: finds the limit from below and stays just under it.
    #[default]
    Gleaner,
    /// A token bucket whose rate is raised by a step and cut by a factor.
    Aimd(Aimd),
    /// A token bucket that always keeps the discovery interval. Retry-After and the circuit breaker still apply.
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
    /// Added to the rate by each timely success. 0.1: ten successes add one request per second.
    pub increase_per_s: f64,
    /// The rate is multiplied by this after an overload or a late answer. 0.5, as in TCP.
    pub decrease_factor: f64,
    /// An answer within this time is timely. A provider that is always slower raises it, up to `late_factor` times.
    /// 500 ms: a healthy web server needs no more.
    pub latency_target: Duration,
    /// An answer is late beyond this many times the target. 2.
    pub late_factor: f64,
}

impl Default for Aimd {
    fn default() -> Self {
        Self { increase_per_s: 0.1, decrease_factor: 0.5, latency_target: Duration::from_millis(500), late_factor: 2.0 }
    }
}

/// Settings of one key.
///
/// ```
/// use gleaner_governor::{Config, Governor};
/// use std::time::Duration;
/// let governor = Governor::with_config("github", Config {
///     ceiling_interval: Duration::from_millis(250),
///     ..Config::default()
/// });
/// assert_eq!(governor.name(), "github");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Strategy that sets the pace.
    pub strategy: Strategy,
    /// Interval of the first sends, before anything is known (D4). Zero turns pacing off: no wait, and no snapshot.
    pub discovery_interval: Duration,
    /// The owner's ceiling: the shortest interval ever used, also after idle time.
    pub ceiling_interval: Duration,
    /// The longest interval that refusals may lead to. One hour: slower providers count per window. Trials after a
    /// Retry-After that proved too short may be further apart.
    pub slowest_interval: Duration,
    /// Requests that a token bucket sends at once after idle time. 1: no burst. The strategy `gleaner` never bursts.
    pub burst: f64,
    /// Maximum number of requests in flight.
    pub max_concurrency: u16,
    /// For accounts that are penalized for refusals. The limit is found with a single refusal; after that at most one
    /// refusal is risked per hundred accepted requests, and the pace does not rise until then. Off by default: it
    /// makes the first minutes slower.
    pub conservative: bool,
    /// Longest wait that is slept; a longer one is a deferral with `not_before`.
    pub horizon: Duration,
    /// Backoff before retries, and attempts per request.
    pub backoff: BackoffConfig,
    /// Limit on the retries of a key; `None`: only the attempts of each request limit them.
    pub retry_budget: Option<RetryBudgetConfig>,
    /// Settings of the circuit breaker.
    pub breaker: BreakerConfig,
    /// The owner's run budget; off by default. Only a [`Governor`](crate::Governor) has runs.
    pub run_budget: RunBudgetConfig,
    /// The numbers of the law. Only the lab uses others than [`Tuning::SHIPPED`].
    pub tuning: &'static Tuning,
}

/// Default discovery interval. Services without a documented limit tolerate one request per second from everyone, and
/// doubling from there finds a limit of 100 per second in 20 s.
pub const DISCOVERY_INTERVAL: Duration = Duration::from_millis(1000);

/// Default ceiling: 50 requests per second. Hardly any API without a contract allows more.
pub const CEILING_INTERVAL: Duration = Duration::from_millis(20);

/// Default horizon: people wait five minutes for a program, not longer.
pub const HORIZON: Duration = Duration::from_secs(300);

/// Default of the longest interval.
const SLOWEST_INTERVAL: Duration = Duration::from_secs(3600);
/// For AIMD: a bucket cut below this needs minutes to climb back, one step at a time.
const SLOWEST_INTERVAL_AIMD: Duration = Duration::from_secs(10);

impl Default for Config {
    fn default() -> Self {
        Self {
            strategy: Strategy::Gleaner,
            discovery_interval: DISCOVERY_INTERVAL,
            ceiling_interval: CEILING_INTERVAL,
            slowest_interval: SLOWEST_INTERVAL,
            burst: 1.0,
            max_concurrency: crate::admission::lane::MAX_CONCURRENCY_DEFAULT,
            conservative: false,
            horizon: HORIZON,
            backoff: BackoffConfig::default(),
            retry_budget: Some(RetryBudgetConfig::default()),
            breaker: BreakerConfig::default(),
            run_budget: RunBudgetConfig::default(),
            tuning: Tuning::SHIPPED,
        }
    }
}

impl Config {
    /// [`Strategy::Aimd`] with its defaults: a burst of ten, and at least one request per ten seconds, because it
    /// climbs back by single steps.
    #[must_use]
    pub fn aimd() -> Self {
        let strategy = Strategy::Aimd(Aimd::default());
        Self { strategy, burst: 10.0, slowest_interval: SLOWEST_INTERVAL_AIMD, ..Self::default() }
    }

    /// Rejects invalid settings. It also rejects a discovery interval of zero, because without pacing there is
    /// nothing to check.
    ///
    /// # Errors
    /// The first invalid setting, by name.
    pub fn check(&self) -> Result<(), ConfigError> {
        positive("ceiling_interval", self.ceiling_interval)?;
        if self.slowest_interval < self.ceiling_interval {
            return refuse("slowest_interval", "is shorter than ceiling_interval");
        }
        if !(self.ceiling_interval..=self.slowest_interval).contains(&self.discovery_interval) {
            return refuse("discovery_interval", "is not between ceiling_interval and slowest_interval");
        }
        within("burst", self.burst, 1.0, 1e9)?;
        if self.max_concurrency == 0 {
            return refuse("max_concurrency", "is zero");
        }
        if let Strategy::Aimd(aimd) = self.strategy {
            within("increase_per_s", aimd.increase_per_s, 0.0, 1e9)?;
            if !(aimd.decrease_factor > 0.0 && aimd.decrease_factor < 1.0) {
                return refuse("decrease_factor", "is not between 0 and 1");
            }
            positive("latency_target", aimd.latency_target)?;
            within("late_factor", aimd.late_factor, 1.0, 1e6)?;
        }
        if self.backoff.base > self.backoff.cap {
            return refuse("backoff.base", "is above backoff.cap");
        }
        if self.backoff.attempts == 0 {
            return refuse("backoff.attempts", "is zero");
        }
        self.breaker.check()
    }
}

/// NaN is rejected.
fn within(field: &'static str, value: f64, min: f64, max: f64) -> Result<(), ConfigError> {
    match value {
        value if value.is_nan() => refuse(field, "is not a number"),
        value if value < 0.0 => refuse(field, "is negative"),
        value if value < min => refuse(field, "is too small"),
        value if value > max => refuse(field, "is too large"),
        _ => Ok(()),
    }
}

pub(crate) fn positive(field: &'static str, value: Duration) -> Result<(), ConfigError> {
    if value.is_zero() { refuse(field, "is zero") } else { Ok(()) }
}

pub(crate) const fn refuse(field: &'static str, problem: &'static str) -> Result<(), ConfigError> {
    Err(ConfigError { field, problem })
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the setting.
    pub field: &'static str,
    /// The problem, to be read after the name.
    pub problem: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// A [`Config`] in internal units: times in nanoseconds. All keys of a registry share one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) tuning: &'static Tuning,
    /// Interval of a new key; 0: not paced.
    pub(crate) discovery: u64,
    /// The ceiling, and the longest interval.
    pub(crate) fastest: u64,
    pub(crate) slowest: u64,
    pub(crate) horizon: u64,
    pub(crate) breaker: BreakerRules,
    pub(crate) backoff: Backoff,
    pub(crate) retry: RetryRules,
    pub(crate) strategy: Strategy,
    pub(crate) burst: f64,
    pub(crate) max_concurrency: u16,
    pub(crate) conservative: bool,
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Self {
        let fastest = nanos(config.ceiling_interval).max(1);
        Self {
            tuning: config.tuning,
            discovery: nanos(config.discovery_interval),
            fastest,
            slowest: nanos(config.slowest_interval).max(fastest),
            horizon: nanos(config.horizon),
            breaker: BreakerRules::new(config.breaker),
            backoff: Backoff::new(config.backoff),
            retry: RetryRules::new(config.retry_budget, config.run_budget.request_cap),
            strategy: config.strategy,
            burst: config.burst,
            max_concurrency: config.max_concurrency,
            conservative: config.conservative,
        }
    }
}

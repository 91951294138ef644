//! What can be set, with the reason for every default. The owner sets one number: the ceiling.

use crate::admission::run_budget::RunBudgetConfig;
use crate::law::tuning::Tuning;
use crate::retry::backoff::BackoffConfig;
use crate::retry::breaker::BreakerConfig;
use crate::retry::budget::RetryBudgetConfig;
use std::time::Duration;

/// Settings of one governor.
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
    /// Interval of the first sends, before anything is known (D4). Zero opts out of pacing: no
    /// wait, and no snapshot.
    pub discovery_interval: Duration,
    /// The owner's number: the shortest interval ever allowed, also after idle time.
    pub ceiling_interval: Duration,
    /// Most requests in flight.
    pub max_concurrency: u16,
    /// Refusals are held against the owner's account. The limit is then found with one of them, and after that at
    /// most one is risked for a hundred requests that were accepted; until then the pace stays where it is. Off by
    /// default: it costs a part of the first minutes.
    pub is_careful: bool,
    /// Longest wait that is worth sleeping; beyond it a request is deferred with `not_before`.
    pub horizon: Duration,
    /// Pauses before retries, and how many attempts a request has.
    pub backoff: BackoffConfig,
    /// Bound on the retries of a run; `None`: only the attempts of each request bound them.
    pub retry_budget: Option<RetryBudgetConfig>,
    /// When the circuit opens and closes.
    pub breaker: BreakerConfig,
    /// The owner's envelope for a run; off by default.
    pub run_budget: RunBudgetConfig,
    /// The numbers of the law. [`Tuning::SHIPPED`] for everybody but the lab, which measures others.
    pub tuning: &'static Tuning,
}

/// The one discovery interval. One request a second is what services without a documented limit
/// tolerate from everyone, and doubling from there finds a limit of 100 per second in 20 s.
pub const DISCOVERY_INTERVAL: Duration = Duration::from_millis(1000);

/// Default ceiling: 50 requests per second. Hardly any API without a contract allows more.
pub const CEILING_INTERVAL: Duration = Duration::from_millis(20);

/// Default horizon: a person waits five minutes for a program, not longer.
pub const HORIZON: Duration = Duration::from_secs(300);

impl Default for Config {
    fn default() -> Self {
        Self {
            discovery_interval: DISCOVERY_INTERVAL,
            ceiling_interval: CEILING_INTERVAL,
            max_concurrency: crate::admission::lane::MAX_CONCURRENCY_DEFAULT,
            is_careful: false,
            horizon: HORIZON,
            backoff: BackoffConfig::default(),
            retry_budget: Some(RetryBudgetConfig::default()),
            breaker: BreakerConfig::default(),
            run_budget: RunBudgetConfig::default(),
            tuning: Tuning::SHIPPED,
        }
    }
}

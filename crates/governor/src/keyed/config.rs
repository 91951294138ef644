//! Settings of a registry: those of every key, and those that only many keys need.
//!
//! Why reject and not repair: a floor above a ceiling is a mistake in a configuration file, and a registry that
//! guesses would keep another pace than its owner believes. Every error names the setting.

use super::domain::Domain;
use super::feedback::Statuses;
use crate::admission::run_budget::RunBudgetConfig;
use crate::config::{Config, ConfigError, Rules, positive, refuse};
use crate::time::nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum of shards: more cost memory and do not shorten any wait.
const SHARDS_MAX: usize = 4096;
/// Maximum of keys: slots have 32-bit numbers, and this many keys take 40 GB.
const KEYS_LIMIT: usize = 100_000_000;
/// Requests in flight per host: the number that browsers use.
const MAX_CONCURRENCY: u16 = 6;

/// Settings of a [`Registry`](super::Registry).
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryConfig {
    /// Settings of each key. They differ from a single governor in two defaults: six requests in flight, and no
    /// horizon, because callers of a registry set their own timeout. A run budget is rejected. A key without a
    /// request for the breaker's window becomes idle.
    pub key: Config,
    /// Off: no request waits or is denied; answers are still counted.
    pub enabled: bool,
    /// A key unused for this long is dropped. One hour: longer than the longest open circuit.
    pub forget_after: Duration,
    /// Parts of the registry, each with its own lock; a power of two. 16.
    pub shards: usize,
    /// Maximum of keys. One more replaces the longest idle key. A million: 300 MB when idle.
    pub keys_max: usize,
    /// A wait longer than this is counted as throttled. 100 ms: less is the jitter of timers and queues.
    pub throttled_after: Duration,
    /// Maximum of keys in a snapshot. 100: nobody reads more.
    pub snapshot_keys_max: usize,
    /// Domains that share one key with all their subdomains. None.
    pub groups: BTreeSet<Box<str>>,
    /// Statuses that are retried, or not, at some domains. None.
    pub statuses: BTreeMap<Box<str>, Statuses>,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self::of(Config::default())
    }
}

impl RegistryConfig {
    /// [`Config::aimd`] for every key.
    #[must_use]
    pub fn aimd() -> Self {
        Self::of(Config::aimd())
    }

    fn of(key: Config) -> Self {
        Self {
            key: Config { max_concurrency: MAX_CONCURRENCY, horizon: Duration::MAX, ..key },
            enabled: true,
            forget_after: Duration::from_secs(3600),
            shards: 16,
            keys_max: 1_000_000,
            throttled_after: Duration::from_millis(100),
            snapshot_keys_max: 100,
            groups: BTreeSet::new(),
            statuses: BTreeMap::new(),
        }
    }

    /// Rejects invalid settings.
    ///
    /// # Errors
    /// The first invalid setting, by name.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.key.check()?;
        if self.key.run_budget != RunBudgetConfig::default() {
            return refuse("run_budget", "is set, but a registry has no runs");
        }
        positive("forget_after", self.forget_after)?;
        if self.forget_after < self.key.breaker.window {
            return refuse("forget_after", "is shorter than breaker.window");
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
            return refuse("groups", "has an entry that is not a normalized domain, or one with a port");
        }
        if !self.statuses.keys().all(|name| is_domain(name)) {
            return refuse("statuses", "has an entry that is not a normalized domain");
        }
        Ok(())
    }
}

/// A checked [`RegistryConfig`] in internal units.
#[derive(Clone, Debug)]
pub(crate) struct RegistryRules {
    pub(crate) config: RegistryConfig,
    pub(crate) key: Rules,
    pub(crate) throttled: u64,
    pub(crate) forget: u64,
}

impl RegistryRules {
    pub(crate) fn new(config: RegistryConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let (throttled, forget) = (nanos(config.throttled_after), nanos(config.forget_after));
        Ok(Self { key: Rules::new(&config.key), throttled, forget, config })
    }

    /// The key that `name` belongs to: its longest matching group, or itself.
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

//! Settings of hosts by name, as in the configuration file and `--set`, with their allowed values.

use gleaner_http::governor::keyed::{Domain, RegistryConfig, Statuses};
use gleaner_http::governor::{Aimd, RetryBudgetConfig, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// One setting of [`RegistryConfig`].
#[derive(Clone, Copy, Debug)]
pub struct HostSetting {
    /// Its name.
    pub name: &'static str,
    /// Allowed values, for people.
    pub allowed: &'static str,
    put: fn(&mut RegistryConfig, &str) -> Option<()>,
    text: fn(&RegistryConfig) -> String,
}

/// Why a setting is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostSettingError {
    /// There is no such setting.
    #[error("unknown setting {0:?}; known settings: {names}", names = names())]
    Unknown(String),
    /// It has no `=`.
    #[error("{0:?} is not NAME=VALUE")]
    NoValue(String),
    /// The value is not allowed.
    #[error("{name}: {value:?} is not allowed; use {allowed}")]
    Value {
        /// Name of the setting.
        name: &'static str,
        /// The rejected value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A setting of the strategy `aimd` with another strategy.
    #[error("{0} belongs to the strategy aimd; set strategy=aimd too")]
    NotAimd(&'static str),
}

fn names() -> String {
    HOST_SETTINGS.map(|setting| setting.name).join(", ")
}

/// A setting and its value, as written.
#[derive(Clone, Debug)]
pub struct Assignment {
    setting: &'static HostSetting,
    value: String,
}

impl Assignment {
    /// Applies assignments to `config`; the later of two for one setting counts.
    ///
    /// # Errors
    /// One belongs to a strategy that is not set. [`RegistryConfig::check`] checks whether they fit each other.
    pub fn apply(assignments: &[Self], config: &mut RegistryConfig) -> Result<(), HostSettingError> {
        // In the order of the table: the strategy comes before its settings.
        for setting in &HOST_SETTINGS {
            let Some(one) = assignments.iter().rfind(|one| one.setting.name == setting.name) else { continue };
            (setting.put)(config, &one.value).ok_or(HostSettingError::NotAimd(setting.name))?;
        }
        Ok(())
    }
}

/// `NAME=VALUE`.
impl FromStr for Assignment {
    type Err = HostSettingError;

    fn from_str(text: &str) -> Result<Self, HostSettingError> {
        let (name, value) = text.split_once('=').ok_or_else(|| HostSettingError::NoValue(text.to_owned()))?;
        let setting = HOST_SETTINGS.iter().find(|setting| setting.name == name.trim());
        let setting = setting.ok_or_else(|| HostSettingError::Unknown(name.trim().to_owned()))?;
        let HostSetting { name, allowed, put, .. } = *setting;
        let value = value.trim().to_owned();
        match put(&mut RegistryConfig::aimd(), &value) {
            Some(()) => Ok(Self { setting, value }),
            None => Err(HostSettingError::Value { name, value, allowed }),
        }
    }
}

impl HostSetting {
    /// Its value in `config`, in the form in which it is set.
    #[must_use]
    pub fn text(&self, config: &RegistryConfig) -> String {
        (self.text)(config)
    }
}

/// `name, field: allowed values, parser, formatter`; after `aimd` the settings of that strategy.
macro_rules! settings {
    (
        $($name:literal, $($field:ident).+: $allowed:expr, $read:expr, $write:expr;)*
        aimd $($step:ident: $step_allowed:expr, $step_read:expr, $step_write:expr;)*
    ) => {
        [$(HostSetting {
            name: $name,
            allowed: $allowed,
            put: |config, text| {
                config.$($field).+ = $read(text)?;
                Some(())
            },
            text: |config| $write(&config.$($field).+),
        },)* $(HostSetting {
            name: stringify!($step),
            allowed: $step_allowed,
            put: |config, text| {
                let Strategy::Aimd(aimd) = &mut config.key.strategy else { return None };
                aimd.$step = $step_read(text)?;
                Some(())
            },
            text: |config| match config.key.strategy {
                Strategy::Aimd(aimd) => $step_write(&aimd.$step),
                _ => $step_write(&Aimd::default().$step),
            },
        }),*]
    };
}

const RATE: &str = "a number per second from 0.0000001 to 1000000000";
const TIME: &str = "a time such as 500ms, 30s, 10m or 2h";
const COUNT: &str = "a whole number from 1 to 65535";
const SIZE: &str = "a whole number from 1 to 100000000";

/// All settings of hosts. The numbers of the law are not among them: only `gleaner lab` changes those.
pub const HOST_SETTINGS: [HostSetting; 32] = settings! {
    "strategy", key.strategy: "gleaner, aimd or fixed", strategy, |it: &Strategy| it.as_str().to_owned();
    "enabled", enabled: "true or false", read, write;
    "initial_per_s", key.discovery_interval: RATE, rate, per_second;
    "min_per_s", key.slowest_interval: RATE, rate, per_second;
    "max_per_s", key.ceiling_interval: RATE, rate, per_second;
    "burst", key.burst: "a number from 1 to 1000000000", |text| within(text, 1.0..=1e9), number;
    "max_in_flight", key.max_concurrency: COUNT, count, write;
    "is_careful", key.conservative: "true or false", read, write;
    "longest_wait", key.horizon: "none, or a time such as 30s, 10m or 2h", longest_wait, longest_wait_text;
    "failure_percent", key.breaker.failure_percent: "a whole number from 1 to 100", |text| within(text, 1..=100), write;
    "samples_min", key.breaker.throughput_min: COUNT, count, write;
    "failures_in_row", key.breaker.consecutive_failures: "a whole number from 0 (off) to 65535", read, write;
    "open_for", key.breaker.open_for: TIME, positive, duration;
    "probes", key.breaker.probes: "a whole number from 1 to 255", |text| within(text, 1..=u8::MAX), write;
    "successes_to_close", key.breaker.successes_to_close: "a whole number from 1 to 255", |text| within(text, 1..=u8::MAX), write;
    "retry_base", key.backoff.base: TIME, time, duration;
    "retry_cap", key.backoff.cap: TIME, time, duration;
    "attempts", key.backoff.attempts: COUNT, |text| count(text).map(u32::from), write;
    "retry_budget", key.retry_budget: "off, or successes that pay for one retry, from 1 to 65535", retry_budget, retry_budget_text;
    "stats_window", key.breaker.window: TIME, positive, duration;
    "stats_bucket", key.breaker.bucket: TIME, positive, duration;
    "forget_after", forget_after: TIME, positive, duration;
    "shards", shards: "a power of two up to 4096", |text| within(text, 1..=4096).filter(|it: &usize| it.is_power_of_two()), write;
    "keys_max", keys_max: SIZE, |text| within(text, 1..=100_000_000), write;
    "throttled_after", throttled_after: TIME, time, duration;
    "snapshot_keys_max", snapshot_keys_max: SIZE, |text| within(text, 1..=100_000_000), write;
    "groups", groups: "domains, separated by commas", groups, groups_text;
    "statuses", statuses: "for example \"a.example +404 -500, b.example -503\": + is worth a retry, - is not", statuses, statuses_text;
    aimd
    increase_per_s: "a number from 0 to 1000000000", |text| within(text, 0.0..=1e9), number;
    decrease_factor: "a number above 0 and below 1", |text| within(text, f64::MIN_POSITIVE..=1.0 - f64::EPSILON), number;
    latency_target: TIME, positive, duration;
    late_factor: "a number from 1 to 1000000", |text| within(text, 1.0..=1e6), number;
};

fn read<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn write(value: &impl Display) -> String {
    value.to_string()
}

/// NaN is rejected.
fn within<T: FromStr + PartialOrd>(text: &str, range: RangeInclusive<T>) -> Option<T> {
    read(text).filter(|value| range.contains(value))
}

/// A rate is stored as the interval between two requests.
fn rate(text: &str) -> Option<Duration> {
    within(text, 1e-7..=1e9).map(|per_second: f64| Duration::from_secs_f64(per_second.recip()))
}

fn per_second(interval: &Duration) -> String {
    let per_second = interval.as_secs_f64().recip();
    // Rounded: an interval is whole nanoseconds, so the last digits differ from the input.
    number(&((per_second * 1e6).round() / 1e6))
}

fn longest_wait(text: &str) -> Option<Duration> {
    if text == "none" { Some(Duration::MAX) } else { positive(text) }
}

fn longest_wait_text(value: &Duration) -> String {
    if *value == Duration::MAX { "none".to_owned() } else { duration(value) }
}

fn count(text: &str) -> Option<u16> {
    within(text, 1..=u16::MAX)
}

/// A number as a person would write it: one per hour is 0.000278 per second.
fn number(value: &f64) -> String {
    if *value < 0.001 && *value > 0.0 { format!("{value:.6}") } else { value.to_string() }
}

fn time(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    read::<u64>(number)?.checked_mul(millis).map(Duration::from_millis)
}

fn positive(text: &str) -> Option<Duration> {
    time(text).filter(|time| !time.is_zero())
}

fn duration(value: &Duration) -> String {
    let millis = value.as_millis();
    match (millis % 3_600_000, millis % 60_000, millis % 1000) {
        (0, ..) if millis > 0 => format!("{}h", millis / 3_600_000),
        (_, 0, _) if millis > 0 => format!("{}m", millis / 60_000),
        (_, _, 0) => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}

fn strategy(text: &str) -> Option<Strategy> {
    [Strategy::Gleaner, Strategy::Aimd(Aimd::default()), Strategy::Fixed].into_iter().find(|it| it.as_str() == text)
}

fn retry_budget(text: &str) -> Option<Option<RetryBudgetConfig>> {
    if text == "off" {
        return Some(None);
    }
    count(text).map(|successes_per_retry| Some(RetryBudgetConfig { successes_per_retry }))
}

fn retry_budget_text(budget: &Option<RetryBudgetConfig>) -> String {
    budget.map_or_else(|| "off".to_owned(), |budget| budget.successes_per_retry.to_string())
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Normalized, and without a port.
fn domain(text: &str) -> Option<Box<str>> {
    let domain = Domain::parse(text).ok()?;
    (!domain.as_str().contains(':')).then(|| domain.as_str().into())
}

fn groups(text: &str) -> Option<BTreeSet<Box<str>>> {
    list(text).map(domain).collect()
}

fn groups_text(groups: &BTreeSet<Box<str>>) -> String {
    if groups.is_empty() { "none".to_owned() } else { groups.iter().cloned().collect::<Vec<_>>().join(",") }
}

type StatusesByDomain = BTreeMap<Box<str>, Statuses>;

fn statuses(text: &str) -> Option<StatusesByDomain> {
    list(text).map(statuses_of_one).collect()
}

fn statuses_of_one(text: &str) -> Option<(Box<str>, Statuses)> {
    let mut words = text.split_whitespace();
    let (name, mut retryable, mut permanent) = (domain(words.next()?)?, Vec::new(), Vec::new());
    for word in words {
        let (list, status) = match word.split_at_checked(1)? {
            ("+", status) => (&mut retryable, status),
            ("-", status) => (&mut permanent, status),
            _ => return None,
        };
        list.push(within(status, 100..=599)?);
    }
    Some((name, Statuses::new(&retryable, &permanent)))
}

/// Shows only the names of the domains.
fn statuses_text(statuses: &StatusesByDomain) -> String {
    if statuses.is_empty() { "none".to_owned() } else { statuses.keys().cloned().collect::<Vec<_>>().join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(assignments: &[&str]) -> Result<RegistryConfig, HostSettingError> {
        let assignments: Vec<Assignment> = assignments.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let mut config = RegistryConfig::default();
        Assignment::apply(&assignments, &mut config)?;
        Ok(config)
    }

    #[test]
    fn every_default_can_be_written_as_it_is_shown() {
        for base in [RegistryConfig::default(), RegistryConfig::aimd()] {
            let shown = HOST_SETTINGS.iter().map(|setting| format!("{}={}", setting.name, setting.text(&base)));
            let shown = shown.filter(|text| !text.ends_with("=none")).collect::<Vec<_>>();
            let assignments: Vec<Assignment> = shown.iter().map(|text| text.parse().unwrap()).collect();
            let mut config = base.clone();
            match Assignment::apply(&assignments, &mut config) {
                Ok(()) => {
                    // One per hour is rounded.
                    config.key.slowest_interval = base.key.slowest_interval;
                    assert_eq!(config, base);
                }
                Err(error) => assert_eq!(error, HostSettingError::NotAimd("increase_per_s")),
            }
        }
    }

    #[test]
    fn values_are_taken_over_and_the_later_counts() {
        let config = config(&[
            "increase_per_s=0.5",
            "strategy=aimd",
            "max_per_s=7",
            "max_per_s=9",
            "open_for=2m",
            "retry_budget=off",
            "groups=Example.com, b.example",
            "statuses=a.example +404 -500",
        ]);
        let config = config.unwrap();
        assert!(matches!(config.key.strategy, Strategy::Aimd(aimd) if aimd.increase_per_s == 0.5));
        assert_eq!(config.key.ceiling_interval, Duration::from_secs_f64(1.0 / 9.0));
        assert_eq!(config.key.breaker.open_for, Duration::from_secs(120));
        assert_eq!((config.key.retry_budget, config.groups.len()), (None, 2));
        assert_eq!(config.statuses["a.example"], Statuses::new(&[404], &[500]));
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn nonsense_is_refused_with_name_value_and_what_is_allowed() {
        for wrong in [
            "strategy=fast",
            "enabled=1",
            "initial_per_s=0",
            "min_per_s=NaN",
            "max_per_s=inf",
            "burst=0.5",
            "max_in_flight=0",
            "is_careful=maybe",
            "longest_wait=0s",
            "failure_percent=0",
            "failure_percent=101",
            "probes=0",
            "samples_min=-1",
            "failures_in_row=70000",
            "open_for=0s",
            "successes_to_close=256",
            "retry_base=soon",
            "retry_cap=1d",
            "attempts=0",
            "retry_budget=0",
            "stats_window=0s",
            "stats_bucket=5",
            "forget_after=0h",
            "shards=3",
            "keys_max=0",
            "throttled_after=é",
            "snapshot_keys_max=0",
            "groups=a..b",
            "groups=a.example:8080",
            "statuses=a.example 404",
            "statuses=a.example +999",
            "increase_per_s=-1",
            "decrease_factor=1",
            "latency_target=0ms",
            "late_factor=0.5",
        ] {
            let (name, value) = wrong.split_once('=').unwrap();
            let error = config(&[wrong]).unwrap_err();
            let told = error.to_string();
            assert!(matches!(error, HostSettingError::Value { .. }), "{wrong}: {told}");
            assert!(told.contains(name) && told.contains(value) && told.contains("is not allowed; "), "{told}");
        }
        assert!(config(&["nonsense=1"]).unwrap_err().to_string().contains("known settings: strategy, enabled"));
        assert_eq!(config(&["attempts"]).unwrap_err(), HostSettingError::NoValue("attempts".to_owned()));
        assert_eq!(config(&["late_factor=3"]).unwrap_err(), HostSettingError::NotAimd("late_factor"));
    }
}

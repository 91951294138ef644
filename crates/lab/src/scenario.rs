//! A provider described in a file: its limits, how it tells them, what it does to those who break them.
//!
//! The format is for other people to write, so a mistake is answered with the file, the key and
//! what is allowed there. Numbers are checked once, here; the simulator behind it assumes them.

use serde::Deserialize;
use std::path::Path;

/// Longest horizon that is simulated, in seconds: ten days. A run keeps a sample per request, so
/// the horizon is what bounds its memory.
const HORIZON_MAX_S: f64 = 864_000.0;
/// More workers than any client of one account has; bounds the event queue.
const WORKERS_MAX: usize = 1024;
/// Files larger than this are no scenarios.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// One simulated provider and the client that meets it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, as printed in tables.
    pub name: String,
    /// What a reader should see.
    #[serde(default)]
    pub about: String,
    /// Length of the simulation.
    #[serde(default = "default_horizon_s")]
    pub horizon_s: f64,
    /// Requests that may be in flight.
    #[serde(default = "default_workers")]
    pub workers: usize,
    /// 0: endless work; n: stop when n are done.
    #[serde(default)]
    pub backlog: u64,
    /// The owner's number: the shortest interval ever allowed.
    #[serde(default = "default_ceiling_ms")]
    pub ceiling_interval_ms: f64,
    /// How fast the provider answers.
    #[serde(default)]
    pub latency: Latency,
    /// Failures that have nothing to do with limits.
    #[serde(default)]
    pub noise: Noise,
    /// Limits; a request must pass all that are active.
    #[serde(default, rename = "limit")]
    pub limits: Vec<Limit>,
    /// How a refusal looks.
    #[serde(default)]
    pub signal: Signal,
    /// Suspension by strikes.
    #[serde(default)]
    pub penalty: Option<Penalty>,
    /// Ranges that a run of law `gleaner` is held to.
    #[serde(default)]
    pub expect: Expect,
}

fn default_horizon_s() -> f64 {
    3600.0
}

fn default_workers() -> usize {
    8
}

fn default_ceiling_ms() -> f64 {
    20.0
}

/// Log-normal latency of answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latency {
    /// Median latency of an accepted request.
    pub base_ms: f64,
    /// Standard deviation of its logarithm.
    pub sigma: f64,
    /// Latency of a rejection.
    pub reject_ms: f64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { base_ms: 120.0, sigma: 0.25, reject_ms: 20.0 }
    }
}

/// Random failures; they count neither as accepted nor as rejected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Noise {
    /// Share answered 500.
    pub server_error: f64,
    /// Share of connection resets.
    pub reset: f64,
}

/// The kinds of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `rate_per_s`, `burst`.
    TokenBucket,
    /// `limit`, `window_s`, `phase_s`.
    FixedWindow,
    /// `limit`, `window_s`.
    SlidingWindow,
    /// `limit`.
    Concurrency,
    /// `rate_per_s`, `burst`: delays up to `burst`, then rejects.
    DelayQueue,
    /// `rate_per_s`, `factor`, `window_s`: all 200, slower when over.
    Tarpit,
}

impl LimitKind {
    const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingWindow => "sliding_window",
            Self::Concurrency => "concurrency",
            Self::DelayQueue => "delay_queue",
            Self::Tarpit => "tarpit",
        }
    }
}

/// One limit and the period in which it is active.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What kind of limit.
    pub kind: LimitKind,
    /// Requests per window, or in flight.
    #[serde(default)]
    pub limit: Option<f64>,
    /// Length of the window.
    #[serde(default)]
    pub window_s: Option<f64>,
    /// Windows begin at `k * window_s - phase_s`.
    #[serde(default)]
    pub phase_s: Option<f64>,
    /// Rate of a bucket, a queue or a tarpit.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Depth of a bucket or a queue.
    #[serde(default)]
    pub burst: Option<f64>,
    /// By how much a tarpit slows down.
    #[serde(default)]
    pub factor: Option<f64>,
    /// Whether rejected requests use up quota.
    #[serde(default)]
    pub count_rejected: bool,
    /// Start of the active period.
    #[serde(default)]
    pub from_s: f64,
    /// End of the active period; 0 = to the end.
    #[serde(default)]
    pub until_s: f64,
}

/// What Retry-After says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterKind {
    /// Nothing.
    #[default]
    None,
    /// The true wait, in whole seconds.
    Seconds,
    /// The true wait, as an HTTP date.
    Date,
    /// Always 0.
    Zero,
    /// A third of the true wait.
    WrongShort,
    /// Three times the true wait.
    WrongLong,
}

/// Which quota headers every answer carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum HeaderKind {
    /// None.
    #[default]
    #[serde(rename = "none")]
    None,
    /// `x-ratelimit-limit`, `-remaining`, `-reset` (epoch), for the first limit.
    #[serde(rename = "x-ratelimit")]
    XRateLimit,
    /// `RateLimit` and `RateLimit-Policy`, for the first limit.
    #[serde(rename = "ietf")]
    Ietf,
    /// `used/limit`, comma separated, for all limits.
    #[serde(rename = "used-limit")]
    UsedLimit,
}

/// How a refusal looks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Signal {
    /// 429, 503, 403, or 200 (told in the body).
    pub status: u16,
    /// What Retry-After says.
    pub retry_after: RetryAfterKind,
    /// Which quota headers there are.
    pub headers: HeaderKind,
}

impl Default for Signal {
    fn default() -> Self {
        Self { status: 429, retry_after: RetryAfterKind::None, headers: HeaderKind::None }
    }
}

/// Strikes within a period suspend the account.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalty {
    /// Rejections that suspend.
    pub strikes: u32,
    /// Period in which they count.
    pub within_s: f64,
    /// Length of the suspension.
    pub ban_s: f64,
    /// Whether each suspension is twice as long as the one before.
    #[serde(default)]
    pub doubling: bool,
    /// Status while suspended.
    #[serde(default = "default_ban_status")]
    pub status: u16,
}

fn default_ban_status() -> u16 {
    403
}

/// Ranges that are checked for law `gleaner`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Least goodput.
    pub goodput_min: Option<f64>,
    /// Largest share of rejected requests; six rejections in all always pass.
    pub violations_max: Option<f64>,
    /// Most suspensions.
    pub bans_max: Option<u64>,
    /// Largest p95 latency over base.
    pub latency_ratio_max: Option<f64>,
}

/// Why a scenario cannot be used. The message names the file, the key and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is no scenario.
    #[error("{file}: {message}")]
    Format {
        /// The file.
        file: String,
        /// What is wrong where, and what is allowed.
        message: String,
    },
    /// A number is out of range.
    #[error("{file}: {key} = {value}: {allowed}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// What it says.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no scenario, or says something impossible.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let read_error = |source| ScenarioError::Read { file: file.clone(), source };
        let length = std::fs::metadata(path).map_err(read_error)?.len();
        if length > FILE_MAX_BYTES {
            let message = format!("is {length} bytes long; a scenario has at most {FILE_MAX_BYTES}");
            return Err(ScenarioError::Format { file, message });
        }
        let text = std::fs::read_to_string(path).map_err(read_error)?;
        Self::parse(&file, &text)
    }

    /// Parses and checks the text of a file; `file` is only named in errors.
    ///
    /// # Errors
    /// When the text is no scenario, or says something impossible.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::Format {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Check { file }.scenario(&scenario)?;
        Ok(scenario)
    }

    /// The same provider met by another number of workers.
    #[must_use]
    pub fn with_workers(&self, workers: usize) -> Self {
        Self { workers, ..self.clone() }
    }
}

/// The rules for numbers, each with the words for breaking it.
struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn scenario(&self, s: &Scenario) -> Result<(), ScenarioError> {
        let name_ok = !s.name.is_empty() && s.name.len() <= 80 && !s.name.chars().any(char::is_control);
        self.rule(name_ok, "name", &s.name, "1 to 80 printable characters")?;
        let horizon_ok = s.horizon_s > 0.0 && s.horizon_s <= HORIZON_MAX_S;
        self.rule(horizon_ok, "horizon_s", s.horizon_s, "more than 0, at most 864000 (ten days)")?;
        let workers_ok = (1..=WORKERS_MAX).contains(&s.workers);
        self.rule(workers_ok, "workers", s.workers, "a whole number from 1 to 1024")?;
        let ceiling_ok = (0.1..=3_600_000.0).contains(&s.ceiling_interval_ms);
        self.rule(ceiling_ok, "ceiling_interval_ms", s.ceiling_interval_ms, "from 0.1 to 3600000")?;
        self.latency(&s.latency)?;
        self.share("noise.server_error", s.noise.server_error)?;
        self.share("noise.reset", s.noise.reset)?;
        self.rule(s.limits.len() <= 16, "limit", s.limits.len(), "at most 16 limits")?;
        for (index, limit) in s.limits.iter().enumerate() {
            self.limit(index, limit)?;
        }
        let status_ok = [429, 503, 403, 200].contains(&s.signal.status);
        self.rule(status_ok, "signal.status", s.signal.status, "429, 503, 403 or 200")?;
        if let Some(penalty) = &s.penalty {
            self.penalty(penalty)?;
        }
        Ok(())
    }

    fn latency(&self, latency: &Latency) -> Result<(), ScenarioError> {
        let base_ok = latency.base_ms > 0.0 && latency.base_ms <= 600_000.0;
        self.rule(base_ok, "latency.base_ms", latency.base_ms, "more than 0, at most 600000")?;
        let sigma_ok = (0.0..=3.0).contains(&latency.sigma);
        self.rule(sigma_ok, "latency.sigma", latency.sigma, "from 0 to 3")?;
        let reject_ok = (0.0..=600_000.0).contains(&latency.reject_ms);
        self.rule(reject_ok, "latency.reject_ms", latency.reject_ms, "from 0 to 600000")
    }

    fn share(&self, key: &str, value: f64) -> Result<(), ScenarioError> {
        self.rule((0.0..=1.0).contains(&value), key, value, "a share from 0 to 1")
    }

    fn penalty(&self, penalty: &Penalty) -> Result<(), ScenarioError> {
        self.rule(penalty.strikes > 0, "penalty.strikes", penalty.strikes, "at least 1")?;
        self.positive("penalty.within_s", penalty.within_s)?;
        self.positive("penalty.ban_s", penalty.ban_s)?;
        let status_ok = (400..600).contains(&penalty.status);
        self.rule(status_ok, "penalty.status", penalty.status, "a status from 400 to 599")
    }

    /// Each kind has its own keys: a missing one is an error, and so is one that nobody reads.
    fn limit(&self, index: usize, limit: &Limit) -> Result<(), ScenarioError> {
        use LimitKind::{Concurrency, DelayQueue, FixedWindow, SlidingWindow, Tarpit, TokenBucket};
        let kind = limit.kind;
        let windowed = matches!(kind, FixedWindow | SlidingWindow);
        let rated = matches!(kind, TokenBucket | DelayQueue | Tarpit);
        let keys = [
            ("limit", limit.limit, windowed || kind == Concurrency),
            ("window_s", limit.window_s, windowed || kind == Tarpit),
            ("rate_per_s", limit.rate_per_s, rated),
            ("burst", limit.burst, matches!(kind, TokenBucket | DelayQueue)),
            ("factor", limit.factor, kind == Tarpit),
        ];
        for (key, value, belongs) in keys {
            let name = format!("limit[{index}].{key}");
            match (value, belongs) {
                (Some(value), true) => self.positive(&name, value)?,
                (None, true) => return Err(self.format(format!("{name} is missing: kind {} needs it", kind.name()))),
                (Some(_), false) => return Err(self.format(format!("{name} has no meaning for kind {}", kind.name()))),
                (None, false) => {}
            }
        }
        for (key, value) in [("limit", limit.limit), ("burst", limit.burst)] {
            let whole = value.is_none_or(|v| v >= 1.0 && v.fract() == 0.0 && v <= 1e9);
            self.rule(
                whole,
                &format!("limit[{index}].{key}"),
                value.unwrap_or(0.0),
                "a whole number from 1 to 1000000000",
            )?;
        }
        let phase_key = format!("limit[{index}].phase_s");
        if let Some(phase) = limit.phase_s {
            if kind != FixedWindow {
                return Err(self.format(format!("{phase_key} has no meaning for kind {}", kind.name())));
            }
            self.rule(phase.is_finite() && phase >= 0.0, &phase_key, phase, "0 or more")?;
        }
        self.rule(limit.from_s >= 0.0, &format!("limit[{index}].from_s"), limit.from_s, "0 or more")?;
        let until_ok = limit.until_s == 0.0 || limit.until_s > limit.from_s;
        self.rule(until_ok, &format!("limit[{index}].until_s"), limit.until_s, "0 (to the end) or later than from_s")
    }

    fn positive(&self, key: &str, value: f64) -> Result<(), ScenarioError> {
        self.rule(value > 0.0 && value.is_finite() && value <= 1e9, key, value, "more than 0, at most 1000000000")
    }

    fn rule(&self, holds: bool, key: &str, value: impl ToString, allowed: &'static str) -> Result<(), ScenarioError> {
        if holds {
            return Ok(());
        }
        Err(ScenarioError::Value { file: self.file.to_owned(), key: key.to_owned(), value: value.to_string(), allowed })
    }

    fn format(&self, message: String) -> ScenarioError {
        ScenarioError::Format { file: self.file.to_owned(), message }
    }
}

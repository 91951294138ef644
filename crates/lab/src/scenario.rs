//! Scenario file: a provider's limits, its signals and its penalties.
//!
//! People write these files, so an error names the file, the key and the allowed values. Numbers are checked once,
//! here; the simulator relies on that.

mod check;

use self::check::Check;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest horizon in seconds: ten days. A run keeps a sample per request, so the horizon limits its memory.
const HORIZON_MAX_S: f64 = 864_000.0;
/// More workers than any client of one account has; limits the event queue.
const WORKERS_MAX: usize = 1024;
/// Larger files are rejected.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// One simulated provider and its client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, as printed in tables.
    pub name: String,
    /// Description for readers.
    #[serde(default)]
    pub about: String,
    /// Length of the simulation.
    #[serde(default = "default_horizon_s")]
    pub horizon_s: f64,
    /// Maximum of requests in flight.
    #[serde(default = "default_workers")]
    pub workers: usize,
    /// 0: endless work; n: stop when n are done.
    #[serde(default)]
    pub backlog: u64,
    /// The ceiling: the shortest interval ever allowed.
    #[serde(default = "default_ceiling_ms")]
    pub ceiling_interval_ms: f64,
    /// Latency of the provider.
    #[serde(default)]
    pub latency: Latency,
    /// Failures unrelated to limits.
    #[serde(default)]
    pub noise: Noise,
    /// Limits; a request must pass all that are active.
    #[serde(default, rename = "limit")]
    pub limits: Vec<Limit>,
    /// Form of a refusal.
    #[serde(default)]
    pub signal: Signal,
    /// Suspension by strikes.
    pub penalty: Option<Penalty>,
    /// Required ranges for a run of law `gleaner`.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `rate_per_s`, `burst`.
    #[default]
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
    /// Required keys of a limit of this kind.
    const fn needs(self) -> &'static [&'static str] {
        match self {
            Self::TokenBucket | Self::DelayQueue => &["rate_per_s", "burst"],
            Self::FixedWindow | Self::SlidingWindow => &["limit", "window_s"],
            Self::Concurrency => &["limit"],
            Self::Tarpit => &["rate_per_s", "window_s", "factor"],
        }
    }
}

/// One limit and the period in which it is active.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Kind of limit.
    pub kind: LimitKind,
    /// Requests per window, or in flight.
    pub limit: Option<f64>,
    /// Length of the window.
    pub window_s: Option<f64>,
    /// Windows begin at `k * window_s - phase_s`.
    pub phase_s: Option<f64>,
    /// Rate of a bucket, a queue or a tarpit.
    pub rate_per_s: Option<f64>,
    /// Depth of a bucket or a queue.
    pub burst: Option<f64>,
    /// Slowdown factor of a tarpit.
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

/// Value of Retry-After.
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

/// Quota headers on every answer.
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

/// Form of a refusal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Signal {
    /// 429, 503, 403, or 200 (with the refusal in the body).
    pub status: u16,
    /// Value of Retry-After.
    pub retry_after: RetryAfterKind,
    /// Quota headers.
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

/// Required ranges for law `gleaner`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Minimum goodput.
    pub goodput_min: Option<f64>,
    /// Maximum share of rejected requests; up to six rejections in total always pass.
    pub violations_max: Option<f64>,
    /// Maximum of suspensions.
    pub bans_max: Option<u64>,
    /// Maximum p95 latency over base.
    pub latency_ratio_max: Option<f64>,
}

/// Why a scenario is rejected. The message names the file, the key and the allowed values.
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
    /// The file is not a valid scenario.
    #[error("{file}: {message}")]
    Format {
        /// The file.
        file: String,
        /// The problem, its position, and the allowed values.
        message: String,
    },
    /// A number is out of range.
    #[error("{file}: {key} = {value}: allowed is {allowed}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// The rejected value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid scenario.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let read_error = |source| ScenarioError::Read { file: file.clone(), source };
        let mut bytes = Vec::new();
        // Limits the bytes read and not the reported length: a device reports 0 and never ends.
        let opened = File::open(path).map_err(read_error)?;
        opened.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(read_error)?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            let message = format!("is too long; a scenario has at most {FILE_MAX_BYTES} bytes");
            return Err(ScenarioError::Format { file, message });
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let message = format!("is not UTF-8 from byte {} on; a scenario is TOML text", error.valid_up_to());
            ScenarioError::Format { file: file.clone(), message }
        })?;
        Self::parse(&file, text)
    }

    /// Parses and checks the text of a file; `file` is only named in errors.
    ///
    /// # Errors
    /// The text is not a valid scenario.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| ScenarioError::Format {
            file: file.to_owned(),
            message: check::plain_words(&error.to_string()),
        })?;
        Check { file }.scenario(&scenario)?;
        Ok(scenario)
    }

    /// The same provider with another number of workers.
    pub fn with_workers(&self, workers: usize) -> Self {
        Self { workers, ..self.clone() }
    }
}

//! Fastest-safe pacing for a provider whose rate limit nobody tells us.
#![warn(missing_docs)]

mod backoff;
mod breaker;
mod classify;
mod config;
mod governor;
mod lane;
mod latency;
mod law;
mod outcome;
mod pacing;
mod quota;
mod quota_headers;
mod reasons;
mod refusals;
mod retry_after;
mod retry_budget;
mod run_budget;
mod send_log;
mod snapshot;
mod time;
mod warm_start;
mod window;

pub use backoff::{BackoffConfig, Jitter};
pub use breaker::{BreakerConfig, CircuitReason, CircuitState, CircuitTransition, CircuitTrigger};
pub use classify::{Classifier, DefaultClassifier, HeaderSource, ResponseView, network_error, untrusted_certificate};
pub use config::{CEILING_INTERVAL, Config, DISCOVERY_INTERVAL, HORIZON};
pub use governor::{Admission, Advice, Governor, Permit};
pub use outcome::{Outcome, QUOTAS_MAX, QuotaReading, Quotas, Verdict};
pub use quota_headers::{QUOTA_RESET_MAX, read_quotas};
pub use reasons::{DeferReason, Deferral, PressureReason};
pub use retry_after::{RETRY_AFTER_MAX, read_retry_after};
pub use retry_budget::RetryBudgetConfig;
pub use run_budget::RunBudgetConfig;
pub use snapshot::{BackoffReason, LastBackoff, Snapshot};
pub use time::{Time, WallTime};
pub use warm_start::{Learned, STALE_AFTER};

//! Fastest-safe pacing for a provider whose rate limit nobody tells us.
#![warn(missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "while being built")]

mod backoff;
mod breaker;
mod classify;
mod config;
mod governor;
mod lane;
mod law;
mod outcome;
mod pacing;
mod quota;
mod quota_headers;
mod reasons;
mod retry_after;
mod retry_budget;
mod run_budget;
mod snapshot;
mod time;
mod warm_start;

pub use classify::*;
pub use config::Config;
pub use governor::{Admission, Governor, Permit};
pub use outcome::{Outcome, QUOTAS_MAX, QuotaReading, Quotas, Verdict};
pub use quota_headers::*;
pub use reasons::{DeferReason, Deferral, PressureReason};
pub use retry_after::*;
pub use time::{Time, WallTime};

//! Outcome of one send, in the terms that the governor decides by.
//!
//! Why not pass a status code: providers throttle with 429, 503, 403 and even 200, so the classifier (`classify.rs`)
//! decides the meaning once, and everything after it sees a fixed set of verdicts. Never holds a URL, a header or a
//! body.

use crate::signals::retry_after::RETRY_AFTER_MAX;
use std::time::Duration;

/// The meaning of one answer, or of its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The provider accepted the request (2xx, 3xx). The only verdict that may speed us up.
    Success,
    /// The provider says that we are too fast: 429, 503, or another answer that the classifier knows.
    Throttled,
    /// The account is banned: by the answer, or after a row of bare refusals.
    Banned,
    /// The provider failed: 408 or 5xx other than a throttle. Retryable.
    ServerError,
    /// No answer: timeout, reset, DNS. Retryable.
    Network,
    /// 401, or a 403 without a throttle's reason. Not retryable.
    Forbidden,
    /// Any other 4xx, and certificates that are not trusted: the same request cannot succeed.
    Permanent,
}

impl Verdict {
    /// Whether a retry of the same request may succeed (D5: 429, 408, 5xx, network).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Throttled | Self::ServerError | Self::Network)
    }
}

/// One quota from the provider's headers; every part may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaReading {
    /// Requests allowed per window, or the depth of a bucket.
    pub limit: Option<u64>,
    /// Requests left; negative values in headers are read as zero.
    pub remaining: Option<u64>,
    /// Time until the quota resets, counted from the arrival of the answer.
    pub resets_in: Option<Duration>,
    /// Length of the window, if the provider sends it.
    pub window: Option<Duration>,
}

/// Maximum number of quotas read from one answer; more are ignored. Highest number seen: three.
pub const QUOTAS_MAX: usize = 4;

/// The quotas of one answer, in the provider's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    readings: [QuotaReading; QUOTAS_MAX],
    len: u8,
}

impl Quotas {
    /// No quota.
    pub const NONE: Self = Self {
        readings: [QuotaReading { limit: None, remaining: None, resets_in: None, window: None }; QUOTAS_MAX],
        len: 0,
    };

    /// Adds a reading; beyond [`QUOTAS_MAX`] it is ignored.
    pub fn push(&mut self, reading: QuotaReading) {
        if let Some(slot) = self.readings.get_mut(usize::from(self.len)) {
            *slot = reading;
            self.len += 1;
        }
    }

    /// The readings, in the order of the headers.
    #[must_use]
    pub fn as_slice(&self) -> &[QuotaReading] {
        &self.readings[..usize::from(self.len)]
    }

    /// The readings, to be completed from a second header.
    pub fn as_mut_slice(&mut self) -> &mut [QuotaReading] {
        &mut self.readings[..usize::from(self.len)]
    }
}

/// All that the governor learns from one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Meaning of the answer.
    pub verdict: Verdict,
    /// The provider's Retry-After, counted from the arrival of the answer.
    pub retry_after: Option<Duration>,
    /// Quotas from headers.
    pub quotas: Quotas,
}

impl Outcome {
    /// An outcome with nothing but a verdict.
    #[must_use]
    pub const fn bare(verdict: Verdict) -> Self {
        Self { verdict, retry_after: None, quotas: Quotas::NONE }
    }

    /// A success without headers.
    #[must_use]
    pub const fn success() -> Self {
        Self::bare(Verdict::Success)
    }

    /// The effective Retry-After: the gate closes for exactly that long. Zero counts as none, because such a provider
    /// does not know; the value of a classifier is limited like a header's. A success or a permanent failure has
    /// none, because it says nothing about other requests.
    #[must_use]
    pub fn told_wait(&self) -> Option<Duration> {
        let says_nothing = matches!(self.verdict, Verdict::Success | Verdict::Permanent);
        self.retry_after.filter(|wait| !says_nothing && !wait.is_zero()).map(|wait| wait.min(RETRY_AFTER_MAX))
    }

    /// A throttle, with the provider's Retry-After.
    #[must_use]
    pub const fn throttled(retry_after: Option<Duration>) -> Self {
        Self { verdict: Verdict::Throttled, retry_after, quotas: Quotas::NONE }
    }
}

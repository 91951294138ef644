//! What came back for one send, in the words that the governor decides by.
//!
//! Why not hand the governor a status code: providers throttle with 429, 503, 403 and even 200, so
//! the meaning of an answer is decided once, by the classifier (`classify.rs`), and everything
//! behind it sees a closed set of verdicts. Never holds a URL, a header or a body.

use crate::signals::retry_after::RETRY_AFTER_MAX;
use std::time::Duration;

/// The meaning of one answer, or of its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The provider did what was asked (2xx, 3xx). The only verdict that may speed us up.
    Success,
    /// The provider says that we are too fast: 429, 503, or what the classifier knows as such.
    Throttled,
    /// The account itself is shut out: told so, or learned from a row of bare refusals.
    Banned,
    /// The provider failed on its side: 408 or 5xx other than a throttle. Worth another try.
    ServerError,
    /// No answer: timeout, reset, DNS. Worth another try.
    Network,
    /// 401, or a 403 without a throttle's reason. Not worth another try as it is.
    Forbidden,
    /// Any other 4xx, and certificates that are not trusted: the same request cannot succeed.
    Permanent,
}

impl Verdict {
    /// Whether the same request may succeed when it is sent again (D5: 429, 408, 5xx, network).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Throttled | Self::ServerError | Self::Network)
    }
}

/// One quota as the provider's headers tell it; every part may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaReading {
    /// Requests allowed per window, or the depth of a bucket.
    pub limit: Option<u64>,
    /// Requests left; negative values in headers are read as zero.
    pub remaining: Option<u64>,
    /// Time until the quota is whole again, counted from the arrival of the answer.
    pub resets_in: Option<Duration>,
    /// Length of the window, where the provider says it.
    pub window: Option<Duration>,
}

/// How many quotas of one answer are read; more are ignored. Seen in the wild: three.
pub const QUOTAS_MAX: usize = 4;

/// The quotas of one answer, in the order in which the provider lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    readings: [QuotaReading; QUOTAS_MAX],
    len: u8,
}

impl Quotas {
    /// No quota told.
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

/// Everything the governor learns from one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the answer means.
    pub verdict: Verdict,
    /// How long the provider asks us to stay away, counted from the arrival of the answer.
    pub retry_after: Option<Duration>,
    /// Quotas told by headers.
    pub quotas: Quotas,
}

impl Outcome {
    /// An outcome that says nothing but its verdict.
    #[must_use]
    pub const fn bare(verdict: Verdict) -> Self {
        Self { verdict, retry_after: None, quotas: Quotas::NONE }
    }

    /// A success without headers.
    #[must_use]
    pub const fn success() -> Self {
        Self::bare(Verdict::Success)
    }

    /// How long the provider asks us to stay away, whatever else its answer means: the key is closed for exactly that
    /// long. Zero is no directive, only a provider that does not know; and what a classifier makes up is bounded like
    /// what a header says. A success, or a request that cannot succeed, says nothing about others.
    #[must_use]
    pub fn told_wait(&self) -> Option<Duration> {
        let says_nothing = matches!(self.verdict, Verdict::Success | Verdict::Permanent);
        self.retry_after.filter(|wait| !says_nothing && !wait.is_zero()).map(|wait| wait.min(RETRY_AFTER_MAX))
    }

    /// A throttle, with the wait that the provider asked for.
    #[must_use]
    pub const fn throttled(retry_after: Option<Duration>) -> Self {
        Self { verdict: Verdict::Throttled, retry_after, quotas: Quotas::NONE }
    }
}

//! Feedback: the answer to one request, as reported to a registry.

use crate::retry::backoff::Jitter;
use crate::signals::classify::{Classifier as _, DefaultClassifier, ResponseView, network_error};
use crate::signals::outcome::Outcome;
use crate::time::WallTime;
use std::time::Duration;

/// The answer to one request.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// The classified answer. Its quotas are ignored: a registry has no room for them.
    pub outcome: Outcome,
    /// The HTTP status; `None` when there was no answer.
    pub status: Option<u16>,
    /// Number of the attempt, counted from 0.
    pub attempt: u32,
    /// Random bits for the backoff before a retry.
    pub jitter: Jitter,
}

impl Feedback {
    /// An answer with this status in its usual HTTP meaning, and its Retry-After.
    #[must_use]
    pub fn status(status: u16, retry_after: Option<Duration>) -> Self {
        // Without headers nothing depends on the calendar.
        let outcome = DefaultClassifier::new().classify(&ResponseView::new(status, &()), WallTime::default());
        Self::classified(Outcome { retry_after, ..outcome }, Some(status))
    }

    /// No answer at all.
    #[must_use]
    pub fn lost() -> Self {
        Self::classified(network_error(), None)
    }

    /// An answer that a [`Classifier`](crate::Classifier) has classified.
    #[must_use]
    pub const fn classified(outcome: Outcome, status: Option<u16>) -> Self {
        Self { outcome, status, attempt: 0, jitter: Jitter::from_bits(0) }
    }

    /// The same for a retry.
    #[must_use]
    pub const fn of_attempt(self, attempt: u32, jitter: Jitter) -> Self {
        Self { attempt, jitter, ..self }
    }
}

/// Maximum of statuses in a list: HTTP has 500, and nobody overrides more.
const STATUSES_MAX: usize = 64;

/// Overrides of which statuses of a key are retried. A status in neither list has its usual meaning. The lists decide
/// about retries only: a 500 that is not retried still counts against the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    retryable: Box<[u16]>,
    permanent: Box<[u16]>,
}

impl Statuses {
    /// Statuses to retry, and statuses not to retry. A status in both is not retried; only the first 64 of a list are
    /// read.
    #[must_use]
    pub fn new(retryable: &[u16], permanent: &[u16]) -> Self {
        let cut = |list: &[u16]| list.iter().copied().take(STATUSES_MAX).collect();
        Self { retryable: cut(retryable), permanent: cut(permanent) }
    }

    /// The override for this status, if any.
    pub(crate) fn is_retryable(&self, status: Option<u16>) -> Option<bool> {
        let status = status?;
        if self.permanent.contains(&status) {
            return Some(false);
        }
        self.retryable.contains(&status).then_some(true)
    }
}

//! What came back for one request, as a registry is told it.

use crate::retry::backoff::Jitter;
use crate::signals::classify::{Classifier as _, DefaultClassifier, ResponseView, network_error};
use crate::signals::outcome::Outcome;
use crate::time::WallTime;
use std::time::Duration;

/// What came back for one request.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// What the answer means. Quotas in it are not read: a registry has no room for them.
    pub outcome: Outcome,
    /// The HTTP status; `None` when there was no answer.
    pub status: Option<u16>,
    /// Which attempt this was, counted from 0.
    pub attempt: u32,
    /// Random bits for the pause before a retry.
    pub jitter: Jitter,
}

impl Feedback {
    /// An answer with this status, as HTTP means it, and what its Retry-After says.
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

    /// An answer that a [`Classifier`](crate::Classifier) has looked at.
    #[must_use]
    pub const fn classified(outcome: Outcome, status: Option<u16>) -> Self {
        Self { outcome, status, attempt: 0, jitter: Jitter::from_bits(0) }
    }

    /// The same for another attempt than the first.
    #[must_use]
    pub const fn of_attempt(self, attempt: u32, jitter: Jitter) -> Self {
        Self { attempt, jitter, ..self }
    }
}

/// Most statuses of a list: there are 500 in all, and nobody overrides more.
const STATUSES_MAX: usize = 64;

/// Statuses of one key that mean something else than usual. What is in neither list is meant as usual. They
/// decide about retries alone: a 500 that is not worth another try still counts against the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    retryable: Box<[u16]>,
    permanent: Box<[u16]>,
}

impl Statuses {
    /// Worth another try, and not worth one. A status in both is not; more than 64 of a list are not read.
    #[must_use]
    pub fn new(retryable: &[u16], permanent: &[u16]) -> Self {
        let cut = |list: &[u16]| list.iter().copied().take(STATUSES_MAX).collect();
        Self { retryable: cut(retryable), permanent: cut(permanent) }
    }

    /// What is said about this status, if anything is.
    pub(crate) fn is_retryable(&self, status: Option<u16>) -> Option<bool> {
        let status = status?;
        if self.permanent.contains(&status) {
            return Some(false);
        }
        self.retryable.contains(&status).then_some(true)
    }
}

//! Limits of one call: how long it may wait, and how often it may be sent.
//!
//! Why not one timeout around everything: a timeout that includes the wait would end requests that were never sent
//! and blame the provider. So each limit has its own start: `max_wait` from the call to the last send,
//! `attempt_timeout` from a send to its answer, `deadline` over both.

use std::time::Duration;
use tokio::time::Instant;

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Sends of this call, the first included. 1: no retry; a refusal is returned, the governor still learns, and the
    /// next call waits at the gate.
    pub attempts: u32,
    /// Longest time of one attempt, counted from its send.
    pub attempt_timeout: Duration,
    /// Longest total wait: no attempt is sent later than this after the call.
    pub max_wait: Option<Duration>,
    /// The end of the whole call, waits and attempts together.
    pub deadline: Option<Instant>,
}

/// One minute: longer than load balancers usually allow.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);
/// The number that the governor's backoff is made for: pauses of at most 1, 2 and 4 s.
const ATTEMPTS: u32 = 4;

impl Default for CallLimits {
    fn default() -> Self {
        Self { attempts: ATTEMPTS, attempt_timeout: ATTEMPT_TIMEOUT, max_wait: None, deadline: None }
    }
}

impl CallLimits {
    /// One attempt and no retry.
    #[must_use]
    pub fn single_attempt() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// The last moment at which a call that begins now may send.
    pub(crate) fn last_send(&self) -> Option<Instant> {
        let waits = self.max_wait.and_then(|wait| Instant::now().checked_add(wait));
        match (waits, self.deadline) {
            (Some(waits), Some(deadline)) => Some(waits.min(deadline)),
            (one, other) => one.or(other),
        }
    }

    /// When an attempt sent at `now` times out.
    pub(crate) fn attempt_ends(&self, now: Instant) -> Instant {
        // Even a huge timeout needs an end: no request lasts a year.
        let own = now.checked_add(self.attempt_timeout).unwrap_or_else(|| now + Duration::from_secs(365 * 86_400));
        self.deadline.map_or(own, |deadline| deadline.min(own))
    }
}

//! How often credentials were wrong lately.
//!
//! A token has 256 bits, so nobody finds it by trying. The limit is there for the log and for the processor: beyond it a
//! wrong credential is told to wait. A right one always passes, because otherwise any program on this machine could keep
//! the owner out by guessing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong credentials within [`SPAN`] that are answered as such: a tab with an old cookie that asks now and then, and a
/// person who copies a token badly.
const WRONG_MAX: u32 = 20;
/// The span in which they are counted.
pub(crate) const SPAN: Duration = Duration::from_secs(60);

/// Wrong credentials of the present span.
#[derive(Debug)]
pub(crate) struct AuthAttempts(Mutex<(Instant, u32)>);

impl AuthAttempts {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new((now, 0)))
    }

    /// Counts one more. Answers whether that is too many.
    pub(crate) fn wrong(&self, now: Instant) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(counted.0) >= SPAN {
            *counted = (now, 0);
        }
        counted.1 = counted.1.saturating_add(1);
        if counted.1 == WRONG_MAX + 1 {
            tracing::warn!("the console was asked with {WRONG_MAX} wrong credentials within a minute");
        }
        counted.1 > WRONG_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_twenty_wrong_ones_in_a_minute_the_next_are_told_to_wait() {
        let start = Instant::now();
        let attempts = AuthAttempts::new(start);
        let second = |at: u64| start + Duration::from_secs(at);
        assert!((0..20).all(|at| !attempts.wrong(second(at))));
        assert!((20..60).all(|at| attempts.wrong(second(at))));
        assert!(!attempts.wrong(second(60)), "a new minute");
    }
}

//! Backoff before a retry: full jitter.
//!
//! Why not a fixed or merely doubled pause: clients that failed together would return together; drawing from the
//! whole range spreads them best for the same mean (D5, AWS's comparison). The random number is an argument, so that
//! a trace can be replayed. Backoff never applies to a first send, is never added to a Retry-After, and never sleeps:
//! it returns a duration.

use std::time::Duration;

use crate::time::nanos;

/// Attempts of one request and the backoff between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// Maximum of the first pause. 1 s: the discovery interval, so a retry is not faster than a start. After a
    /// throttle the current interval is used if it is shorter.
    pub base: Duration,
    /// Maximum of every pause. 60 s: longer outages belong to the breaker, which opens for that long.
    pub cap: Duration,
    /// Sends of one request, the first included. 4: pauses of at most 1, 2 and 4 s. 0 is read as 1.
    pub attempts: u32,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_secs(60), attempts: 4 }
    }
}

/// 64 uniformly random bits from the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(u64);

impl Jitter {
    /// Takes 64 uniformly random bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A whole number in `0..=max`, uniform up to one part in 2^64.
    pub(crate) const fn up_to(self, max: u64) -> u64 {
        ((self.0 as u128 * (max as u128 + 1)) >> 64) as u64
    }
}

/// The resolved form of [`BackoffConfig`]; it has no state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    base: u64,
    cap: u64,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(config: BackoffConfig) -> Self {
        Self { base: nanos(config.base), cap: nanos(config.cap), attempts: config.attempts.max(1) }
    }

    /// Whether a request may be sent again after its send number `attempt` (from 0) failed.
    pub(crate) const fn allows_retry_after(&self, attempt: u32) -> bool {
        attempt < self.attempts - 1
    }

    /// The same with a shorter first pause, for cases where another wait applies.
    pub(crate) fn with_base_at_most(self, base: u64) -> Self {
        Self { base: self.base.min(base), ..self }
    }

    /// The pause after the failed send number `attempt` (from 0), in nanoseconds: anything from
    /// zero to `min(cap, base * 2^attempt)`.
    pub(crate) fn delay(&self, attempt: u32, jitter: Jitter) -> u64 {
        // The product saturates, and zero stays zero: both ends hold for any attempt (R14).
        let factor = 1u64.checked_shl(attempt).unwrap_or(u64::MAX);
        jitter.up_to(self.base.saturating_mul(factor).min(self.cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    const ALL: Jitter = Jitter::from_bits(u64::MAX);

    #[test]
    fn the_longest_pause_doubles_until_the_cap() {
        let backoff = Backoff::new(BackoffConfig::default());
        for (attempt, seconds) in [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (63, 60), (64, 60)] {
            assert_eq!(backoff.delay(attempt, ALL), seconds * SECOND, "attempt {attempt}");
        }
        assert_eq!(backoff.delay(u32::MAX, ALL), 60 * SECOND);
    }

    #[test]
    fn the_pause_is_spread_over_the_whole_range() {
        let backoff = Backoff::new(BackoffConfig::default());
        assert_eq!(backoff.delay(3, Jitter::from_bits(0)), 0);
        assert_eq!(backoff.delay(3, Jitter::from_bits(1 << 63)), 4 * SECOND);
        assert_eq!(backoff.delay(3, Jitter::from_bits(1 << 62)), 2 * SECOND);
    }

    #[test]
    fn attempts_include_the_first_send() {
        let allowed = |attempts| {
            let backoff = Backoff::new(BackoffConfig { attempts, ..BackoffConfig::default() });
            (0..10).filter(|&attempt| backoff.allows_retry_after(attempt)).count()
        };
        assert_eq!([allowed(4), allowed(2), allowed(1), allowed(0)], [3, 1, 0, 0]);
        let endless = Backoff::new(BackoffConfig { attempts: u32::MAX, ..BackoffConfig::default() });
        assert!(!endless.allows_retry_after(u32::MAX));
    }

    proptest! {
        #[test]
        fn the_pause_stays_between_zero_and_its_bound_for_any_attempt(
            base in prop_oneof![Just(0), any::<u64>(), 0..100 * SECOND],
            cap in prop_oneof![any::<u64>(), 0..1000 * SECOND],
            attempt in prop_oneof![0u32..130, any::<u32>(), Just(u32::MAX)],
            bits in any::<u64>(),
        ) {
            let config = BackoffConfig {
                base: Duration::from_nanos(base),
                cap: Duration::from_nanos(cap),
                attempts: 4,
            };
            // An independent bound: add up doublings, stop when the cap is passed.
            let mut bound = u128::from(base);
            for _ in 0..attempt.min(64) {
                bound *= 2;
            }
            let bound = bound.min(u128::from(cap));
            let delay = Backoff::new(config).delay(attempt, Jitter::from_bits(bits));
            prop_assert!(u128::from(delay) <= bound);
            let longest = Backoff::new(config).delay(attempt, ALL);
            prop_assert_eq!(u128::from(longest), bound);
        }
    }
}

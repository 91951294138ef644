//! The limit that the site does not tell: a token bucket, which refuses with a bare 429.

use std::time::Duration;

/// The site's rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests in a second, in the long run.
    pub per_second: f64,
    /// Requests that may come at once.
    pub burst: f64,
}

/// A limit at work. Times are from the start of the site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    limit: Limit,
    tokens: f64,
    at: Duration,
}

impl Bucket {
    pub(crate) const fn new(limit: Limit) -> Self {
        Self { limit, tokens: limit.burst, at: Duration::ZERO }
    }

    /// Whether a request that comes now is let through.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        self.tokens = (self.tokens + passed * self.limit.per_second).min(self.limit.burst);
        let lets_through = self.tokens >= 1.0;
        if lets_through {
            self.tokens -= 1.0;
        }
        lets_through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_the_rate() {
        let mut bucket = Bucket::new(Limit { per_second: 2.5, burst: 3.0 });
        let at = |ms: u64| Duration::from_millis(ms);
        assert_eq!([0, 1, 2, 3].map(|ms| bucket.take(at(ms))), [true, true, true, false]);
        assert!(!bucket.take(at(390)), "two and a half in a second are one in 400 ms");
        assert!(bucket.take(at(403)));
        assert_eq!([100_000, 100_001, 100_002, 100_003].map(|ms| bucket.take(at(ms))), [true, true, true, false]);
    }
}

//! Scrapy AutoThrottle 2.19: a delay that follows the latency, and nothing else.
//!
//! It never reads a 429 as congestion: a refusal only keeps the delay from falling, and its retries do not wait (two
//! per URL, then dropped; the next request takes their place, so the lab does not count them).

use super::workers::{Paced, unit};
use super::{Answer, Law, Step};
use gleaner_governor::Time;

/// `AUTOTHROTTLE_START_DELAY`, `AUTOTHROTTLE_MAX_DELAY`, `AUTOTHROTTLE_TARGET_CONCURRENCY` and
/// `CONCURRENT_REQUESTS_PER_DOMAIN` as shipped; `DOWNLOAD_DELAY`, the least delay, is 0.
const START_S: f64 = 5.0;
const MAX_S: f64 = 60.0;
const TARGET_CONCURRENCY: f64 = 1.0;
const SLOT_CONCURRENCY: usize = 8;

/// One download slot.
#[derive(Clone, Debug)]
pub(super) struct Scrapy {
    delay_s: f64,
    paced: Paced,
    /// `RANDOMIZE_DOWNLOAD_DELAY`: the gap is the delay times 0.5 to 1.5.
    spread: f64,
    in_flight: usize,
}

impl Scrapy {
    pub(super) fn new() -> Self {
        Self { delay_s: START_S, paced: Paced::default(), spread: 1.0, in_flight: 0 }
    }

    fn adjust(&mut self, status: u16, latency_s: f64) {
        let target = latency_s / TARGET_CONCURRENCY;
        let new = target.max((self.delay_s + target) / 2.0).min(MAX_S);
        if status == 200 || new > self.delay_s {
            self.delay_s = new;
        }
    }
}

impl Law for Scrapy {
    fn poll(&mut self, _worker: usize, now: Time, random: u64) -> Step {
        if self.in_flight >= SLOT_CONCURRENCY {
            return Step::WaitForAnswer;
        }
        let step = self.paced.poll(now, self.delay_s * self.spread);
        if step != Step::Send {
            return step;
        }
        self.spread = 0.5 + unit(random);
        self.in_flight += 1;
        step
    }

    fn on_answer(&mut self, _worker: usize, sent_at: Time, answer: &Answer, now: Time, _random: u64) {
        self.in_flight -= 1;
        // A reset connection is no response, so the extension does not see it.
        if let Some(status) = answer.status {
            self.adjust(status, now.since(sent_at).as_secs_f64());
        }
    }

    fn rate_per_s(&self) -> Option<f64> {
        Some(1.0 / self.delay_s.max(1e-3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_latency_and_errors_never_lower_it() {
        let mut law = Scrapy::new();
        for (status, latency_s, expected_s) in
            [(200, 0.1, 2.55), (429, 0.02, 2.55), (429, 10.0, 10.0), (200, 200.0, 60.0), (200, 0.0, 30.0)]
        {
            law.adjust(status, latency_s);
            assert_eq!(law.delay_s, expected_s, "after {status} in {latency_s}");
        }
    }
}

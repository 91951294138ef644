//! Counters of one key, for people and for Prometheus. Bounded: counters, a ring of waits, a ring of circuit
//! transitions.

use gleaner_governor::{CircuitTransition, Time, Verdict, WaitReason};
use std::collections::VecDeque;
use std::time::Duration;

/// Waits kept for the quantile: enough for a 95th percentile that one outlier does not move.
const WAITS_KEPT: usize = 256;
/// Circuit transitions kept until they are read: an open circuit changes at most twice a minute, so this covers some
/// minutes.
const TRANSITIONS_KEPT: usize = 16;

/// Counters of one key.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Attempts sent.
    pub(crate) sent: u64,
    /// Answers that said "too fast" or banned us.
    pub(crate) rejected: u64,
    /// Retries.
    pub(crate) retried: u64,
    /// Answers by meaning: success, rejected, server error or none, permanent.
    pub(crate) answers: [u64; 4],
    /// Callers that pause before a retry now.
    pub(crate) pausing: usize,
    /// End of the latest pause before a retry; in the past when nobody pauses.
    pub(crate) pause_ends: Time,
    /// Whether that pause follows a refusal, not an error.
    pub(crate) pause_is_refusal: bool,
    /// Failures to save the learned state.
    pub(crate) memory_errors: u64,
    /// The last waits, in milliseconds.
    waits: VecDeque<u32>,
    /// Number and sum of waits by reason.
    pub(crate) waited: [(u64, Duration); WAIT_REASONS.len()],
    pub(crate) transitions: VecDeque<CircuitTransition>,
}

/// Reasons of a wait, in the order of [`Figures::waited`].
pub(crate) const WAIT_REASONS: [&str; 7] = ["queue", "pacing", "gate", "quota", "window", "in_flight", "circuit"];
/// The meanings of [`Figures::answers`].
#[cfg(feature = "metrics")]
pub(crate) const ANSWERS: [&str; 4] = ["success", "rejected", "failed", "permanent"];

impl Figures {
    pub(crate) const fn is_rejection(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Throttled | Verdict::Banned)
    }

    pub(crate) fn on_outcome(&mut self, verdict: Verdict) {
        let meaning = match verdict {
            Verdict::Success => 0,
            Verdict::Throttled | Verdict::Banned => 1,
            Verdict::ServerError | Verdict::Network => 2,
            Verdict::Forbidden | Verdict::Permanent => 3,
        };
        self.answers[meaning] += 1;
        self.rejected += u64::from(Self::is_rejection(verdict));
    }

    pub(crate) fn on_wait(&mut self, waited: Duration, reason: Option<WaitReason>) {
        // Without a reason it waited only in the queue.
        let name = reason.map_or(WAIT_REASONS[0], WaitReason::as_str);
        let place = WAIT_REASONS.iter().position(|known| *known == name).unwrap_or_default();
        let (count, sum) = &mut self.waited[place];
        *count += 1;
        *sum = sum.saturating_add(waited);
        if self.waits.len() == WAITS_KEPT {
            self.waits.pop_front();
        }
        self.waits.push_back(u32::try_from(waited.as_millis()).unwrap_or(u32::MAX));
    }

    /// The 95th percentile of the last waits, in milliseconds; `None` before the first.
    pub(crate) fn wait_p95_ms(&self) -> Option<u32> {
        let mut sorted: Vec<u32> = self.waits.iter().copied().collect();
        sorted.sort_unstable();
        // Nearest rank: the smallest value that 95 % do not exceed.
        let rank = (sorted.len() * 95).div_ceil(100);
        rank.checked_sub(1).and_then(|index| sorted.get(index)).copied()
    }

    pub(crate) fn push_transition(&mut self, transition: CircuitTransition) {
        if self.transitions.len() == TRANSITIONS_KEPT {
            self.transitions.pop_front();
        }
        self.transitions.push_back(transition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_name() {
        let reasons = [
            WaitReason::Pacing,
            WaitReason::Gate,
            WaitReason::Quota,
            WaitReason::Window,
            WaitReason::InFlight,
            WaitReason::Circuit,
        ];
        for reason in reasons {
            assert!(WAIT_REASONS.contains(&reason.as_str()), "{reason:?}");
        }
    }

    #[test]
    fn the_95th_percentile_is_the_nearest_rank() {
        let mut figures = Figures::default();
        assert_eq!(figures.wait_p95_ms(), None);
        for ms in 1..=100 {
            figures.on_wait(Duration::from_millis(ms), Some(WaitReason::Pacing));
        }
        assert_eq!(figures.wait_p95_ms(), Some(95));
        for _ in 0..10_000 {
            figures.on_wait(Duration::ZERO, None);
        }
        assert_eq!((figures.wait_p95_ms(), figures.waits.len()), (Some(0), WAITS_KEPT));
        assert_eq!(figures.waited[1].0, 100);
    }
}

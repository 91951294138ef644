//! The run budget: a limit on the sends of one run and on its time. Both are off unless set.
//!
//! Why not leave it to the caller's loop: the check must come before any wait, or a run sleeps for a minute only to
//! learn that it is over; and retries count like first sends (D1). The budget never changes a send time and never
//! interrupts a request in flight (D7: the overrun is one request). Its end is a deferral, never pressure (D9).

use std::time::Duration;

use crate::reasons::DeferReason;
use crate::time::{Time, nanos};

/// The limits of one run. Neither has a default number: only the owner knows what a run may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBudgetConfig {
    /// Sends of one run, retries included. `None` or 0: no limit.
    pub request_cap: Option<u64>,
    /// Time from the first admission check to the last send. `None` or zero: no limit.
    pub wall_clock: Option<Duration>,
}

/// "No limit" for both counters: as many sends, or nanoseconds (584 years), never happen.
const OFF: u64 = u64::MAX;

/// The budget of one run. Its counters (sends and time) are also part of circuit transitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunBudget {
    request_cap: u64,
    wall_clock: u64,
    requests: u64,
    /// [`Time::NEVER`] until the first check: a governor may be built long before it is used.
    started: Time,
}

impl RunBudget {
    pub(crate) fn new(config: RunBudgetConfig) -> Self {
        let or_off = |limit| if limit == 0 { OFF } else { limit };
        Self {
            request_cap: config.request_cap.map_or(OFF, or_off),
            wall_clock: config.wall_clock.map_or(OFF, |limit| or_off(nanos(limit))),
            requests: 0,
            started: Time::NEVER,
        }
    }

    /// The reason why the run may send nothing more, if any. Ask before any wait; the first call starts the clock.
    pub(crate) fn check(&mut self, now: Time) -> Option<DeferReason> {
        self.started = self.started.min(now);
        if self.requests >= self.request_cap {
            Some(DeferReason::RequestCap)
        } else if now.nanos_since(self.started) >= self.wall_clock {
            Some(DeferReason::WallClock)
        } else {
            None
        }
    }

    /// Counts a send. Call it when the permit is given.
    pub(crate) const fn on_send(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Gives back a send that never went out.
    pub(crate) const fn on_cancel(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }

    /// Sends so far, retries included.
    pub(crate) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Time since the first check; zero before it.
    pub(crate) const fn elapsed(&self, now: Time) -> Duration {
        now.since(self.started)
    }

    /// End of the run; [`Time::NEVER`] without a limit or before the first check. Defer a wait that ends at this time
    /// or later.
    pub(crate) const fn deadline(&self) -> Time {
        self.started.plus(self.wall_clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    fn budget(request_cap: Option<u64>, seconds: Option<u64>) -> RunBudget {
        let wall_clock = seconds.map(Duration::from_secs);
        RunBudget::new(RunBudgetConfig { request_cap, wall_clock })
    }

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    #[test]
    fn both_limits_are_off_by_default_and_zero_means_off() {
        for mut budget in [RunBudget::new(RunBudgetConfig::default()), budget(Some(0), Some(0))] {
            assert_eq!(budget.check(at(1)), None);
            (0..1000).for_each(|_| budget.on_send());
            assert_eq!(budget.check(at(1_000_000_000)), None);
            assert_eq!(budget.deadline(), Time::NEVER);
        }
    }

    #[test]
    fn the_cap_counts_every_send_and_a_cancelled_one_is_given_back() {
        let mut budget = budget(Some(2), None);
        budget.on_send();
        budget.on_send();
        assert_eq!(budget.check(at(1)), Some(DeferReason::RequestCap));
        budget.on_cancel();
        assert_eq!(budget.check(at(1)), None);
        assert_eq!(budget.requests(), 1);
    }

    #[test]
    fn the_clock_starts_with_the_first_consultation_and_not_before() {
        let mut budget = budget(None, Some(60));
        assert_eq!(budget.elapsed(at(900)), Duration::ZERO);
        assert_eq!(budget.check(at(1000)), None);
        assert_eq!(budget.check(at(1059)), None);
        assert_eq!(budget.deadline(), at(1060));
        assert_eq!(budget.check(at(1060)), Some(DeferReason::WallClock));
        assert_eq!(budget.elapsed(at(1060)), Duration::from_secs(60));
    }

    proptest! {
        /// The part of R15 that lies here: what is admitted is admitted before the deadline, so the
        /// overrun is what the last fetch itself takes.
        #[test]
        fn no_send_is_admitted_at_the_deadline_or_beyond_the_cap(
            cap in prop::option::of(0u64..20),
            seconds in prop::option::of(0u64..100),
            steps in prop::collection::vec((0..10 * SECOND, any::<bool>()), 0..100),
            start in 0..1000 * SECOND,
        ) {
            let mut budget = budget(cap, seconds);
            let (cap, seconds) = (cap.filter(|&cap| cap > 0), seconds.filter(|&limit| limit > 0));
            let (mut now, mut sent) = (Time::from_nanos(start), 0u64);
            for (step, cancel) in steps {
                let refusal = budget.check(now);
                let over = seconds.is_some_and(|limit| now.as_nanos() - start >= limit * SECOND);
                let used_up = cap.is_some_and(|cap| sent >= cap);
                prop_assert_eq!(refusal.is_some(), over || used_up);
                if refusal.is_none() {
                    budget.on_send();
                    sent += 1;
                }
                if cancel && sent > 0 {
                    budget.on_cancel();
                    sent -= 1;
                }
                now = now.plus(step);
            }
        }
    }
}

//! How many retries all requests of a run may use together, as a share of what succeeded.
//!
//! Why not the attempt count alone: four attempts per request turn an outage into four times the
//! load, however many requests there are (D5). Why not Finagle's fixed reserve of ten retries per
//! second: for a collector that sends once per second it never binds, and because it renews itself
//! with time it allows retries without end against a provider that answers nothing. Here nothing
//! but a success ever adds credit, so `retries <= capacity at the start + successes / 5` holds at
//! any moment (R4).
//!
//! Credit is counted in successes, not in fractions of a retry: a success brings one unit, a retry
//! costs five. That is the ratio 0.2 in whole numbers. Never waits, never knows which request asks.

use crate::slots::Slots;
use crate::time::{SECOND, Time};

/// What a retry costs. The budget itself is optional: without it only the attempts per request count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// Successes that pay for one retry. 5, that is 20 % (D5; Linkerd, Finagle, AWS). 0 is read as 1.
    pub successes_per_retry: u16,
}

impl Default for RetryBudgetConfig {
    fn default() -> Self {
        Self { successes_per_retry: 5 }
    }
}

/// Retries that an uncapped run may always save up: one unlucky request must be able to use all
/// its attempts (4 sends, 3 of them retries) at any rate.
const RESERVE_RETRIES_MIN: u32 = 3;
/// The reserve of an uncapped run is what succeeds in this time at the learned rate (Finagle's ttl).
const RESERVE_NANOS: u64 = 10 * SECOND;
/// Successes beyond a full reserve count for this many seconds.
const RECENT_SLOTS: usize = 10;

/// What bounds the credit that does not expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Capacity {
    /// A run with a request cap: so many units, for good.
    Fixed(u32),
    /// No cap: scaled to the learned rate.
    Rate,
}

/// The retry budget of one run. All methods take the pace as the interval in nanoseconds, where 0
/// stands for "not paced": then the reserve stays at its minimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget {
    recent: Slots<u16, RECENT_SLOTS>,
    reserve: u32,
    capacity: Capacity,
    cost: u16,
}

impl RetryBudget {
    /// A full budget; `request_cap` is the run's cap on attempts, `interval` the pace it starts with.
    pub(crate) fn new(config: RetryBudgetConfig, request_cap: Option<u64>, interval: u64) -> Self {
        let cost = config.successes_per_retry.max(1);
        // 20 % of N retries at five units each are N units.
        let capacity = match request_cap {
            Some(cap) => Capacity::Fixed(saturate(cap).max(u32::from(cost))),
            None => Capacity::Rate,
        };
        let mut budget = Self { recent: Slots::new(SECOND), reserve: 0, capacity, cost };
        budget.reserve = budget.capacity_units(interval);
        budget
    }

    /// Takes one retry out of the budget, or says that there is none.
    pub(crate) fn try_spend(&mut self, now: Time, interval: u64) -> bool {
        self.settle(now, interval);
        if self.units() < u32::from(self.cost) {
            return false;
        }
        let owed = self.spend_recent();
        self.reserve -= owed;
        true
    }

    /// Credits one success: to the reserve, or to the slot of this second when that is full.
    #[inline]
    pub(crate) fn on_success(&mut self, now: Time, interval: u64) {
        let full = match self.capacity {
            // Whatever is too much is cut off before it can be spent, in `settle`.
            Capacity::Fixed(_) => false,
            // `reserve + 1 > RESERVE_NANOS / interval` without the division.
            Capacity::Rate => {
                self.reserve >= self.reserve_min()
                    && u64::from(self.reserve).saturating_add(1).saturating_mul(paced(interval)) > RESERVE_NANOS
            }
        };
        if full {
            let slot = self.recent.current(now);
            *slot = slot.saturating_add(1);
        } else {
            self.reserve = self.reserve.saturating_add(1);
        }
    }

    /// Whole retries that are left.
    pub(crate) fn remaining(&self, now: Time, interval: u64) -> u32 {
        let mut settled = *self;
        settled.settle(now, interval);
        settled.units() / u32::from(self.cost)
    }

    /// Drops what has expired, and what the reserve may no longer hold since the rate fell.
    fn settle(&mut self, now: Time, interval: u64) {
        self.recent.roll(now);
        self.reserve = self.reserve.min(self.capacity_units(interval));
    }

    /// Pays for one retry from the recent successes, oldest first because they expire first;
    /// returns what is left to pay from the reserve.
    fn spend_recent(&mut self) -> u32 {
        let mut owed = self.cost;
        for slot in self.recent.all_mut().iter_mut().rev() {
            let paid = owed.min(*slot);
            *slot -= paid;
            owed -= paid;
        }
        u32::from(owed)
    }

    fn units(&self) -> u32 {
        let recent: u32 = self.recent.all().iter().copied().map(u32::from).sum();
        self.reserve.saturating_add(recent)
    }

    fn capacity_units(&self, interval: u64) -> u32 {
        match self.capacity {
            Capacity::Fixed(units) => units,
            Capacity::Rate => saturate(RESERVE_NANOS / paced(interval)).max(self.reserve_min()),
        }
    }

    fn reserve_min(&self) -> u32 {
        RESERVE_RETRIES_MIN * u32::from(self.cost)
    }
}

/// An interval of zero means "no pacing", not "infinitely fast".
const fn paced(interval: u64) -> u64 {
    if interval == 0 { u64::MAX } else { interval }
}

fn saturate(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uncapped(interval: u64) -> RetryBudget {
        RetryBudget::new(RetryBudgetConfig::default(), None, interval)
    }

    fn capped(cap: u64) -> RetryBudget {
        RetryBudget::new(RetryBudgetConfig::default(), Some(cap), SECOND)
    }

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    fn spend_all(budget: &mut RetryBudget, now: Time, interval: u64) -> u32 {
        let mut spent = 0;
        while budget.try_spend(now, interval) {
            spent += 1;
        }
        spent
    }

    #[test]
    fn a_capped_run_starts_with_a_fifth_of_its_cap_and_at_least_one() {
        for (cap, retries) in [(100, 20), (1000, 200), (7, 1), (1, 1), (0, 1)] {
            assert_eq!(spend_all(&mut capped(cap), at(1), SECOND), retries, "cap {cap}");
        }
    }

    #[test]
    fn five_successes_refill_one_retry_but_never_above_the_capacity_of_a_capped_run() {
        let mut budget = capped(10);
        (0..50).for_each(|_| budget.on_success(at(1), SECOND));
        assert_eq!(budget.remaining(at(1), SECOND), 2);
        assert_eq!(spend_all(&mut budget, at(1), SECOND), 2);
        (0..4).for_each(|_| budget.on_success(at(2), SECOND));
        assert!(!budget.try_spend(at(2), SECOND));
        budget.on_success(at(2), SECOND);
        assert!(budget.try_spend(at(2), SECOND));
    }

    #[test]
    fn an_uncapped_run_has_a_reserve_that_follows_the_learned_rate() {
        assert_eq!(spend_all(&mut uncapped(20 * SECOND), at(1), 20 * SECOND), 3);
        assert_eq!(spend_all(&mut uncapped(SECOND / 10), at(1), SECOND / 10), 20);
        // The rate fell from 10 to 2 per second: 20 saved retries shrink to 4.
        assert_eq!(uncapped(SECOND / 10).remaining(at(1), SECOND / 2), 4);
        assert_eq!(uncapped(0).remaining(at(1), 0), 3);
    }

    #[test]
    fn a_reserve_grows_with_the_rate_only_by_successes() {
        let fast = SECOND / 10;
        let mut budget = uncapped(SECOND);
        assert_eq!(budget.remaining(at(1), fast), 3);
        (0..1000).for_each(|_| budget.on_success(at(1), fast));
        // 20 in the reserve, and a fifth of the 915 successes that it could not hold.
        assert_eq!(budget.remaining(at(1), fast), 20 + 183);
        assert_eq!(budget.remaining(at(60), fast), 20);
    }

    #[test]
    fn recent_successes_expire_slot_by_slot_and_the_reserve_stays() {
        let mut budget = uncapped(SECOND);
        (0..10).for_each(|_| budget.on_success(at(100), SECOND));
        (0..5).for_each(|_| budget.on_success(at(105), SECOND));
        assert_eq!(budget.remaining(at(109), SECOND), 3 + 3);
        assert_eq!(budget.remaining(at(110), SECOND), 3 + 1);
        assert_eq!(budget.remaining(at(115), SECOND), 3);
    }

    #[test]
    fn a_retry_is_paid_from_what_expires_first() {
        let mut budget = uncapped(SECOND);
        (0..5).for_each(|_| budget.on_success(at(100), SECOND));
        (0..5).for_each(|_| budget.on_success(at(105), SECOND));
        assert!(budget.try_spend(at(106), SECOND));
        assert_eq!(budget.remaining(at(111), SECOND), 3 + 1);
    }

    #[test]
    fn a_spent_reserve_does_not_come_back_with_time() {
        let mut budget = uncapped(SECOND);
        assert_eq!(spend_all(&mut budget, at(1), SECOND), 3);
        assert!(!budget.try_spend(at(1_000_000), SECOND));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Success,
        Spend,
        Wait(u64),
        Pace(u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            3 => Just(Op::Success),
            2 => Just(Op::Spend),
            1 => (0..15 * SECOND).prop_map(Op::Wait),
            1 => prop_oneof![Just(0), 1..100 * SECOND, Just(u64::MAX)].prop_map(Op::Pace),
        ];
        prop::collection::vec(op, 0..400)
    }

    proptest! {
        #[test]
        fn retries_never_exceed_the_start_plus_a_fifth_of_the_successes(
            ops in ops(),
            cap in prop::option::of(0u64..200),
            start in SECOND / 50..30 * SECOND,
        ) {
            let mut budget = RetryBudget::new(RetryBudgetConfig::default(), cap, start);
            let (mut now, mut interval) = (Time::ZERO, start);
            let units_at_start = u64::from(budget.units());
            let (mut retries, mut successes) = (0u64, 0u64);
            for op in ops {
                match op {
                    Op::Success => {
                        budget.on_success(now, interval);
                        successes += 1;
                    }
                    Op::Spend => {
                        let left = budget.remaining(now, interval);
                        let granted = budget.try_spend(now, interval);
                        prop_assert_eq!(granted, left > 0);
                        prop_assert_eq!(budget.remaining(now, interval), left - u32::from(granted));
                        retries += u64::from(granted);
                    }
                    Op::Wait(nanos) => now = now.plus(nanos),
                    Op::Pace(nanos) => interval = nanos,
                }
                prop_assert!(5 * retries <= units_at_start + successes);
            }
        }
    }
}

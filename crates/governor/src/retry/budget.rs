//! Retry budget of a key as a share of its successes: only a success earns credit.
//!
//! Why not the attempt limit alone: four attempts per request turn an outage into four times the load (D5). Why not
//! Finagle's fixed reserve of ten retries per second: for a collector that sends once per second it never applies,
//! and because it renews itself with time it allows endless retries against a dead provider. Here only a success adds
//! credit, so `retries <= capacity at the start + successes / 5` holds at any moment (R4).
//!
//! Credit is counted in successes, not in fractions of a retry: a success adds one unit, a retry costs five. That is
//! the ratio 0.2 in integers, in four bytes per key.

use crate::time::SECOND;

/// Cost of a retry. The budget is optional: without it only the attempts per request are limited.
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

/// Retries that may always be saved: one unlucky request must be able to use all its attempts (4 sends, 3 of them
/// retries) at any rate.
const RETRIES_MIN: u32 = 3;
/// Without a request limit of the run, the successes of this time at the current rate may be saved (Finagle's ttl).
const SAVED_NANOS: u64 = 10 * SECOND;

/// The settings in internal units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryRules {
    /// Units that a retry costs; `None`: nothing.
    cost: Option<u32>,
    /// Maximum of saved units, for a run with a request limit.
    capacity: Option<u32>,
}

impl RetryRules {
    pub(crate) fn new(config: Option<RetryBudgetConfig>, request_cap: Option<u64>) -> Self {
        let cost = config.map(|config| u32::from(config.successes_per_retry.max(1)));
        // 20 % of N retries at five units each are N units; a limit of zero means none.
        let capacity = request_cap.filter(|&cap| cap > 0).map(|cap| saturate(cap).max(cost.unwrap_or(1)));
        Self { cost, capacity }
    }

    /// Maximum of saved units at this interval in nanoseconds; 0 means "not paced".
    fn most(&self, interval: u64) -> u32 {
        let at_rate = || saturate(SAVED_NANOS.checked_div(interval).unwrap_or(0));
        self.capacity.unwrap_or_else(|| at_rate().max(RETRIES_MIN * self.cost.unwrap_or(1)))
    }
}

/// The credit of one key in units of a success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget(u32);

impl RetryBudget {
    /// The maximum at this interval.
    pub(crate) fn full(rules: &RetryRules, interval: u64) -> Self {
        Self(rules.most(interval))
    }

    /// Adds successes. The maximum is applied when credit is spent.
    #[inline]
    pub(crate) const fn earn(&mut self, successes: u32) {
        self.0 = self.0.saturating_add(successes);
    }

    /// Pays for one retry; false when the credit is too low.
    pub(crate) fn try_spend(&mut self, rules: &RetryRules, interval: u64) -> bool {
        let Some(cost) = rules.cost else { return true };
        let left = self.0.min(rules.most(interval)).checked_sub(cost);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Whole retries left; `None` without a budget.
    pub(crate) fn remaining(&self, rules: &RetryRules, interval: u64) -> Option<u32> {
        rules.cost.map(|cost| self.0.min(rules.most(interval)) / cost)
    }
}

fn saturate(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(request_cap: Option<u64>) -> RetryRules {
        RetryRules::new(Some(RetryBudgetConfig::default()), request_cap)
    }

    fn spend_all(budget: &mut RetryBudget, rules: &RetryRules, interval: u64) -> usize {
        (0..10_000).take_while(|_| budget.try_spend(rules, interval)).count()
    }

    fn spent_at_start(rules: &RetryRules, interval: u64) -> usize {
        spend_all(&mut RetryBudget::full(rules, interval), rules, interval)
    }

    #[test]
    fn a_capped_run_starts_with_a_fifth_of_its_cap_and_at_least_one() {
        for (cap, retries) in [(100, 20), (1000, 200), (7, 1), (1, 1)] {
            assert_eq!(spent_at_start(&rules(Some(cap)), SECOND), retries, "cap {cap}");
        }
        assert_eq!(spent_at_start(&rules(Some(0)), SECOND), 3, "no cap");
    }

    #[test]
    fn without_a_cap_what_succeeds_in_ten_seconds_may_be_saved_up_and_three_retries_in_any_case() {
        let rules = rules(None);
        assert_eq!(spent_at_start(&rules, 20 * SECOND), 3);
        assert_eq!(spent_at_start(&rules, SECOND / 50), 100);
        assert_eq!(spent_at_start(&rules, 0), 3, "not paced");
        // The rate fell from 10 to 2 per second: 20 saved retries shrink to 4.
        assert_eq!(RetryBudget::full(&rules, SECOND / 10).remaining(&rules, SECOND / 2), Some(4));
    }

    #[test]
    fn five_successes_pay_for_one_retry_and_no_more_is_saved_than_the_pace_allows() {
        let rules = rules(None);
        let mut budget = RetryBudget::full(&rules, SECOND);
        assert_eq!(spend_all(&mut budget, &rules, SECOND), 3);
        budget.earn(4);
        assert!(!budget.try_spend(&rules, SECOND), "four successes are not five");
        budget.earn(1);
        assert_eq!(spend_all(&mut budget, &rules, SECOND), 1);
        budget.earn(1_000_000);
        assert_eq!(spend_all(&mut budget, &rules, SECOND), 3);
    }

    #[test]
    fn without_a_budget_nothing_is_paid() {
        let rules = RetryRules::new(None, None);
        assert_eq!(spent_at_start(&rules, SECOND), 10_000);
        assert_eq!(RetryBudget::full(&rules, SECOND).remaining(&rules, SECOND), None);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Success,
        Spend,
        Pace(u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            3 => Just(Op::Success),
            2 => Just(Op::Spend),
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
            let rules = rules(cap);
            let mut budget = RetryBudget::full(&rules, start);
            let mut interval = start;
            let units_at_start = u64::from(budget.0);
            let (mut retries, mut successes) = (0u64, 0u64);
            for op in ops {
                match op {
                    Op::Success => {
                        budget.earn(1);
                        successes += 1;
                    }
                    Op::Spend => {
                        let left = budget.remaining(&rules, interval).unwrap_or(0);
                        let granted = budget.try_spend(&rules, interval);
                        prop_assert_eq!(granted, left > 0);
                        prop_assert_eq!(budget.remaining(&rules, interval), Some(left - u32::from(granted)));
                        retries += u64::from(granted);
                    }
                    Op::Pace(nanos) => interval = nanos,
                }
                prop_assert!(5 * retries <= units_at_start + successes);
            }
        }
    }
}

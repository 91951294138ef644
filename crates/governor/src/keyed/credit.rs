//! How many retries one key may still use, in four bytes: credit that nothing but a success earns.
//!
//! The idea of `retry_budget.rs` of this crate without its memory of the last seconds: a success brings one unit, a
//! retry costs as many as the owner says, and no more is saved up than succeeds in ten seconds at the present rate.

use super::config::Rules;
use crate::time::SECOND;

/// Retries that may always be saved up: one unlucky request must be able to use all its attempts.
const RETRIES_MIN: u32 = 3;
/// What succeeds in this time may be saved up.
const SAVED_NANOS: u64 = 10 * SECOND;

/// Credit in units of a success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit(u32);

impl Credit {
    /// All that may be saved up at this pace, as the interval in nanoseconds.
    pub(crate) fn full(rules: &Rules, interval: u64) -> Self {
        Self(most(rules, interval))
    }

    /// Adds so many successes.
    #[inline]
    pub(crate) fn earn(&mut self, successes: u32) {
        // What is too much is cut off when it is spent.
        self.0 = self.0.saturating_add(successes);
    }

    /// Pays for one retry, or says that there is not enough.
    pub(crate) fn spend(&mut self, rules: &Rules, interval: u64) -> bool {
        let Some(cost) = cost(rules) else { return true };
        self.0 = self.0.min(most(rules, interval));
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

/// What a retry costs; `None`: nothing.
fn cost(rules: &Rules) -> Option<u32> {
    rules.config.retry_budget.map(|budget| u32::from(budget.successes_per_retry.max(1)))
}

fn most(rules: &Rules, interval: u64) -> u32 {
    let at_pace = u32::try_from(SAVED_NANOS / interval.max(1)).unwrap_or(u32::MAX);
    at_pace.max(RETRIES_MIN * cost(rules).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::Config;

    fn spent(credit: &mut Credit, rules: &Rules, interval: u64) -> usize {
        (0..10_000).take_while(|_| credit.spend(rules, interval)).count()
    }

    #[test]
    fn a_fifth_of_what_succeeds_in_ten_seconds_may_be_saved_up_and_three_in_any_case() {
        let rules = Rules::new(Config::default()).unwrap();
        let mut credit = Credit::full(&rules, SECOND / 50);
        assert_eq!(spent(&mut credit, &rules, SECOND / 50), 100);
        credit.earn(4);
        assert_eq!(spent(&mut credit, &rules, SECOND / 50), 0, "four successes are not five");
        credit.earn(1);
        assert_eq!(spent(&mut credit, &rules, SECOND / 50), 1);
        credit.earn(1_000_000);
        assert_eq!(spent(&mut credit, &rules, SECOND), 3, "and never more than the pace allows");
    }

    #[test]
    fn without_a_budget_nothing_is_paid() {
        let rules = Rules::new(Config { retry_budget: None, ..Config::default() }).unwrap();
        assert_eq!(spent(&mut Credit::full(&rules, SECOND), &rules, SECOND), 10_000);
    }
}

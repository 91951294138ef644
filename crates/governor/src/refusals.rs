//! How many refusals we may still provoke: the one budget for everything that takes a risk.
//!
//! Why not a back-off alone: it bounds how fast we are refused, not how often. Providers suspend
//! accounts that are refused too often within some period, and never say which. So every refusal is
//! booked here, echoes and trials included, and whoever wants to go beyond what is known to be safe
//! (a probe, a shorter window, a larger one) asks first. An empty budget holds the pace; nothing
//! overdraws it on purpose.

use crate::time::{SECOND, Time};

/// Refusals that a new key may cost while its limit is found. Six are what a limit that says
/// nothing costs to find, its window included.
const BUDGET_START: f32 = 6.0;
/// Part of a refusal earned by an accepted request: 0.28 %, just under the 0.3 % that we promise.
const EARNED_PER_ACCEPTED: f32 = 0.0028;
/// The first earnings repay a part of the starting budget: a short run must keep the promise too.
const LOAN: f32 = 2.0;
/// What a risk may cost at worst: the refusal itself and one echo of it.
const RISK_COST: f32 = 2.0;
/// Period over which refusals are counted as strikes: providers that suspend count over minutes.
const STRIKE_SPAN: u64 = 600 * SECOND;
/// Refusals within the period after which nothing is risked. The strictest rule seen suspends at
/// five.
const STRIKES_MAX: usize = 4;
/// Times remembered: enough for the widest margin.
const REMEMBERED: usize = 6;

/// The refusals of one key.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    /// Whole seconds, newest first: strikes are counted over minutes.
    times: [u32; REMEMBERED],
    len: u8,
    budget: f32,
    loan: f32,
}

impl Refusals {
    pub(crate) const fn new() -> Self {
        Self { times: [0; REMEMBERED], len: 0, budget: BUDGET_START, loan: LOAN }
    }

    /// Whether a probe that may be refused is affordable.
    pub(crate) fn may_risk(&self, now: Time) -> bool {
        self.budget >= RISK_COST && self.recent(now) < STRIKES_MAX
    }

    /// Whether so many refusals are fresh that even a climb from below has to wait.
    pub(crate) fn is_alarmed(&self, now: Time) -> bool {
        self.recent(now) >= STRIKES_MAX
    }

    /// How far to stay under the limit: the more refusals are fresh, the further.
    pub(crate) fn margin(&self, now: Time) -> f64 {
        match self.recent(now) {
            0..=3 => 0.015,
            4 => 0.03,
            5 => 0.06,
            _ => 0.15,
        }
    }

    /// Books a refusal.
    pub(crate) fn on_refused(&mut self, now: Time) {
        self.times.rotate_right(1);
        self.times[0] = u32::try_from(now.as_nanos() / SECOND).unwrap_or(u32::MAX);
        self.len = (self.len + 1).min(REMEMBERED as u8);
        self.budget -= 1.0;
    }

    /// Takes over a refusal of a former run, if it still counts as a strike.
    pub(crate) fn restore(&mut self, age: u64, now: Time) {
        if age < STRIKE_SPAN {
            self.on_refused(now.minus(age));
        }
    }

    /// Books an accepted request.
    pub(crate) fn on_accepted(&mut self) {
        if self.loan > 0.0 {
            self.loan -= EARNED_PER_ACCEPTED;
        } else {
            self.budget = (self.budget + EARNED_PER_ACCEPTED).min(BUDGET_START);
        }
    }

    /// Books so many accepted requests.
    pub(crate) fn on_accepted_many(&mut self, accepted: u16) {
        let earned = EARNED_PER_ACCEPTED * f32::from(accepted);
        if self.loan > 0.0 {
            self.loan -= earned;
        } else {
            self.budget = (self.budget + earned).min(BUDGET_START);
        }
    }

    /// Refusals within the strike period.
    pub(crate) fn recent(&self, now: Time) -> usize {
        self.times().filter(|&at| now.nanos_since(at) < STRIKE_SPAN).count()
    }

    /// When the remembered refusals came, newest first.
    pub(crate) fn times(&self) -> impl Iterator<Item = Time> + '_ {
        self.times.iter().take(usize::from(self.len)).map(|&at| Time::from_nanos(u64::from(at) * SECOND))
    }

    /// Whole refusals that may still be risked.
    pub(crate) fn left(&self) -> u32 {
        self.budget.max(0.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    fn refused(seconds: &[u64]) -> Refusals {
        let mut refusals = Refusals::new();
        seconds.iter().for_each(|&second| refusals.on_refused(at(second)));
        refusals
    }

    #[test]
    fn each_refusal_costs_one_and_the_budget_is_never_negative_for_people() {
        assert_eq!(refused(&[]).left(), 6);
        assert_eq!(refused(&[1, 2]).left(), 4);
        assert_eq!(refused(&[1, 2, 3, 4, 5, 6, 7, 8]).left(), 0);
    }

    #[test]
    fn a_risk_needs_two_refusals_in_the_budget_and_few_fresh_ones() {
        assert!(refused(&[1, 2, 3]).may_risk(at(10)));
        assert!(!refused(&[1, 2, 3, 4]).may_risk(at(10)), "four are fresh");
        assert!(refused(&[1, 2, 3, 4]).may_risk(at(700)), "ten minutes later they are not");
        assert!(!refused(&[1, 2, 3, 4, 5]).may_risk(at(700)), "but one left is not two");
    }

    #[test]
    fn a_refusal_is_fresh_for_ten_minutes() {
        let refusals = refused(&[100, 200]);
        assert_eq!(refusals.recent(at(699)), 2);
        assert_eq!(refusals.recent(at(700)), 1);
        assert_eq!(refusals.recent(at(800)), 0);
    }

    #[test]
    fn the_newest_refusals_are_remembered_first() {
        let refusals = refused(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(refusals.times().eq([8, 7, 6, 5, 4, 3].map(at)));
    }

    #[test]
    fn accepted_requests_first_repay_the_loan_and_then_earn() {
        let mut refusals = refused(&[1, 2, 3]);
        // 2 / 0.0028 = 715 repay; another 358 are a refusal.
        (0..715).for_each(|_| refusals.on_accepted());
        assert_eq!(refusals.left(), 3);
        (0..360).for_each(|_| refusals.on_accepted());
        assert_eq!(refusals.left(), 4);
        (0..100_000).for_each(|_| refusals.on_accepted());
        assert_eq!(refusals.left(), 6, "and never more than at the start");
    }

    #[test]
    fn the_margin_only_widens_with_fresh_refusals() {
        let margins: Vec<f64> = (0..=6).map(|count| refused(&vec![1; count]).margin(at(10))).collect();
        assert!(margins.is_sorted());
    }
}

//! The refusal budget: how many refusals may still be provoked by all experiments together.
//!
//! Why not backoff alone: it limits how fast we are refused, not how often. Providers suspend accounts that are
//! refused too often within some period, and do not document it. So every refusal counts here, echoes and trials
//! included, and an experiment that may be refused (a probe, a shorter window, a larger one) asks first. An empty
//! budget holds the pace; no experiment may overdraw it.
//!
//! For an account that is penalized for refusals the budget starts empty, and Climb asks too: then a single refusal
//! finds the limit, or at most one per hundred accepted requests.

use crate::law::tuning::{REFUSALS_REMEMBERED, Tuning};
use crate::time::{SECOND, Time};

/// The refusals of one key.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    /// Whole seconds, newest first: strikes are counted over minutes.
    times: [u32; REFUSALS_REMEMBERED],
    len: u8,
    conservative: bool,
    budget: f32,
    loan: f32,
}

impl Refusals {
    pub(crate) const fn new(tuning: &Tuning) -> Self {
        let Tuning { budget_start: budget, loan, .. } = *tuning;
        Self { times: [0; REFUSALS_REMEMBERED], len: 0, conservative: false, budget, loan }
    }

    /// For an account that is penalized for refusals.
    pub(crate) const fn conservative(tuning: &Tuning) -> Self {
        Self { conservative: true, budget: 0.0, loan: 0.0, ..Self::new(tuning) }
    }

    /// Whether the budget allows a probe that may be refused.
    pub(crate) fn may_risk(&self, now: Time, tuning: &Tuning) -> bool {
        let cost = if self.conservative { tuning.risk_cost_carefully } else { tuning.risk_cost };
        self.budget >= cost && self.recent(now, tuning) < tuning.strikes_max
    }

    /// Whether Climb must wait: too many refusals are recent, or a conservative key has not earned one.
    pub(crate) fn is_alarmed(&self, now: Time, tuning: &Tuning) -> bool {
        self.recent(now, tuning) >= tuning.strikes_max || (self.conservative && !self.may_risk(now, tuning))
    }

    /// Distance to stay under the limit: the more recent refusals, the larger.
    pub(crate) fn margin(&self, now: Time, tuning: &Tuning) -> f64 {
        match self.recent(now, tuning).checked_sub(tuning.margin_strikes) {
            None => tuning.margin,
            Some(0) => tuning.margin_wider,
            Some(1) => tuning.margin_wide,
            Some(_) => tuning.margin_widest,
        }
    }

    /// Counts a refusal.
    pub(crate) fn on_refused(&mut self, now: Time) {
        self.times.rotate_right(1);
        self.times[0] = u32::try_from(now.as_nanos() / SECOND).unwrap_or(u32::MAX);
        self.len = (self.len + 1).min(REFUSALS_REMEMBERED as u8);
        self.budget -= 1.0;
    }

    /// Restores a refusal of an earlier run, if it still counts as a strike.
    pub(crate) fn restore(&mut self, age: u64, now: Time, tuning: &Tuning) {
        if age < tuning.strike_span {
            self.on_refused(now.minus(age));
        }
    }

    /// Budget of a conservative key, to be remembered: a restart must neither raise nor lower it.
    pub(crate) fn credit(&self) -> Option<f32> {
        self.conservative.then_some(self.budget)
    }

    /// Restores the budget of an earlier run, limited to what can be earned and to a debt that can be repaid.
    pub(crate) fn restore_credit(&mut self, credit: f32, tuning: &Tuning) {
        if self.conservative && credit.is_finite() {
            self.budget = credit.clamp(-tuning.budget_start, tuning.budget_start);
        }
    }

    /// Counts accepted requests.
    pub(crate) fn on_accepted(&mut self, accepted: u16, tuning: &Tuning) {
        let each = if self.conservative { tuning.earned_carefully } else { tuning.earned };
        let earned = each * f32::from(accepted);
        if self.loan > 0.0 {
            self.loan -= earned;
        } else {
            self.budget = (self.budget + earned).min(tuning.budget_start);
        }
    }

    /// Refusals within the strike period.
    pub(crate) fn recent(&self, now: Time, tuning: &Tuning) -> u8 {
        self.times().filter(|&at| now.nanos_since(at) < tuning.strike_span).count() as u8
    }

    /// Times of the remembered refusals, newest first.
    pub(crate) fn times(&self) -> impl Iterator<Item = Time> + '_ {
        self.times.iter().take(usize::from(self.len)).map(|&at| Time::from_nanos(u64::from(at) * SECOND))
    }

    /// Whole refusals left in the budget.
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
        let mut refusals = Refusals::new(Tuning::SHIPPED);
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
        assert!(refused(&[1, 2, 3]).may_risk(at(10), Tuning::SHIPPED));
        assert!(!refused(&[1, 2, 3, 4]).may_risk(at(10), Tuning::SHIPPED), "four are fresh");
        assert!(refused(&[1, 2, 3, 4]).may_risk(at(700), Tuning::SHIPPED), "ten minutes later they are not");
        assert!(!refused(&[1, 2, 3, 4, 5]).may_risk(at(700), Tuning::SHIPPED), "but one left is not two");
    }

    #[test]
    fn a_refusal_is_fresh_for_ten_minutes() {
        let refusals = refused(&[100, 200]);
        assert_eq!(refusals.recent(at(699), Tuning::SHIPPED), 2);
        assert_eq!(refusals.recent(at(700), Tuning::SHIPPED), 1);
        assert_eq!(refusals.recent(at(800), Tuning::SHIPPED), 0);
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
        (0..715).for_each(|_| refusals.on_accepted(1, Tuning::SHIPPED));
        assert_eq!(refusals.left(), 3);
        (0..360).for_each(|_| refusals.on_accepted(1, Tuning::SHIPPED));
        assert_eq!(refusals.left(), 4);
        (0..100_000).for_each(|_| refusals.on_accepted(1, Tuning::SHIPPED));
        assert_eq!(refusals.left(), 6, "and never more than at the start");
    }

    #[test]
    fn a_conservative_key_has_one_refusal_or_one_in_a_hundred() {
        let mut refusals = Refusals::conservative(Tuning::SHIPPED);
        assert!(refusals.is_alarmed(at(0), Tuning::SHIPPED), "nothing is earned yet");
        refusals.on_refused(at(20));
        (0..190).for_each(|_| refusals.on_accepted(1, Tuning::SHIPPED));
        assert!(refusals.is_alarmed(at(1000), Tuning::SHIPPED), "a second one would be more than one in a hundred");
        (0..15).for_each(|_| refusals.on_accepted(1, Tuning::SHIPPED));
        assert!(!refusals.is_alarmed(at(1000), Tuning::SHIPPED) && refusals.may_risk(at(1000), Tuning::SHIPPED));
        let mut restored = Refusals::conservative(Tuning::SHIPPED);
        restored.restore(100 * SECOND, at(1000), Tuning::SHIPPED);
        restored.restore_credit(refusals.credit().unwrap(), Tuning::SHIPPED);
        assert!(restored.may_risk(at(1000), Tuning::SHIPPED), "the next run continues with the earned budget");
        restored.restore_credit(f32::MAX, Tuning::SHIPPED);
        assert_eq!(restored.left(), 6);
        restored.restore_credit(f32::NAN, Tuning::SHIPPED);
        assert_eq!(restored.left(), 6);
        let mut bold = Refusals::new(Tuning::SHIPPED);
        bold.restore_credit(-5.0, Tuning::SHIPPED);
        assert_eq!((bold.left(), bold.credit()), (6, None), "for whom it is not kept it changes nothing");
    }

    #[test]
    fn the_margin_only_widens_with_fresh_refusals() {
        let margins: Vec<f64> = (0..=6).map(|count| refused(&vec![1; count]).margin(at(10), Tuning::SHIPPED)).collect();
        assert!(margins.is_sorted());
    }
}

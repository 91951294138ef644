//! The limit on requests in flight (the lane). It is lowered only when refusals depend on the number in flight.
//!
//! Why not AIMD on every throttle: most throttles come from a rate limit, and lower concurrency costs throughput
//! without curing them; a limiter that samples near a hard rate limit collapses (D2, Netflix #72). The number of
//! other requests in flight, `k`, tells the two limits apart. A provider that allows L at once always refuses at
//! `k >= L` and accepts at `k < L`; a rate limit refuses at any `k`. So the lane looks for a `k` that separates refusals
//! from acceptances through two bursts, and does nothing until it finds one.
//!
//! The lane never waits and never changes the pace. With a limit of one request in flight it does nothing.

use crate::law::tuning::Tuning;

/// One at a time: the rate is the control variable, and a second worker is the owner's choice.
pub(crate) const MAX_CONCURRENCY_DEFAULT: u16 = 1;

/// The in-flight limit of one key. `k` is always "others in flight when the request was sent".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    max: u16,
    limit: u16,
    in_flight: u16,
    /// The lowest refused `k` in the current evidence: the limit it points to.
    refused_min: u16,
    /// The highest accepted `k` in the current evidence.
    accepted_max: u16,
    /// Answers since the last burst began; up to `max - 1` of them may still belong to it.
    answers: u16,
    /// Successes in a row that were sent at the full limit.
    quiet: u16,
    patience: u16,
    /// The limit of the last cut; 0 before the first.
    cut_to: u16,
    /// Bursts in the current evidence.
    bursts: u8,
}

impl Lane {
    /// A lane at its maximum; `max_concurrency` 0 is read as 1.
    pub(crate) fn new(max_concurrency: u16, tuning: &Tuning) -> Self {
        let max = max_concurrency.max(1);
        Self {
            max,
            limit: max,
            in_flight: 0,
            refused_min: u16::MAX,
            accepted_max: 0,
            answers: max,
            quiet: 0,
            patience: tuning.lane_patience,
            cut_to: 0,
            bursts: 0,
        }
    }

    /// Whether one more request may be in flight.
    pub(crate) const fn admits(&self) -> bool {
        self.in_flight < self.limit
    }

    /// Counts a send; returns how many others were in flight, to be kept with the permit.
    pub(crate) const fn on_send(&mut self) -> u16 {
        let others = self.in_flight;
        self.in_flight = self.in_flight.saturating_add(1);
        others
    }

    /// A request is no longer in flight: answered, failed or cancelled.
    pub(crate) const fn on_done(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Gives up `lost` requests that were never answered.
    pub(crate) const fn on_lost(&mut self, lost: u16) {
        self.in_flight = self.in_flight.saturating_sub(lost);
    }

    /// A request sent beside `k` others was accepted. `may_widen`: a refusal is affordable.
    #[inline]
    pub(crate) fn on_accepted(&mut self, k: u16, tuning: &Tuning, may_widen: impl FnOnce() -> bool) {
        if self.max == 1 {
            return;
        }
        self.answers = self.answers.saturating_add(1);
        self.accepted_max = self.accepted_max.max(k);
        if k.saturating_add(1) >= self.limit && self.limit < self.max {
            self.quiet = self.quiet.saturating_add(1);
            if self.quiet >= self.row(tuning) && may_widen() {
                self.widen();
            }
        }
    }

    /// Whether the limit is at the owner's maximum.
    pub(crate) const fn is_wide(&self) -> bool {
        self.limit == self.max
    }

    /// Continues with `in_flight` requests after `accepted` successes, each beside at most `k` others.
    pub(crate) fn resume(&mut self, in_flight: u16, accepted: u16, k: u16) {
        self.in_flight = in_flight;
        if self.max > 1 {
            self.answers = self.answers.saturating_add(accepted);
            self.accepted_max = self.accepted_max.max(k);
        }
    }

    /// A request sent beside `k` others was throttled. Call it for every refusal, not once per burst: the lowest `k`
    /// of a burst matters. True when the known limit explains the refusal.
    pub(crate) fn on_refused(&mut self, k: u16, tuning: &Tuning) -> bool {
        if self.max == 1 {
            return false;
        }
        self.quiet = 0;
        let is_new_burst = self.answers >= self.max - 1;
        self.answers = if is_new_burst { 0 } else { self.answers.saturating_add(1) };
        self.refused_min = self.refused_min.min(k);
        let is_known = self.cut_to > 0 && k >= self.cut_to;
        if is_known && self.limit > self.cut_to {
            // The one request above the known limit was refused: that confirms the limit without a second burst.
            self.refused_min = self.cut_to;
            self.narrow(tuning);
            return true;
        }
        // A request refused alone (`k` = 0) always ends up here: no in-flight limit explains it.
        if self.accepted_max >= self.refused_min {
            self.start_evidence(k);
            return is_known;
        }
        self.bursts = self.bursts.saturating_add(u8::from(is_new_burst));
        if self.bursts >= tuning.lane_bursts && self.refused_min < self.limit {
            self.narrow(tuning);
        }
        is_known || self.limit == self.cut_to
    }

    /// Requests in flight.
    pub(crate) const fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// The present limit.
    pub(crate) const fn limit(&self) -> u16 {
        self.limit
    }

    /// No `k` separates refusals from acceptances: restart the evidence with this refusal.
    const fn start_evidence(&mut self, k: u16) {
        self.refused_min = k;
        self.accepted_max = 0;
        self.bursts = 1;
    }

    /// `refused_min` others were too many, so `refused_min` in total are allowed.
    fn narrow(&mut self, tuning: &Tuning) {
        self.limit = self.refused_min;
        let is_known = self.limit == self.cut_to;
        let longer = self.patience.saturating_mul(tuning.lane_patience_growth).min(tuning.lane_patience_max);
        self.patience = if is_known { longer } else { tuning.lane_patience };
        self.cut_to = self.limit;
    }

    const fn widen(&mut self) {
        self.limit += 1;
        self.quiet = 0;
    }

    /// Successes needed before the limit is raised. Above the last cut each success contradicts that limit, so a
    /// short row is enough; at the limit a success does not show that one more would pass.
    const fn row(&self, tuning: &Tuning) -> u16 {
        if self.limit > self.cut_to { tuning.lane_patience } else { self.patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fills the lane as far as `workers` reach, answers everything in order of sending;
    /// returns (accepted, refused).
    fn round(lane: &mut Lane, workers: u16, accepts: &mut impl FnMut(u16) -> bool) -> (u32, u32) {
        let mut sent = Vec::new();
        while lane.admits() && lane.in_flight() < workers {
            sent.push(lane.on_send());
        }
        let (mut accepted, mut refused) = (0, 0);
        for k in sent {
            lane.on_done();
            if accepts(k) {
                lane.on_accepted(k, Tuning::SHIPPED, || true);
                accepted += 1;
            } else {
                lane.on_refused(k, Tuning::SHIPPED);
                refused += 1;
            }
        }
        (accepted, refused)
    }

    fn run(lane: &mut Lane, rounds: u32, mut accepts: impl FnMut(u16) -> bool) -> (u32, u32) {
        (0..rounds).map(|_| round(lane, 8, &mut accepts)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    #[test]
    fn in_flight_never_passes_the_limit_and_each_send_learns_its_company() {
        let mut lane = Lane::new(3, Tuning::SHIPPED);
        assert_eq!([lane.on_send(), lane.on_send(), lane.on_send()], [0, 1, 2]);
        assert!(!lane.admits());
        lane.on_done();
        assert!(lane.admits());
        assert_eq!(Lane::new(0, Tuning::SHIPPED), Lane::new(1, Tuning::SHIPPED));
        assert!(size_of::<Lane>() <= 20);
    }

    #[test]
    fn a_concurrency_limit_is_found_in_two_bursts() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 1, |k| k < 5);
        assert_eq!(lane.limit(), 8);
        run(&mut lane, 1, |k| k < 5);
        assert_eq!(lane.limit(), 5);
        assert_eq!(run(&mut lane, 10, |k| k < 5), (50, 0));
    }

    #[test]
    fn a_limit_that_appears_later_is_found_although_more_was_accepted_before() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 100, |_| true);
        run(&mut lane, 4, |k| k < 5);
        assert_eq!(lane.limit(), 5);
    }

    #[test]
    fn a_limit_of_one_is_found_too() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 2, |k| k < 1);
        assert_eq!(lane.limit(), 1);
    }

    #[test]
    fn echoes_of_one_burst_do_not_confirm_it() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 3, |_| true);
        (1..8).rev().for_each(|k| {
            lane.on_refused(k, Tuning::SHIPPED);
        });
        assert_eq!(lane.limit(), 8);
    }

    #[test]
    fn a_rate_limit_leaves_the_lane_alone() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        let mut count = 0;
        let (_, refused) = run(&mut lane, 10_000, |_| {
            count += 1;
            count % 50 != 0
        });
        assert_eq!(lane.limit(), 8);
        assert!(refused > 1000);
    }

    #[test]
    fn a_refusal_without_company_clears_the_suspicion() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 1, |k| k < 5);
        lane.on_refused(0, Tuning::SHIPPED);
        run(&mut lane, 1, |k| k < 5);
        assert_eq!(lane.limit(), 8);
    }

    #[test]
    fn a_standing_limit_is_tried_ever_more_rarely() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 2, |k| k < 5);
        let (accepted, refused) = run(&mut lane, 20_000, |k| k < 5);
        // Tries after 256, 512, ... 4096 accepted at a full lane, and then every 4096: 8.
        assert!(accepted > 99_000 && (7..=9).contains(&refused), "{accepted} {refused}");
    }

    #[test]
    fn a_raised_limit_is_followed_step_by_step() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 2, |k| k < 3);
        assert_eq!(lane.limit(), 3);
        run(&mut lane, 5 * 256, |_| true);
        assert_eq!(lane.limit(), 8);
    }

    #[test]
    fn a_limit_that_was_confirmed_often_is_still_left_quickly_once_it_is_gone() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 10_000, |k| k < 3);
        assert_eq!(lane.limit(), 3);
        // The first step takes at most the longest patience, each of the four others 256.
        run(&mut lane, 4096 + 4 * 256, |_| true);
        assert_eq!(lane.limit(), 8);
    }

    #[test]
    fn a_refusal_of_any_kind_interrupts_the_row_that_widens() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 2, |k| k < 5);
        for _ in 0..10 {
            (0..255).for_each(|_| lane.on_accepted(4, Tuning::SHIPPED, || true));
            lane.on_refused(2, Tuning::SHIPPED);
        }
        assert_eq!(lane.limit(), 5);
    }

    #[test]
    fn a_lane_that_is_not_full_does_not_widen() {
        let mut lane = Lane::new(8, Tuning::SHIPPED);
        run(&mut lane, 2, |k| k < 5);
        (0..10_000).for_each(|_| lane.on_accepted(2, Tuning::SHIPPED, || true));
        assert_eq!(lane.limit(), 5);
    }

    proptest! {
        #[test]
        fn nothing_moves_a_lane_of_one(
            answers in prop::collection::vec((any::<bool>(), prop_oneof![Just(0), any::<u16>()]), 0..300),
            max in 0u16..2,
        ) {
            let mut lane = Lane::new(max, Tuning::SHIPPED);
            for (accepted, k) in answers {
                prop_assert!(lane.admits());
                prop_assert_eq!(lane.on_send(), 0);
                prop_assert!(!lane.admits());
                lane.on_done();
                if accepted { lane.on_accepted(k, Tuning::SHIPPED, || true) } else { lane.on_refused(k, Tuning::SHIPPED); }
                prop_assert_eq!(lane, Lane::new(1, Tuning::SHIPPED));
            }
        }

        #[test]
        fn the_limit_stays_between_one_and_its_maximum(
            answers in prop::collection::vec((any::<bool>(), 0u16..12, 1u16..200), 0..300),
            max in 1u16..10,
        ) {
            let mut lane = Lane::new(max, Tuning::SHIPPED);
            for (accepted, k, times) in answers {
                for _ in 0..times {
                    if accepted { lane.on_accepted(k, Tuning::SHIPPED, || true) } else { lane.on_refused(k, Tuning::SHIPPED); }
                    prop_assert!((1..=max).contains(&lane.limit()));
                }
            }
        }

        #[test]
        fn any_concurrency_limit_is_found_and_never_undercut(limit in 1u16..8, rounds in 2u32..400) {
            let mut lane = Lane::new(8, Tuning::SHIPPED);
            run(&mut lane, 2, |k| k < limit);
            prop_assert_eq!(lane.limit(), limit);
            run(&mut lane, rounds, |k| k < limit);
            prop_assert!((limit..=limit + 1).contains(&lane.limit()));
        }
    }
}

//! The budget of a run, shared by recovery and forward walk, lists and details.
//!
//! Why one: recovery and new records are limited together, or each pass would get its own budget. Pure: times are
//! arguments. Without a cap nothing is counted. It decides between fetches and never interrupts one, so a run may
//! exceed its time by one fetch.

pub(crate) mod caps;

use crate::budget::caps::Caps;
use gleaner_engine::Time;
use gleaner_protocol::DeferReason;
use std::time::Duration;

/// Remaining budget of a run. Without a cap it never refuses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    requests_left: Option<u64>,
    details_left: Option<u64>,
    /// The end of the run's own time, counted from its START.
    run_ends: Option<Time>,
    wall_clock: Option<Duration>,
    /// The end of the wall clock; set at the first check.
    wall_clock_ends: Option<Time>,
    /// Remaining gaps of single records for items left by a cap; `None`: unlimited.
    pub(crate) gap_rows_left: Option<u64>,
    /// A stop reported from elsewhere, after which nothing is fetched.
    ended: Option<DeferReason>,
}

impl Budget {
    /// The budget of a run started at `started`.
    pub(crate) fn new(caps: &Caps, started: Time) -> Self {
        Self {
            requests_left: caps.max_requests,
            details_left: caps.max_detail_fetches,
            run_ends: caps.max_duration.map(|duration| started + duration),
            wall_clock: caps.max_wall_clock,
            wall_clock_ends: None,
            gap_rows_left: caps.effective_chunk(),
            ended: None,
        }
    }

    /// Why nothing more may be fetched, if so. The first call starts the wall clock.
    pub(crate) fn exhausted(&mut self, now: Time) -> Option<DeferReason> {
        if self.ended.is_some() {
            return self.ended;
        }
        self.wall_clock_ends = self.wall_clock_ends.or_else(|| self.wall_clock.map(|length| now + length));
        let over = |end: Option<Time>| end.is_some_and(|end| now >= end);
        if self.requests_left == Some(0) {
            return Some(DeferReason::RequestCap);
        }
        (over(self.run_ends) || over(self.wall_clock_ends)).then_some(DeferReason::WallClock)
    }

    /// Why no further detail may be fetched, if so.
    pub(crate) fn detail_exhausted(&mut self, now: Time) -> Option<DeferReason> {
        self.exhausted(now).or_else(|| (self.details_left == Some(0)).then_some(DeferReason::RequestCap))
    }

    /// Takes one list fetch from the budget.
    pub(crate) fn take_list(&mut self, now: Time) -> Result<(), DeferReason> {
        self.exhausted(now).map_or(Ok(()), Err)?;
        self.count_request();
        Ok(())
    }

    /// Takes one detail fetch from the budget.
    pub(crate) fn take_detail(&mut self, now: Time) -> Result<(), DeferReason> {
        self.detail_exhausted(now).map_or(Ok(()), Err)?;
        self.count_request();
        self.details_left = self.details_left.map(|left| left.saturating_sub(1));
        Ok(())
    }

    /// One fetch is at least one request. The governed client also counts retries, and reports them with
    /// [`end`](Self::end).
    fn count_request(&mut self) {
        self.requests_left = self.requests_left.map(|left| left.saturating_sub(1));
    }

    /// The governed client, which sees every attempt, reports the end of the budget.
    pub(crate) const fn end(&mut self, reason: DeferReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
        }
    }

    /// Time left for a wait; `None`: unlimited. Does not start the wall clock.
    pub(crate) fn time_left(&self, now: Time) -> Option<Duration> {
        let end = self.run_ends.into_iter().chain(self.wall_clock_ends).min()?;
        Some(Duration::from_millis(end.as_millis().saturating_sub(now.as_millis())))
    }

    /// Takes one such gap; `false` when none is left and the rest goes into a backlog gap.
    pub(crate) const fn take_gap_row(&mut self) -> bool {
        match &mut self.gap_rows_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn budget(caps: &Caps) -> Budget {
        Budget::new(caps, at(100))
    }

    #[test]
    fn no_cap_configured_leaves_a_run_unbounded_and_unchanged() {
        let mut budget = budget(&Caps::default());
        for second in 0..100_000 {
            assert_eq!(budget.take_detail(at(second)), Ok(()));
            assert_eq!(budget.take_list(at(second)), Ok(()));
            assert!(budget.take_gap_row());
        }
        assert_eq!((budget.time_left(at(0)), budget.gap_rows_left), (None, None));
    }

    #[test]
    fn one_shared_budget_bounds_the_recovery_pass_and_the_forward_pass_together() {
        let mut budget = budget(&Caps { max_detail_fetches: Some(3), ..Caps::default() });
        let recovery = (0..2).filter(|_| budget.take_detail(at(1)).is_ok()).count();
        let forward = (0..9).filter(|_| budget.take_detail(at(2)).is_ok()).count();
        assert_eq!((recovery, forward), (2, 1));
        assert_eq!(budget.take_detail(at(3)), Err(DeferReason::RequestCap));
        assert_eq!(budget.take_list(at(3)), Ok(()), "lists are still needed to say what is left");
    }

    #[test]
    fn a_wall_clock_counts_from_the_first_consultation() {
        let mut budget = budget(&Caps { max_wall_clock: Some(Duration::from_secs(10)), ..Caps::default() });
        assert_eq!(budget.time_left(at(5000)), None, "nobody has asked yet");
        assert_eq!(budget.take_detail(at(5000)), Ok(()));
        assert_eq!(budget.time_left(at(5004)), Some(Duration::from_secs(6)));
        assert_eq!(budget.take_detail(at(5009)), Ok(()));
        assert_eq!(budget.take_detail(at(5010)), Err(DeferReason::WallClock));
    }

    #[test]
    fn the_time_of_the_run_counts_from_its_start() {
        let mut budget = budget(&Caps { max_duration: Some(Duration::from_secs(10)), ..Caps::default() });
        assert_eq!(budget.take_list(at(109)), Ok(()));
        assert_eq!(budget.take_list(at(110)), Err(DeferReason::WallClock));
    }

    #[test]
    fn every_fetch_is_a_request_and_the_client_may_end_it_earlier() {
        let mut capped = budget(&Caps { max_requests: Some(2), ..Caps::default() });
        assert_eq!((capped.take_list(at(1)), capped.take_detail(at(1))), (Ok(()), Ok(())));
        assert_eq!(capped.take_list(at(1)), Err(DeferReason::RequestCap));
        let mut ended = budget(&Caps::default());
        ended.end(DeferReason::RetryBudget);
        assert_eq!(ended.take_detail(at(1)), Err(DeferReason::RetryBudget));
    }

    #[test]
    fn the_chunk_of_gap_rows_is_one_for_the_whole_run() {
        let mut budget = budget(&Caps { tail_chunk: Some(2), ..Caps::default() });
        assert_eq!([(); 4].map(|()| budget.take_gap_row()), [true, true, false, false]);
    }
}

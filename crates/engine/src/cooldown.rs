//! When a connection rests because its provider pushed back, until when, and why.
//!
//! Why it takes a [`PressureReason`] and nothing else: a run that stopped at its own budget has not
//! been pushed back, and resting for it would punish the owner for being careful. The types keep the
//! two apart (R8). Why cycles go on after a rest and not only within the window: the longest rest is
//! as long as the window, so evidence would always be too old by its end and nothing would ever
//! escalate. The window is counted from the end of the rest. Never waits, never reads a clock.

use crate::gap::{Gap, GapState};
use crate::ids::RunId;
use crate::time::WallTime;
use gleaner_protocol::{DoneError, GapReason, PressureReason, RefreshPolicy};
use std::time::Duration;

/// The rest of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// What the provider said last.
    pub reason: PressureReason,
    /// How many rests in a row before this one.
    pub escalation: u32,
    /// The end of the rest.
    pub until: WallTime,
    /// The run that met the pressure. Its other refusals are the same rest.
    pub armed_by: RunId,
}

/// What a cooldown depends on, from the connection's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooldownPolicy {
    /// The first rest; each further one is twice as long.
    pub base: Duration,
    /// After more rests in a row than this the owner is asked.
    pub cycles_max: u32,
}

impl CooldownPolicy {
    /// Without an interval: from the contract.
    const BASE: Duration = Duration::from_secs(15 * 60);
    /// From the contract.
    const CYCLES_MAX: u32 = 12;

    /// The policy of a connection that runs at this interval, if it has one.
    #[must_use]
    pub fn of(interval: Option<Duration>, policy: Option<&RefreshPolicy>) -> Self {
        let cycles = policy.and_then(|policy| policy.max_cooldown_cycles).and_then(|max| u32::try_from(max).ok());
        Self { base: interval.unwrap_or(Self::BASE), cycles_max: cycles.unwrap_or(Self::CYCLES_MAX) }
    }
}

/// Rests grow no more after this many doublings. From the contract.
const DOUBLINGS_MAX: u32 = 6;
/// The longest rest. From the contract.
pub const REST_MAX: Duration = Duration::from_secs(6 * 3600);
/// Pressure longer ago than this says nothing about now. From the contract.
pub const EVIDENCE_WINDOW: Duration = Duration::from_secs(6 * 3600);

impl Cooldown {
    /// Rests after a run met pressure at `at`. The rest before it, if any, makes this one longer.
    ///
    /// ```compile_fail,E0308
    /// use gleaner_engine::{Cooldown, CooldownPolicy, RunId, WallTime};
    /// use gleaner_protocol::DeferReason;
    /// // Our own budget is no pressure.
    /// Cooldown::arm(None, DeferReason::RequestCap, &RunId::new("r"), WallTime::default(), CooldownPolicy::of(None, None));
    /// ```
    #[must_use]
    pub fn arm(
        before: Option<&Self>,
        reason: PressureReason,
        run: &RunId,
        at: WallTime,
        policy: CooldownPolicy,
    ) -> Self {
        let escalation = match before {
            Some(before) if before.armed_by == *run => return Self { reason, ..before.clone() },
            Some(before) if at <= before.until + EVIDENCE_WINDOW => before.escalation.saturating_add(1),
            Some(_) | None => 0,
        };
        Self { reason, escalation, until: at + rest(policy.base, escalation), armed_by: run.clone() }
    }

    /// The provider let a run through at `at`: the rest is over. How many there were is remembered for as long as
    /// evidence counts, so that the next one is longer; but nobody has to look after it any more.
    #[must_use]
    pub fn lifted(self, at: WallTime, policy: CooldownPolicy) -> Self {
        let escalation = self.escalation.min(policy.cycles_max.saturating_sub(1));
        Self { until: self.until.min(at), escalation, ..self }
    }

    /// What a schedule is told. Without a rest, `None` is what to pass.
    #[must_use]
    pub fn answer(cooldown: Option<&Self>, now: WallTime, policy: CooldownPolicy) -> Rest {
        let Some(cooldown) = cooldown else { return Rest::No };
        let cycles = cooldown.escalation.saturating_add(1);
        if now > cooldown.until + EVIDENCE_WINDOW {
            return Rest::No;
        }
        if cycles > policy.cycles_max {
            return Rest::NeedsAttention { why: cooldown.reason, cycles };
        }
        if now >= cooldown.until {
            return Rest::No;
        }
        // A calendar that was set back must not make a rest longer than any rest is.
        Rest::Until { until: cooldown.until.min(now + REST_MAX), why: cooldown.reason, cycles }
    }
}

fn rest(base: Duration, escalation: u32) -> Duration {
    base.saturating_mul(1 << escalation.min(DOUBLINGS_MAX)).min(REST_MAX)
}

/// Whether a connection rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It may run.
    No,
    /// It rests.
    Until {
        /// Until then.
        until: WallTime,
        /// Because of this.
        why: PressureReason,
        /// How many rests in a row this makes.
        cycles: u32,
    },
    /// It rested so often in a row that the owner should look.
    NeedsAttention {
        /// What the provider said last.
        why: PressureReason,
        /// How many rests in a row.
        cycles: u32,
    },
}

/// Who wants a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The schedule.
    Schedule,
    /// The owner.
    Owner,
    /// The owner, who knows about the rest and wants it now.
    OwnerNow,
}

/// What kind of run may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Any.
    Full,
    /// One that recovers gaps which are not pressure, and does not walk forward.
    RecoveryOnly,
    /// None.
    Refused,
}

impl Rest {
    /// What may start now, if there are such gaps to recover.
    #[must_use]
    pub const fn permits(self, trigger: Trigger, has_other_gaps: bool) -> Permission {
        match (self, trigger) {
            (Self::No, _) | (_, Trigger::OwnerNow) => Permission::Full,
            (Self::Until { .. }, _) | (Self::NeedsAttention { .. }, Trigger::Owner) if has_other_gaps => {
                Permission::RecoveryOnly
            }
            (Self::Until { .. } | Self::NeedsAttention { .. }, Trigger::Schedule | Trigger::Owner) => {
                Permission::Refused
            }
        }
    }
}

/// The pressure that one run met: from its gaps, and from its last words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureSeen(Option<PressureReason>);

impl PressureSeen {
    /// A gap was deferred. Only pressure counts.
    pub const fn gap(&mut self, reason: Option<GapReason>) {
        if let Some(GapReason::Pressure(reason)) = reason {
            self.0 = Some(reason);
        }
    }

    /// The connector ended with this error.
    pub fn terminal_error(&mut self, error: &DoneError) {
        self.0 = error.pressure().or(self.0);
    }

    /// What arms the cooldown, if anything.
    #[must_use]
    pub const fn reason(self) -> Option<PressureReason> {
        self.0
    }
}

/// How much waits because of source pressure. Own-budget deferrals are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureBacklog {
    /// Gaps that met a rate limit.
    pub rate_limited: u64,
    /// Gaps that met an overloaded provider.
    pub upstream_pressure: u64,
    /// Since when the oldest of them waits.
    pub oldest: Option<WallTime>,
}

impl PressureBacklog {
    /// Counts one gap.
    pub fn count(&mut self, gap: &Gap) {
        if !matches!(gap.state, GapState::Pending | GapState::InProgress { .. }) {
            return;
        }
        let Some(GapReason::Pressure(reason)) = gap.cause.reason else { return };
        match reason {
            PressureReason::RateLimited => self.rate_limited += 1,
            PressureReason::UpstreamPressure => self.upstream_pressure += 1,
        }
        self.oldest = Some(self.oldest.map_or(gap.since, |oldest| oldest.min(gap.since)));
    }

    /// How many in all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.rate_limited + self.upstream_pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LeaseId;
    use gleaner_protocol::{AbsenceReason, DeferReason, DetailGap, ErrorClass, LastError};

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const REASON: PressureReason = PressureReason::RateLimited;

    fn at(millis: u64) -> WallTime {
        WallTime::from_unix_millis(millis)
    }

    fn policy() -> CooldownPolicy {
        CooldownPolicy::of(None, None)
    }

    fn run(n: u64) -> RunId {
        RunId::new(n.to_string())
    }

    /// Pressure in one run after the other, each as soon as the rest before it is over.
    fn rests(count: u64) -> (Vec<u64>, Cooldown) {
        let (mut lengths, mut before) = (Vec::new(), None::<Cooldown>);
        for n in 0..count {
            let start = before.as_ref().map_or_else(|| at(0), |before| before.until);
            let cooldown = Cooldown::arm(before.as_ref(), REASON, &run(n), start, policy());
            lengths.push(cooldown.until.since(start).as_secs() / 60);
            before = Some(cooldown);
        }
        (lengths, before.unwrap())
    }

    #[test]
    fn rests_double_up_to_six_hours() {
        assert_eq!(rests(8).0, [15, 30, 60, 120, 240, 360, 360, 360]);
        let daily = CooldownPolicy::of(Some(Duration::from_secs(86_400)), None);
        assert_eq!(Cooldown::arm(None, REASON, &run(1), at(0), daily).until, at(6 * HOUR));
        let often = CooldownPolicy::of(Some(Duration::from_secs(60)), None);
        let tenth = Cooldown { escalation: 9, ..Cooldown::arm(None, REASON, &run(1), at(0), often) };
        let eleventh = Cooldown::arm(Some(&tenth), REASON, &run(2), at(MINUTE), often);
        assert_eq!(eleventh.until, at(65 * MINUTE), "no more than six doublings");
    }

    #[test]
    fn one_run_is_one_rest_however_often_it_was_refused() {
        let first = Cooldown::arm(None, REASON, &run(1), at(0), policy());
        let again = Cooldown::arm(Some(&first), PressureReason::UpstreamPressure, &run(1), at(MINUTE), policy());
        assert_eq!((again.escalation, again.until), (0, first.until));
        assert_eq!(again.reason, PressureReason::UpstreamPressure);
    }

    #[test]
    fn evidence_older_than_six_hours_no_longer_counts() {
        let first = Cooldown::arm(None, REASON, &run(1), at(0), policy());
        let window_end = 15 * MINUTE + 6 * HOUR;
        assert_eq!(Cooldown::arm(Some(&first), REASON, &run(2), at(window_end), policy()).escalation, 1);
        assert_eq!(Cooldown::arm(Some(&first), REASON, &run(2), at(window_end + 1), policy()).escalation, 0);
    }

    #[test]
    fn too_many_rests_in_a_row_need_attention_until_the_evidence_is_old() {
        let (_, twelfth) = rests(12);
        assert_eq!(Cooldown::answer(Some(&twelfth), twelfth.until, policy()), Rest::No);
        let (_, last) = rests(13);
        let attention = Rest::NeedsAttention { why: REASON, cycles: 13 };
        assert_eq!(Cooldown::answer(Some(&last), last.until, policy()), attention);
        let later = last.until + EVIDENCE_WINDOW + Duration::from_millis(1);
        assert_eq!(Cooldown::answer(Some(&last), later, policy()), Rest::No);
    }

    #[test]
    fn a_provider_that_lets_a_run_through_ends_the_rest_and_the_next_one_is_longer_all_the_same() {
        let (_, last) = rests(13);
        let lifted = last.clone().lifted(at(HOUR), policy());
        assert_eq!(Cooldown::answer(Some(&lifted), at(HOUR), policy()), Rest::No);
        assert_eq!(lifted.until, at(HOUR), "and evidence is old six hours from now");
        let again = Cooldown::arm(Some(&lifted), REASON, &run(99), at(2 * HOUR), policy());
        assert_eq!(again.until, at(8 * HOUR));
        assert!(matches!(Cooldown::answer(Some(&again), at(2 * HOUR), policy()), Rest::NeedsAttention { .. }));
        // A rest that was over is not begun again.
        assert_eq!(last.clone().lifted(last.until + Duration::from_secs(1), policy()).until, last.until);
    }

    #[test]
    fn a_schedule_is_told_until_when_and_why() {
        let cooldown = Cooldown::arm(None, REASON, &run(1), at(0), policy());
        let until = at(15 * MINUTE);
        assert_eq!(Cooldown::answer(Some(&cooldown), at(1), policy()), Rest::Until { until, why: REASON, cycles: 1 });
        assert_eq!(Cooldown::answer(Some(&cooldown), until, policy()), Rest::No);
        assert_eq!(Cooldown::answer(None, at(1), policy()), Rest::No);
    }

    #[test]
    fn a_calendar_that_was_set_back_prolongs_no_rest_beyond_the_longest() {
        let cooldown = Cooldown::arm(None, REASON, &run(1), at(1000 * HOUR), policy());
        let Rest::Until { until, .. } = Cooldown::answer(Some(&cooldown), at(HOUR), policy()) else {
            panic!("the rest is lost")
        };
        assert_eq!(until, at(7 * HOUR));
    }

    #[test]
    fn during_a_rest_only_other_gaps_are_recovered_unless_the_owner_insists() {
        let rest = Rest::Until { until: at(1), why: REASON, cycles: 1 };
        let attention = Rest::NeedsAttention { why: REASON, cycles: 13 };
        for trigger in [Trigger::Schedule, Trigger::Owner] {
            assert_eq!(Rest::No.permits(trigger, false), Permission::Full);
            assert_eq!(rest.permits(trigger, true), Permission::RecoveryOnly);
            assert_eq!(rest.permits(trigger, false), Permission::Refused);
            assert_eq!(attention.permits(trigger, false), Permission::Refused);
        }
        assert_eq!(attention.permits(Trigger::Schedule, true), Permission::Refused);
        assert_eq!(attention.permits(Trigger::OwnerNow, false), Permission::Full);
    }

    fn run_cap_gap() -> DetailGap {
        DetailGap {
            reason: Some(GapReason::Absence(DeferReason::RequestCap.gap_reason())),
            last_error: Some(LastError::of_class(ErrorClass::RunCapDeferred)),
            ..DetailGap::default()
        }
    }

    fn backlog(gaps: &[DetailGap]) -> PressureBacklog {
        let mut backlog = PressureBacklog::default();
        for gap in gaps {
            backlog.count(&Gap::open(gap, &LeaseId::new("l"), at(7)));
        }
        backlog
    }

    #[test]
    fn a_run_cap_deferral_does_not_arm_the_source_pressure_cooldown() {
        let mut seen = PressureSeen::default();
        seen.gap(run_cap_gap().reason);
        seen.gap(None);
        assert_eq!(seen.reason(), None);
        assert_eq!(backlog(&[run_cap_gap()]).total(), 0);
        // Negative control: pressure does both.
        let pressure = DetailGap { reason: Some(GapReason::Pressure(REASON)), ..DetailGap::default() };
        seen.gap(pressure.reason);
        assert_eq!(seen.reason(), Some(REASON));
        let rollup = backlog(&[pressure, run_cap_gap()]);
        assert_eq!((rollup.total(), rollup.oldest), (1, Some(at(7))));
    }

    #[test]
    fn a_run_cap_deferral_is_distinguishable_from_a_source_pressure_deferral() {
        let cap = run_cap_gap();
        assert_eq!(cap.last_error.as_ref().map(|error| error.class.as_str()), Some("run_cap_deferred"));
        assert_eq!(cap.last_error.as_ref().and_then(|error| error.http_status), None);
        for pressure in PressureReason::ALL {
            assert_ne!(pressure.code(), "run_cap_deferred");
        }
    }

    #[test]
    fn a_bounded_tail_deferral_is_not_source_pressure() {
        // The chunk's gaps and the backlog gap are run-cap deferrals alike.
        let tail = vec![run_cap_gap(); 4];
        assert_eq!(backlog(&tail), PressureBacklog::default());
    }

    #[test]
    fn no_budget_exhaustion_reason_arms_the_source_pressure_cooldown() {
        for defer in DeferReason::ALL {
            let mut seen = PressureSeen::default();
            seen.gap(Some(GapReason::Absence(defer.gap_reason())));
            assert_eq!(seen.reason(), None, "{defer}");
        }
        for reason in AbsenceReason::ALL {
            let mut seen = PressureSeen::default();
            seen.gap(Some(GapReason::Absence(*reason)));
            assert_eq!(seen.reason(), None, "{reason}");
        }
    }

    #[test]
    fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
        let mut seen = PressureSeen::default();
        let error =
            |message: &str| DoneError { message: message.to_owned(), retryable: true, code: None, recovery_hint: None };
        seen.terminal_error(&error("the service said rate_limited"));
        assert_eq!(seen.reason(), None, "a sentence is no evidence");
        seen.terminal_error(&error("ynab_rate_limited"));
        assert_eq!(seen.reason(), Some(REASON));
        seen.terminal_error(&error("boom"));
        assert_eq!(seen.reason(), Some(REASON), "what was seen stays seen");
    }

    #[test]
    fn settled_gaps_are_not_in_the_rollup() {
        let pressure = DetailGap { reason: Some(GapReason::Pressure(REASON)), ..DetailGap::default() };
        let mut gap = Gap::open(&pressure, &LeaseId::new("l"), at(0));
        gap.state = GapState::Recovered;
        let mut rollup = PressureBacklog::default();
        rollup.count(&gap);
        assert_eq!(rollup.total(), 0);
    }
}

//! All rules for the next run of one connection: when, and why.
//!
//! A provider that rate-limited us or seems down gets only a probe of one request now and then. Otherwise a pause
//! that has grown to hours would continue for hours after the provider came back. A run that stopped at its own
//! budget is resumed soon and starts no cooldown.

use crate::facts::{Detained, Facts, LastRun, Span};
use crate::plan::HeldBack;
use gleaner_engine::{BACK_OFF_FROM, BLOCKED_FROM, Cooldown, Permission, Rest, RunPurpose, Trigger, WallTime};
use gleaner_protocol::{PressureReason, RecoveryAction, TerminalReason};
use std::time::Duration;

/// Delay before a run that stopped at its own budget is resumed.
pub const REMAINDER_AFTER: Duration = Duration::from_secs(60);
/// Interval of probes of a provider in cooldown or down. Less than an hour, so that a connection recovers within an
/// hour.
pub const PROBE_EVERY: Duration = Duration::from_secs(40 * 60);
/// Recovery runs alternate with probes, so that each has the same interval.
const TURN: Duration = Duration::from_secs(20 * 60);
/// Delay before the next part of a history.
const CATCH_UP_AFTER: Duration = Duration::from_secs(60);
/// Longest backoff after failures: somebody may have fixed the cause.
const BACK_OFF_MAX: Duration = Duration::from_secs(86_400);
/// Shortest interval that is doubled.
const BACK_OFF_MIN: Duration = Duration::from_secs(5 * 60);
/// An interrupted run is resumed at once; after this many without progress the run itself may be the cause.
const CUT_SHORT_MAX: u32 = 3;
/// New connections start within this time, each at its own moment.
const FIRST_WITHIN_MILLIS: u64 = 30_000;

/// Kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything: gaps first, then forward.
    Full,
    /// Only gaps unrelated to pressure: the provider is in cooldown.
    RecoveryOnly,
    /// One request, to test whether the provider is back.
    Probe,
    /// A part of the history, beside the steady runs.
    CatchUp,
}

/// Reason for the time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The owner requested it.
    OwnerAsked,
    /// It never ran.
    First,
    /// It is scheduled.
    Cadence,
    /// The last run stopped at its own budget and left a remainder.
    Remainder,
    /// The last run was interrupted: its process ended.
    CutShort,
    /// It failed before; holds the consecutive failures.
    FailedBefore(u32),
    /// It failed as if the provider were down; one request tests whether it is back.
    MayBeUp(u32),
    /// The cause of its failure has changed.
    Renewed,
    /// A probe succeeded: the provider is back.
    BackAgain,
    /// The cooldown is over by then.
    RestOver(PressureReason),
    /// It is in cooldown; one request tests whether the provider is back.
    MayBeBack(PressureReason),
    /// It is in cooldown, and gaps unrelated to pressure can be recovered meanwhile.
    OtherGaps(PressureReason),
    /// It is due, but delayed by quiet hours.
    QuietHours,
    /// It is due, but another run uses the connection or account.
    AtWork,
    /// It is due, but starting it failed; holds the consecutive failed starts.
    CouldNotStart(u32),
    /// History remains.
    History,
}

/// Why a connection does not run automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Because of its plan.
    Back(HeldBack),
    /// Until the owner answers a question.
    Question,
    /// Until the owner signs in: it runs automatically only while a session lasts.
    SignIn,
    /// Until the owner does what the last run needed.
    Owner(TerminalReason),
    /// Until the connector's recommended action is done.
    Action(RecoveryAction),
    /// It failed too often in a row; holds the number.
    Blocked(u32),
    /// There is nothing to do.
    NothingToDo,
}

/// The next run of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A run that is due at a time.
    Run {
        /// Time.
        at: WallTime,
        /// Kind of run.
        kind: Kind,
        /// Reason for the time.
        because: Because,
    },
    /// No automatic run.
    Held(Held),
}

impl Next {
    /// The next steady run.
    #[must_use]
    pub fn steady(facts: &Facts, now: WallTime) -> Self {
        if let Some(asked) = facts.asked {
            return detained(facts, of_owner(facts, asked, now));
        }
        if let Some(held) = held(facts, now) {
            return Self::Held(held);
        }
        let next = match Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy) {
            Rest::No => steady_run(facts, now),
            Rest::Until { until, why, .. } => resting(facts, Some(until), why, now),
            Rest::NeedsAttention { why, .. } => resting(facts, None, why, now),
        };
        hushed(facts, detained(facts, next), now)
    }

    /// The next part of the history, if some remains. It waits only for the provider and the quiet hours.
    #[must_use]
    pub fn history(facts: &Facts, now: WallTime) -> Self {
        let rests = Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy) != Rest::No;
        if let Some(held) = held(facts, now) {
            return Self::Held(held);
        }
        // The steady track finds out first whether the connection works.
        if !facts.history_left || facts.last.is_none() || facts.failures.count > 0 || rests {
            return Self::Held(Held::NothingToDo);
        }
        let at = facts.last_catch_up.map_or(now, |last| last.min(now) + CATCH_UP_AFTER);
        let at = at.max(facts.told_until.unwrap_or(at));
        let next = Self::Run { at, kind: Kind::CatchUp, because: Because::History };
        hushed(facts, detained(facts, next), now)
    }
}

fn of_owner(facts: &Facts, asked: WallTime, now: WallTime) -> Next {
    if facts.plan.held_back == Some(HeldBack::Paused) {
        return Next::Held(Held::Back(HeldBack::Paused));
    }
    if facts.grant_is_over {
        return Next::Held(Held::Owner(TerminalReason::GrantExpired));
    }
    let rest = Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy);
    let kind = match rest.permits(Trigger::Owner, facts.other_gaps) {
        Permission::Full => Kind::Full,
        Permission::RecoveryOnly => Kind::RecoveryOnly,
        Permission::Refused => Kind::Probe,
    };
    Next::Run { at: asked.min(now), kind, because: Because::OwnerAsked }
}

fn held(facts: &Facts, now: WallTime) -> Option<Held> {
    if let Some(back) = facts.plan.held_back {
        return Some(Held::Back(back));
    }
    if facts.grant_is_over {
        return Some(Held::Owner(TerminalReason::GrantExpired));
    }
    if facts.question_open {
        return Some(Held::Question);
    }
    if facts.renewed {
        return None;
    }
    if let Some(session) = facts.plan.session {
        let is_signed_in = facts.last_success.is_some_and(|last| session.lasts(last, now));
        if !is_signed_in {
            return Some(Held::SignIn);
        }
    }
    held_by_last_run(facts)
}

fn held_by_last_run(facts: &Facts) -> Option<Held> {
    let last = facts.last?;
    let reason = last.reason;
    // An expired permission was checked before.
    let needs_owner = matches!(
        reason,
        TerminalReason::CredentialsMissing | TerminalReason::CredentialsRefused | TerminalReason::InteractionExpired
    );
    if needs_owner {
        return Some(Held::Owner(reason));
    }
    let failures = facts.failures;
    let needs_something = |action: &RecoveryAction| match action {
        RecoveryAction::RetryOnConnectorUpgrade
        | RecoveryAction::RefreshCredentials
        | RecoveryAction::ManualActionRequired
        | RecoveryAction::UpdateSelector
        | RecoveryAction::NotRetriable => true,
        RecoveryAction::RetryByRuntime | RecoveryAction::UpstreamUnblock | RecoveryAction::Unknown => false,
    };
    if failures.count > 0
        && !failures.may_pass
        && let Some(action) = failures.action.filter(needs_something)
    {
        return Some(Held::Action(action));
    }
    let may_go_on = is_worth_a_probe(facts) || is_back(last);
    (failures.count >= BLOCKED_FROM && !may_go_on).then_some(Held::Blocked(failures.count))
}

/// Whether its failures look like a provider that is down, and no probe has succeeded.
const fn is_worth_a_probe(facts: &Facts) -> bool {
    facts.failures.count > 0 && facts.failures.may_pass && !facts.failures.provider_is_there
}

/// The next run without a cooldown.
fn steady_run(facts: &Facts, now: WallTime) -> Next {
    let run = |at, because| Next::Run { at, kind: Kind::Full, because };
    let Some(last) = facts.last else {
        return run(facts.added.min(now) + own_moment(&facts.connection), Because::First);
    };
    if facts.renewed {
        return run(now, Because::Renewed);
    }
    // A clock that was set back must not make it wait for a time long past.
    let ended = last.ended.min(now);
    let apart = last.began.min(now) + facts.plan.apart;
    let full = facts.last_full.unwrap_or(Span { began: last.began, ended: last.ended });
    let full = Span { began: full.began.min(now), ended: full.ended.min(now) };
    let was_cut_short = facts.handed_over || facts.cut_short > 0;
    if was_cut_short && facts.cut_short < CUT_SHORT_MAX {
        return run(ended, Because::CutShort);
    }
    if is_back(last) {
        return run(ended, Because::BackAgain);
    }
    if facts.failures.count > 0 {
        return after_failures(facts, full, ended, apart);
    }
    if facts.cut_short >= CUT_SHORT_MAX {
        return run(ended + back_off(facts, full.began, facts.cut_short), Because::CutShort);
    }
    if let (Some(why), Some(rest)) = (facts.pushed_back, &facts.cooldown) {
        // It is resumed as soon as possible.
        return run(rest.until.min(cadence(facts, full.began)).max(apart), Because::RestOver(why));
    }
    if facts.remainder {
        return run((ended + REMAINDER_AFTER).max(apart), Because::Remainder);
    }
    run(cadence(facts, full.began).max(apart), Because::Cadence)
}

/// Whether it was a successful probe.
fn is_back(last: LastRun) -> bool {
    last.purpose == RunPurpose::Probe
        && matches!(last.reason, TerminalReason::Succeeded | TerminalReason::BudgetReached)
}

fn cadence(facts: &Facts, began: WallTime) -> WallTime {
    facts.plan.cadence.next(began, &facts.plan.zone).unwrap_or(WallTime::from_unix_millis(u64::MAX))
}

/// The next attempt after failures: on schedule, and less often from the third on. An apparent outage is probed
/// meanwhile, and only probed once the connection is blocked.
fn after_failures(facts: &Facts, Span { began, ended }: Span, last_ended: WallTime, apart: WallTime) -> Next {
    let count = facts.failures.count;
    let (at, because) = if count >= BACK_OFF_FROM {
        (ended + back_off(facts, began, count), Because::FailedBefore(count))
    } else {
        (cadence(facts, began), Because::Cadence)
    };
    let full = Next::Run { at: at.max(apart), kind: Kind::Full, because };
    let probe = (last_ended + PROBE_EVERY).max(apart);
    if is_worth_a_probe(facts) && (probe < at || count >= BLOCKED_FROM) {
        return Next::Run { at: probe, kind: Kind::Probe, because: Because::MayBeUp(count) };
    }
    full
}

fn back_off(facts: &Facts, began: WallTime, times: u32) -> Duration {
    let interval = facts.plan.cadence.length(began, &facts.plan.zone).max(BACK_OFF_MIN);
    let doublings = times.saturating_sub(BACK_OFF_FROM - 1).min(16);
    interval.saturating_mul(1 << doublings).min(BACK_OFF_MAX.max(interval))
}

/// The next run during a cooldown; `until` is `None` when it was rate-limited too often.
fn resting(facts: &Facts, until: Option<WallTime>, why: PressureReason, now: WallTime) -> Next {
    let Next::Run { at, because, .. } = steady_run(facts, now) else { return Next::Held(Held::NothingToDo) };
    let told = facts.told_until.unwrap_or_default();
    let until = until.map(|until| until.max(told));
    let (last, purpose) = match facts.last {
        Some(LastRun { ended, purpose, .. }) => (ended.min(now), purpose),
        None => (now, RunPurpose::Full),
    };
    // Recovery runs alternate with probes. A Retry-After of the provider is kept.
    let recovers = facts.other_gaps && until.is_some();
    let is_turn_of_gaps = recovers && purpose != RunPurpose::RecoveryOnly;
    let turn = (last + if recovers { TURN } else { PROBE_EVERY }).max(told);
    match until {
        // Nothing urgent remains.
        Some(until) if at >= until && facts.pushed_back.is_none() => Next::Run { at, kind: Kind::Full, because },
        Some(until) if until <= turn => Next::Run { at: until, kind: Kind::Full, because: Because::RestOver(why) },
        _ if is_turn_of_gaps => Next::Run { at: turn, kind: Kind::RecoveryOnly, because: Because::OtherGaps(why) },
        Some(_) | None => Next::Run { at: turn, kind: Kind::Probe, because: Because::MayBeBack(why) },
    }
}

/// Waits while another run uses the connection.
fn detained(facts: &Facts, next: Next) -> Next {
    let (Next::Run { at, kind, .. }, Some(detained)) = (next, facts.detained) else { return next };
    if detained.until() <= at {
        return next;
    }
    let because = match detained {
        Detained::AtWork(_) => Because::AtWork,
        Detained::CouldNotStart { times, .. } => Because::CouldNotStart(times),
    };
    Next::Run { at: detained.until(), kind, because }
}

/// Waits for the end of quiet hours, also when late.
fn hushed(facts: &Facts, next: Next, now: WallTime) -> Next {
    let Next::Run { at, kind, .. } = next else { return next };
    let end = facts.plan.quiet.and_then(|quiet| quiet.end_if_quiet(at.max(now), &facts.plan.zone));
    end.map_or(next, |end| Next::Run { at: end, kind, because: Because::QuietHours })
}

/// A moment derived from the name, so that many new connections do not start at once.
fn own_moment(name: &str) -> Duration {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Duration::from_millis(hash % FIRST_WITHIN_MILLIS)
}

#[cfg(test)]
#[path = "next_tests.rs"]
mod tests;

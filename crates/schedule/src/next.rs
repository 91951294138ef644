//! What one connection does next, when, and why: the whole of the rules, without regard to the others.
//!
//! A provider that pushed back is left alone but for a probe now and then, which is one request: otherwise a rest that
//! has grown to hours would go on for hours after the provider came back.

use crate::facts::{Facts, LastRun};
use crate::plan::HeldBack;
use gleaner_engine::{BACK_OFF_FROM, BLOCKED_FROM, Cooldown, Permission, Rest, Trigger, WallTime};
use gleaner_protocol::{PressureReason, TerminalReason};
use std::time::Duration;

/// How soon a run that stopped at its own budget is gone on with.
pub const REMAINDER_AFTER: Duration = Duration::from_secs(60);
/// How often a resting provider is asked with one request. Less than an hour, so that all is well an hour after it is.
pub const PROBE_EVERY: Duration = Duration::from_secs(40 * 60);
/// How soon the next part of a history follows.
const CATCH_UP_AFTER: Duration = Duration::from_secs(60);
/// The longest pause after failures: somebody may have mended it meanwhile.
const BACK_OFF_MAX: Duration = Duration::from_secs(86_400);
/// The shortest interval that is doubled.
const BACK_OFF_MIN: Duration = Duration::from_secs(5 * 60);
/// A new connection begins within this time, each at a moment of its own.
const FIRST_WITHIN_MILLIS: u64 = 30_000;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything: gaps first, then forward.
    Full,
    /// Only gaps that are not pressure: the provider rests.
    RecoveryOnly,
    /// One request, to see whether the provider is back.
    Probe,
    /// A part of the history, beside the steady runs.
    CatchUp,
}

/// Why then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The owner asked.
    OwnerAsked,
    /// It never ran.
    First,
    /// It is time.
    Cadence,
    /// The last run left something at its own budget.
    Remainder,
    /// It failed before, so often in a row.
    FailedBefore(u32),
    /// What made it fail has changed.
    Renewed,
    /// The rest is over by then.
    RestOver(PressureReason),
    /// It rests; one request will show whether the provider is back.
    MayBeBack(PressureReason),
    /// It rests, and gaps that are not pressure can be recovered meanwhile.
    OtherGaps(PressureReason),
    /// It would be time, but for the quiet hours.
    QuietHours,
    /// History is left.
    History,
}

/// Why not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// By the plan.
    Back(HeldBack),
    /// Until the owner has answered.
    Question,
    /// Until the owner has done what the last run needed.
    Owner(TerminalReason),
    /// It failed so often in a row that trying again helps nobody.
    Blocked(u32),
    /// Nothing is to be done.
    NothingToDo,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A run, which is due when that time has come.
    Run {
        /// When.
        at: WallTime,
        /// What for.
        kind: Kind,
        /// Why then.
        because: Because,
    },
    /// None by itself.
    Held(Held),
}

impl Next {
    /// The next steady run.
    #[must_use]
    pub fn of(facts: &Facts, now: WallTime) -> Self {
        if let Some(asked) = facts.asked {
            return of_owner(facts, asked, now);
        }
        if let Some(held) = held(facts) {
            return Self::Held(held);
        }
        let next = steady(facts, now);
        match Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy) {
            Rest::No => hushed(facts, next, now),
            Rest::Until { until, why, .. } => hushed(facts, resting(facts, Some(until), why, next, now), now),
            Rest::NeedsAttention { why, .. } => hushed(facts, resting(facts, None, why, next, now), now),
        }
    }

    /// The next part of the history, if some is left. It waits for nothing but the provider and the hours.
    #[must_use]
    pub fn of_history(facts: &Facts, now: WallTime) -> Self {
        let rests = Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy) != Rest::No;
        if let Some(held) = held(facts) {
            return Self::Held(held);
        }
        // The steady track finds out first whether anything works at all.
        if !facts.history_left || facts.last.is_none() || facts.equal_failures > 0 || rests {
            return Self::Held(Held::NothingToDo);
        }
        let at = facts.last_catch_up.map_or(now, |last| last.min(now) + CATCH_UP_AFTER);
        let at = at.max(facts.told_until.unwrap_or(at));
        hushed(facts, Self::Run { at, kind: Kind::CatchUp, because: Because::History }, now)
    }
}

fn of_owner(facts: &Facts, asked: WallTime, now: WallTime) -> Next {
    if facts.plan.held_back == Some(HeldBack::Paused) {
        return Next::Held(Held::Back(HeldBack::Paused));
    }
    let rest = Cooldown::answer(facts.cooldown.as_ref(), now, facts.cooldown_policy);
    let kind = match rest.permits(Trigger::Owner, facts.other_gaps) {
        Permission::Full => Kind::Full,
        Permission::RecoveryOnly => Kind::RecoveryOnly,
        Permission::Refused => Kind::Probe,
    };
    Next::Run { at: asked.min(now), kind, because: Because::OwnerAsked }
}

fn held(facts: &Facts) -> Option<Held> {
    if let Some(back) = facts.plan.held_back {
        return Some(Held::Back(back));
    }
    if facts.question_open {
        return Some(Held::Question);
    }
    if facts.renewed {
        return None;
    }
    let needs_owner = |reason: &TerminalReason| {
        matches!(
            reason,
            TerminalReason::CredentialsMissing
                | TerminalReason::CredentialsRefused
                | TerminalReason::InteractionExpired
                | TerminalReason::GrantExpired
        )
    };
    if let Some(reason) = facts.last.map(|last| last.reason).filter(needs_owner) {
        return Some(Held::Owner(reason));
    }
    (facts.equal_failures >= BLOCKED_FROM).then_some(Held::Blocked(facts.equal_failures))
}

/// When it would run if the provider had nothing against it.
fn steady(facts: &Facts, now: WallTime) -> Next {
    let run = |at, because| Next::Run { at, kind: Kind::Full, because };
    let Some(last) = facts.last else {
        return run(facts.added.min(now) + own_moment(&facts.connection), Because::First);
    };
    if facts.renewed {
        return run(now, Because::Renewed);
    }
    // A calendar that was set back must not make it wait for a time that is long gone.
    let began = last.began.min(now);
    let ended = last.ended.min(now);
    let apart = began + facts.plan.apart;
    if facts.equal_failures >= BACK_OFF_FROM {
        let at = ended + back_off(facts, began);
        return run(at.max(apart), Because::FailedBefore(facts.equal_failures));
    }
    if facts.remainder && facts.equal_failures == 0 {
        return run((ended + REMAINDER_AFTER).max(apart), Because::Remainder);
    }
    let at = facts.plan.cadence.next(began, &facts.plan.zone).unwrap_or(WallTime::from_unix_millis(u64::MAX));
    run(at.max(apart), Because::Cadence)
}

fn back_off(facts: &Facts, began: WallTime) -> Duration {
    let interval = facts.plan.cadence.length(began, &facts.plan.zone).max(BACK_OFF_MIN);
    let doublings = facts.equal_failures.saturating_sub(BACK_OFF_FROM - 1).min(16);
    interval.saturating_mul(1 << doublings).min(BACK_OFF_MAX.max(interval))
}

/// What is left of it while the provider rests; `until` is nobody's to say when it rested too often.
fn resting(facts: &Facts, until: Option<WallTime>, why: PressureReason, next: Next, now: WallTime) -> Next {
    let Next::Run { at, because, .. } = next else { return next };
    let told = facts.told_until.unwrap_or_default();
    let last = facts.last.map_or(now, |LastRun { ended, .. }| ended.min(now));
    if facts.other_gaps && until.is_some() {
        let at = (last + PROBE_EVERY).max(told);
        return Next::Run { at, kind: Kind::RecoveryOnly, because: Because::OtherGaps(why) };
    }
    let probe = (last + PROBE_EVERY).max(told);
    match until.map(|until| until.max(told)) {
        Some(until) if at >= until => Next::Run { at, kind: Kind::Full, because },
        Some(until) if until <= probe => Next::Run { at: until, kind: Kind::Full, because: Because::RestOver(why) },
        Some(_) | None => Next::Run { at: probe, kind: Kind::Probe, because: Because::MayBeBack(why) },
    }
}

/// Not in the quiet hours, in which also nothing begins that is late.
fn hushed(facts: &Facts, next: Next, now: WallTime) -> Next {
    let Next::Run { at, kind, .. } = next else { return next };
    let end = facts.plan.quiet.and_then(|quiet| quiet.end_if_quiet(at.max(now), &facts.plan.zone));
    end.map_or(next, |end| Next::Run { at: end, kind, because: Because::QuietHours })
}

/// A moment that belongs to this name, so that many new connections do not begin at once.
fn own_moment(name: &str) -> Duration {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Duration::from_millis(hash % FIRST_WITHIN_MILLIS)
}

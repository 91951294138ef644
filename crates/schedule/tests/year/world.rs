//! The world around a scheduler: true time, a wall clock that is set now and then, a machine that sleeps, and runs
//! that end as their providers let them.

use gleaner_engine::{Cooldown, CooldownPolicy, PressureSeen, RunId, RunPurpose, WallTime};
use gleaner_protocol::{DeferReason, GapReason, PressureReason, TerminalReason};
use gleaner_schedule::{
    Cadence, Every, Facts, Failures, Kind, LastRun, Launch, Limits, OwnerWish, Plan, Scheduler, Span,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;
/// 2026-01-01.
pub(crate) const BEGIN: u64 = 1_767_225_600_000;

pub(crate) fn wall(millis: u64) -> WallTime {
    WallTime::from_unix_millis(millis)
}

pub(crate) fn every(millis: u64) -> Cadence {
    Cadence::Every(Every::new(Duration::from_millis(millis)).unwrap())
}

/// A plan that runs by itself.
pub(crate) fn plan(wish: OwnerWish) -> Plan {
    Plan::combine(None, &OwnerWish { mode: Some(gleaner_schedule::Mode::Automatic), ..wish })
}

pub(crate) fn facts(connection: &str, provider: &str, plan: Plan) -> Facts {
    let interval = Some(plan.cadence.length(wall(BEGIN), &plan.zone));
    Facts {
        connection: connection.to_owned(),
        provider: provider.to_owned(),
        account: connection.to_owned(),
        added: wall(BEGIN),
        plan,
        last: None,
        last_full: None,
        pushed_back: None,
        last_success: None,
        failures: Failures::default(),
        cut_short: 0,
        handed_over: false,
        cooldown: None,
        cooldown_policy: CooldownPolicy::of(interval, None),
        told_until: None,
        other_gaps: false,
        remainder: false,
        history_left: false,
        last_catch_up: None,
        question_open: false,
        renewed: false,
        grant_is_over: false,
        asked: None,
        detained: None,
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Success,
    /// The owner's budget was used up.
    Budget,
    /// The connector is broken.
    Failure,
    /// Nobody answers.
    Down,
    Pressure,
}

/// A start, as it is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// In true time.
    pub(crate) at: u64,
    /// On the clock on the wall.
    pub(crate) wall: u64,
    pub(crate) launch: Launch,
    pub(crate) ending: Ending,
}

/// Says how long a run takes and how it ends.
pub(crate) type Provider<'p> = dyn FnMut(&Launch, u64) -> (u64, Ending) + 'p;

pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: u64,
    /// Seconds by which the wall clock is ahead of the true time.
    pub(crate) ahead: i64,
    pub(crate) facts: BTreeMap<String, Facts>,
    pub(crate) started: Vec<Started>,
    running: BTreeSet<(u64, String)>,
    ends: BTreeMap<String, (Launch, Ending, u64)>,
    pub(crate) most_at_once: usize,
}

impl World {
    pub(crate) fn new(limits: Limits, all: Vec<Facts>) -> Self {
        let mut scheduler = Scheduler::new(limits);
        for facts in &all {
            scheduler.learn(facts.clone(), wall(BEGIN));
        }
        let facts = all.into_iter().map(|facts| (facts.connection.clone(), facts)).collect();
        Self {
            scheduler,
            now: BEGIN,
            ahead: 0,
            facts,
            started: Vec::new(),
            running: BTreeSet::new(),
            ends: BTreeMap::new(),
            most_at_once: 0,
        }
    }

    pub(crate) fn wall(&self) -> WallTime {
        wall(self.now.saturating_add_signed(self.ahead))
    }

    /// Goes on until a true time.
    pub(crate) fn live_until(&mut self, end: u64, provider: &mut Provider<'_>) {
        loop {
            self.end_runs();
            while let Some(launch) = self.scheduler.poll(self.wall()) {
                let (takes, ending) = provider(&launch, self.now);
                let started = Started { at: self.now, wall: self.wall().as_unix_millis(), launch, ending };
                self.running.insert((self.now + takes.max(1), started.launch.connection.clone()));
                self.ends.insert(started.launch.connection.clone(), (started.launch.clone(), ending, started.wall));
                self.started.push(started);
                self.most_at_once = self.most_at_once.max(self.running.len());
            }
            let wake = self.scheduler.wake_at(self.wall());
            let wake = wake.map(|wake| wake.as_unix_millis().saturating_add_signed(-self.ahead).max(self.now + 1));
            let run_ends = self.running.first().map(|(at, _)| (*at).max(self.now + 1));
            let next = wake.into_iter().chain(run_ends).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    fn end_runs(&mut self) {
        while let Some((at, _)) = self.running.first()
            && *at <= self.now
        {
            let (_, name) = self.running.pop_first().unwrap();
            let (launch, ending, began) = self.ends.remove(&name).unwrap();
            let now = self.wall();
            let facts = self.facts.get_mut(&name).unwrap();
            let number = RunId::new(began.to_string());
            end(facts, &launch, ending, wall(began), now, &number);
            self.scheduler.ended(&name, now);
            self.scheduler.learn(facts.clone(), now);
        }
    }
}

/// Facts of a store after this run.
fn end(facts: &mut Facts, launch: &Launch, ending: Ending, began: WallTime, now: WallTime, run: &RunId) {
    let reason = match ending {
        Ending::Success | Ending::Budget => TerminalReason::Succeeded,
        Ending::Failure | Ending::Down => TerminalReason::ConnectorFailed,
        Ending::Pressure => TerminalReason::SourceCooldown,
    };
    // A run at its budget leaves a gap, like a rate-limited one. The engine decides what starts a cooldown.
    let mut pressure = PressureSeen::default();
    pressure.gap(match ending {
        Ending::Budget => Some(GapReason::Absence(DeferReason::RequestCap.gap_reason())),
        Ending::Pressure => Some(GapReason::Pressure(PressureReason::UpstreamPressure)),
        Ending::Success | Ending::Failure | Ending::Down => None,
    });
    let purpose = purpose(launch.kind);
    facts.cooldown = match (pressure.reason(), facts.cooldown.take()) {
        (Some(_), Some(before)) if purpose == RunPurpose::Probe => Some(before),
        (Some(why), before) => Some(Cooldown::arm(before.as_ref(), why, run, now, facts.cooldown_policy)),
        (None, before) if reason.is_success() && purpose != RunPurpose::RecoveryOnly => {
            before.map(|rest| rest.lifted(now, facts.cooldown_policy))
        }
        (None, before) => before,
    };
    if launch.kind == Kind::CatchUp {
        facts.last_catch_up = Some(now);
        facts.history_left = ending != Ending::Success;
        return;
    }
    facts.last = Some(LastRun { began, ended: now, reason, purpose });
    if purpose == RunPurpose::Full {
        facts.last_full = Some(Span { began, ended: now });
        facts.pushed_back = pressure.reason();
    }
    facts.last_success = if reason.is_success() { Some(now) } else { facts.last_success };
    facts.remainder = ending == Ending::Budget;
    facts.failures = match (reason, purpose) {
        (TerminalReason::ConnectorFailed, RunPurpose::Probe) => facts.failures,
        (TerminalReason::ConnectorFailed, _) => {
            let may_pass = ending == Ending::Down;
            Failures { count: facts.failures.count + 1, may_pass, ..facts.failures }
        }
        (TerminalReason::Succeeded, RunPurpose::Probe) => Failures { provider_is_there: true, ..facts.failures },
        _ => Failures::default(),
    };
}

const fn purpose(kind: Kind) -> RunPurpose {
    match kind {
        Kind::Full | Kind::CatchUp => RunPurpose::Full,
        Kind::RecoveryOnly => RunPurpose::RecoveryOnly,
        Kind::Probe => RunPurpose::Probe,
    }
}

/// The same numbers on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

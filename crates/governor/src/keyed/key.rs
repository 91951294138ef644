//! One key of many in its two forms: active with full state, idle with the part worth keeping.

use super::active::Active;
use super::config::RegistryRules;
use super::snapshot::Tally;
use crate::admission::state::KeyState;
use crate::law::pace::IdlePace;
use crate::retry::breaker::Breaker;
use crate::retry::circuit::CircuitState;
use crate::time::{Time, WallTime};
use crate::warm_start::Learned;

/// An idle key.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(super) pace: Option<IdlePace>,
    pub(super) breaker: Breaker,
    pub(super) last: Time,
}

/// A key.
#[derive(Debug)]
pub(crate) enum Key {
    Active(Box<Active>),
    Idle(Box<Idle>),
}

impl Key {
    /// A new key.
    pub(crate) fn new(now: Time) -> Self {
        Self::Idle(Box::new(Idle { pace: None, breaker: Breaker::new(), last: now }))
    }

    /// Time of the last send or answer, or of creation.
    pub(crate) const fn last(&self) -> Time {
        match self {
            Self::Active(active) => active.last,
            Self::Idle(idle) => idle.last,
        }
    }

    /// Activates the key.
    pub(crate) fn wake(&mut self, rules: &RegistryRules, now: Time) -> &mut Active {
        if let Self::Idle(idle) = self {
            *self = Self::Active(Box::new(Active::wake(idle, rules, now)));
        }
        match self {
            Self::Active(active) => active,
            Self::Idle(_) => unreachable!("it was just activated"),
        }
    }

    /// Makes a key idle that was not used for the breaker's window, and returns its counts. `None` when it is idle
    /// already or must stay active.
    pub(crate) fn rest(&mut self, rules: &RegistryRules, now: Time) -> Option<Tally> {
        let Self::Active(active) = self else { return None };
        let (idle, tally) = active.rest(rules, now)?;
        *self = Self::Idle(Box::new(idle));
        Some(tally)
    }

    /// Whether the key has a closed gate or an open circuit, which dropping it would lose.
    pub(crate) fn is_closed(&self, now: Time) -> bool {
        let (gate, breaker) = match self {
            Self::Active(active) => (active.state.pace.gate(), &active.state.breaker),
            Self::Idle(idle) => (idle.gate(), &idle.breaker),
        };
        gate > now || breaker.open_until(now).is_some()
    }

    /// A key that starts from a saved record. `None`: the record is dated in the future.
    pub(crate) fn remembering(learned: &Learned, rules: &RegistryRules, now: Time, wall_now: WallTime) -> Option<Self> {
        let mut state = KeyState::new(&rules.key);
        if !state.restore(&rules.key, learned, now, wall_now) {
            return None;
        }
        // Nothing was sent in this process, so every slot of a window is free.
        let pace = Some(state.pace.rest(u64::MAX)?);
        Some(Self::Idle(Box::new(Idle { pace, breaker: Breaker::new(), last: now })))
    }

    /// The learned state to save; `None` when nothing was learned.
    pub(crate) fn learned(&self, rules: &RegistryRules, now: Time, wall_now: WallTime) -> Option<Learned> {
        let mut learned = match self {
            Self::Active(active) => active.state.learned(&rules.key, now, wall_now),
            Self::Idle(idle) if idle.pace.is_none() => None,
            Self::Idle(idle) => idle.state(rules, now).learned(&rules.key, now, wall_now),
        }?;
        learned.recorded_at = wall_now.before(now.since(self.last()));
        let is_news = learned.interval != rules.config.key.discovery_interval
            || learned.gate_until.is_some()
            || learned.shut > 0
            || learned.strikes().next().is_some();
        is_news.then_some(learned)
    }

    /// Whether a request is in flight.
    pub(crate) const fn is_in_flight(&self) -> bool {
        match self {
            Self::Active(active) => active.state.lane.in_flight() > 0,
            Self::Idle(_) => false,
        }
    }

    pub(crate) fn circuit(&self, now: Time) -> CircuitState {
        match self {
            Self::Active(active) => active.state.breaker.state(now),
            Self::Idle(idle) => idle.breaker.state(now),
        }
    }

    /// Returns and resets the counts since it became active.
    pub(crate) fn take_tally(&mut self) -> Tally {
        match self {
            Self::Active(active) => std::mem::take(&mut active.tally),
            Self::Idle(_) => Tally::default(),
        }
    }

    /// Counts since it became active.
    pub(crate) fn tally(&self) -> Tally {
        match self {
            Self::Active(active) => active.tally,
            Self::Idle(_) => Tally::default(),
        }
    }
}

impl Idle {
    fn gate(&self) -> Time {
        self.pace.as_ref().map_or(Time::ZERO, IdlePace::gate)
    }

    /// Rebuilds the state from before it became idle.
    pub(crate) fn state(&self, rules: &RegistryRules, now: Time) -> KeyState {
        KeyState::wake(self.pace.as_ref(), self.breaker, &rules.key, now)
    }
}

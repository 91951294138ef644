//! One key of many, in its two forms: at work with everything, at rest with what is worth keeping.

use super::active::Active;
use super::breaker::Breaker;
use super::config::Rules;
use super::pace::{Pace, RestingPace};
use super::snapshot::Tally;
use crate::retry::circuit::CircuitState;
use crate::time::Time;

/// A key at rest.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(super) pace: Option<RestingPace>,
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
    /// A key of which nothing is known.
    pub(crate) fn new(now: Time) -> Self {
        Self::Idle(Box::new(Idle { pace: None, breaker: Breaker::new(), last: now }))
    }

    /// The last send or answer, or when the key was made.
    pub(crate) const fn last(&self) -> Time {
        match self {
            Self::Active(active) => active.last,
            Self::Idle(idle) => idle.last,
        }
    }

    /// Puts the key to work.
    pub(crate) fn wake(&mut self, rules: &Rules, now: Time) -> &mut Active {
        if let Self::Idle(idle) = self {
            *self = Self::Active(Box::new(Active::wake(idle, rules, now)));
        }
        match self {
            Self::Active(active) => active,
            Self::Idle(_) => unreachable!("it has just been woken"),
        }
    }

    /// Puts a key away that nobody has used for the stats window; what it counted is returned. `None` when it
    /// rests already or has to stay.
    pub(crate) fn rest(&mut self, rules: &Rules, now: Time) -> Option<Tally> {
        let Self::Active(active) = self else { return None };
        let (idle, tally) = active.rest(rules, now)?;
        *self = Self::Idle(Box::new(idle));
        Some(tally)
    }

    /// Whether forgetting the key would forget a gate or an open circuit.
    pub(crate) fn is_closed(&self, now: Time) -> bool {
        let (gate, breaker) = match self {
            Self::Active(active) => (active.pace.gate(), &active.breaker),
            Self::Idle(idle) => (idle.gate(), &idle.breaker),
        };
        gate > now || breaker.open_until(now).is_some()
    }

    /// When an open circuit lets a probe through.
    pub(crate) fn open_until(&self, now: Time) -> Option<Time> {
        match self {
            Self::Active(active) => active.breaker.open_until(now),
            Self::Idle(idle) => idle.breaker.open_until(now),
        }
    }

    /// A key that begins with this pace.
    pub(crate) fn at_rest(pace: &Pace, now: Time) -> Option<Self> {
        // Nothing was sent in this process, so every place of a window is free.
        let pace = Some(pace.rest(u64::MAX)?);
        Some(Self::Idle(Box::new(Idle { pace, breaker: Breaker::new(), last: now })))
    }

    /// Whether a request is on its way.
    pub(crate) const fn is_in_flight(&self) -> bool {
        match self {
            Self::Active(active) => active.lane.in_flight() > 0,
            Self::Idle(_) => false,
        }
    }

    pub(crate) fn circuit(&self, now: Time) -> CircuitState {
        match self {
            Self::Active(active) => active.breaker.state(now),
            Self::Idle(idle) => idle.breaker.state(now),
        }
    }

    /// What was counted since it went to work; counted elsewhere from now on.
    pub(crate) fn take_tally(&mut self) -> Tally {
        match self {
            Self::Active(active) => std::mem::take(&mut active.tally),
            Self::Idle(_) => Tally::default(),
        }
    }

    /// What was counted since it went to work.
    pub(crate) fn tally(&self) -> Tally {
        match self {
            Self::Active(active) => active.tally,
            Self::Idle(_) => Tally::default(),
        }
    }
}

impl Idle {
    fn gate(&self) -> Time {
        self.pace.as_ref().map_or(Time::ZERO, RestingPace::gate)
    }

    /// The pace that it fell asleep with; `None` before its first request.
    pub(crate) fn woken_pace(&self, rules: &Rules, now: Time) -> Option<Pace> {
        self.pace.as_ref().map(|pace| pace.wake(rules, now))
    }
}

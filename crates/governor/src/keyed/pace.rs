//! The pace of one of many keys, by strategy: at work, and at rest.

use super::bucket::Bucket;
use super::config::{Rules, Strategy};
use super::found::{Found, Resting};
use crate::time::{SECOND, Time};

/// The pace of a key at work.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "boxed as a whole, and all keys of a registry are alike")]
pub(crate) enum Pace {
    Found(Found),
    Bucket(Bucket),
}

/// The pace of a key at rest.
#[derive(Clone, Debug)]
pub(crate) enum RestingPace {
    Found(Resting),
    Bucket(Bucket),
}

impl Pace {
    pub(crate) fn new(rules: &Rules) -> Self {
        match rules.config.strategy {
            Strategy::Gleaner => Self::Found(Found::new(rules)),
            Strategy::Aimd(_) | Strategy::Fixed => Self::Bucket(Bucket::new(rules, rules.config.initial_per_s)),
        }
    }

    /// The small form after `idle` nanoseconds; `None` while more than that is needed.
    pub(crate) fn rest(&self, idle: u64) -> Option<RestingPace> {
        Some(match self {
            Self::Found(found) => RestingPace::Found(found.rest(idle)?),
            Self::Bucket(bucket) => RestingPace::Bucket(bucket.clone()),
        })
    }

    pub(crate) fn gate(&self) -> Time {
        match self {
            Self::Found(found) => found.law().gate(),
            Self::Bucket(bucket) => bucket.gate,
        }
    }

    /// Before when nothing is sent, also by another process.
    pub(crate) fn gate_to_remember(&self, rules: &Rules) -> Time {
        match self {
            Self::Found(found) => found.gate_to_remember(rules),
            Self::Bucket(bucket) => bucket.gate,
        }
    }

    /// The interval that is worth remembering, in nanoseconds.
    pub(crate) fn lasting_interval(&self, rules: &Rules) -> u64 {
        match self {
            Self::Found(found) => found.lasting_interval(rules),
            Self::Bucket(_) => self.interval(rules),
        }
    }

    /// When the pace alone allows the next send.
    pub(crate) fn pace_slot(&self, rules: &Rules, now: Time) -> Time {
        match self {
            Self::Found(found) => found.pace_slot(rules),
            Self::Bucket(bucket) => bucket.token_at(rules, now),
        }
    }

    /// Whether a Retry-After was kept and refused again, so that the pace is lowered.
    pub(crate) fn is_told_too_short(&self) -> bool {
        matches!(self, Self::Found(found) if found.law().is_told_too_short())
    }

    pub(crate) fn close_until(&mut self, until: Time) {
        match self {
            Self::Found(found) => found.law_mut().close_until(until),
            Self::Bucket(bucket) => bucket.gate = bucket.gate.max(until),
        }
    }

    /// The present interval in nanoseconds.
    pub(crate) fn interval(&self, rules: &Rules) -> u64 {
        match self {
            Self::Found(found) => found.interval(rules),
            Self::Bucket(bucket) => (SECOND as f64 / bucket.per_s()) as u64,
        }
    }
}

impl RestingPace {
    /// When the key opens.
    pub(crate) const fn gate(&self) -> Time {
        match self {
            Self::Found(resting) => resting.gate(),
            Self::Bucket(bucket) => bucket.gate,
        }
    }

    /// The pace that it fell asleep with.
    pub(crate) fn wake(&self, rules: &Rules, now: Time) -> Pace {
        match self {
            Self::Found(resting) => Pace::Found(Found::wake(resting, rules, now)),
            Self::Bucket(bucket) => Pace::Bucket(bucket.clone()),
        }
    }
}

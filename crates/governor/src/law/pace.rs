//! The pace of one key, by strategy: active, and idle in the small form of a registry.

use super::bucket::Bucket;
use super::gcra::Pacing;
use super::{IdleLaw, Law};
use crate::config::{Rules, Strategy};
use crate::time::Time;

/// The pace of a key in use.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "boxed as a whole, and all keys of a registry are alike")]
// An explicit tag: with the tag in a niche of the law each request would take a dozen more instructions.
#[repr(u8)]
pub(crate) enum Pace {
    /// Pacing is off: no request waits.
    Off,
    Law(LawPace),
    Bucket(Bucket),
}

/// The law, and the time of its last send.
#[derive(Clone, Debug)]
pub(crate) struct LawPace {
    pub(crate) law: Law,
    pub(crate) pacing: Pacing,
}

/// The pace of an idle key.
#[derive(Clone, Debug)]
pub(crate) enum IdlePace {
    Off,
    Law(IdleLaw, Pacing),
    Bucket(Bucket),
}

impl LawPace {
    /// The current interval, limited by `slowest_interval`. The limit does not apply to trials after a Retry-After
    /// that proved too short: they would be refused as long as the provider refuses.
    #[inline]
    pub(crate) fn interval(&self, rules: &Rules) -> u64 {
        let interval = self.law.interval();
        if interval <= rules.slowest || self.law.is_told_too_short() { interval } else { rules.slowest }
    }

    /// When the pace alone allows the next send.
    #[inline]
    pub(crate) fn slot(&self, rules: &Rules) -> Time {
        self.pacing.due(self.interval(rules), rules.fastest, rules.tuning)
    }

    /// The wait before a send ends at the latest of pacing, gate, quota and window, never at their sum.
    #[inline]
    pub(crate) fn next(&self, rules: &Rules, quota: Time, now: Time) -> Time {
        let open = self.slot(rules).max(self.law.gate()).max(quota);
        open.max(self.law.window.due(open.max(now), rules.tuning))
    }
}

impl Pace {
    pub(crate) fn new(rules: &Rules) -> Self {
        match rules.strategy {
            _ if rules.discovery == 0 => Self::Off,
            Strategy::Gleaner => {
                let law = Law::new(rules.discovery, rules.fastest, rules.tuning);
                let law = if rules.conservative { law.conservative() } else { law };
                Self::Law(LawPace { law, pacing: Pacing::new() })
            }
            Strategy::Aimd(_) | Strategy::Fixed => Self::Bucket(Bucket::new(rules, rules.discovery)),
        }
    }

    pub(crate) const fn law(&self) -> Option<&Law> {
        match self {
            Self::Law(pace) => Some(&pace.law),
            Self::Off | Self::Bucket(_) => None,
        }
    }

    pub(crate) const fn law_mut(&mut self) -> Option<&mut Law> {
        match self {
            Self::Law(pace) => Some(&mut pace.law),
            Self::Off | Self::Bucket(_) => None,
        }
    }

    /// The current interval in nanoseconds; 0: not paced.
    #[inline]
    pub(crate) fn interval(&self, rules: &Rules) -> u64 {
        match self {
            Self::Off => 0,
            Self::Law(pace) => pace.interval(rules),
            Self::Bucket(bucket) => bucket.interval(),
        }
    }

    /// The interval to remember.
    pub(crate) fn lasting_interval(&self, rules: &Rules) -> u64 {
        match self {
            Self::Law(pace) => pace.law.lasting_interval().min(rules.slowest),
            Self::Off | Self::Bucket(_) => self.interval(rules),
        }
    }

    /// When the pace alone allows the next send.
    pub(crate) fn slot(&self, rules: &Rules, now: Time) -> Time {
        match self {
            Self::Off => Time::ZERO,
            Self::Law(pace) => pace.slot(rules),
            Self::Bucket(bucket) => bucket.token_at(rules, now),
        }
    }

    /// When pace, gate, window and quota allow the next send, without the in-flight limit.
    pub(crate) fn next(&self, rules: &Rules, quota: Time, now: Time) -> Time {
        match self {
            Self::Off => Time::ZERO,
            Self::Law(pace) => pace.next(rules, quota, now),
            Self::Bucket(bucket) => bucket.token_at(rules, now).max(bucket.gate).max(quota),
        }
    }

    /// Nothing is sent before this time: Retry-After, trials, bans.
    pub(crate) fn gate(&self) -> Time {
        match self {
            Self::Off => Time::ZERO,
            Self::Law(pace) => pace.law.gate(),
            Self::Bucket(bucket) => bucket.gate,
        }
    }

    pub(crate) fn close_until(&mut self, until: Time) {
        match self {
            Self::Off => {}
            Self::Law(pace) => pace.law.close_until(until),
            Self::Bucket(bucket) => bucket.gate = bucket.gate.max(until),
        }
    }

    /// Whether the provider refused again after its Retry-After was kept, so that trials are slower.
    pub(crate) fn is_told_too_short(&self) -> bool {
        self.law().is_some_and(Law::is_told_too_short)
    }

    /// The small form after `idle` nanoseconds; `None` while the full form is needed.
    pub(crate) fn rest(&self, idle: u64) -> Option<IdlePace> {
        Some(match self {
            Self::Off => IdlePace::Off,
            Self::Law(pace) => IdlePace::Law(pace.law.rest(idle)?, pace.pacing.clone()),
            Self::Bucket(bucket) => IdlePace::Bucket(bucket.at_rest()),
        })
    }
}

impl IdlePace {
    /// When the gate opens.
    pub(crate) const fn gate(&self) -> Time {
        match self {
            Self::Off => Time::ZERO,
            Self::Law(rest, _) => rest.gate(),
            Self::Bucket(bucket) => bucket.gate,
        }
    }

    /// Rebuilds the pace from before the key became idle.
    pub(crate) fn wake(&self, rules: &Rules, now: Time) -> Pace {
        match self {
            Self::Off => Pace::Off,
            Self::Law(rest, pacing) => {
                let law = Law::wake(rest, rules.fastest, now, rules.tuning);
                Pace::Law(LawPace { law, pacing: pacing.clone() })
            }
            Self::Bucket(bucket) => Pace::Bucket(bucket.clone()),
        }
    }
}

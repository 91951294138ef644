//! What outlives a key: taking it down, and beginning with it in another process.

use super::bucket::Bucket;
use super::config::{Rules, Strategy};
use super::found::Found;
use super::key::Key;
use super::pace::Pace;
use crate::law::Law;
use crate::signals::retry_after::RETRY_AFTER_MAX;
use crate::time::{Time, WallTime, nanos};
use crate::warm_start::Learned;
use std::borrow::Cow;
use std::time::Duration;

impl Key {
    /// What is worth remembering; `None` when nothing is known, or nothing but the start.
    pub(crate) fn learned(&self, rules: &Rules, now: Time, wall_now: WallTime) -> Option<Learned> {
        let pace = self.pace(rules, now)?;
        let gate = pace.gate_to_remember(rules).max(self.open_until(now).unwrap_or(Time::ZERO));
        let interval = pace.lasting_interval(rules);
        let mut learned = Learned {
            recorded_at: wall_now.before(now.since(self.last())),
            interval: Duration::from_nanos(interval),
            gate_until: (gate > now).then(|| wall_now + gate.since(now)),
            ..Learned::default()
        };
        if let Pace::Found(found) = &*pace {
            let law = found.law();
            learned.limit_per_s = law.limit();
            learned.window = law.window.learned();
            learned.shut = law.shut();
            for at in law.refusals.times() {
                learned.push_strike(wall_now.before(now.since(at)));
            }
        }
        let is_news = interval != rules.discovery
            || learned.gate_until.is_some()
            || learned.shut > 0
            || learned.strikes().next().is_some();
        is_news.then_some(learned)
    }

    /// The pace of a key, at work or at rest; `None` before its first request.
    fn pace(&self, rules: &Rules, now: Time) -> Option<Cow<'_, Pace>> {
        match self {
            Self::Active(active) => Some(Cow::Borrowed(active.pace())),
            Self::Idle(idle) => idle.woken_pace(rules, now).map(Cow::Owned),
        }
    }

    /// A key that begins with what was learned elsewhere. The rate only while it is fresh; gates, bans and
    /// strikes whatever their age. `None`: dated in the future, so nobody's memory.
    pub(crate) fn remembering(learned: &Learned, rules: &Rules, now: Time, wall_now: WallTime) -> Option<Self> {
        if learned.recorded_at > wall_now {
            return None;
        }
        let is_fresh = learned.is_fresh(wall_now);
        let mut pace = match rules.config.strategy {
            Strategy::Gleaner => {
                let mut found = Found::new(rules);
                restore_law(found.law_mut(), learned, is_fresh, now, wall_now);
                Pace::Found(found)
            }
            Strategy::Aimd(_) if is_fresh => Pace::Bucket(Bucket::new(rules, 1.0 / learned.interval.as_secs_f64())),
            Strategy::Aimd(_) | Strategy::Fixed => Pace::Bucket(Bucket::new(rules, rules.config.initial_per_s)),
        };
        if let Some(until) = learned.gate_until.filter(|&until| until > wall_now) {
            pace.close_until(now + until.since(wall_now).min(RETRY_AFTER_MAX));
        }
        Self::at_rest(&pace, now)
    }
}

fn restore_law(law: &mut Law, learned: &Learned, is_fresh: bool, now: Time, wall_now: WallTime) {
    if is_fresh {
        law.restore_rate(nanos(learned.interval), learned.limit_per_s);
        if let Some((limit, length)) = learned.window {
            law.window.restore(limit, nanos(length), now, law.tuning());
        }
    }
    law.restore_shut(learned.shut);
    // Newest first in the record, oldest first in the book.
    let mut strikes: Vec<_> = learned.strikes().filter(|&at| at <= wall_now).collect();
    strikes.reverse();
    for at in strikes {
        law.refusals.restore(nanos(wall_now.since(at)), now, law.tuning());
    }
}

//! What a governor remembers between two runs.
//!
//! A learned rate is worth keeping for hours and dangerous after that, so it has a staleness guard.
//! Gates, bans and strikes are kept until they expire, whatever the age of the rest: a restart must
//! never clear a ban. The text form is one line of `key=value`, so that a person can read it; it
//! holds rates and times and nothing about the account. Text that does not parse is no memory at
//! all, never half of one.

use crate::time::WallTime;
use std::fmt;
use std::time::Duration;

/// How long a learned rate is good for. Providers change limits by the day; six hours bridge the
/// runs of one.
pub const STALE_AFTER: Duration = Duration::from_secs(6 * 3600);
/// Strikes kept.
const STRIKES_KEPT: usize = 6;
/// First word of the text form; the number is its version.
const HEADER: &str = "gleaner-learned-1";
/// Longest text that is read: ten times the longest that is written.
const TEXT_MAX: usize = 4096;

/// What was learned about one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// When this was written down.
    pub recorded_at: WallTime,
    /// The interval in use.
    pub interval: Duration,
    /// The measured limit per second.
    pub limit_per_s: Option<f64>,
    /// The learned window: requests, and its length.
    pub window: Option<(u32, Duration)>,
    /// Nothing is sent before.
    pub gate_until: Option<WallTime>,
    /// Refusals in a row that look like a ban.
    pub shut: u8,
    /// The last refusals, newest first.
    pub(crate) strikes: [Option<WallTime>; STRIKES_KEPT],
}

impl Learned {
    /// The refusals that still count as strikes, newest first.
    pub fn strikes(&self) -> impl Iterator<Item = WallTime> + '_ {
        self.strikes.iter().copied().flatten()
    }

    pub(crate) fn push_strike(&mut self, at: WallTime) {
        if let Some(slot) = self.strikes.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(at);
        }
    }

    /// Whether the learned rate may still be used: neither too old nor from the future.
    #[must_use]
    pub fn is_fresh(&self, wall_now: WallTime) -> bool {
        self.recorded_at <= wall_now && wall_now.since(self.recorded_at) <= STALE_AFTER
    }

    /// Reads the text form. `None` when anything about it is wrong.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_MAX)?;
        let mut words = text.split_ascii_whitespace();
        if words.next()? != HEADER {
            return None;
        }
        let mut learned = Self::default();
        let mut seen_interval = false;
        for word in words {
            let (key, value) = word.split_once('=')?;
            seen_interval |= key == "interval_ns";
            learned.read(key, value)?;
        }
        (seen_interval && !learned.interval.is_zero()).then_some(learned)
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "recorded_at_ms" => self.recorded_at = wall(value)?,
            "interval_ns" => self.interval = Duration::from_nanos(value.parse().ok()?),
            "limit_per_s" => {
                self.limit_per_s = Some(value.parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0)?);
            }
            "window" => {
                let (limit, nanos) = value.split_once('/')?;
                let (limit, nanos): (u32, u64) = (limit.parse().ok()?, nanos.parse().ok()?);
                self.window = (limit > 0 && nanos > 0).then_some((limit, Duration::from_nanos(nanos)));
                self.window?;
            }
            "gate_until_ms" => self.gate_until = Some(wall(value)?),
            "shut" => self.shut = value.parse().ok()?,
            "strike_ms" => self.push_strike(wall(value)?),
            _ => return None,
        }
        Some(())
    }
}

fn wall(value: &str) -> Option<WallTime> {
    value.parse().ok().map(WallTime::from_unix_millis)
}

/// The text form that [`Learned::decode`] reads.
impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEADER} recorded_at_ms={}", self.recorded_at.as_unix_millis())?;
        write!(f, " interval_ns={}", self.interval.as_nanos())?;
        if let Some(limit) = self.limit_per_s {
            write!(f, " limit_per_s={limit}")?;
        }
        if let Some((limit, length)) = self.window {
            write!(f, " window={limit}/{}", length.as_nanos())?;
        }
        if let Some(until) = self.gate_until {
            write!(f, " gate_until_ms={}", until.as_unix_millis())?;
        }
        if self.shut > 0 {
            write!(f, " shut={}", self.shut)?;
        }
        self.strikes().try_for_each(|at| write!(f, " strike_ms={}", at.as_unix_millis()))
    }
}

//! State of a governor that is kept between two runs.
//!
//! A learned rate is useful for hours and dangerous after that, so it expires. Gates, bans and strikes are kept until
//! they end, at any age: a restart must never clear a ban. The text form is one line of `key=value`, readable by
//! people; it holds rates and times and nothing about the account. Text that does not parse is ignored as a whole.

use crate::time::WallTime;
use std::fmt;
use std::time::Duration;

/// Lifetime of a learned rate. Providers change limits by the day; six hours cover the runs of one day.
pub const STALE_AFTER: Duration = Duration::from_secs(6 * 3600);
/// Strikes kept.
const STRIKES_KEPT: usize = 6;
/// First word of the text form; the number is its version.
const HEADER: &str = "gleaner-learned-1";
/// Largest window limit that is accepted: a thousand million requests.
const WINDOW_LIMIT_MAX: u32 = 1_000_000_000;
/// Longest text that is read: ten times the longest that is written.
const TEXT_MAX: usize = 4096;

/// Learned state of one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Time of recording.
    pub recorded_at: WallTime,
    /// The interval in use.
    pub interval: Duration,
    /// The measured limit per second.
    pub limit_per_s: Option<f64>,
    /// The learned window: requests, and its length.
    pub window: Option<(u32, Duration)>,
    /// Nothing is sent before this time.
    pub gate_until: Option<WallTime>,
    /// Refusals in a row that look like a ban.
    pub shut: u8,
    /// Refusal budget of a conservative key; may be negative.
    pub credit: Option<f32>,
    /// The last refusals, newest first.
    pub(crate) strikes: [Option<WallTime>; STRIKES_KEPT],
}

impl Learned {
    /// A record of an interval alone, for callers that keep only that.
    #[must_use]
    pub fn from_interval(interval: Duration, recorded_at: WallTime) -> Self {
        Self { recorded_at, interval, ..Self::default() }
    }

    /// The refusals that still count as strikes, newest first.
    pub fn strikes(&self) -> impl Iterator<Item = WallTime> + '_ {
        self.strikes.iter().copied().flatten()
    }

    pub(crate) fn push_strike(&mut self, at: WallTime) {
        if let Some(slot) = self.strikes.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(at);
        }
    }

    /// The same with the pace of `other`, if that is slower and fresh.
    #[must_use]
    pub fn at_slower_pace(self, other: &Self, wall_now: WallTime) -> Self {
        if !other.is_fresh(wall_now) || other.interval <= self.interval {
            return self;
        }
        Self { interval: other.interval, limit_per_s: other.limit_per_s, window: other.window, ..self }
    }

    /// Whether the learned rate may be used: neither too old nor dated in the future.
    #[must_use]
    pub fn is_fresh(&self, wall_now: WallTime) -> bool {
        self.recorded_at <= wall_now && wall_now.since(self.recorded_at) <= STALE_AFTER
    }

    /// Parses the text form. `None` when anything is wrong with it.
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
                self.window = (limit > 0 && limit <= WINDOW_LIMIT_MAX && nanos > 0)
                    .then_some((limit, Duration::from_nanos(nanos)));
                self.window?;
            }
            "gate_until_ms" => self.gate_until = Some(wall(value)?),
            "shut" => self.shut = value.parse().ok()?,
            "credit" => self.credit = Some(value.parse().ok().filter(|credit: &f32| credit.is_finite())?),
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
        if let Some(credit) = self.credit {
            write!(f, " credit={credit}")?;
        }
        self.strikes().try_for_each(|at| write!(f, " strike_ms={}", at.as_unix_millis()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Learned {
        let mut learned = Learned {
            recorded_at: WallTime::from_unix_millis(1000),
            interval: Duration::from_millis(250),
            limit_per_s: Some(4.5),
            window: Some((60, Duration::from_secs(30))),
            gate_until: Some(WallTime::from_unix_millis(2000)),
            shut: 3,
            credit: Some(-0.5),
            ..Learned::default()
        };
        learned.push_strike(WallTime::from_unix_millis(900));
        learned.push_strike(WallTime::from_unix_millis(800));
        learned
    }

    #[test]
    fn the_text_form_can_be_read_by_a_person_and_by_us() {
        let text = "gleaner-learned-1 recorded_at_ms=1000 interval_ns=250000000 limit_per_s=4.5 \
                    window=60/30000000000 gate_until_ms=2000 shut=3 credit=-0.5 strike_ms=900 strike_ms=800";
        assert_eq!(full().to_string(), text);
        assert_eq!(Learned::decode(text.as_bytes()), Some(full()));
        assert_eq!(
            Learned::decode(format!(" {} \n", text.replace(' ', "\n")).as_bytes()),
            Some(full()),
            "any white space"
        );
    }

    #[test]
    fn text_that_was_cut_off_is_no_memory() {
        let text = full().to_string();
        for end in text.match_indices('=').map(|(index, _)| index + 1).filter(|&end| end < 60) {
            assert_eq!(Learned::decode(&text.as_bytes()[..end]), None, "{}", &text[..end]);
        }
    }

    #[test]
    fn more_than_we_write_is_not_read() {
        let padded = format!("{}{}", full(), " ".repeat(TEXT_MAX));
        assert_eq!(Learned::decode(padded.as_bytes()), None);
    }

    #[test]
    fn no_more_strikes_are_kept_than_there_is_room_for() {
        let mut learned = full();
        (0..20).for_each(|millis| learned.push_strike(WallTime::from_unix_millis(millis)));
        assert_eq!(learned.strikes().count(), STRIKES_KEPT);
        assert_eq!(learned.strikes().next(), Some(WallTime::from_unix_millis(900)), "the newest first");
    }

    #[test]
    fn a_rate_is_fresh_for_six_hours_and_not_before_it_was_written() {
        let fresh = |millis| full().is_fresh(WallTime::from_unix_millis(millis));
        assert!(!fresh(999));
        assert!(fresh(1000));
        assert!(fresh(1000 + 6 * 3_600_000));
        assert!(!fresh(1001 + 6 * 3_600_000));
    }
}

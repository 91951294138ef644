//! What the owner set about a schedule: as it is stored, as it is changed, and as the schedule means it.
//!
//! There is one way to change it, and it checks the whole before anything is kept. What was stored by another version and
//! is no longer understood is left out when it is read, and said: a connection runs as its manifest recommends then.

use gleaner_schedule::{BadCadence, Cadence, Every, Mode, OwnerWish, QuietHours, Zone};
use gleaner_store::{ConnectionState, OwnerSchedule};
use std::time::Duration;

/// Longest texts: more than any pattern or zone has.
const TEXT_BYTES_MAX: usize = 200;

/// Why something cannot be a schedule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingFault {
    /// Two at once.
    #[error("an interval and a cron pattern exclude each other")]
    TwoCadences,
    /// Not understood.
    #[error(transparent)]
    Cadence(#[from] BadCadence),
    /// Longer than anybody would write.
    #[error("a text of a schedule is longer than 200 bytes")]
    TooLong,
}

/// A setting in a change: left as it is, taken back, or set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// As it is.
    #[default]
    Keep,
    /// As the manifest recommends.
    Default,
    /// This.
    Set(T),
}

/// What of a schedule is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleChange {
    /// Whether it runs by itself.
    pub mode: Setting<Mode>,
    /// Once in so long. Takes the place of a pattern.
    pub every: Setting<Duration>,
    /// At the times of a pattern. Takes the place of an interval.
    pub cron: Setting<String>,
    /// Hours in which nothing begins, as `22:00-07:00`.
    pub quiet: Setting<String>,
    /// Whose hours those are, as `Europe/Berlin`.
    pub zone: Setting<String>,
}

impl ScheduleChange {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The schedule after the change.
    ///
    /// # Errors
    ///
    /// When it cannot be one.
    pub fn of(&self, before: &OwnerSchedule) -> Result<OwnerSchedule, SettingFault> {
        if matches!((&self.every, &self.cron), (Setting::Set(_), Setting::Set(_))) {
            return Err(SettingFault::TwoCadences);
        }
        let mut after = before.clone();
        match &self.mode {
            Setting::Keep => {}
            Setting::Default => after.mode = None,
            Setting::Set(mode) => after.mode = stored_mode(*mode).map(str::to_owned).or(after.mode),
        }
        put(&mut after.every, &self.every);
        put(&mut after.cron, &self.cron);
        // The newer of the two counts.
        if matches!(self.every, Setting::Set(_)) {
            after.cron = None;
        }
        if matches!(self.cron, Setting::Set(_)) {
            after.every = None;
        }
        put(&mut after.quiet, &self.quiet);
        put(&mut after.zone, &self.zone);
        let texts = [&after.cron, &after.quiet, &after.zone];
        if texts.into_iter().flatten().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(SettingFault::TooLong);
        }
        wish(&after, ConnectionState::Active)?;
        Ok(after)
    }

    /// Whether it pauses the connection, or ends a pause. Paused is a state of the connection, and `gleaner pause` sets it.
    #[must_use]
    pub const fn pauses(&self) -> Option<bool> {
        match self.mode {
            Setting::Keep => None,
            Setting::Set(Mode::Paused) => Some(true),
            Setting::Set(Mode::Automatic | Mode::Manual) | Setting::Default => Some(false),
        }
    }
}

fn put<T: Clone>(place: &mut Option<T>, setting: &Setting<T>) {
    match setting {
        Setting::Keep => {}
        Setting::Default => *place = None,
        Setting::Set(value) => *place = Some(value.clone()),
    }
}

/// How a mode is stored. What was set before a pause holds again after it.
const fn stored_mode(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Automatic => Some("automatic"),
        Mode::Manual => Some("manual"),
        Mode::Paused => None,
    }
}

/// What the owner wants, as the schedule means it.
///
/// # Errors
///
/// When something of it is not understood.
pub(crate) fn wish(stored: &OwnerSchedule, state: ConnectionState) -> Result<OwnerWish, SettingFault> {
    let mode = match (state, stored.mode.as_deref()) {
        (ConnectionState::Paused | ConnectionState::Removed | ConnectionState::Purging, _) => Some(Mode::Paused),
        (ConnectionState::Active, Some("automatic")) => Some(Mode::Automatic),
        (ConnectionState::Active, Some("manual")) => Some(Mode::Manual),
        (ConnectionState::Active, _) => None,
    };
    let cadence = match (stored.every, &stored.cron) {
        (Some(every), _) => Some(Cadence::Every(Every::new(every)?)),
        (None, Some(pattern)) => Some(Cadence::cron(pattern)?),
        (None, None) => None,
    };
    let quiet = stored.quiet.as_deref().map(QuietHours::parse).transpose()?;
    let zone = stored.zone.as_deref().map(Zone::named).transpose()?;
    Ok(OwnerWish { mode, cadence, quiet, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Setting<String> {
        Setting::Set(text.to_owned())
    }

    #[test]
    fn the_newer_of_an_interval_and_a_pattern_counts() {
        let hourly = ScheduleChange { every: Setting::Set(Duration::from_secs(3600)), ..ScheduleChange::default() };
        let nightly = ScheduleChange { cron: set("0 3 * * *"), ..ScheduleChange::default() };
        let stored = hourly.of(&OwnerSchedule::default()).unwrap();
        let stored = nightly.of(&stored).unwrap();
        assert_eq!((stored.every, stored.cron.as_deref()), (None, Some("0 3 * * *")));
        let stored = hourly.of(&stored).unwrap();
        assert_eq!((stored.every, stored.cron), (Some(Duration::from_secs(3600)), None));
        let both = ScheduleChange { cron: set("0 3 * * *"), ..hourly };
        assert_eq!(both.of(&OwnerSchedule::default()), Err(SettingFault::TwoCadences));
    }

    #[test]
    fn what_cannot_be_one_is_refused_as_a_whole() {
        let refused = |change: ScheduleChange| change.of(&OwnerSchedule::default()).unwrap_err();
        let nothing = ScheduleChange::default;
        assert!(matches!(refused(ScheduleChange { cron: set("soon"), ..nothing() }), SettingFault::Cadence(_)));
        assert!(matches!(refused(ScheduleChange { quiet: set("22"), ..nothing() }), SettingFault::Cadence(_)));
        assert!(matches!(refused(ScheduleChange { zone: set("Mars/Base"), ..nothing() }), SettingFault::Cadence(_)));
        let never = ScheduleChange { every: Setting::Set(Duration::ZERO), ..nothing() };
        assert!(matches!(refused(never), SettingFault::Cadence(_)));
        assert_eq!(refused(ScheduleChange { cron: set(&"*".repeat(500)), ..nothing() }), SettingFault::TooLong);
    }

    #[test]
    fn a_pause_keeps_the_mode_that_was_set_and_is_over_with_another() {
        let manual = ScheduleChange { mode: Setting::Set(Mode::Manual), ..ScheduleChange::default() };
        let paused = ScheduleChange { mode: Setting::Set(Mode::Paused), ..ScheduleChange::default() };
        let stored = paused.of(&manual.of(&OwnerSchedule::default()).unwrap()).unwrap();
        assert_eq!(
            (stored.mode.as_deref(), paused.pauses(), manual.pauses()),
            (Some("manual"), Some(true), Some(false))
        );
        assert_eq!(wish(&stored, ConnectionState::Paused).unwrap().mode, Some(Mode::Paused));
        assert_eq!(wish(&stored, ConnectionState::Active).unwrap().mode, Some(Mode::Manual));
        assert_eq!(ScheduleChange::default().pauses(), None);
    }
}

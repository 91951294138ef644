//! Combines the settings of owner and manifest.
//!
//! The owner decides, with two exceptions: a connector that is not safe in the background does not run there, and
//! nothing runs more often than the manifest allows.

use crate::calendar::{Cadence, Every, QuietHours, Zone};
use gleaner_engine::WallTime;
use gleaner_protocol::{RecommendedMode, RefreshPolicy};
use std::time::Duration;

/// Default: once a day.
const EVERY_DEFAULT: Duration = Duration::from_secs(86_400);

/// Whether a connection runs automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Automatically.
    Automatic,
    /// On request.
    Manual,
    /// Never, not even on request.
    Paused,
}

/// The owner's settings, all optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerWish {
    /// Whether it runs automatically.
    pub mode: Option<Mode>,
    /// How often it runs.
    pub cadence: Option<Cadence>,
    /// Quiet hours.
    pub quiet: Option<QuietHours>,
    /// Time zone of the quiet hours.
    pub zone: Option<Zone>,
}

/// Why a connection does not run automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// The owner paused it.
    Paused,
    /// The owner starts it manually.
    ManualByOwner,
    /// The manifest recommends it, or has no recommendation.
    ManualByManifest,
    /// The manifest says that it must not run unattended.
    NotSafeInTheBackground,
}

/// The plan of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Why it does not run automatically, if so.
    pub held_back: Option<HeldBack>,
    /// How often it runs.
    pub cadence: Cadence,
    /// Minimum time between two runs, whatever the cadence.
    pub apart: Duration,
    /// Quiet hours.
    pub quiet: Option<QuietHours>,
    /// Time zone of the quiet hours.
    pub zone: Zone,
    /// It runs automatically only while the owner's session lasts.
    pub session: Option<Session>,
}

/// The owner's session, which automatic runs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its lifetime after a successful run; `None`: unlimited.
    pub lifetime: Option<Duration>,
}

impl Session {
    /// Whether a session used at `used` is still valid.
    #[must_use]
    pub fn lasts(self, used: WallTime, now: WallTime) -> bool {
        self.lifetime.is_none_or(|lifetime| now < used + lifetime)
    }
}

impl Plan {
    /// The plan of a connection. Without a policy it runs on request.
    #[must_use]
    pub fn combine(policy: Option<&RefreshPolicy>, wish: &OwnerWish) -> Self {
        let seconds = |pick: fn(&RefreshPolicy) -> Option<u64>| policy.and_then(pick).map(Duration::from_secs);
        let recommended = seconds(|policy| policy.recommended_interval_seconds).unwrap_or(EVERY_DEFAULT);
        // Data that counts as stale before the next run would be too late.
        let recommended =
            seconds(|policy| policy.maximum_staleness_seconds).map_or(recommended, |max| max.min(recommended));
        let cadence = wish.cadence.clone().unwrap_or_else(|| Cadence::Every(Every::nearest(recommended)));
        Self {
            held_back: held_back(policy, wish.mode),
            cadence,
            apart: seconds(|policy| policy.minimum_interval_seconds).unwrap_or_default(),
            quiet: wish.quiet,
            zone: wish.zone.clone().unwrap_or(Zone::UTC),
            session: policy
                .filter(|policy| policy.assisted_after_owner_auth == Some(true))
                .map(|policy| Session { lifetime: policy.session_lifetime_seconds.map(Duration::from_secs) }),
        }
    }
}

fn held_back(policy: Option<&RefreshPolicy>, mode: Option<Mode>) -> Option<HeldBack> {
    let is_unsafe = policy.is_some_and(|policy| policy.background_safe == Some(false));
    match mode {
        Some(Mode::Paused) => Some(HeldBack::Paused),
        Some(Mode::Manual) => Some(HeldBack::ManualByOwner),
        Some(Mode::Automatic) | None if is_unsafe => Some(HeldBack::NotSafeInTheBackground),
        Some(Mode::Automatic) => None,
        None => match policy.map(|policy| policy.recommended_mode) {
            Some(RecommendedMode::Automatic) => None,
            Some(RecommendedMode::Manual | RecommendedMode::Paused) | None => Some(HeldBack::ManualByManifest),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: RecommendedMode) -> RefreshPolicy {
        RefreshPolicy {
            recommended_mode: mode,
            rationale: "because".to_owned(),
            recommended_interval_seconds: Some(7200),
            minimum_interval_seconds: Some(600),
            maximum_staleness_seconds: None,
            session_lifetime_seconds: None,
            interaction_posture: None,
            rate_limit_sensitivity: None,
            bot_detection_sensitivity: None,
            background_safe: None,
            assisted_after_owner_auth: None,
            max_cooldown_cycles: None,
            max_recovery_attempts: None,
        }
    }

    fn wish(mode: Mode) -> OwnerWish {
        OwnerWish { mode: Some(mode), ..OwnerWish::default() }
    }

    #[test]
    fn the_owner_has_the_last_word_but_for_what_is_not_safe() {
        let automatic = policy(RecommendedMode::Automatic);
        let manual = policy(RecommendedMode::Manual);
        let risky = RefreshPolicy { background_safe: Some(false), ..automatic.clone() };
        let held = |policy: Option<&RefreshPolicy>, wish: &OwnerWish| Plan::combine(policy, wish).held_back;
        let nothing = OwnerWish::default();
        assert_eq!(held(Some(&automatic), &nothing), None);
        assert_eq!(held(Some(&manual), &nothing), Some(HeldBack::ManualByManifest));
        assert_eq!(held(None, &nothing), Some(HeldBack::ManualByManifest));
        assert_eq!(held(Some(&manual), &wish(Mode::Automatic)), None);
        assert_eq!(held(Some(&automatic), &wish(Mode::Manual)), Some(HeldBack::ManualByOwner));
        assert_eq!(held(Some(&automatic), &wish(Mode::Paused)), Some(HeldBack::Paused));
        assert_eq!(held(Some(&risky), &wish(Mode::Automatic)), Some(HeldBack::NotSafeInTheBackground));
        assert_eq!(held(Some(&risky), &nothing), Some(HeldBack::NotSafeInTheBackground));
    }

    #[test]
    fn the_interval_is_the_owners_or_the_recommended_one_or_a_day() {
        let automatic = policy(RecommendedMode::Automatic);
        let seconds = |policy: Option<&RefreshPolicy>, wish: &OwnerWish| match Plan::combine(policy, wish).cadence {
            Cadence::Every(every) => every.length().as_secs(),
            Cadence::Cron(_) => 0,
        };
        let hourly = Cadence::Every(Every::new(Duration::from_secs(3600)).unwrap());
        let hourly = OwnerWish { cadence: Some(hourly), ..OwnerWish::default() };
        assert_eq!(seconds(Some(&automatic), &OwnerWish::default()), 7200);
        assert_eq!(seconds(Some(&automatic), &hourly), 3600);
        assert_eq!(seconds(None, &OwnerWish::default()), 86_400);
        assert_eq!(Plan::combine(Some(&automatic), &hourly).apart, Duration::from_secs(600));
        let stale_soon = RefreshPolicy { maximum_staleness_seconds: Some(1800), ..automatic };
        assert_eq!(seconds(Some(&stale_soon), &OwnerWish::default()), 1800, "data is never old by plan");
        assert_eq!(seconds(Some(&stale_soon), &hourly), 3600, "unless the owner wants it so");
    }
}

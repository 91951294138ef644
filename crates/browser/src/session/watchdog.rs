//! Watchdog of a sign-in. Pure: the time is an argument.
//!
//! Why progress and not a total timeout: a sign-in with a code and a challenge may take minutes, and one that hangs
//! on its first page should end soon. So the time between two checkpoints is limited. It does not count while the
//! owner is asked. The watchdog ends nothing itself; it reports when the caller should.

use std::time::{Duration, Instant};

/// Default limit without a checkpoint. Real sign-ins have some seconds between two checkpoints; this allows ten times
/// more for a slow line and a busy machine.
pub(super) const WATCHDOG_DEFAULT: Duration = Duration::from_secs(120);

/// Maximum length of a phase name. It is part of a file name.
const PHASE_BYTES_MAX: usize = 48;

/// The owner's limit in milliseconds (`PDPP_SESSION_ESTABLISH_WATCHDOG_MS`). Anything but a whole number above zero
/// is ignored: a typing error must not remove the limit.
pub(super) fn watchdog_limit(setting: Option<&str>) -> Duration {
    let told = setting.and_then(|text| text.trim().parse::<u64>().ok()).filter(|&ms| ms > 0);
    told.map_or(WATCHDOG_DEFAULT, Duration::from_millis)
}

/// The name of a phase: lower case, digits and `_`, valid in a file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phase(String);

impl Phase {
    /// The name, with `_` for invalid characters.
    pub(super) fn new(label: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let name = label.chars().take(PHASE_BYTES_MAX).map(plain).collect::<String>();
        Self(if name.is_empty() { "unnamed".to_owned() } else { name })
    }

    /// The text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Progress is fine. Check again at `again`; `None` while the owner is asked: only an answer changes anything.
    Fine {
        /// Time of the next check.
        again: Option<Instant>,
    },
    /// No progress for too long.
    Tripped {
        /// The last phase.
        last: Phase,
        /// Time since then.
        idle: Duration,
    },
}

/// Watches one sign-in.
#[derive(Clone, Debug)]
pub(super) struct Watchdog {
    limit: Duration,
    /// The last phase.
    pub(super) last: Phase,
    /// Start of the idle time: the last checkpoint, or the owner's last answer if that is later.
    since: Instant,
    is_asking: bool,
}

impl Watchdog {
    /// Starts with a first checkpoint.
    pub(super) const fn new(limit: Duration, phase: Phase, now: Instant) -> Self {
        Self { limit, last: phase, since: now, is_asking: false }
    }

    /// A phase was reached.
    pub(super) fn checkpoint(&mut self, phase: Phase, now: Instant) {
        self.last = phase;
        self.since = now;
    }

    /// Restarts the idle time after our own captures, which do not count.
    pub(super) const fn rearm(&mut self, now: Instant) {
        self.since = now;
    }

    /// A question to the owner is open.
    pub(super) const fn interaction_opened(&mut self) {
        self.is_asking = true;
    }

    /// The question is closed: idle time counts again, from zero.
    pub(super) const fn interaction_closed(&mut self, now: Instant) {
        self.is_asking = false;
        self.since = now;
    }

    /// Checks the progress.
    pub(super) fn look(&self, now: Instant) -> Look {
        if self.is_asking {
            return Look::Fine { again: None };
        }
        let idle = now.saturating_duration_since(self.since);
        if idle < self.limit {
            return Look::Fine { again: Some(self.since + self.limit) };
        }
        Look::Tripped { last: self.last.clone(), idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// A watchdog that began now, and a clock in seconds.
    fn begun() -> (Watchdog, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (Watchdog::new(LIMIT, Phase::new("browser_ready"), start), move |seconds| start + Duration::from_secs(seconds))
    }

    fn is_tripped(dog: &Watchdog, now: Instant) -> bool {
        matches!(dog.look(now), Look::Tripped { .. })
    }

    #[test]
    fn establishment_stalls_with_no_checkpoint_progress() {
        let (mut dog, at) = begun();
        dog.checkpoint(Phase::new("sign_in_form"), at(4));
        assert_eq!(dog.look(at(13)), Look::Fine { again: Some(at(14)) });
        let last = Phase::new("sign_in_form");
        assert_eq!(dog.look(at(14)), Look::Tripped { last, idle: LIMIT });
    }

    #[test]
    fn establishment_is_making_checkpoint_progress() {
        let (mut dog, at) = begun();
        for seconds in (9..1000).step_by(9) {
            assert!(!is_tripped(&dog, at(seconds)), "after {seconds} s, a hundred times the limit in all");
            dog.checkpoint(Phase::new(&format!("step {seconds}")), at(seconds));
        }
    }

    #[test]
    fn establishment_is_blocked_on_an_open_interaction() {
        let (mut dog, at) = begun();
        dog.interaction_opened();
        assert_eq!(dog.look(at(100_000)), Look::Fine { again: None });
        dog.interaction_closed(at(100_000));
        assert_eq!(dog.look(at(100_009)), Look::Fine { again: Some(at(100_010)) }, "the deadline is reset");
        assert!(is_tripped(&dog, at(100_010)), "and holds again");
        assert_eq!(dog.last.as_str(), "browser_ready", "an answer is no checkpoint");
    }

    #[test]
    fn watchdog_deadline_is_configurable() {
        assert_eq!(watchdog_limit(Some(" 2500 ")), Duration::from_millis(2500));
        for unset in [None, Some(""), Some("0"), Some("-5"), Some("1.5"), Some("soon"), Some("99999999999999999999")] {
            assert_eq!(watchdog_limit(unset), Duration::from_secs(120), "{unset:?}");
        }
    }

    #[test]
    fn what_we_take_ourselves_is_not_held_against_it() {
        let (mut dog, at) = begun();
        dog.rearm(at(9));
        assert!(!is_tripped(&dog, at(18)));
        assert!(is_tripped(&dog, at(19)));
        assert_eq!(dog.last.as_str(), "browser_ready");
    }

    #[test]
    fn a_phase_is_a_name_that_a_file_may_have() {
        assert_eq!(Phase::new("Sign-in form/../é").as_str(), "sign_in_form_____");
        assert_eq!(Phase::new("").as_str(), "unnamed");
        assert_eq!(Phase::new(&"x".repeat(500)).as_str().len(), PHASE_BYTES_MAX);
    }
}

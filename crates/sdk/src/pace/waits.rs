//! Reports the waits of a run while they last.
//!
//! Why a separate thread: a connector's code waits inside a request, and nothing else of it runs meanwhile. The
//! thread polls the governor, where all waits before a send happen, and the pauses of a lane. A report is a code and
//! a time. It decides nothing; without it a run is only silent.
//!
//! [`Reports`] decides when to report, and reads no clock.

use crate::clock::{Clock, SystemClock, rfc3339};
use crate::wire::Aside;
use gleaner_engine::Time;
use gleaner_http::SendGovernor;
use gleaner_http::governor::{BackoffReason, WaitReason};
use gleaner_protocol::{ConnectorMessage, Evidence, Progress, Waiting, WaitingReason};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Poll interval of the governor.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Shorter waits are not reported.
const WORTH_SAYING: Duration = Duration::from_secs(1);
/// Interval of repeated reports during a wait.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    until: Time,
    reason: WaitingReason,
}

/// A report about a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Waits(Wait),
    Over,
}

/// Decides when to report.
#[derive(Debug, Default)]
struct Reports {
    /// The last reported wait that is not over.
    said: Option<Wait>,
    /// Time of the last report.
    said_at: Option<Time>,
}

impl Reports {
    /// The report to send now, if any.
    fn poll(&self, now: Time, wait: Option<Wait>) -> Option<Report> {
        let wait = wait.filter(|wait| wait.until > now);
        let passed = |length: Duration| self.said_at.is_none_or(|at| now >= at + length);
        match (self.said, wait) {
            (None, Some(wait)) => {
                (wait.until >= now + WORTH_SAYING && passed(WORTH_SAYING)).then_some(Report::Waits(wait))
            }
            (Some(said), Some(wait)) => {
                let gap = wait.until.as_millis().abs_diff(said.until.as_millis());
                let is_another = Duration::from_millis(gap) >= WORTH_SAYING || wait.reason != said.reason;
                (passed(SAY_EVERY) || (is_another && passed(WORTH_SAYING))).then_some(Report::Waits(wait))
            }
            (Some(_), None) => Some(Report::Over),
            (None, None) => None,
        }
    }

    fn was_said(&mut self, now: Time, report: Report) {
        match report {
            Report::Waits(wait) => (self.said, self.said_at) = (Some(wait), Some(now)),
            Report::Over => self.said = None,
        }
    }
}

/// Waits of a run, shared by all its threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    clock: SystemClock,
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    governor: Option<SendGovernor>,
    /// A pause of the framework itself.
    pause: Option<Wait>,
    is_over: bool,
}

impl Waits {
    /// Sets the governor whose waits are reported.
    pub(crate) fn watch(&self, governor: SendGovernor) {
        self.lock().governor = Some(governor);
    }

    /// Waits with `pause` for an open circuit, and reports it.
    pub(crate) fn while_circuit_is_open<T>(&self, length: Duration, pause: impl FnOnce() -> T) -> T {
        let until = self.0.clock.now() + length;
        self.lock().pause = Some(Wait { until, reason: WaitingReason::Circuit });
        let paused = pause();
        self.lock().pause = None;
        paused
    }

    /// Starts the reporting thread. Without a thread nothing is reported.
    pub(crate) fn tell(&self, aside: Box<dyn Aside>) -> Telling {
        let waits = self.clone();
        let tell = move || waits.tell_until_over(&*aside);
        drop(thread::Builder::new().name("gleaner-waits".to_owned()).spawn(tell));
        Telling(self.clone())
    }

    fn tell_until_over(&self, aside: &dyn Aside) {
        let mut reports = Reports::default();
        let mut known = self.lock();
        while !known.is_over {
            let (now, wait) = (self.0.clock.now(), known.wait(self.0.clock.now()));
            drop(known);
            if let Some(report) = reports.poll(now, wait)
                && aside.say(&self.line(now, report))
            {
                reports.was_said(now, report);
            }
            let waited = self.0.changed.wait_timeout(self.lock(), POLL_INTERVAL);
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn line(&self, now: Time, report: Report) -> Vec<u8> {
        let (message, waiting) = match report {
            Report::Over => ("the wait is over", None),
            Report::Waits(wait) => {
                let left = Duration::from_millis(wait.until.as_millis().saturating_sub(now.as_millis()));
                let until = rfc3339(self.0.clock.wall() + left);
                (wait.reason.because(), Waiting::new(until, wait.reason.code()))
            }
        };
        let progress =
            Progress { message: message.to_owned(), waiting: Evidence::Valid(waiting), ..Progress::default() };
        let mut line = Vec::new();
        ConnectorMessage::Progress(progress).encode(&mut line);
        line
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Each change is one assignment, so a poisoned lock is still consistent.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn wait(&self, now: Time) -> Option<Wait> {
        let of_governor = self.governor.as_ref().and_then(|governor| wait_of(governor, now));
        self.pause.filter(|pause| pause.until > now).or(of_governor)
    }
}

/// The current wait of a governor's callers. Pacing is no wait: requests are sent one after the other.
fn wait_of(governor: &SendGovernor, now: Time) -> Option<Wait> {
    let waiting = governor.waiting().filter(|waiting| waiting.callers > 0);
    let gate = waiting.and_then(|waiting| {
        let remaining = waiting.remaining?;
        let reason = match waiting.reason {
            WaitReason::InFlight => return None,
            // After a refusal trials may be further apart than the reported interval.
            WaitReason::Pacing if remaining < interval(governor) + WORTH_SAYING => return None,
            WaitReason::Pacing | WaitReason::Gate => gate_reason(governor),
            WaitReason::Quota => WaitingReason::Quota,
            WaitReason::Window => WaitingReason::Window,
            WaitReason::Circuit => WaitingReason::Circuit,
        };
        Some(Wait { until: now + remaining, reason })
    });
    gate.or_else(|| {
        let (remaining, is_refusal) = governor.retry_pause()?;
        let reason = if is_refusal { gate_reason(governor) } else { WaitingReason::ServerError };
        Some(Wait { until: now + remaining, reason })
    })
}

/// The reported interval between two sends.
fn interval(governor: &SendGovernor) -> Duration {
    let rate = governor.collection_rate();
    rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(rate.current_interval_ms / 1000.0))
}

/// Why a gate was closed: the last reason for a slowdown.
fn gate_reason(governor: &SendGovernor) -> WaitingReason {
    let last = governor.collection_rate().and_then(|rate| rate.last_backoff);
    match last.map(|last| last.reason) {
        Some(BackoffReason::Throttle) | None => WaitingReason::Throttle,
        Some(BackoffReason::RetryAfter) => WaitingReason::RetryAfter,
        Some(BackoffReason::Latency) => WaitingReason::Latency,
        Some(BackoffReason::Quota) => WaitingReason::Quota,
        Some(BackoffReason::Ban) => WaitingReason::Ban,
    }
}

/// Reports until this is dropped.
#[derive(Debug)]
#[must_use = "nothing is told once this is dropped"]
pub(crate) struct Telling(Waits);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn wait(until: u64) -> Option<Wait> {
        Some(Wait { until: at(until), reason: WaitingReason::RetryAfter })
    }

    #[test]
    fn a_wait_is_said_when_it_begins_every_five_seconds_and_when_it_ends() {
        let mut reports = Reports::default();
        let mut said = Vec::new();
        for now in (0..14_000).step_by(250) {
            if let Some(report) = reports.poll(at(now), wait(12_000).filter(|_| now < 12_000)) {
                reports.was_said(at(now), report);
                said.push((now, report == Report::Over));
            }
        }
        assert_eq!(said, [(0, false), (5_000, false), (10_000, false), (12_000, true)]);
    }

    #[test]
    fn a_short_wait_is_not_said_and_another_one_is() {
        let mut reports = Reports::default();
        assert_eq!(reports.poll(at(0), wait(900)), None);
        let first = reports.poll(at(0), wait(10_000)).unwrap();
        reports.was_said(at(0), first);
        assert_eq!(reports.poll(at(250), wait(10_400)), None, "the same, measured again");
        let longer = reports.poll(at(1_000), wait(60_000));
        assert_eq!(longer, wait(60_000).map(Report::Waits));
        let other = Some(Wait { until: at(10_000), reason: WaitingReason::Circuit });
        assert_eq!(reports.poll(at(1_000), other), other.map(Report::Waits));
    }

    proptest! {
        /// Whatever is waited for: never more than one word a second, and the last word is true.
        #[test]
        fn words_are_few_and_the_last_one_is_true(waits in proptest::collection::vec(
            proptest::option::of(1_u64..60_000), 1..400,
        )) {
            let mut reports = Reports::default();
            let mut last = None;
            for (step, length) in waits.iter().enumerate() {
                let now = step as u64 * 250;
                let wait = length.and_then(|length| wait(now + length));
                if let Some(report) = reports.poll(at(now), wait) {
                    reports.was_said(at(now), report);
                    if report != Report::Over {
                        prop_assert!(last.is_none_or(|before| now >= before + 1_000), "{}", now);
                        last = Some(now);
                    }
                }
                if wait.is_none() {
                    prop_assert!(reports.said.is_none(), "nothing is waited for, and nobody believes otherwise");
                }
            }
        }
    }
}

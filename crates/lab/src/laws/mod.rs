//! The laws that the lab compares, behind one small interface.

mod gleaner;

use crate::provider::{Decision, EPOCH_S, Headers};
use crate::scenario::Scenario;
use crate::sim::Lost;
use gleaner_governor::{Time, WallTime};
use std::time::Duration;

pub use gleaner::Gleaner;

/// The names of the laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawName {
    /// The governor that ships.
    Gleaner,
}

impl LawName {
    /// Every law, ours first.
    pub const ALL: [Self; 1] = [Self::Gleaner];

    /// The name as typed and printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gleaner => "gleaner",
        }
    }
}

/// A fresh law for a scenario.
#[must_use]
pub fn build(name: LawName, scenario: &Scenario) -> Box<dyn Law> {
    match name {
        LawName::Gleaner => Box::new(Gleaner::new(scenario)),
    }
}

/// What a law wants a free worker to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send now.
    Send,
    /// Ask again then; always later than now.
    WaitUntil(Time),
    /// Ask again after the next answer.
    WaitForAnswer,
}

/// A law: decides when to send, and learns from answers.
pub trait Law {
    /// What `worker`, which has nothing in flight, does at `now`. `random` are 64 uniform bits.
    fn poll(&mut self, worker: usize, now: Time, random: u64) -> Step;

    /// The answer to what `worker` sent at `sent_at`.
    fn on_answer(&mut self, worker: usize, sent_at: Time, answer: &Answer, now: Time, random: u64);

    /// The rate that the law believes it is at, where it has one.
    fn rate_per_s(&self) -> Option<f64> {
        None
    }

    /// Whether all workers wait for the same thing; otherwise each has its own delay.
    fn shares_one_queue(&self) -> bool {
        true
    }
}

/// An answer as a client sees it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, or `None` when the connection was reset.
    pub status: Option<u16>,
    /// Whether the lab's classifier, which knows `signal.status` and nothing more, calls it a
    /// throttle.
    pub throttled: bool,
    /// Quota and throttle headers.
    pub headers: Headers,
    decision: Decision,
    lost: bool,
}

impl Answer {
    pub(crate) fn new(decision: Decision, lost: Option<Lost>, headers: Headers, scenario: &Scenario) -> Self {
        let (status, throttled) = match (decision, lost) {
            (Decision::Accepted, None) => (Some(200), false),
            (Decision::Accepted, Some(Lost::ServerError)) => (Some(500), false),
            (Decision::Accepted, Some(Lost::Reset)) => (None, false),
            (Decision::Rejected, _) => (Some(scenario.signal.status), true),
            (Decision::Banned, _) => {
                let status = scenario.penalty.as_ref().map_or(403, |p| p.status);
                (Some(status), status == scenario.signal.status)
            }
        };
        Self { status, throttled, headers, decision, lost: lost.is_some() }
    }

    /// Whether the provider did what was asked.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.decision == Decision::Accepted && !self.lost
    }

    /// Whether the provider refused, because of a limit or of a suspension.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.decision != Decision::Accepted
    }

    /// Retry-After as a client that reads it correctly would, for an answer that arrives at
    /// `now_s`.
    #[must_use]
    pub fn retry_after(&self, now_s: f64) -> Option<Duration> {
        let value = self.headers.iter().find(|(name, _)| *name == "retry-after").map(|(_, value)| value.as_str())?;
        if let Ok(seconds) = value.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let date = httpdate::parse_http_date(value).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let server_now = self.headers.iter().find(|(name, _)| *name == "date");
        let now_epoch = server_now
            .and_then(|(_, value)| httpdate::parse_http_date(value).ok()?.duration_since(std::time::UNIX_EPOCH).ok())
            .map_or(EPOCH_S + now_s, |d| d.as_secs_f64());
        Some(Duration::from_secs_f64((date.as_secs_f64() - now_epoch).max(0.0)))
    }
}

/// The calendar at a point of the simulation.
#[must_use]
pub fn wall(now: Time) -> WallTime {
    WallTime::from_unix_millis((EPOCH_S * 1000.0) as u64 + now.as_nanos() / 1_000_000)
}

//! The laws that the lab compares, behind one small interface.
//!
//! The baselines are other people's rules with their own constants, written again here so that all
//! laws meet the same provider on the same clock. No law here sees more than a client could:
//! statuses, headers, its own clock.

mod aimd;
mod arc;
mod aws;
mod backoff;
mod gleaner;
mod polars;
mod scrapy;
mod typescript;
mod workers;

use self::aimd::Aimd;
use self::arc::Arc;
use self::aws::Aws;
use self::backoff::{Backoff, RetryAfter};
use self::polars::Polars;
use self::scrapy::Scrapy;
use self::typescript::TypeScript;
use crate::provider::{Decision, EPOCH_S, Headers};
use crate::scenario::Scenario;
use crate::sim::{Lost, at};
use gleaner_governor::{Time, Tuning, WallTime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use gleaner::Gleaner;

/// Declares the laws, each with its name as it is typed and printed.
macro_rules! law_names {
    ($($(#[$doc:meta])* $law:ident = $name:literal,)+) => {
        /// The names of the laws.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LawName { $($(#[$doc])* $law,)+ }

        impl LawName {
            /// Every law, ours first.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$law),+];

            /// The name as typed and printed.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$law => $name,)+ }
            }
        }
    };
}

law_names! {
    /// The governor that ships.
    Gleaner = "gleaner",
    /// Exponential backoff with full jitter, nothing else.
    Backoff = "backoff",
    /// The same, but a Retry-After is waited for.
    BackoffRetryAfter = "backoff-retry-after",
    /// AWS SDK adaptive retry mode.
    AwsAdaptive = "aws-adaptive",
    /// Scrapy's AutoThrottle extension.
    ScrapyAutothrottle = "scrapy-autothrottle",
    /// Vector's adaptive request concurrency.
    VectorArc = "vector-arc",
    /// Plain additive increase, multiplicative decrease of the rate.
    Aimd = "aimd",
    /// polars' search, recover, track.
    Polars = "polars",
    /// The law of the TypeScript runtime.
    Typescript = "typescript",
}

impl LawName {
    /// The law of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|law| law.as_str() == name)
    }
}

/// A fresh law for a scenario. The numbers are those of the law `gleaner`; the others have their own.
pub fn build(name: LawName, scenario: &Scenario, tuning: &'static Tuning) -> Box<dyn Law> {
    match name {
        LawName::Gleaner => Box::new(Gleaner::new(scenario, tuning)),
        LawName::Backoff => Box::new(Backoff::new(scenario, RetryAfter::Ignored)),
        LawName::BackoffRetryAfter => Box::new(Backoff::new(scenario, RetryAfter::Honoured)),
        LawName::AwsAdaptive => Box::new(Aws::new(scenario)),
        LawName::ScrapyAutothrottle => Box::new(Scrapy::new()),
        LawName::VectorArc => Box::new(Arc::new(scenario)),
        LawName::Aimd => Box::new(Aimd::new()),
        LawName::Polars => Box::new(Polars::new(scenario)),
        LawName::Typescript => Box::new(TypeScript::new(scenario)),
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
        // A connection that was reset brings no headers either.
        let headers = if status.is_some() { headers } else { Headers::new() };
        Self { status, throttled, headers, decision, lost: lost.is_some() }
    }

    /// Whether the provider did what was asked.
    pub fn is_accepted(&self) -> bool {
        self.decision == Decision::Accepted && !self.lost
    }

    /// Whether the provider refused, because of a limit or of a suspension.
    pub fn is_refused(&self) -> bool {
        self.decision != Decision::Accepted
    }

    /// Retry-After as a client that reads it correctly would, for an answer that arrives at
    /// `now_s`.
    pub fn retry_after(&self, now_s: f64) -> Option<Duration> {
        let value = self.header("retry-after")?;
        if let Ok(seconds) = value.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let date = |text| httpdate::parse_http_date(text).ok().map(epoch_s);
        let server_now = self.header("date").and_then(date).unwrap_or(EPOCH_S + now_s);
        Some(Duration::from_secs_f64((date(value)? - server_now).max(0.0)))
    }

    /// Until when the answer's Retry-After asks everyone to stay away. A date means that very
    /// second, however a client corrects for clocks that differ.
    pub(crate) fn closed_until(&self, arrival: Time) -> Time {
        let Some(value) = self.header("retry-after") else { return Time::ZERO };
        match (value.parse::<u64>(), httpdate::parse_http_date(value)) {
            (Ok(seconds), _) => arrival + Duration::from_secs(seconds),
            (_, Ok(date)) => at(epoch_s(date) - EPOCH_S),
            _ => Time::ZERO,
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }
}

fn epoch_s(date: SystemTime) -> f64 {
    date.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The calendar at a point of the simulation.
pub fn wall(now: Time) -> WallTime {
    WallTime::from_unix_millis((EPOCH_S * 1000.0) as u64 + now.as_nanos() / 1_000_000)
}

#[cfg(test)]
#[path = "laws/examples_tests.rs"]
mod examples;

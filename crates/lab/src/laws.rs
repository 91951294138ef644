//! The laws that the lab compares, behind one small interface.
//!
//! The baselines are rules of other projects with their own constants, reimplemented here so that all laws meet the
//! same provider on the same clock. A law sees no more than a client could: statuses, headers, its own clock.

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
    /// The same, but honors Retry-After.
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

/// Instruction of a law for a free worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send now.
    Send,
    /// Ask again at this time; always later than now.
    WaitUntil(Time),
    /// Ask again after the next answer.
    WaitForAnswer,
}

/// A law: decides when to send, and learns from answers.
pub trait Law {
    /// The next step of `worker`, which has nothing in flight, at `now`. `random` are 64 uniform bits.
    fn poll(&mut self, worker: usize, now: Time, random: u64) -> Step;

    /// The answer to the request that `worker` sent at `sent_at`.
    fn on_answer(&mut self, worker: usize, sent_at: Time, answer: &Answer, now: Time, random: u64);

    /// The law's estimate of its own rate, if it has one.
    fn rate_per_s(&self) -> Option<f64> {
        None
    }

    /// Whether all workers share one queue; otherwise each has its own delay.
    fn shares_one_queue(&self) -> bool {
        true
    }
}

/// An answer as a client sees it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, or `None` when the connection was reset.
    pub status: Option<u16>,
    /// Whether the lab's classifier, which knows only `signal.status`, calls it a throttle.
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
        // A reset connection has no headers.
        let headers = if status.is_some() { headers } else { Headers::new() };
        Self { status, throttled, headers, decision, lost: lost.is_some() }
    }

    /// Whether the provider accepted the request.
    pub fn is_accepted(&self) -> bool {
        self.decision == Decision::Accepted && !self.lost
    }

    /// Whether the provider refused because of a limit or a suspension.
    pub fn is_refused(&self) -> bool {
        self.decision != Decision::Accepted
    }

    /// Retry-After as a correct client reads it, for an answer that arrives at `now_s`.
    pub fn retry_after(&self, now_s: f64) -> Option<Duration> {
        let value = self.header("retry-after")?;
        if let Ok(seconds) = value.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let date = |text| httpdate::parse_http_date(text).ok().map(epoch_s);
        let server_now = self.header("date").and_then(date).unwrap_or(EPOCH_S + now_s);
        Some(Duration::from_secs_f64((date(value)? - server_now).max(0.0)))
    }

    /// End of the answer's Retry-After. A date means that exact second, whatever a client does about different
    /// clocks.
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

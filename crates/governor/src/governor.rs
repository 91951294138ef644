//! Prototype facade.
#![allow(missing_docs, reason = "prototype")]

use crate::config::Config;
use crate::law::Law;
use crate::outcome::{Outcome, Verdict};
use crate::pacing::Pacing;
use crate::quota::{QuotaAdvice, QuotaBook};
use crate::time::{SECOND, Time, nanos};

#[must_use]
#[derive(Debug)]
pub struct Permit {
    sent_at: Time,
    seq: u32,
    on_time: bool,
    trial: bool,
}

#[derive(Debug)]
pub enum Admission {
    Send(Permit),
    WaitUntil(Time),
    WaitForOutcome,
}

#[derive(Debug)]
pub struct Governor {
    config: Config,
    fastest: u64,
    pacing: Pacing,
    law: Law,
    quotas: QuotaBook,
    sent: u32,
    in_flight: u32,
    trial_in_flight: bool,
}

impl Governor {
    pub fn with(config: Config) -> Self {
        let fastest = nanos(config.ceiling_interval);
        let law = Law::new(nanos(config.discovery_interval), fastest);
        Self {
            config,
            fastest,
            pacing: Pacing::new(),
            law,
            quotas: QuotaBook::default(),
            sent: 0,
            in_flight: 0,
            trial_in_flight: false,
        }
    }

    pub fn rate(&self) -> f64 {
        self.law.rate()
    }

    pub fn debug(&self) -> String {
        format!("{:?} limit {:.3} rate {:.3}", self.law.mode, self.law.limit, self.law.rate())
    }

    pub fn poll_admit(&mut self, now: Time) -> Admission {
        if self.in_flight >= u32::from(self.config.max_concurrency) {
            return Admission::WaitForOutcome;
        }
        let trial = self.law.in_trial();
        if trial && self.trial_in_flight {
            return Admission::WaitForOutcome;
        }
        let mut due = self.pacing.due(self.law.interval, self.fastest).max(self.law.gate);
        match self.quotas.advice(self.sent, now, self.in_flight > 0) {
            QuotaAdvice::Open => {}
            QuotaAdvice::ClosedUntil(at) => due = due.max(at),
            QuotaAdvice::WaitForAnswer => return Admission::WaitForOutcome,
            QuotaAdvice::Exhausted => {}
        }
        if due > now {
            return Admission::WaitUntil(due);
        }
        let late = now.nanos_since(due);
        let on_time = late <= self.law.interval / 4 + SECOND / 1000;
        self.pacing.on_send(now, self.law.interval);
        self.sent = self.sent.wrapping_add(1);
        self.in_flight += 1;
        self.trial_in_flight |= trial;
        self.law.on_sent(now);
        Admission::Send(Permit { sent_at: now, seq: self.sent, on_time, trial })
    }

    pub fn on_outcome(&mut self, permit: Permit, outcome: &Outcome, now: Time) {
        self.in_flight -= 1;
        if permit.trial {
            self.trial_in_flight = false;
        }
        self.quotas.on_answer(&outcome.quotas, permit.seq, now);
        match outcome.verdict {
            Verdict::Success => self.law.on_success(permit.sent_at, now, permit.on_time),
            Verdict::Throttled => {
                let wait = outcome.retry_after.map(nanos).filter(|w| *w > 0);
                self.law.on_throttle(permit.sent_at, now, wait);
            }
            _ => {}
        }
    }
}

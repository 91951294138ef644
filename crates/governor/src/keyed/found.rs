//! The strategy `gleaner` for one of many keys: the law, its pacing and its lane, and nothing else.
//!
//! The same decisions as [`Governor`](crate::Governor) makes, without what a single key has room for: quota
//! headers, a run budget, evidence of transitions. Retry-After is obeyed as there.

use super::config::Rules;
use super::express::{Batch, Terms};
use crate::admission::lane::Lane;
use crate::law::pacing::Pacing;
use crate::law::{Accepted, Law, Ordinary, Refusal, Rest};
use crate::signals::outcome::Verdict;
use crate::time::Time;

/// A law at work.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    law: Law,
    pacing: Pacing,
    /// Sends so far, wrapping.
    sent: u32,
    /// A request that tries whether the provider is open again is on its way.
    is_trial_out: bool,
}

/// A law at rest.
#[derive(Clone, Debug)]
pub(crate) struct Resting {
    law: Rest,
    pacing: Pacing,
}

/// How a request was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) sent_at: Time,
    pub(crate) seq: u32,
    /// Others in flight.
    pub(crate) others: u16,
    pub(crate) trial: bool,
    pub(crate) early: bool,
}

/// When the next send is due, and what kind of send it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) at: Time,
    trial: bool,
    early: bool,
}

impl Found {
    pub(crate) fn new(rules: &Rules) -> Self {
        let law = Law::new(rules.discovery, rules.fastest, rules.config.tuning);
        Self { law, pacing: Pacing::new(), sent: 0, is_trial_out: false }
    }

    pub(crate) fn law(&self) -> &Law {
        &self.law
    }

    pub(crate) fn law_mut(&mut self) -> &mut Law {
        &mut self.law
    }

    /// The present interval; the owner's floor bounds what the law may ask for. It does not bound the tries after
    /// directives that proved too short: those would be refused for as long as the host refuses.
    pub(crate) fn interval(&self, rules: &Rules) -> u64 {
        if self.law.is_told_too_short() { self.law.interval() } else { self.law.interval().min(rules.slowest) }
    }

    /// The interval that is worth remembering.
    pub(crate) fn lasting_interval(&self, rules: &Rules) -> u64 {
        self.law.lasting_interval().min(rules.slowest)
    }

    /// When the pace alone allows the next send.
    pub(crate) fn pace_slot(&self, rules: &Rules) -> Time {
        self.pacing.due(self.interval(rules), rules.fastest, self.law.tuning())
    }

    /// Before when nothing is sent, also by another process: the gate, and the next try after directives that proved
    /// too short.
    pub(crate) fn gate_to_remember(&self, rules: &Rules) -> Time {
        let gate = self.law.gate();
        if self.law.is_told_too_short() { gate.max(self.pace_slot(rules)) } else { gate }
    }

    /// When pace and gate allow the next send, whatever is in flight.
    pub(crate) fn next(&self, rules: &Rules, now: Time) -> Time {
        let open = self.pace_slot(rules).max(self.law.gate());
        open.max(self.law.window.due(open.max(now), self.law.tuning()))
    }

    /// When the next send is due. `None`: after an answer.
    #[inline]
    pub(crate) fn due(&self, rules: &Rules, in_flight: u16, now: Time) -> Option<Due> {
        let is_stalled = in_flight > 0 && (self.law.is_shut() || u32::from(in_flight) >= self.law.in_flight_max());
        let trial = self.law.is_trying();
        if is_stalled || (trial && self.is_trial_out) {
            return None;
        }
        let at = self.next(rules, now);
        let early = self.law.window.is_early(at.max(now));
        if early && self.law.window.is_testing() {
            return None;
        }
        Some(Due { at, trial, early })
    }

    #[inline]
    pub(crate) fn on_send(&mut self, rules: &Rules, due: Option<Due>, others: u16, now: Time) -> Sending {
        let interval = self.interval(rules);
        let (trial, early) = due.map_or((false, false), |due| (due.trial, due.early));
        self.pacing.on_send(now, interval);
        self.sent = self.sent.wrapping_add(1);
        self.is_trial_out |= trial;
        self.law.on_send(now, early);
        Sending { sent_at: now, seq: self.sent, others, trial, early }
    }

    /// The terms under which ordinary requests need not be told one by one; `None` while each matters.
    pub(crate) fn terms(&self, rules: &Rules, lane: &Lane, generation: u16, now: Time) -> Option<Terms> {
        let answers_max = self.law.patience()?;
        let interval = self.interval(rules);
        if !lane.is_wide() || self.law.gate() > now {
            return None;
        }
        let tuning = self.law.tuning();
        let stalls_at = u16::try_from(self.law.in_flight_max()).unwrap_or(u16::MAX);
        Some(Terms {
            due: self.pacing.due(interval, rules.fastest, tuning),
            interval,
            gap: Pacing::gap(interval, rules.fastest, tuning),
            until: now.plus(rules.bucket.min(tuning.batch_max)),
            since: self.law.since(),
            late: self.law.late_after(),
            generation,
            seq: self.sent,
            in_flight: lane.in_flight(),
            in_flight_max: stalls_at.min(lane.limit()),
            answers_max,
        })
    }

    /// Takes in what was not told one by one; `latency` is the mean of its answers in nanoseconds.
    pub(crate) fn on_batch(&mut self, rules: &Rules, batch: &Batch, latency: u64, now: Time) {
        let (interval, tuning) = (self.interval(rules), self.law.tuning());
        if batch.sends > 0 {
            self.pacing.resume(batch.due, interval, rules.fastest, tuning);
            self.sent = self.sent.wrapping_add(u32::from(batch.sends));
        }
        let last_send = batch.due.minus(Pacing::gap(interval, rules.fastest, tuning)).min(now);
        let Batch { sends, answers, .. } = *batch;
        self.law.on_ordinary(&Ordinary { sends, last_send, interval, answers, latency }, now);
    }

    pub(crate) fn on_cancel(&mut self, rules: &Rules, sending: &Sending) {
        self.is_trial_out &= !sending.trial;
        self.law.on_cancel(sending.early);
        if sending.seq == self.sent {
            self.pacing.refund(self.interval(rules));
        }
    }

    pub(crate) fn on_abandon(&mut self, sending: &Sending) {
        self.is_trial_out &= !sending.trial;
        self.law.on_lost(sending.early);
    }

    /// Takes in an answer; true when it is the first of its burst to say "too fast".
    #[inline]
    pub(crate) fn on_answer(
        &mut self,
        sending: &Sending,
        verdict: Verdict,
        retry_after: Option<u64>,
        lane: &mut Lane,
        now: Time,
    ) -> bool {
        self.is_trial_out &= !sending.trial;
        if verdict != Verdict::Success {
            return self.on_failure(sending, verdict, retry_after, lane, now);
        }
        let law = &mut self.law;
        lane.on_accepted(sending.others, law.tuning(), || law.may_risk(now));
        law.on_success(Accepted { seq: sending.seq, sent_at: sending.sent_at, early: sending.early }, now);
        false
    }

    #[cold]
    fn on_failure(
        &mut self,
        sending: &Sending,
        verdict: Verdict,
        retry_after: Option<u64>,
        lane: &mut Lane,
        now: Time,
    ) -> bool {
        let &Sending { sent_at, seq, others, early, .. } = sending;
        if verdict == Verdict::Throttled {
            let company = lane.on_refused(others, self.law.tuning());
            return self.law.on_throttle(Refusal { seq, sent_at, retry_after, early, company }, now);
        }
        self.law.on_lost(early);
        if matches!(verdict, Verdict::Forbidden | Verdict::Banned) {
            self.law.on_forbidden(verdict == Verdict::Banned, retry_after.is_some(), now);
        }
        false
    }

    /// The small form; `None` while more than that is needed.
    pub(crate) fn rest(&self, idle: u64) -> Option<Resting> {
        Some(Resting { law: self.law.rest(idle)?, pacing: self.pacing.clone() })
    }

    pub(crate) fn wake(resting: &Resting, rules: &Rules, now: Time) -> Self {
        Self {
            law: Law::wake(&resting.law, rules.fastest, now, rules.config.tuning),
            pacing: resting.pacing.clone(),
            sent: 0,
            is_trial_out: false,
        }
    }
}

impl Resting {
    pub(crate) const fn gate(&self) -> Time {
        self.law.gate()
    }
}

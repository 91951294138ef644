//! Prototype of the law.

use crate::time::{SECOND, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Search,
    Climb,
    Hold,
    Probe,
}

#[derive(Clone, Debug)]
struct Episode {
    contact: Time,
    rate: f64,
    count: u32,
    trials: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Law {
    fastest: u64,
    slowest: u64,
    pub(crate) interval: u64,
    pub(crate) mode: Mode,
    pub(crate) limit: f64,
    since: Time,
    successes: u32,
    count: u32,
    last_ref: Option<Time>,
    last_ok: Option<Time>,
    episode: Option<Episode>,
    cut_at: Time,
    pub(crate) gate: Time,
    hold_s: f64,
    tau_s: f64,
    refusals: Refusals,
    base_latency: f64,
    short_latency: f64,
    samples: u32,
    inflated: u32,
}

#[derive(Clone, Debug, Default)]
struct Refusals {
    times: [Time; 6],
    len: u8,
    budget: f32,
    loan: f32,
}

const STRIKE_SPAN: u64 = 600 * SECOND;

impl Refusals {
    fn new() -> Self {
        Self { budget: 6.0, loan: 6.0, ..Self::default() }
    }
    fn note(&mut self, now: Time) {
        self.times.rotate_right(1);
        self.times[0] = now;
        self.len = (self.len + 1).min(6);
        self.budget -= 1.0;
    }
    fn accepted(&mut self) {
        let credit = 0.0028;
        if self.loan > 0.0 {
            self.loan -= credit;
        } else {
            self.budget = (self.budget + credit).min(6.0);
        }
    }
    fn recent(&self, now: Time) -> usize {
        self.times[..self.len as usize].iter().filter(|t| now.nanos_since(**t) < STRIKE_SPAN).count()
    }
}

const LADDER: [f64; 13] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0];

impl Law {
    pub(crate) fn new(discovery: u64, fastest: u64) -> Self {
        Self {
            fastest,
            slowest: 3600 * SECOND,
            interval: discovery.max(fastest),
            mode: Mode::Search,
            limit: 0.0,
            since: Time::ZERO,
            successes: 0,
            count: 0,
            last_ref: None,
            last_ok: None,
            episode: None,
            cut_at: Time::ZERO,
            gate: Time::ZERO,
            hold_s: 60.0,
            tau_s: 1.0,
            refusals: Refusals::new(),
            base_latency: 0.0,
            short_latency: 0.0,
            samples: 0,
            inflated: 0,
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        1e9 / self.interval as f64
    }

    pub(crate) fn in_trial(&self) -> bool {
        self.episode.is_some()
    }

    fn set_rate(&mut self, rate: f64) {
        self.interval = ((1e9 / rate.max(1e-9)) as u64).clamp(self.fastest, self.slowest);
    }

    pub(crate) fn on_sent(&mut self, now: Time) {
        if self.last_ok.is_none() {
            self.last_ok = Some(now);
            self.since = now;
        }
        self.count += 1;
    }

    fn margin(&self, now: Time) -> f64 {
        match self.refusals.recent(now) {
            0..=2 => 0.015,
            3 => 0.03,
            4 => 0.08,
            _ => 0.2,
        }
    }

    fn enter(&mut self, mode: Mode, now: Time) {
        self.mode = mode;
        self.since = now;
        self.successes = 0;
    }

    pub(crate) fn on_success(&mut self, sent_at: Time, now: Time, on_time: bool) {
        self.refusals.accepted();
        if self.episode.is_some() {
            if sent_at >= self.cut_at {
                self.close(sent_at, now);
            }
            return;
        }
        if !on_time || sent_at < self.since {
            return;
        }
        self.successes += 1;
        let rate = self.rate();
        let elapsed = now.nanos_since(self.since) as f64 / 1e9;
        match self.mode {
            Mode::Search => {
                if f64::from(self.successes) >= (1.5 * rate).max(6.0) {
                    self.set_rate(rate * 2.0);
                    self.enter(Mode::Search, now);
                }
            }
            Mode::Climb => self.climb(0.04, now, elapsed),
            Mode::Hold => {
                let target = self.limit * (1.0 - self.margin(now));
                if target > rate {
                    self.set_rate(target);
                }
                if elapsed >= self.hold_s
                    && self.refusals.budget >= 2.0
                    && self.refusals.recent(now) <= 2
                    && self.successes >= 20
                {
                    self.enter(Mode::Probe, now);
                }
            }
            Mode::Probe => self.climb(0.02, now, elapsed),
        }
    }

    fn climb(&mut self, step: f64, now: Time, elapsed: f64) {
        let rate = self.rate();
        let tau = self.tau_s.max(2.0 / rate);
        if elapsed < tau || self.successes < 2 {
            return;
        }
        if self.mode == Mode::Climb && self.refusals.recent(now) >= 4 {
            return;
        }
        let proven = f64::from(self.count.saturating_sub(4))
            / (now.nanos_since(self.last_ok.unwrap_or(now)) as f64 / 1e9).max(1e-9);
        if self.mode == Mode::Probe && proven > 1.03 * self.limit && rate > 1.15 * self.limit {
            self.limit = 0.0;
            self.hold_s = 60.0;
            self.set_rate(rate * 1.3);
            return self.enter(Mode::Search, now);
        }
        self.set_rate(rate * (1.0 + step));
        self.enter(self.mode, now);
    }

    pub(crate) fn on_throttle(&mut self, sent_at: Time, now: Time, retry_after: Option<u64>) {
        self.refusals.note(now);
        self.count = self.count.saturating_sub(1);
        if let Some(wait) = retry_after {
            self.gate = self.gate.max(now.plus(wait));
        }
        if sent_at < self.cut_at {
            if let Some(episode) = &mut self.episode {
                episode.count = episode.count.saturating_sub(1);
            }
            return;
        }
        self.cut_at = now;
        let rate = self.rate();
        match &mut self.episode {
            None => {
                self.episode = Some(Episode { contact: sent_at, rate, count: self.count, trials: 0 });
                self.set_rate(rate * 0.7);
                self.gate = self.gate.max(now.plus(self.interval));
            }
            Some(episode) => {
                episode.trials = episode.trials.saturating_add(1);
                let (contact, first) = (episode.contact, self.last_ok.unwrap_or(episode.contact));
                self.set_rate(rate * 0.9);
                let waited = now.nanos_since(contact) as f64 / 1e9;
                let total = contact.nanos_since(first) as f64 / 1e9 + 4.0 * waited.max(0.1);
                let rung = LADDER.iter().copied().find(|r| *r >= total).unwrap_or(total);
                self.gate = self.gate.max(first.plus((rung * 1e9) as u64 + 50_000_000)).max(now.plus(self.interval));
            }
        }
    }

    fn close(&mut self, sent_at: Time, now: Time) {
        let Some(episode) = self.episode.take() else { return };
        let accepted = f64::from(episode.count);
        let lasted = sent_at.nanos_since(episode.contact) as f64 / 1e9;
        let since_ok = sent_at.nanos_since(self.last_ok.unwrap_or(sent_at)) as f64 / 1e9;
        let by_ok = accepted / since_ok.max(1e-9);
        let by_ref =
            self.last_ref.map_or(0.0, |at| accepted / (episode.contact.nanos_since(at) as f64 / 1e9).max(1e-9));
        let first = self.last_ref.is_none();
        let estimate = by_ok.max(by_ref).min(episode.rate);
        self.last_ref = Some(episode.contact);
        self.last_ok = Some(sent_at);
        self.count = 1;
        self.tau_s = (lasted / 2.0).clamp(1.0, 60.0);
        let windowed = episode.trials > 0 || lasted * episode.rate > 16.0;
        if first || self.limit == 0.0 {
            let start = if windowed { by_ok.min(0.5 * episode.rate) } else { 0.45 * episode.rate };
            self.limit = if first { start / 0.9 } else { estimate };
            self.set_rate(start);
            self.enter(Mode::Climb, now);
        } else if accepted < 8.0 && !windowed {
            let upper =
                (accepted + 1.0) / (episode.contact.nanos_since(self.last_ref.unwrap_or(now)) as f64 / 1e9).max(1e-9);
            self.limit = self.limit.min(episode.rate) * 0.75;
            let _ = upper;
            self.set_rate(self.limit * 0.8);
            self.enter(Mode::Climb, now);
        } else if estimate > 0.85 * episode.rate || (estimate / self.limit - 1.0).abs() < 0.08 {
            self.hold_s =
                if (estimate / self.limit - 1.0).abs() < 0.05 { (self.hold_s * 2.0).min(480.0) } else { 60.0 };
            self.limit = estimate;
            self.set_rate(estimate * (1.0 - self.margin(now)));
            self.enter(Mode::Hold, now);
        } else {
            self.limit = estimate;
            self.set_rate(estimate);
            self.enter(Mode::Climb, now);
        }
    }
}

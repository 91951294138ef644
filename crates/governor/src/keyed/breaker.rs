//! The circuit of one key in the memory that a key of a million has.
//!
//! The same machine as the governor's (`breaker.rs` of this crate): closed, open for a time that doubles
//! with each failed probe, half-open with one probe at a time. Why a second one: that one brings its own
//! window and its own copy of the settings, 90 bytes, and here both are shared. What was sent under an
//! earlier generation is not counted, and a Retry-After never opens it.

use super::config::Rules;
use super::stats::ErrorWindow;
use crate::retry::circuit::CircuitState;
use crate::time::Time;

/// Open time doubles at most this often: 64 times the first.
const REOPENS_MAX: u8 = 6;

/// What an answer means for the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    Bad,
    /// Says nothing about the provider's health.
    Unsaid,
}

/// Whether a request may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admit,
    Refuse {
        until: Time,
    },
    /// Half-open, and the probe is under way.
    ProbeOut,
}

/// One circuit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaker {
    /// While open: until when.
    until: Time,
    state: CircuitState,
    probe_out: bool,
    /// Probes that succeeded.
    successes: u8,
    /// Failed probes since the circuit was last closed.
    reopens: u8,
    pub(crate) failures_in_row: u16,
    /// Grows with each transition.
    pub(crate) generation: u16,
}

impl Breaker {
    pub(crate) const fn new() -> Self {
        Self {
            until: Time::ZERO,
            state: CircuitState::Closed,
            probe_out: false,
            successes: 0,
            reopens: 0,
            failures_in_row: 0,
            generation: 0,
        }
    }

    /// Whether a request may be sent now. Changes nothing: what follows may still hold it back.
    #[inline]
    pub(crate) fn decide(&self, now: Time) -> Decision {
        match self.state {
            CircuitState::Closed => Decision::Admit,
            CircuitState::Open if now < self.until => Decision::Refuse { until: self.until },
            CircuitState::Open => Decision::Admit,
            CircuitState::HalfOpen if self.probe_out => Decision::ProbeOut,
            CircuitState::HalfOpen => Decision::Admit,
        }
    }

    /// Takes note of a send; returns the generation that its answer is counted under.
    #[inline]
    pub(crate) fn on_send(&mut self) -> u16 {
        if self.state != CircuitState::Closed {
            self.send_probe();
        }
        self.generation
    }

    #[cold]
    fn send_probe(&mut self) {
        if self.state == CircuitState::Open {
            self.enter(CircuitState::HalfOpen);
        }
        self.probe_out = true;
    }

    /// Takes in an answer, which the window has counted already.
    #[inline]
    pub(crate) fn on_answer(
        &mut self,
        rules: &Rules,
        window: &mut ErrorWindow,
        health: Health,
        generation: u16,
        now: Time,
    ) {
        if generation != self.generation {
            return;
        }
        if self.state == CircuitState::Closed && health == Health::Good {
            self.failures_in_row = 0;
        } else if health == Health::Unsaid {
            self.probe_out = false;
        } else {
            self.on_news(rules, window, health == Health::Good, now);
        }
    }

    #[cold]
    fn on_news(&mut self, rules: &Rules, window: &mut ErrorWindow, good: bool, now: Time) {
        self.probe_out = false;
        match (self.state, good) {
            (CircuitState::Closed, false) => {
                self.failures_in_row = self.failures_in_row.saturating_add(1);
                if self.is_unhealthy(rules, window, now) {
                    self.open(rules, now);
                }
            }
            (CircuitState::HalfOpen, false) => {
                self.failures_in_row = self.failures_in_row.saturating_add(1);
                self.reopens = REOPENS_MAX.min(self.reopens + 1);
                self.open(rules, now);
            }
            (CircuitState::HalfOpen, true) => {
                self.successes += 1;
                if self.successes >= rules.config.successes_to_close {
                    self.close(window);
                }
            }
            (CircuitState::Closed, true) | (CircuitState::Open, _) => {}
        }
    }

    fn is_unhealthy(&self, rules: &Rules, window: &mut ErrorWindow, now: Time) -> bool {
        let config = &rules.config;
        if config.failures_in_row != 0 && self.failures_in_row >= config.failures_in_row {
            return true;
        }
        let (all, failed) = window.sums(rules, now);
        all >= u32::from(config.samples_min) && f64::from(failed) >= config.error_share * f64::from(all)
    }

    fn open(&mut self, rules: &Rules, now: Time) {
        self.until = now.plus(rules.open.saturating_mul(1 << self.reopens));
        self.enter(CircuitState::Open);
    }

    /// What was counted before the outage says nothing about the time after it.
    fn close(&mut self, window: &mut ErrorWindow) {
        self.reopens = 0;
        self.failures_in_row = 0;
        window.clear();
        self.enter(CircuitState::Closed);
    }

    const fn enter(&mut self, state: CircuitState) {
        self.state = state;
        self.probe_out = false;
        self.successes = 0;
        self.generation = self.generation.wrapping_add(1);
    }

    /// A request that was sent under `generation` got no answer because we gave it up.
    pub(crate) const fn on_cancel(&mut self, generation: u16) {
        if generation == self.generation {
            self.probe_out = false;
        }
    }

    /// The state as the next request would meet it.
    pub(crate) fn state(&self, now: Time) -> CircuitState {
        match self.state {
            CircuitState::Open if now >= self.until => CircuitState::HalfOpen,
            state => state,
        }
    }

    /// When an open circuit lets a probe through.
    pub(crate) fn open_until(&self, now: Time) -> Option<Time> {
        (self.state == CircuitState::Open && now < self.until).then_some(self.until)
    }
}

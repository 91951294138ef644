//! Circuit breaker: stops sending to an unhealthy provider and tests it with single probes.
//!
//! Why not leave failures to the pacing law: the law looks for a rate, and no rate is right for a provider that is
//! down; slowing down would teach it a limit that does not exist. Why not count consecutive failures alone: a
//! provider that fails every second request never reaches the count. So the breaker watches both, and neither opens
//! it after a handful of answers.
//!
//! Every permit carries the circuit generation of its send, and an answer from an earlier generation changes nothing:
//! eight requests in flight when the circuit opened must neither reopen nor close it. The breaker never waits, never
//! opens because of a Retry-After (that is a healthy provider), and never sees a route, an id or a body.
//!
//! Settings and the window of answers are arguments: a million keys share the settings, and an idle key has no
//! window.

use super::answer_window::{AnswerWindow, BUCKETS_MAX};
use super::circuit::{Change, CircuitReason, CircuitState, CircuitTrigger};
use crate::config::{ConfigError, positive, refuse};
use crate::time::{Time, nanos};
use std::time::Duration;

/// Settings of the circuit breaker: when it opens, for how long, and what closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Span over which the share of failures is counted. 30 s: long enough for five answers at one send per 5 s,
    /// short enough to forget an incident before the circuit would close again.
    pub window: Duration,
    /// Step by which the window moves. 2 s: a fifteenth of the window expires at once. At most [`BUCKETS_MAX`] steps.
    pub bucket: Duration,
    /// Minimum number of answers before the circuit may open. 5: a cold start with one failure is not an outage. 0 is
    /// read as 1.
    pub throughput_min: u16,
    /// Share of failures in the window that opens the circuit. 50 %: retries hide a smaller share. Limited to 1 to
    /// 100.
    pub failure_percent: u8,
    /// Failures in a row that open the circuit, over any time. 5: more than one request's attempts, and at five
    /// requests per second the circuit opens within five seconds of an overload. Never less than `throughput_min`; 0
    /// is off.
    pub consecutive_failures: u16,
    /// Time that the circuit stays open at first; doubled by each failed probe, up to 64 times. 60 s: a usual deploy
    /// or failover.
    pub open_for: Duration,
    /// Probes in flight while half-open. 1: a recovering provider should not get a burst. 0 is read as 1.
    pub probes: u8,
    /// Probes that must succeed before the circuit closes. 2: at a provider that fails half of the
    /// time one success is luck. 0 is read as 1.
    pub successes_to_close: u8,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(30),
            bucket: Duration::from_secs(2),
            throughput_min: 5,
            failure_percent: 50,
            consecutive_failures: 5,
            open_for: Duration::from_secs(60),
            probes: 1,
            successes_to_close: 2,
        }
    }
}

impl BreakerConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        positive("breaker.window", self.window)?;
        positive("breaker.bucket", self.bucket)?;
        positive("breaker.open_for", self.open_for)?;
        if self.bucket > self.window {
            return refuse("breaker.bucket", "is longer than breaker.window");
        }
        if nanos(self.window).div_ceil(nanos(self.bucket)) > BUCKETS_MAX as u64 {
            return refuse("breaker.bucket", "is too short: breaker.window would have more than 15 buckets");
        }
        if !(1..=100).contains(&self.failure_percent) {
            return refuse("breaker.failure_percent", "is not between 1 and 100");
        }
        if self.throughput_min == 0 {
            return refuse("breaker.throughput_min", "is zero");
        }
        if self.probes == 0 {
            return refuse("breaker.probes", "is zero");
        }
        if self.successes_to_close == 0 {
            return refuse("breaker.successes_to_close", "is zero");
        }
        Ok(())
    }
}

/// A [`BreakerConfig`] in internal units: times in nanoseconds, every value within its range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BreakerRules {
    pub(crate) window: u64,
    pub(crate) bucket: u64,
    open: u64,
    throughput_min: u16,
    failures_in_row_max: u16,
    pub(crate) buckets: u8,
    failure_percent: u8,
    probes: u8,
    successes_to_close: u8,
}

impl BreakerRules {
    pub(crate) fn new(config: BreakerConfig) -> Self {
        let throughput_min = config.throughput_min.max(1);
        let failures_in_row_max = match config.consecutive_failures {
            0 => 0,
            failures => failures.max(throughput_min),
        };
        let window = nanos(config.window).max(1);
        let bucket = nanos(config.bucket).clamp(window.div_ceil(BUCKETS_MAX as u64), window);
        Self {
            window,
            bucket,
            open: nanos(config.open_for),
            throughput_min,
            failures_in_row_max,
            buckets: window.div_ceil(bucket) as u8,
            failure_percent: config.failure_percent.clamp(1, 100),
            probes: config.probes.max(1),
            successes_to_close: config.successes_to_close.max(1),
        }
    }
}

/// Maximum of doublings of the open time: 64 times the first, about an hour by default.
const REOPENS_MAX: u8 = 6;

/// Cause of a transition: trigger and reason.
type Cause = (CircuitTrigger, CircuitReason);
const FAILURE: Cause = (CircuitTrigger::ProviderFailure, CircuitReason::ProviderFailure);
const THROTTLE: Cause = (CircuitTrigger::ProviderThrottle, CircuitReason::ProviderThrottle);
const TIMEOUT: Cause = (CircuitTrigger::BeforeRequest, CircuitReason::ResetTimeout);
const SUCCESS: Cause = (CircuitTrigger::Success, CircuitReason::Success);

/// Meaning of an answer for the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Success,
    Failure,
    /// 429 or 503 without a Retry-After, the first of its burst: counts as a failure.
    Throttle,
    /// Says nothing about the provider's health, such as a 404, a throttle with a Retry-After, or the echo of a
    /// throttle.
    Neutral,
}

/// Whether a request may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admit,
    /// Open until this time.
    Refuse {
        until: Time,
    },
    /// Half-open, and every probe is in flight: only an answer changes that.
    ProbesOut,
}

/// One circuit, in 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaker {
    /// End of the open state.
    until: Time,
    pub(crate) failures_in_row: u16,
    /// Grows with each transition; answers to earlier sends change nothing.
    pub(crate) generation: u16,
    state: CircuitState,
    /// While half-open: probes in flight, and probes that succeeded.
    probes_out: u8,
    successes: u8,
    /// Failed probes since the circuit was last closed.
    reopens: u8,
}

impl Breaker {
    /// The only transition that a send can cause.
    pub(crate) const PROBING: Change =
        Change { previous: CircuitState::Open, state: CircuitState::HalfOpen, trigger: TIMEOUT.0, reason: TIMEOUT.1 };

    pub(crate) const fn new() -> Self {
        Self {
            until: Time::ZERO,
            failures_in_row: 0,
            generation: 0,
            state: CircuitState::Closed,
            probes_out: 0,
            successes: 0,
            reopens: 0,
        }
    }

    /// Whether a request may be sent now. Changes nothing, because a later step may still hold the request back.
    #[inline]
    pub(crate) fn decide(&self, rules: &BreakerRules, now: Time) -> Decision {
        match self.state {
            CircuitState::Closed => Decision::Admit,
            CircuitState::Open if now < self.until => Decision::Refuse { until: self.until },
            CircuitState::HalfOpen if self.probes_out >= rules.probes => Decision::ProbesOut,
            CircuitState::Open | CircuitState::HalfOpen => Decision::Admit,
        }
    }

    /// Records a send that [`Self::decide`] admitted. An open circuit becomes half-open, in a new generation: that is
    /// [`Self::PROBING`].
    #[inline]
    pub(crate) fn on_send(&mut self) {
        if self.state != CircuitState::Closed {
            self.send_probe();
        }
    }

    #[cold]
    fn send_probe(&mut self) {
        if self.state == CircuitState::Open {
            _ = self.enter(CircuitState::HalfOpen, TIMEOUT);
        }
        self.probes_out = self.probes_out.saturating_add(1);
    }

    /// Applies the answer to a request sent under `generation`.
    #[inline]
    pub(crate) fn on_event(
        &mut self,
        rules: &BreakerRules,
        answers: &mut AnswerWindow,
        generation: u16,
        event: Event,
        now: Time,
    ) -> Option<Change> {
        if event != Event::Neutral {
            answers.add(rules, event != Event::Success, now);
        }
        if generation != self.generation {
            return None;
        }
        if event == Event::Success && self.state == CircuitState::Closed {
            self.failures_in_row = 0;
            return None;
        }
        self.on_news(rules, answers, event, now)
    }

    #[cold]
    fn on_news(&mut self, rules: &BreakerRules, answers: &mut AnswerWindow, event: Event, now: Time) -> Option<Change> {
        self.probes_out = self.probes_out.saturating_sub(1);
        let cause = match event {
            Event::Success => return self.on_probe_success(rules, answers),
            Event::Neutral => return None,
            Event::Failure => FAILURE,
            Event::Throttle => THROTTLE,
        };
        self.failures_in_row = self.failures_in_row.saturating_add(1);
        match self.state {
            CircuitState::Closed if !self.is_unhealthy(rules, answers, now) => return None,
            CircuitState::HalfOpen => self.reopens = REOPENS_MAX.min(self.reopens + 1),
            CircuitState::Closed | CircuitState::Open => {}
        }
        self.until = now.plus(rules.open.saturating_mul(1 << self.reopens));
        Some(self.enter(CircuitState::Open, cause))
    }

    /// After enough successful probes the window starts empty: answers before the outage say nothing about the time
    /// after it.
    fn on_probe_success(&mut self, rules: &BreakerRules, answers: &mut AnswerWindow) -> Option<Change> {
        self.successes += 1;
        if self.successes < rules.successes_to_close {
            return None;
        }
        self.reopens = 0;
        self.failures_in_row = 0;
        answers.clear();
        Some(self.enter(CircuitState::Closed, SUCCESS))
    }

    fn is_unhealthy(&self, rules: &BreakerRules, answers: &mut AnswerWindow, now: Time) -> bool {
        if rules.failures_in_row_max != 0 && self.failures_in_row >= rules.failures_in_row_max {
            return true;
        }
        let (all, failed) = answers.sums(rules, now);
        all >= u32::from(rules.throughput_min) && failed * 100 >= all * u32::from(rules.failure_percent)
    }

    /// Takes back a send under `generation` that we cancelled.
    pub(crate) const fn on_cancel(&mut self, generation: u16) {
        if generation == self.generation {
            self.probes_out = self.probes_out.saturating_sub(1);
        }
    }

    /// Nothing is in flight: resets the count of probes.
    pub(crate) const fn forget_probes(&mut self) {
        self.probes_out = 0;
    }

    /// The state that the next request meets.
    pub(crate) fn state(&self, now: Time) -> CircuitState {
        match self.state {
            CircuitState::Open if now >= self.until => CircuitState::HalfOpen,
            state => state,
        }
    }

    /// When an open circuit admits a probe.
    pub(crate) fn open_until(&self, now: Time) -> Option<Time> {
        (self.state == CircuitState::Open && now < self.until).then_some(self.until)
    }

    /// The only place that changes the state, so that each transition is recorded.
    fn enter(&mut self, state: CircuitState, (trigger, reason): Cause) -> Change {
        let previous = self.state;
        self.state = state;
        self.probes_out = 0;
        self.successes = 0;
        self.generation = self.generation.wrapping_add(1);
        Change { previous, state, trigger, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    /// A breaker with what it is given.
    struct Circuit {
        rules: BreakerRules,
        breaker: Breaker,
        answers: AnswerWindow,
    }

    impl Circuit {
        fn new(config: BreakerConfig) -> Self {
            Self { rules: BreakerRules::new(config), breaker: Breaker::new(), answers: AnswerWindow::new() }
        }

        fn decide(&self, now: Time) -> Decision {
            self.breaker.decide(&self.rules, now)
        }

        /// The generation that the answer is counted under, and the change.
        fn on_send(&mut self) -> (u16, Option<Change>) {
            let before = self.breaker.generation;
            self.breaker.on_send();
            let generation = self.breaker.generation;
            (generation, (generation != before).then_some(Breaker::PROBING))
        }

        fn on_event(&mut self, generation: u16, event: Event, now: Time) -> Option<Change> {
            self.breaker.on_event(&self.rules, &mut self.answers, generation, event, now)
        }
    }

    fn breaker() -> Circuit {
        Circuit::new(BreakerConfig::default())
    }

    /// Sends and answers at once.
    fn feed(breaker: &mut Circuit, event: Event, now: Time) -> Option<Change> {
        let (ticket, change) = breaker.on_send();
        breaker.on_event(ticket, event, now).or(change)
    }

    fn feed_all(breaker: &mut Circuit, events: &[Event], now: Time) -> Option<Change> {
        events.iter().fold(None, |last, &event| feed(breaker, event, now).or(last))
    }

    /// Opened at second 0 by five failures.
    fn opened() -> Circuit {
        let mut breaker = breaker();
        let change = feed_all(&mut breaker, &[Event::Failure; 5], Time::ZERO);
        assert_eq!(change.map(|change| change.state), Some(CircuitState::Open));
        breaker
    }

    #[test]
    fn a_circuit_is_small() {
        assert_eq!(size_of::<Breaker>(), 16);
    }

    #[test]
    fn evidence_uses_the_words_of_the_wire() {
        let mut breaker = breaker();
        let change = feed_all(&mut breaker, &[Event::Throttle; 5], at(1)).unwrap();
        let told = change.with_counters(Duration::from_secs(1), 5, None);
        assert_eq!([told.previous.as_str(), told.state.as_str()], ["closed", "open"]);
        assert_eq!(told.trigger.as_str(), "provider_throttle");
        assert_eq!(told.reason.as_str(), "provider_throttle");
        assert_eq!(CircuitState::HalfOpen.as_str(), "half_open");
        assert_eq!([FAILURE.0.as_str(), FAILURE.1.as_str()], ["provider_failure"; 2]);
        assert_eq!([TIMEOUT.0.as_str(), TIMEOUT.1.as_str()], ["before_request", "reset_timeout"]);
        assert_eq!([SUCCESS.0.as_str(), SUCCESS.1.as_str()], ["success"; 2]);
    }

    #[test]
    fn four_failures_do_not_open_and_the_fifth_does() {
        let mut breaker = breaker();
        assert_eq!(feed_all(&mut breaker, &[Event::Failure; 4], at(1)), None);
        let change = feed(&mut breaker, Event::Failure, at(2)).unwrap();
        assert_eq!(
            change,
            Change {
                previous: CircuitState::Closed,
                state: CircuitState::Open,
                trigger: CircuitTrigger::ProviderFailure,
                reason: CircuitReason::ProviderFailure,
            }
        );
        assert_eq!(breaker.decide(at(61)), Decision::Refuse { until: at(62) });
        assert_eq!(breaker.decide(at(62)), Decision::Admit);
    }

    #[test]
    fn half_of_the_window_opens_and_less_does_not() {
        let mixed = |failures, successes| {
            let mut breaker = Circuit::new(BreakerConfig { consecutive_failures: 0, ..BreakerConfig::default() });
            feed_all(&mut breaker, &vec![Event::Success; successes], at(1));
            feed_all(&mut breaker, &vec![Event::Failure; failures], at(2)).is_some()
        };
        assert!(!mixed(4, 6));
        assert!(mixed(6, 6));
        assert!(!mixed(5, 6));
    }

    #[test]
    fn failures_older_than_the_window_are_forgotten() {
        let mut breaker = Circuit::new(BreakerConfig { consecutive_failures: 0, ..BreakerConfig::default() });
        feed_all(&mut breaker, &[Event::Failure; 4], at(1));
        assert_eq!(feed(&mut breaker, Event::Failure, at(31)), None);
    }

    #[test]
    fn five_failures_in_a_row_open_however_slowly_they_come() {
        let mut breaker = breaker();
        for hour in 0..4 {
            assert_eq!(feed(&mut breaker, Event::Failure, at(hour * 3600)), None);
        }
        assert!(feed(&mut breaker, Event::Failure, at(4 * 3600)).is_some());
    }

    #[test]
    fn a_success_ends_a_row_of_failures() {
        let mut breaker = breaker();
        for hour in 0..100 {
            let event = if hour % 5 == 4 { Event::Success } else { Event::Failure };
            assert_eq!(feed(&mut breaker, event, at(hour * 3600)), None);
        }
    }

    #[test]
    fn a_row_shorter_than_the_minimum_throughput_does_not_open() {
        let config = BreakerConfig { consecutive_failures: 2, ..BreakerConfig::default() };
        let mut breaker = Circuit::new(config);
        for hour in 0..4 {
            assert_eq!(feed(&mut breaker, Event::Failure, at(hour * 3600)), None);
        }
        assert!(feed(&mut breaker, Event::Failure, at(4 * 3600)).is_some());
    }

    #[test]
    fn what_says_nothing_about_health_neither_counts_nor_ends_a_row() {
        let mut breaker = breaker();
        for second in 0..4 {
            let burst = [Event::Throttle, Event::Neutral, Event::Neutral];
            assert_eq!(feed_all(&mut breaker, &burst, at(second)), None);
        }
        let change = feed(&mut breaker, Event::Throttle, at(4)).unwrap();
        assert_eq!(change.trigger, CircuitTrigger::ProviderThrottle);
        assert_eq!(change.reason, CircuitReason::ProviderThrottle);
        assert_eq!(feed_all(&mut self::breaker(), &[Event::Neutral; 1000], at(1)), None);
    }

    #[test]
    fn half_open_sends_one_probe_at_a_time_and_two_successes_close() {
        let mut breaker = opened();
        let (probe, change) = breaker.on_send();
        let change = change.unwrap();
        assert_eq!((change.previous, change.state), (CircuitState::Open, CircuitState::HalfOpen));
        assert_eq!(change.trigger, CircuitTrigger::BeforeRequest);
        assert_eq!(change.reason, CircuitReason::ResetTimeout);
        assert_eq!(breaker.decide(at(90)), Decision::ProbesOut);
        assert_eq!(breaker.on_event(probe, Event::Success, at(91)), None);
        assert_eq!(breaker.decide(at(91)), Decision::Admit);
        let change = feed(&mut breaker, Event::Success, at(92)).unwrap();
        assert_eq!((change.previous, change.state), (CircuitState::HalfOpen, CircuitState::Closed));
        assert_eq!((change.trigger, change.reason), (CircuitTrigger::Success, CircuitReason::Success));
        assert_eq!(breaker.decide(at(92)), Decision::Admit);
    }

    #[test]
    fn a_closed_circuit_has_forgotten_the_failures_that_opened_it() {
        let open_for = Duration::from_secs(1);
        let mut breaker = Circuit::new(BreakerConfig { open_for, ..BreakerConfig::default() });
        assert!(feed_all(&mut breaker, &[Event::Failure; 5], at(0)).is_some());
        assert!(feed_all(&mut breaker, &[Event::Success; 2], at(1)).is_some());
        assert_eq!(feed_all(&mut breaker, &[Event::Failure; 4], at(1)), None);
    }

    #[test]
    fn each_failed_probe_doubles_the_open_time_up_to_64_and_closing_resets_it() {
        let mut breaker = opened();
        let mut now = at(60);
        for factor in [2, 4, 8, 16, 32, 64, 64] {
            assert!(feed(&mut breaker, Event::Failure, now).is_some());
            let until = now.plus(factor * 60 * SECOND);
            assert_eq!(breaker.decide(now), Decision::Refuse { until });
            now = until;
        }
        assert!(feed_all(&mut breaker, &[Event::Success; 2], now).is_some());
        assert!(feed_all(&mut breaker, &[Event::Failure; 5], now).is_some());
        assert_eq!(breaker.breaker.open_until(now), Some(now.plus(60 * SECOND)));
    }

    #[test]
    fn an_answer_to_a_request_from_before_the_opening_changes_nothing() {
        let mut breaker = breaker();
        let late: Vec<_> = (0..4).map(|_| breaker.on_send().0).collect();
        feed_all(&mut breaker, &[Event::Failure; 5], at(0));
        assert_eq!(breaker.on_event(late[0], Event::Success, at(1)), None);
        assert_eq!(breaker.on_event(late[1], Event::Failure, at(1)), None);
        let (probe, _) = breaker.on_send();
        assert_eq!(breaker.on_event(late[2], Event::Failure, at(61)), None);
        breaker.breaker.on_cancel(late[3]);
        assert_eq!(breaker.decide(at(61)), Decision::ProbesOut);
        assert_eq!(breaker.on_event(probe, Event::Success, at(62)), None);
        assert_eq!(breaker.decide(at(62)), Decision::Admit);
    }

    #[test]
    fn a_cancelled_or_neutral_probe_frees_its_slot_and_decides_nothing() {
        for event in [None, Some(Event::Neutral)] {
            let mut breaker = opened();
            let (probe, _) = breaker.on_send();
            match event {
                None => breaker.breaker.on_cancel(probe),
                Some(event) => assert_eq!(breaker.on_event(probe, event, at(61)), None),
            }
            assert_eq!(breaker.decide(at(61)), Decision::Admit);
            assert_eq!(breaker.breaker.state(at(61)), CircuitState::HalfOpen);
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Ask,
        Answer(usize, Event),
        Cancel(usize),
        Wait(u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let event = prop_oneof![
            4 => Just(Event::Failure),
            3 => Just(Event::Success),
            1 => Just(Event::Throttle),
            2 => Just(Event::Neutral),
        ];
        let op = prop_oneof![
            6 => Just(Op::Ask),
            6 => (any::<usize>(), event).prop_map(|(which, event)| Op::Answer(which, event)),
            1 => any::<usize>().prop_map(Op::Cancel),
            1 => (0..5 * SECOND).prop_map(Op::Wait),
            1 => (0..200 * SECOND).prop_map(Op::Wait),
        ];
        prop::collection::vec(op, 0..300)
    }

    /// The view from outside, separate from the breaker's own state.
    struct Witness {
        breaker: Circuit,
        now: Time,
        state: CircuitState,
        probes: u8,
        /// Open requests: ticket, and the number of transitions seen when it was sent.
        out: Vec<(u16, u32)>,
        transitions: u32,
        counted_since_close: u32,
    }

    impl Witness {
        fn note(&mut self, change: Option<Change>) {
            let real = self.breaker.breaker.state;
            let told = change.map_or(self.state, |change| change.state);
            assert_eq!(real, told, "a change without evidence");
            if let Some(change) = change {
                assert_eq!(change.previous, self.state);
                assert_ne!(change.previous, change.state);
                if change.previous == CircuitState::Closed {
                    assert!(self.counted_since_close >= 5, "opened below the minimum throughput");
                }
                self.transitions += 1;
                self.counted_since_close = 0;
            }
            self.state = real;
        }

        fn ask(&mut self) {
            match self.breaker.decide(self.now) {
                Decision::Admit => {
                    let (ticket, change) = self.breaker.on_send();
                    self.note(change);
                    self.out.push((ticket, self.transitions));
                    assert_ne!(self.state, CircuitState::Open, "sent while open");
                }
                Decision::Refuse { until } => assert!(until > self.now, "a wait of nothing"),
                Decision::ProbesOut => assert_eq!(self.state, CircuitState::HalfOpen),
            }
            let current = self.out.iter().filter(|sent| sent.1 == self.transitions).count();
            if self.state == CircuitState::HalfOpen {
                assert!(current <= usize::from(self.probes), "too many probes");
                let full = current == usize::from(self.probes);
                assert_eq!(self.breaker.decide(self.now) == Decision::ProbesOut, full);
            }
        }

        fn answer(&mut self, which: usize, event: Event) {
            let Some((ticket, sent)) = self.take(which) else { return };
            let counts = event != Event::Neutral;
            self.counted_since_close += u32::from(counts);
            let change = self.breaker.on_event(ticket, event, self.now);
            assert!(change.is_none() || sent == self.transitions, "a late answer moved the circuit");
            self.note(change);
        }

        fn take(&mut self, which: usize) -> Option<(u16, u32)> {
            let len = self.out.len();
            (len > 0).then(|| self.out.swap_remove(which % len))
        }
    }

    proptest! {
        #[test]
        fn open_sends_nothing_half_open_only_probes_and_every_change_is_told(
            ops in ops(),
            probes in 1u8..4,
            consecutive_failures in 0u16..12,
        ) {
            let config = BreakerConfig { probes, consecutive_failures, ..BreakerConfig::default() };
            let mut witness = Witness {
                breaker: Circuit::new(config),
                now: Time::ZERO,
                state: CircuitState::Closed,
                probes,
                out: Vec::new(),
                transitions: 0,
                counted_since_close: 0,
            };
            for op in ops {
                match op {
                    Op::Ask => witness.ask(),
                    Op::Answer(which, event) => witness.answer(which, event),
                    Op::Cancel(which) => {
                        if let Some((ticket, _)) = witness.take(which) {
                            witness.breaker.breaker.on_cancel(ticket);
                            witness.note(None);
                        }
                    }
                    Op::Wait(nanos) => witness.now = witness.now.plus(nanos),
                }
            }
        }
    }
}

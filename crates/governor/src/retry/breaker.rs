//! Stops sending to a provider that is known to be unhealthy, and asks again with single probes.
//!
//! Why not leave failures to the pacing law: the law looks for a rate, and no rate is right for a
//! provider that is down; slowing down would also teach it a limit that does not exist. Why not a
//! count of consecutive failures alone: a provider that fails every second request never reaches
//! it. So both are watched, and neither may open on a handful of observations.
//!
//! Every permit carries the generation of the circuit that it was sent under, and an answer from an
//! earlier generation is not counted: eight requests that were under way when the circuit opened
//! must neither reopen nor close it. Never waits, never opens because of a Retry-After (that is a
//! healthy provider saying when), never sees a route, an id or a body.

use std::time::Duration;

use crate::retry::circuit::{Change, CircuitReason, CircuitState, CircuitTrigger};
use crate::slots::Slots;
use crate::time::{Time, nanos};

/// When the circuit opens, for how long, and what closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Span over which the share of failures is taken. 30 s: long enough for five observations at
    /// one send per 5 s, short enough to forget an incident before the circuit would close again.
    pub window: Duration,
    /// Observations without which the circuit never opens. 5: a cold start with one failure is not
    /// an outage. 0 is read as 1.
    pub throughput_min: u16,
    /// Share of failures in the window that opens the circuit. 50 %: retries hide a smaller share.
    /// Read within 1 to 100.
    pub failure_percent: u8,
    /// Failures in a row that open the circuit however long they take. 10: for keys too slow for
    /// the window, and more than one request's attempts. Never less than `throughput_min`; 0 is off.
    pub consecutive_failures: u16,
    /// Time that the circuit stays open at first; doubled by each failed probe, up to 64 times.
    /// 60 s: the usual length of a deploy or a failover.
    pub open_for: Duration,
    /// Probes in flight while half-open. 1: a recovering provider should not meet a crowd. 0 is
    /// read as 1.
    pub probes: u8,
    /// Probes that must succeed before the circuit closes. 2: at a provider that fails half of the
    /// time one success is luck. 0 is read as 1.
    pub successes_to_close: u8,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(30),
            throughput_min: 5,
            failure_percent: 50,
            consecutive_failures: 10,
            open_for: Duration::from_secs(60),
            probes: 1,
            successes_to_close: 2,
        }
    }
}

/// Open time doubles at most this often: 64 times the first, about an hour by default.
const REOPENS_MAX: u8 = 6;
/// Spans of the window: what is forgotten at once is an eighth of it.
const SPANS: usize = 8;

/// What makes the circuit change, in the two words that evidence has for it.
type Cause = (CircuitTrigger, CircuitReason);
const FAILURE: Cause = (CircuitTrigger::ProviderFailure, CircuitReason::ProviderFailure);
const THROTTLE: Cause = (CircuitTrigger::ProviderThrottle, CircuitReason::ProviderThrottle);
const TIMEOUT: Cause = (CircuitTrigger::BeforeRequest, CircuitReason::ResetTimeout);
const SUCCESS: Cause = (CircuitTrigger::Success, CircuitReason::Success);

/// What an answer means for the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Success,
    Failure,
    /// 429 or 503 without a Retry-After: counts as a failure, once per burst.
    BareThrottle {
        first_of_burst: bool,
    },
    /// A throttle that says until when: never counts.
    DirectedThrottle,
    /// Says nothing about the provider's health, such as a 404.
    Neutral,
}

/// Whether a request may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admit,
    /// As a probe: its answer decides about the circuit.
    AdmitProbe,
    /// Open until then.
    Refuse {
        until: Time,
    },
    /// Half-open, and every probe is under way: only an answer changes that, no time does.
    ProbesOut,
}

/// The generation of the circuit that a permit was sent under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BreakerTicket(u32);

#[derive(Clone, Copy, Debug)]
enum State {
    Closed { failures_in_row: u16 },
    Open { until: Time },
    HalfOpen { probes_out: u8, successes: u8 },
}

/// Observations of one span of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    observed: u16,
    failed: u16,
}

impl Tally {
    fn add(&mut self, failed: u16) {
        // Halving keeps the share; cutting off would drift to a false 50 %.
        if self.observed == u16::MAX {
            self.observed /= 2;
            self.failed /= 2;
        }
        self.observed += 1;
        self.failed += failed;
    }
}

/// One circuit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaker {
    window: Slots<Tally, SPANS>,
    state: State,
    open_nanos: u64,
    /// Grows with each transition; what was sent before the last one is no longer counted.
    generation: u32,
    throughput_min: u16,
    failures_in_row_max: u16,
    failure_percent: u8,
    probes: u8,
    successes_to_close: u8,
    /// Failed probes since the circuit was last closed.
    reopens: u8,
}

impl Breaker {
    pub(crate) fn new(config: BreakerConfig) -> Self {
        let throughput_min = config.throughput_min.max(1);
        let failures_in_row_max = match config.consecutive_failures {
            0 => 0,
            failures => failures.max(throughput_min),
        };
        Self {
            window: Slots::new(nanos(config.window) / SPANS as u64),
            state: State::Closed { failures_in_row: 0 },
            open_nanos: nanos(config.open_for),
            generation: 0,
            throughput_min,
            failures_in_row_max,
            failure_percent: config.failure_percent.clamp(1, 100),
            probes: config.probes.max(1),
            successes_to_close: config.successes_to_close.max(1),
            reopens: 0,
        }
    }

    /// Whether a request may be sent now. Changes nothing: what follows may still hold it back.
    #[inline]
    pub(crate) fn decide(&self, now: Time) -> Decision {
        match self.state {
            State::Closed { .. } => Decision::Admit,
            State::Open { until } if now < until => Decision::Refuse { until },
            State::Open { .. } => Decision::AdmitProbe,
            State::HalfOpen { probes_out, .. } if probes_out < self.probes => Decision::AdmitProbe,
            State::HalfOpen { .. } => Decision::ProbesOut,
        }
    }

    /// Takes note of a send that [`Self::decide`] admitted at `now`.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Time) -> (BreakerTicket, Option<Change>) {
        let change = match self.state {
            State::Open { until } if now >= until => {
                let half_open = State::HalfOpen { probes_out: 0, successes: 0 };
                Some(self.enter(half_open, TIMEOUT))
            }
            _ => None,
        };
        if let State::HalfOpen { probes_out, .. } = &mut self.state {
            *probes_out = probes_out.saturating_add(1);
        }
        (BreakerTicket(self.generation), change)
    }

    /// Takes in an answer.
    #[inline]
    pub(crate) fn on_event(&mut self, ticket: BreakerTicket, event: Event, now: Time) -> Option<Change> {
        if ticket.0 != self.generation {
            return None;
        }
        self.free_probe();
        match event {
            Event::Success => self.on_success(now),
            Event::Failure => self.on_failure(now, FAILURE),
            Event::BareThrottle { first_of_burst: true } => self.on_failure(now, THROTTLE),
            Event::BareThrottle { first_of_burst: false } | Event::DirectedThrottle | Event::Neutral => None,
        }
    }

    /// Takes back a send that got no answer because we gave it up. Says nothing about the provider.
    pub(crate) fn on_cancel(&mut self, ticket: BreakerTicket) {
        if ticket.0 == self.generation {
            self.free_probe();
        }
    }

    /// The state as the next request would meet it.
    pub(crate) fn state(&self, now: Time) -> CircuitState {
        match self.state {
            State::Open { until } if now >= until => CircuitState::HalfOpen,
            state => state.seen(),
        }
    }

    /// For storing an open circuit: until when, and how often it was reopened.
    pub(crate) const fn opened(&self) -> Option<(Time, u8)> {
        match self.state {
            State::Open { until } => Some((until, self.reopens)),
            _ => None,
        }
    }

    fn on_success(&mut self, now: Time) -> Option<Change> {
        match &mut self.state {
            State::Closed { failures_in_row } => {
                *failures_in_row = 0;
                self.window.current(now).add(0);
                None
            }
            State::HalfOpen { successes, .. } => {
                *successes += 1;
                (*successes >= self.successes_to_close).then(|| self.close())
            }
            State::Open { .. } => None,
        }
    }

    fn on_failure(&mut self, now: Time, cause: Cause) -> Option<Change> {
        match &mut self.state {
            State::Closed { failures_in_row } => {
                *failures_in_row = failures_in_row.saturating_add(1);
                let row = *failures_in_row;
                self.window.current(now).add(1);
                if !self.is_unhealthy(row) {
                    return None;
                }
            }
            State::HalfOpen { .. } => self.reopens = REOPENS_MAX.min(self.reopens + 1),
            State::Open { .. } => return None,
        }
        let until = now.plus(self.open_nanos.saturating_mul(1 << self.reopens));
        Some(self.enter(State::Open { until }, cause))
    }

    fn is_unhealthy(&self, failures_in_row: u16) -> bool {
        if self.failures_in_row_max != 0 && failures_in_row >= self.failures_in_row_max {
            return true;
        }
        let (observed, failed) = self
            .window
            .all()
            .iter()
            .fold((0u32, 0u32), |sum, tally| (sum.0 + u32::from(tally.observed), sum.1 + u32::from(tally.failed)));
        observed >= u32::from(self.throughput_min) && failed * 100 >= observed * u32::from(self.failure_percent)
    }

    /// Starts afresh: what was observed before the outage says nothing about the time after it.
    fn close(&mut self) -> Change {
        self.reopens = 0;
        self.window.clear();
        self.enter(State::Closed { failures_in_row: 0 }, SUCCESS)
    }

    fn free_probe(&mut self) {
        if let State::HalfOpen { probes_out, .. } = &mut self.state {
            *probes_out = probes_out.saturating_sub(1);
        }
    }

    /// The only place where the state changes, so that no change goes without evidence.
    fn enter(&mut self, state: State, (trigger, reason): Cause) -> Change {
        let previous = self.state.seen();
        self.state = state;
        self.generation = self.generation.wrapping_add(1);
        Change { previous, state: state.seen(), trigger, reason }
    }
}

impl State {
    const fn seen(self) -> CircuitState {
        match self {
            Self::Closed { .. } => CircuitState::Closed,
            Self::Open { .. } => CircuitState::Open,
            Self::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    const BARE: Event = Event::BareThrottle { first_of_burst: true };
    const ECHO: Event = Event::BareThrottle { first_of_burst: false };

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    fn breaker() -> Breaker {
        Breaker::new(BreakerConfig::default())
    }

    /// Sends and answers at once.
    fn feed(breaker: &mut Breaker, event: Event, now: Time) -> Option<Change> {
        let (ticket, change) = breaker.on_send(now);
        breaker.on_event(ticket, event, now).or(change)
    }

    fn feed_all(breaker: &mut Breaker, events: &[Event], now: Time) -> Option<Change> {
        events.iter().fold(None, |last, &event| feed(breaker, event, now).or(last))
    }

    /// Opened at second 0 by five failures.
    fn opened() -> Breaker {
        let mut breaker = breaker();
        let change = feed_all(&mut breaker, &[Event::Failure; 5], Time::ZERO);
        assert_eq!(change.map(|change| change.state), Some(CircuitState::Open));
        breaker
    }

    #[test]
    fn a_circuit_is_small() {
        assert!(size_of::<Breaker>() <= 140, "{}", size_of::<Breaker>());
        assert_eq!(size_of::<BreakerTicket>(), 4);
    }

    #[test]
    fn evidence_uses_the_words_of_the_wire() {
        let mut breaker = breaker();
        let change = feed_all(&mut breaker, &[BARE; 5], at(1)).unwrap();
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
        assert_eq!(breaker.decide(at(62)), Decision::AdmitProbe);
    }

    #[test]
    fn half_of_the_window_opens_and_less_does_not() {
        let mixed = |failures, successes| {
            let mut breaker = breaker();
            feed_all(&mut breaker, &vec![Event::Success; successes], at(1));
            feed_all(&mut breaker, &vec![Event::Failure; failures], at(2)).is_some()
        };
        assert!(!mixed(4, 6));
        assert!(mixed(6, 6));
        assert!(!mixed(5, 6));
    }

    #[test]
    fn failures_older_than_the_window_are_forgotten() {
        let mut breaker = breaker();
        feed_all(&mut breaker, &[Event::Failure; 4], at(1));
        assert_eq!(feed(&mut breaker, Event::Failure, at(31)), None);
    }

    #[test]
    fn ten_failures_in_a_row_open_however_slowly_they_come() {
        let mut breaker = breaker();
        for hour in 0..9 {
            assert_eq!(feed(&mut breaker, Event::Failure, at(hour * 3600)), None);
        }
        assert!(feed(&mut breaker, Event::Failure, at(9 * 3600)).is_some());
    }

    #[test]
    fn a_success_ends_a_row_of_failures() {
        let mut breaker = breaker();
        for hour in 0..100 {
            let event = if hour % 10 == 9 { Event::Success } else { Event::Failure };
            assert_eq!(feed(&mut breaker, event, at(hour * 3600)), None);
        }
    }

    #[test]
    fn a_row_shorter_than_the_minimum_throughput_does_not_open() {
        let config = BreakerConfig { consecutive_failures: 2, ..BreakerConfig::default() };
        let mut breaker = Breaker::new(config);
        for hour in 0..4 {
            assert_eq!(feed(&mut breaker, Event::Failure, at(hour * 3600)), None);
        }
        assert!(feed(&mut breaker, Event::Failure, at(4 * 3600)).is_some());
    }

    #[test]
    fn a_burst_of_bare_throttles_counts_once_and_a_directed_one_never() {
        let mut breaker = breaker();
        for second in 0..4 {
            let burst = [BARE, ECHO, ECHO, Event::DirectedThrottle, Event::Neutral];
            assert_eq!(feed_all(&mut breaker, &burst, at(second)), None);
        }
        let change = feed(&mut breaker, BARE, at(4)).unwrap();
        assert_eq!(change.trigger, CircuitTrigger::ProviderThrottle);
        assert_eq!(change.reason, CircuitReason::ProviderThrottle);
        let mut directed = self::breaker();
        assert_eq!(feed_all(&mut directed, &[Event::DirectedThrottle; 1000], at(1)), None);
    }

    #[test]
    fn half_open_sends_one_probe_at_a_time_and_two_successes_close() {
        let mut breaker = opened();
        let (probe, change) = breaker.on_send(at(60));
        let change = change.unwrap();
        assert_eq!((change.previous, change.state), (CircuitState::Open, CircuitState::HalfOpen));
        assert_eq!(change.trigger, CircuitTrigger::BeforeRequest);
        assert_eq!(change.reason, CircuitReason::ResetTimeout);
        assert_eq!(breaker.decide(at(90)), Decision::ProbesOut);
        assert_eq!(breaker.on_event(probe, Event::Success, at(91)), None);
        assert_eq!(breaker.decide(at(91)), Decision::AdmitProbe);
        let change = feed(&mut breaker, Event::Success, at(92)).unwrap();
        assert_eq!((change.previous, change.state), (CircuitState::HalfOpen, CircuitState::Closed));
        assert_eq!((change.trigger, change.reason), (CircuitTrigger::Success, CircuitReason::Success));
        assert_eq!(breaker.decide(at(92)), Decision::Admit);
    }

    #[test]
    fn a_closed_circuit_has_forgotten_the_failures_that_opened_it() {
        let open_for = Duration::from_secs(1);
        let mut breaker = Breaker::new(BreakerConfig { open_for, ..BreakerConfig::default() });
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
        assert_eq!(breaker.opened(), Some((now.plus(60 * SECOND), 0)));
    }

    #[test]
    fn an_answer_to_a_request_from_before_the_opening_changes_nothing() {
        let mut breaker = breaker();
        let late: Vec<_> = (0..4).map(|_| breaker.on_send(at(0)).0).collect();
        feed_all(&mut breaker, &[Event::Failure; 5], at(0));
        assert_eq!(breaker.on_event(late[0], Event::Success, at(1)), None);
        assert_eq!(breaker.on_event(late[1], Event::Failure, at(1)), None);
        let (probe, _) = breaker.on_send(at(60));
        assert_eq!(breaker.on_event(late[2], Event::Failure, at(61)), None);
        breaker.on_cancel(late[3]);
        assert_eq!(breaker.decide(at(61)), Decision::ProbesOut);
        assert_eq!(breaker.on_event(probe, Event::Success, at(62)), None);
        assert_eq!(breaker.decide(at(62)), Decision::AdmitProbe);
    }

    #[test]
    fn a_cancelled_or_neutral_probe_frees_its_slot_and_decides_nothing() {
        for event in [None, Some(Event::Neutral), Some(Event::DirectedThrottle), Some(ECHO)] {
            let mut breaker = opened();
            let (probe, _) = breaker.on_send(at(60));
            match event {
                None => breaker.on_cancel(probe),
                Some(event) => assert_eq!(breaker.on_event(probe, event, at(61)), None),
            }
            assert_eq!(breaker.decide(at(61)), Decision::AdmitProbe);
            assert_eq!(breaker.state(at(61)), CircuitState::HalfOpen);
        }
    }

    #[test]
    fn a_crowded_window_keeps_its_share_instead_of_overflowing() {
        let mut tally = Tally::default();
        (0..1_000_000u32).for_each(|n| tally.add(u16::from(n % 4 == 0)));
        let share = |tally: &Tally| u32::from(tally.failed) * 100 / u32::from(tally.observed);
        assert_eq!(share(&tally), 25);
        // ... and still hears what comes next.
        (0..60_000).for_each(|_| tally.add(1));
        assert!(share(&tally) > 50);
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
            1 => any::<bool>().prop_map(|first_of_burst| Event::BareThrottle { first_of_burst }),
            1 => Just(Event::DirectedThrottle),
            1 => Just(Event::Neutral),
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

    /// What an outsider sees, kept apart from the breaker's own books.
    struct Witness {
        breaker: Breaker,
        now: Time,
        state: CircuitState,
        probes: u8,
        /// Open requests: ticket, and the number of transitions seen when it was sent.
        out: Vec<(BreakerTicket, u32)>,
        transitions: u32,
        counted_since_close: u32,
    }

    impl Witness {
        fn note(&mut self, change: Option<Change>) {
            let real = self.breaker.state.seen();
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
                Decision::Admit | Decision::AdmitProbe => {
                    let (ticket, change) = self.breaker.on_send(self.now);
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
            let counts = matches!(event, Event::Success | Event::Failure | BARE);
            self.counted_since_close += u32::from(counts);
            let change = self.breaker.on_event(ticket, event, self.now);
            assert!(change.is_none() || sent == self.transitions, "a late answer moved the circuit");
            self.note(change);
        }

        fn take(&mut self, which: usize) -> Option<(BreakerTicket, u32)> {
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
                breaker: Breaker::new(config),
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
                            witness.breaker.on_cancel(ticket);
                            witness.note(None);
                        }
                    }
                    Op::Wait(nanos) => witness.now = witness.now.plus(nanos),
                }
            }
        }
    }
}

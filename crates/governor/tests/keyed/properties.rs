//! Properties under any order of questions, answers, pauses, snapshots and evictions.

use crate::desk::{Desk, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{Admission, BreakerConfig, CircuitState, Permit, Time};
use proptest::prelude::*;
use std::time::Duration;

const CEILING: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
enum Step {
    /// Pauses, in tenths of a millisecond.
    Pass(u64),
    /// Asks so often, each time when it is due.
    Ask(u8),
    /// Answers the request that was sent so many before the last: a status, and a Retry-After in seconds.
    Answer(u8, u16, u8),
    Cancel,
    Abandon,
    Tend,
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u64..5000).prop_map(Step::Pass),
        1 => (0_u64..2_000_000).prop_map(Step::Pass),
        8 => (1_u8..20).prop_map(Step::Ask),
        8 => (0_u8..4).prop_map(|back| Step::Answer(back, 200, 0)),
        2 => (0_u8..4, prop_oneof![Just(429), Just(500), Just(404), Just(403), Just(0)], 0_u8..9)
            .prop_map(|(back, status, wait)| Step::Answer(back, status, wait)),
        1 => Just(Step::Cancel),
        1 => Just(Step::Abandon),
        1 => Just(Step::Tend),
        1 => Just(Step::Look),
    ]
}

struct Watched {
    desk: Desk,
    in_flight: Vec<Permit>,
    sends: u64,
    last_send: Option<Time>,
    gate: Time,
}

impl Watched {
    fn ask(&mut self) -> Result<(), TestCaseError> {
        match self.desk.ask("a.com") {
            Admission::Send(permit) => {
                let now = self.desk.now;
                if let Some(last) = self.last_send {
                    prop_assert!(now.since(last) >= CEILING, "{:?} after the last send", now.since(last));
                }
                prop_assert!(now >= self.gate, "{:?} before the gate opens", self.gate.since(now));
                self.last_send = Some(now);
                self.sends += 1;
                self.in_flight.push(permit);
                prop_assert!(self.in_flight.len() <= 4, "{} in flight", self.in_flight.len());
            }
            Admission::WaitUntil(at) => {
                prop_assert!(at > self.desk.now, "a wait that is over");
                // Some wait to the end, and nobody for hours.
                if at.since(self.desk.now) < seconds(120) {
                    self.desk.now = at;
                }
            }
            Admission::WaitForOutcome => prop_assert!(!self.in_flight.is_empty(), "nothing is in flight"),
            Admission::Defer(deferral) => {
                prop_assert!(deferral.not_before > Some(self.desk.now));
                let key = self.desk.snapshot().circuits_open;
                prop_assert_eq!(key, 1);
            }
        }
        Ok(())
    }

    fn answer(&mut self, back: u8, status: u16, wait: u8) {
        let Some(at) = self.in_flight.len().checked_sub(1 + usize::from(back)) else { return };
        let permit = self.in_flight.remove(at);
        let told = Some(Duration::from_secs(u64::from(wait))).filter(|wait| !wait.is_zero());
        let feedback = if status == 0 { Feedback::lost() } else { Feedback::status(status, told) };
        self.desk.pass_ms(7).answer("a.com", permit, &feedback);
        if let Some(wait) = told.filter(|_| matches!(status, 429 | 500 | 403)) {
            self.gate = self.gate.max(self.desk.now + wait);
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Pass(tenths) => drop(self.desk.pass(Duration::from_micros(100 * tenths)).now),
            Step::Ask(times) => (0..times).try_for_each(|_| self.ask())?,
            Step::Answer(back, status, wait) => self.answer(back, status, wait),
            Step::Cancel => {
                if let Some(permit) = self.in_flight.pop() {
                    self.desk.registry.cancel(&self.desk.handle("a.com"), permit, self.desk.now);
                    self.sends -= 1;
                }
            }
            Step::Abandon => {
                if let Some(permit) = self.in_flight.pop() {
                    self.desk.registry.abandon(&self.desk.handle("a.com"), permit, self.desk.now);
                }
            }
            Step::Tend => self.desk.tend(),
            Step::Look => {
                let snapshot = self.desk.snapshot();
                prop_assert_eq!(snapshot.totals.granted, self.sends);
                for key in &snapshot.keys {
                    prop_assert_eq!(usize::from(key.in_flight), self.in_flight.len());
                    prop_assert!(key.rate_per_s <= 50.0001, "{}", key.rate_per_s);
                    prop_assert!(key.circuit == CircuitState::Closed || key.failures_in_row > 0);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_order_of_events_breaks_the_ceiling_a_gate_or_the_count(steps in prop::collection::vec(step(), 1..200)) {
        let breaker = BreakerConfig { consecutive_failures: 6, open_for: seconds(5), ..BreakerConfig::default() };
        let change = |key: &mut gleaner_governor::Config| (key.max_concurrency, key.breaker) = (4, breaker);
        let desk = Desk::new(with(RegistryConfig::default(), change));
        let mut watched = Watched { desk, in_flight: Vec::new(), sends: 0, last_send: None, gate: Time::ZERO };
        for step in &steps {
            watched.take(step)?;
        }
        watched.take(&Step::Look)?;
    }
}

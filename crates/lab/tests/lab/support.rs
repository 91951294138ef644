//! Shared by several tests: scenarios from short texts, and a law that sends on command.

use gleaner_governor::Time;
use gleaner_lab::laws::{Answer, Law, Step};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::sim::{Counts, at, run};
use gleaner_lab::trace::Trace;

/// A scenario whose latency does not vary, with `text` added.
pub(crate) fn scenario(text: &str) -> Scenario {
    let latency = if text.contains("[latency]") { "" } else { "\n[latency]\nbase_ms = 120\nsigma = 0\n" };
    Scenario::parse("test.toml", &format!("name = \"test\"\n{text}{latency}")).unwrap()
}

/// Sends at fixed times, whatever is answered, and keeps the answers.
#[derive(Debug, Default)]
pub(crate) struct Script {
    times: Vec<Time>,
    next: usize,
    pub(crate) answers: Vec<Answer>,
}

impl Script {
    pub(crate) fn new(times_s: &[f64]) -> Self {
        Self { times: times_s.iter().map(|&s| at(s)).collect(), ..Self::default() }
    }
}

impl Law for Script {
    fn poll(&mut self, _worker: usize, now: Time, _random: u64) -> Step {
        match self.times.get(self.next) {
            Some(&time) if time > now => Step::WaitUntil(time),
            Some(_) => {
                self.next += 1;
                Step::Send
            }
            None => Step::WaitForAnswer,
        }
    }

    fn on_answer(&mut self, _worker: usize, _sent_at: Time, answer: &Answer, _now: Time, _random: u64) {
        self.answers.push(answer.clone());
    }
}

/// Counts of a run that sends at `times_s`.
pub(crate) fn run_script(scenario: &Scenario, times_s: &[f64]) -> Counts {
    run(scenario, &mut Script::new(times_s), 1, &mut Trace::new(scenario.horizon_s))
}

//! One run in figures: goodput against the oracle, violations, bans, latency, and the score.

use crate::laws::{self, LawName};
use crate::oracle::{self, Best};
use crate::provider::LimitState;
use crate::scenario::Scenario;
use crate::sim::{self, Counts};
use crate::trace::Trace;

/// Share of the true limit at which a law counts as converged.
const CONVERGED: f64 = 0.9;
/// Up to this many rejections in all are forgiven whatever their share: a limit that says nothing
/// costs a few refusals to find, however few requests the horizon has room for.
pub const REJECTIONS_FORGIVEN: u64 = 6;

/// Figures of one law on one scenario with one seed.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The scenario.
    pub scenario: String,
    /// The law.
    pub law: LawName,
    /// Requests that could be in flight.
    pub workers: usize,
    /// The seed.
    pub seed: u64,
    /// Raw counts.
    pub counts: Counts,
    /// Requests that the oracle gets accepted.
    pub oracle: u64,
    /// Accepted over the oracle's; with a backlog, the oracle's time over ours.
    pub goodput: f64,
    /// Rejected over sent.
    pub violation_ratio: f64,
    /// Time until nine tenths of the limit were reached; `None`: never.
    pub converge_s: Option<f64>,
    /// Longest time until nine tenths of a changed limit were reached; `None`: no change, or never.
    pub recover_s: Option<f64>,
    /// The score.
    pub score: f64,
}

impl Figures {
    /// Whether violations are within `share`, or so few that a share says nothing.
    #[must_use]
    pub fn violations_within(&self, share: f64) -> bool {
        self.violation_ratio <= share || self.counts.rejected <= REJECTIONS_FORGIVEN
    }

    /// What the scenario expects and this run missed, in words; empty when all is well.
    #[must_use]
    pub fn missed(&self, scenario: &Scenario) -> Vec<String> {
        let expect = &scenario.expect;
        let mut missed = Vec::new();
        if let Some(min) = expect.goodput_min.filter(|&min| self.goodput < min) {
            missed.push(format!("goodput {:.3} < {min}", self.goodput));
        }
        if let Some(max) = expect.violations_max.filter(|&max| !self.violations_within(max)) {
            missed.push(format!("violations {:.4} > {max}", self.violation_ratio));
        }
        if let Some(max) = expect.bans_max.filter(|&max| self.counts.bans > max) {
            missed.push(format!("bans {} > {max}", self.counts.bans));
        }
        if let Some(max) = expect.latency_ratio_max.filter(|&max| self.counts.latency_ratio > max) {
            missed.push(format!("latency ratio {:.2} > {max}", self.counts.latency_ratio));
        }
        missed
    }
}

/// Runs one law on one scenario.
#[must_use]
pub fn measure(scenario: &Scenario, law: LawName, seed: u64) -> Figures {
    measure_traced(scenario, law, seed).0
}

/// The same, with the samples behind the figures.
#[must_use]
pub fn measure_traced(scenario: &Scenario, law: LawName, seed: u64) -> (Figures, Trace) {
    let best = oracle::best(scenario, seed);
    let mut trace = Trace::new(scenario.horizon_s);
    let counts = sim::run(scenario, laws::build(law, scenario).as_mut(), seed, &mut trace);
    (figures(scenario, law, seed, counts, best, &trace), trace)
}

fn figures(scenario: &Scenario, law: LawName, seed: u64, counts: Counts, best: Best, trace: &Trace) -> Figures {
    let goodput = if scenario.backlog > 0 && counts.accepted >= scenario.backlog {
        best.completion_s.max(1e-9) / counts.completion_s.max(1e-9)
    } else {
        counts.accepted as f64 / best.accepted.max(1) as f64
    };
    let violation_ratio = counts.rejected as f64 / counts.sent.max(1) as f64;
    let bans_per_day = counts.bans as f64 * 86_400.0 / scenario.horizon_s;
    let slow = (counts.latency_ratio - 2.0).max(0.0);
    let score = (goodput.min(1.0) - 10.0 * violation_ratio - 5.0 * bans_per_day - 0.1 * slow).max(0.0);
    let (converge_s, recover_s) = reached(scenario, trace);
    Figures {
        scenario: scenario.name.clone(),
        law,
        workers: scenario.workers,
        seed,
        counts,
        oracle: best.accepted,
        goodput,
        violation_ratio,
        converge_s,
        recover_s,
        score,
    }
}

/// Times until nine tenths of the limit were reached: from the start, and after the slowest change.
fn reached(scenario: &Scenario, trace: &Trace) -> (Option<f64>, Option<f64>) {
    let mut starts: Vec<f64> = scenario.limits.iter().map(|l| l.from_s).filter(|&s| s < scenario.horizon_s).collect();
    starts.push(0.0);
    starts.sort_by(f64::total_cmp);
    starts.dedup();
    let mut times = starts.iter().enumerate().map(|(index, &from)| {
        let until = starts.get(index + 1).copied().unwrap_or(scenario.horizon_s);
        let rate = limit_at(scenario, from);
        let span = (20.0 / rate).max(10.0);
        trace.reaches(rate * CONVERGED, span, from, until)
    });
    let first = times.next().flatten();
    let rest: Vec<Option<f64>> = times.collect();
    let slowest = rest.iter().copied().collect::<Option<Vec<f64>>>().and_then(|all| all.into_iter().reduce(f64::max));
    (first, slowest)
}

/// The long-run rate that is possible at `at_s`: by limits, workers and the owner's ceiling.
#[must_use]
pub fn limit_at(scenario: &Scenario, at_s: f64) -> f64 {
    let latency_s = scenario.latency.base_ms / 1000.0;
    let client = (scenario.workers as f64 / latency_s).min(1000.0 / scenario.ceiling_interval_ms);
    scenario
        .limits
        .iter()
        .map(LimitState::new)
        .filter(|limit| limit.is_active(at_s))
        .map(|limit| limit.sustained_rate(latency_s))
        .fold(client, f64::min)
}

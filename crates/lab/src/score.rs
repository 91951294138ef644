//! Figures of one run: goodput against the oracle, violations, bans, latency, and the score.
//!
//! docs/lab.md defines them. Never runs anything twice or averages: the caller does that.

use crate::laws::{self, LawName};
use crate::oracle::{self, Best};
use crate::provider::LimitState;
use crate::scenario::Scenario;
use crate::sim::{self, Counts};
use crate::trace::{Goal, Trace};
use gleaner_governor::Tuning;

/// Share of the true limit at which a law counts as converged.
const CONVERGED: f64 = 0.9;
/// Span of that measurement, in requests at the limit and in seconds at least: long enough for a share of a tenth to
/// matter.
const SPAN_REQUESTS: f64 = 20.0;
const SPAN_MIN_S: f64 = 10.0;
/// This many rejections in total are always forgiven: finding an undocumented limit costs a few refusals, however few
/// requests the horizon has.
pub const REJECTIONS_FORGIVEN: u64 = 6;

/// Figures of one law on one scenario with one seed.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The scenario.
    pub scenario: String,
    /// The law.
    pub law: LawName,
    /// Maximum of requests in flight.
    pub workers: usize,
    /// The seed.
    pub seed: u64,
    /// Raw counts.
    pub counts: Counts,
    /// Requests accepted with the oracle.
    pub oracle: u64,
    /// Accepted divided by the oracle's; with a backlog, the oracle's time divided by ours.
    pub goodput: f64,
    /// Rejected divided by sent.
    pub violation_ratio: f64,
    /// Time until the law held nine tenths of the limit with at most a tenth refused; `None`: never.
    pub converge_s: Option<f64>,
    /// The same after the slowest change; after a fall, until refusals ended. `None`: no change, or never.
    pub recover_s: Option<f64>,
    /// The score.
    pub score: f64,
}

impl Figures {
    /// Whether violations are within `share`, or too few for a share to matter.
    pub fn violations_within(&self, share: f64) -> bool {
        self.violation_ratio <= share || self.counts.rejected <= REJECTIONS_FORGIVEN
    }

    /// The expectations of the scenario that this run missed, in words.
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

/// Runs one law on one scenario, with the shipped numbers.
pub fn measure(scenario: &Scenario, law: LawName, seed: u64) -> Figures {
    measure_traced(scenario, law, seed).0
}

/// The same, with the samples behind the figures.
pub fn measure_traced(scenario: &Scenario, law: LawName, seed: u64) -> (Figures, Trace) {
    measure_tuned(scenario, law, seed, Tuning::SHIPPED)
}

/// The same with other numbers of the law `gleaner`.
pub fn measure_tuned(scenario: &Scenario, law: LawName, seed: u64, tuning: &'static Tuning) -> (Figures, Trace) {
    let best = oracle::best(scenario, seed);
    let mut trace = Trace::new(scenario.horizon_s);
    let counts = sim::run(scenario, laws::build(law, scenario, tuning).as_mut(), seed, &mut trace);
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

/// Times until the law holds the limit: from the start, and after the slowest change. After a fall it is enough that
/// refusals ended, because the goodput is high anyway.
fn reached(scenario: &Scenario, trace: &Trace) -> (Option<f64>, Option<f64>) {
    let changes = changes(scenario);
    let mut times = changes.iter().enumerate().map(|(index, &(from, rate))| {
        let until = changes.get(index + 1).map_or(scenario.horizon_s, |&(at, _)| at);
        let fell = index > 0 && rate < changes[index - 1].1;
        let possible = rate * (1.0 - scenario.noise.server_error - scenario.noise.reset);
        let accepted_per_s = if fell { 0.0 } else { possible * CONVERGED };
        let span_s = (SPAN_REQUESTS / rate).max(SPAN_MIN_S);
        trace.reaches(&Goal { accepted_per_s, refused_max: 1.0 - CONVERGED, span_s }, from, until)
    });
    let first = times.next().flatten();
    let rest: Vec<Option<f64>> = times.collect();
    let slowest = rest.iter().copied().collect::<Option<Vec<f64>>>().and_then(|all| all.into_iter().reduce(f64::max));
    (first, slowest)
}

/// Times at which the possible rate changes, the start first, and the rate from then on.
pub(crate) fn changes(scenario: &Scenario) -> Vec<(f64, f64)> {
    let moments = scenario.limits.iter().flat_map(|limit| [limit.from_s, limit.until_s]);
    let mut moments: Vec<f64> = moments.filter(|&at_s| at_s > 0.0 && at_s < scenario.horizon_s).collect();
    moments.sort_by(f64::total_cmp);
    let mut changes: Vec<(f64, f64)> =
        [0.0].into_iter().chain(moments).map(|at_s| (at_s, limit_at(scenario, at_s))).collect();
    changes.dedup_by(|later, earlier| later.1 == earlier.1);
    changes
}

/// The possible average rate at `at_s`: by limits, workers and ceiling.
pub fn limit_at(scenario: &Scenario, at_s: f64) -> f64 {
    // The mean of a log-normal, not its median: the mean keeps a worker busy.
    let latency_s = scenario.latency.base_ms / 1000.0 * (scenario.latency.sigma.powi(2) / 2.0).exp();
    let client = (scenario.workers as f64 / latency_s).min(1000.0 / scenario.ceiling_interval_ms);
    scenario
        .limits
        .iter()
        .map(LimitState::new)
        .filter(|limit| limit.is_active(at_s))
        .map(|limit| limit.sustained_rate(latency_s))
        .fold(client, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "name = \"steps\"
[latency]
sigma = 0
[[limit]]
kind = \"token_bucket\"
rate_per_s = 10
burst = 20
until_s = 1800
[[limit]]
kind = \"token_bucket\"
rate_per_s = 5
burst = 10
from_s = 1800
";

    /// A trace of a law that is accepted and refused at these rates from these times on.
    fn trace(horizon_s: f64, parts: &[(f64, f64, f64)]) -> Trace {
        let mut trace = Trace::new(horizon_s);
        for tick in 0..(horizon_s * 10.0) as u64 {
            let now = tick as f64 / 10.0;
            let (_, accepted, refused) = parts.iter().rev().find(|part| part.0 <= now).copied().unwrap_or_default();
            let due = |rate: f64| (rate * (now + 0.1) + 1e-6).floor() > (rate * now + 1e-6).floor();
            due(accepted).then(|| trace.accepted(now));
            due(refused).then(|| trace.rejected(now));
        }
        trace
    }

    #[track_caller]
    fn check(parts: &[(f64, f64, f64)], converge_s: Option<f64>, recover_s: Option<f64>) {
        let scenario = Scenario::parse("steps.toml", LIMITS).unwrap();
        let (converged, recovered) = reached(&scenario, &trace(3600.0, parts));
        let near = |ours: Option<f64>, expected: Option<f64>| match (ours, expected) {
            // A bin is 1.5 s long, and a tenth of the span may still be from before.
            (Some(ours), Some(expected)) => (ours - expected).abs() <= 3.0,
            (ours, expected) => ours == expected,
        };
        assert!(near(converged, converge_s) && near(recovered, recover_s), "{converged:?} {recovered:?}");
    }

    #[test]
    fn converging_takes_nine_tenths_of_the_limit_and_few_refusals() {
        check(&[(0.0, 5.0, 0.0), (100.0, 9.5, 0.0), (1800.0, 4.0, 0.0)], Some(100.0), Some(0.0));
        check(&[(0.0, 8.0, 0.0), (1800.0, 4.0, 0.0)], None, Some(0.0));
        // A law that is refused a third of the time has found nothing.
        check(&[(0.0, 10.0, 5.0), (200.0, 9.5, 0.0), (1800.0, 4.0, 0.0)], Some(200.0), Some(0.0));
    }

    #[test]
    fn a_fall_is_recovered_from_when_refusals_cease() {
        check(&[(0.0, 9.5, 0.0), (1800.0, 5.0, 4.0), (1830.0, 3.0, 0.0)], Some(0.0), Some(30.0));
        check(&[(0.0, 9.5, 0.0), (1800.0, 5.0, 4.0)], Some(0.0), None);
    }

    #[test]
    fn the_end_of_a_limit_is_a_change_too() {
        let text = LIMITS.replace("from_s = 1800", "from_s = 1800\nuntil_s = 3000");
        let scenario = Scenario::parse("steps.toml", &text).unwrap();
        // After the last limit the owner's ceiling of 20 ms is what holds.
        assert_eq!(changes(&scenario), [(0.0, 10.0), (1800.0, 5.0), (3000.0, 50.0)]);
    }

    #[test]
    fn the_score_is_that_of_docs_lab_md() {
        let scenario = Scenario::parse("steps.toml", "name = \"day\"\nhorizon_s = 86400").unwrap();
        let score = |accepted, rejected, bans, latency_ratio| {
            let counts = Counts { sent: 1000, accepted, rejected, bans, latency_ratio, ..Counts::default() };
            let best = Best { accepted: 1000, completion_s: 86_400.0 };
            figures(&scenario, LawName::Gleaner, 1, counts, best, &Trace::new(86_400.0)).score
        };
        assert!((score(950, 10, 0, 1.5) - 0.85).abs() < 1e-12); // 0.95 - 10 × 0.01
        assert!((score(950, 10, 0, 4.0) - 0.65).abs() < 1e-12); // and 0.1 × (4 - 2)
        assert_eq!(score(1000, 0, 1, 1.0), 0.0); // one ban a day costs 5
        assert_eq!(score(2000, 0, 0, 1.0), 1.0); // more than the oracle is no more than 1
    }
}

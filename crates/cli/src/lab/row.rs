//! One run as one line of JSON. Other programs read it: keys are only ever added, at the end.

use gleaner_lab::scenario::Scenario;
use gleaner_lab::score::Figures;
use serde::Serialize;

#[derive(Serialize)]
struct Row<'a> {
    scenario: &'a str,
    law: &'static str,
    workers: usize,
    seed: u64,
    accepted: u64,
    rejected: u64,
    sent: u64,
    bans: u64,
    oracle: u64,
    goodput: f64,
    violation_ratio: f64,
    latency_ratio: Option<f64>,
    converge_s: Option<f64>,
    sends_inside_retry_after: u64,
    score: f64,
    retries: u64,
    recover_s: Option<f64>,
    completion_s: Option<f64>,
}

/// The line, without its end. Where there is no value (nothing accepted, no backlog) it says `null`.
pub(crate) fn json(scenario: &Scenario, figures: &Figures) -> String {
    let counts = &figures.counts;
    let done = scenario.backlog > 0 && counts.accepted >= scenario.backlog;
    let row = Row {
        scenario: &figures.scenario,
        law: figures.law.as_str(),
        workers: figures.workers,
        seed: figures.seed,
        accepted: counts.accepted,
        rejected: counts.rejected,
        sent: counts.sent,
        bans: counts.bans,
        oracle: figures.oracle,
        goodput: figures.goodput,
        violation_ratio: figures.violation_ratio,
        latency_ratio: (counts.accepted > 0).then_some(counts.latency_ratio),
        converge_s: figures.converge_s,
        sends_inside_retry_after: counts.sends_inside_retry_after,
        score: figures.score,
        retries: counts.retries,
        recover_s: figures.recover_s,
        completion_s: done.then_some(counts.completion_s),
    };
    to_line(&row)
}

/// Serialises flat structs of strings and numbers, which cannot fail.
pub(crate) fn to_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers always have a JSON form")
}

//! Figures of a run against nginx, from nginx's own log.

use crate::server::RATE_PER_S;

/// Accepted requests after which a run has had time to learn.
const WARM_UP: usize = 300;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) name: String,
    /// Answers that the callers received.
    pub(crate) answered: usize,
    pub(crate) accepted: usize,
    pub(crate) rejected: usize,
    /// Accepted per second over the limit, from the first request on.
    pub(crate) overall: f64,
    /// The same after the first 300 accepted.
    pub(crate) steady: f64,
}

impl Figures {
    pub(crate) fn new(name: &str, answered: usize, log: &[(f64, bool)]) -> Self {
        let accepted: Vec<f64> = log.iter().filter(|(_, accepted)| *accepted).map(|&(at, _)| at).collect();
        let last = accepted.last().copied().unwrap_or_default();
        let share = |from: f64, count: usize| count as f64 / (last - from) / f64::from(RATE_PER_S);
        Self {
            name: name.to_owned(),
            answered,
            accepted: accepted.len(),
            rejected: log.len() - accepted.len(),
            overall: share(log[0].0, accepted.len()),
            steady: accepted.get(WARM_UP - 1).map_or(f64::NAN, |&from| share(from, accepted.len() - WARM_UP)),
        }
    }

    pub(crate) fn rejected_share(&self) -> f64 {
        self.rejected as f64 / (self.accepted + self.rejected) as f64
    }
}

/// A table for people; `scripts/test --all` shows it.
#[expect(clippy::print_stdout, reason = "figures are what these tests are for")]
pub(crate) fn print(title: &str, runs: &[Figures]) {
    println!("\n{title}");
    println!("{:<28}{:>10}{:>10}{:>11}{:>10}{:>10}", "", "answered", "rejected", "rejected", "overall", "after 300");
    for run in runs {
        println!(
            "{:<28}{:>10}{:>10}{:>9.2} %{:>9.1} %{:>9.1} %",
            run.name,
            run.answered,
            run.rejected,
            100.0 * run.rejected_share(),
            100.0 * run.overall,
            100.0 * run.steady
        );
    }
}

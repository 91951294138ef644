//! Summary of many runs: the means and the worst of a law.

use crate::score::Figures;

/// Target for the share of refused requests of a run; up to six in total always pass.
pub const TARGET_VIOLATIONS: f64 = 0.003;

/// Target for the goodput of every run.
pub const TARGET_GOODPUT: f64 = 0.90;

/// Whether a run meets all targets: goodput, refusals, no suspension, and nothing sent inside a Retry-After.
pub fn is_on_target(figures: &Figures) -> bool {
    figures.goodput >= TARGET_GOODPUT
        && figures.violations_within(TARGET_VIOLATIONS)
        && figures.counts.bans == 0
        && figures.counts.sends_inside_retry_after == 0
}

/// A law over all its runs.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Runs.
    pub runs: usize,
    /// Mean goodput.
    pub goodput_mean: f64,
    /// Lowest goodput.
    pub goodput_worst: f64,
    /// Index of the run with the lowest goodput.
    pub worst: usize,
    /// Mean share of refused requests.
    pub violation_mean: f64,
    /// Runs over [`TARGET_VIOLATIONS`].
    pub over_target: usize,
    /// Total of suspensions.
    pub bans: u64,
    /// Total of sends inside a Retry-After.
    pub sends_inside_retry_after: u64,
    /// Mean score.
    pub score_mean: f64,
    /// Lowest score.
    pub score_worst: f64,
}

impl Summary {
    /// Sums up; `None` without runs.
    pub fn from_runs(figures: &[&Figures]) -> Option<Self> {
        let mean = |value: fn(&Figures) -> f64| figures.iter().map(|f| value(f)).sum::<f64>() / figures.len() as f64;
        let (worst, least) = figures.iter().enumerate().min_by(|a, b| a.1.goodput.total_cmp(&b.1.goodput))?;
        Some(Self {
            runs: figures.len(),
            goodput_mean: mean(|f| f.goodput),
            goodput_worst: least.goodput,
            worst,
            violation_mean: mean(|f| f.violation_ratio),
            over_target: figures.iter().filter(|f| !f.violations_within(TARGET_VIOLATIONS)).count(),
            bans: figures.iter().map(|f| f.counts.bans).sum(),
            sends_inside_retry_after: figures.iter().map(|f| f.counts.sends_inside_retry_after).sum(),
            score_mean: mean(|f| f.score),
            score_worst: figures.iter().map(|f| f.score).fold(f64::INFINITY, f64::min),
        })
    }
}

/// The better end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Goodput, score.
    High,
    /// Violations, bans.
    Low,
}

/// Distribution of a figure over many runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Half of the runs are better.
    pub median: f64,
    /// One run in twenty is this bad or worse.
    pub tail: f64,
    /// The worst.
    pub worst: f64,
}

impl Spread {
    /// The spread of `values`; `None` without any.
    pub fn from_values(mut values: Vec<f64>, better: Better) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        if better == Better::Low {
            values.reverse();
        }
        // From worst to best: the value at the given share of runs.
        let at = |share: f64| values.get(((values.len() as f64 * share).ceil() as usize).max(1) - 1).copied();
        Some(Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: at(0.5)?,
            tail: at(0.05)?,
            worst: *values.first()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_bad_end() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let high = Spread::from_values(values.clone(), Better::High).unwrap();
        assert_eq!(high, Spread { mean: 50.5, median: 50.0, tail: 5.0, worst: 1.0 });
        let low = Spread::from_values(values, Better::Low).unwrap();
        assert_eq!(low, Spread { mean: 50.5, median: 51.0, tail: 96.0, worst: 100.0 });
        assert_eq!(Spread::from_values(Vec::new(), Better::Low), None);
    }
}

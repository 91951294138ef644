//! A trace in columns, as drawn by terminal and page charts.
//!
//! A column holds about two dozen requests at the limit and, if enough columns remain, a whole window. Narrower ones
//! would show the noise of small counts and the sawtooth of a window, which say nothing about the law.

use crate::scenario::Scenario;
use crate::score::{Figures, changes};
use crate::trace::{BINS, Trace};

/// Minimum number of requests at the limit per column.
const REQUESTS_PER_COLUMN: f64 = 25.0;
/// Minimum number of columns when windows would make them wider.
const COLUMNS_MIN: f64 = 60.0;
/// Space above the highest limit: the minimum makes crossing it visible, the maximum keeps a limit apart from zero.
const HEADROOM: f64 = 1.5;
const HEADROOM_MAX: f64 = 12.0;

/// Refusals at the same position of a chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// When.
    pub at_s: f64,
    /// How many.
    pub count: u32,
}

/// Samples of one run, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Series {
    /// Length of the time axis.
    pub span_s: f64,
    /// The true limit: start and value.
    pub limit: Vec<(f64, f64)>,
    /// Accepted per second, per column.
    pub accepted: Vec<f64>,
    /// The law's own estimate of its rate, per column.
    pub own: Vec<Option<f64>>,
    /// Refusals.
    pub marks: Vec<Mark>,
}

impl Series {
    /// Cuts a run into at most `columns_max` columns, and its refusals into `spots` positions.
    pub fn new(scenario: &Scenario, figures: &Figures, trace: &Trace, columns_max: usize, spots: usize) -> Self {
        let done = scenario.backlog > 0 && figures.counts.accepted >= scenario.backlog;
        let span_s = if done { figures.counts.completion_s.max(trace.bin_s) } else { scenario.horizon_s };
        let mut limit = changes(scenario);
        limit.retain(|&(at_s, _)| at_s < span_s);
        let columns = columns(scenario, span_s, &limit, columns_max);
        let edge = |column: usize| (span_s * column as f64 / columns as f64 / trace.bin_s).round() as usize;
        let edges: Vec<(usize, usize)> =
            (0..columns).map(|c| (edge(c), edge(c + 1))).filter(|(from, to)| to > from).collect();
        let per_second =
            |&(from, to): &(usize, usize)| trace.accepted_in(from, to) as f64 / ((to - from) as f64 * trace.bin_s);
        Self {
            span_s,
            limit,
            accepted: edges.iter().map(per_second).collect(),
            own: edges.iter().map(|&(from, to)| trace.rate_in(from, to)).collect(),
            marks: marks(&refusals(trace, figures.counts.rejected), span_s, spots),
        }
    }

    /// The highest limit.
    pub fn limit_max(&self) -> f64 {
        self.limit.iter().map(|&(_, rate)| rate).fold(0.0, f64::max)
    }

    /// The top of the rate axis: above the highest limit and the accepted rate, unless that dwarfs the limit.
    pub fn top(&self) -> f64 {
        let (limit, accepted) = (self.limit_max(), self.accepted.iter().copied().fold(0.0, f64::max));
        (accepted * 1.05).clamp(limit * HEADROOM, limit * HEADROOM_MAX)
    }

    /// The limit at a time.
    pub fn limit_at(&self, at_s: f64) -> f64 {
        self.limit.iter().rev().find(|&&(from, _)| from <= at_s).map_or(0.0, |&(_, rate)| rate)
    }
}

fn columns(scenario: &Scenario, span_s: f64, limit: &[(f64, f64)], columns_max: usize) -> usize {
    let lowest = limit.iter().map(|&(_, rate)| rate).fold(f64::INFINITY, f64::min).max(1e-9);
    let window_s = scenario.limits.iter().filter_map(|limit| limit.window_s).fold(0.0, f64::max);
    let width_s = (REQUESTS_PER_COLUMN / lowest).max(window_s).min(span_s / COLUMNS_MIN);
    ((span_s / width_s) as usize).clamp(1, columns_max.max(1))
}

/// Times of refusals: exact, or by bin where the trace could not keep all.
fn refusals(trace: &Trace, rejected: u64) -> Vec<Mark> {
    let times = &trace.rejections;
    if times.len() as u64 >= rejected {
        return times.iter().map(|&at_s| Mark { at_s, count: 1 }).collect();
    }
    let in_bin = |bin: usize| u32::try_from(trace.refused_in(bin, bin + 1)).unwrap_or(u32::MAX);
    (0..BINS)
        .map(|bin| Mark { at_s: (bin as f64 + 0.5) * trace.bin_s, count: in_bin(bin) })
        .filter(|mark| mark.count > 0)
        .collect()
}

/// Merges refusals at the same of `spots` positions.
fn marks(refusals: &[Mark], span_s: f64, spots: usize) -> Vec<Mark> {
    let spot_s = span_s / spots.max(1) as f64;
    let mut marks: Vec<Mark> = Vec::new();
    for mark in refusals {
        match marks.last_mut() {
            Some(last) if (mark.at_s / spot_s).floor() == (last.at_s / spot_s).floor() => last.count += mark.count,
            _ => marks.push(*mark),
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_on_one_spot_are_one_mark_with_a_count() {
        let refusals = [1.0, 1.5, 30.0, 99.9].map(|at_s| Mark { at_s, count: 1 });
        let marks = marks(&refusals, 100.0, 10);
        assert_eq!(marks.iter().map(|m| (m.at_s, m.count)).collect::<Vec<_>>(), [(1.0, 2), (30.0, 1), (99.9, 1)]);
    }

    #[test]
    fn the_limit_is_a_step_at_each_change() {
        let text = "name = \"x\"\nhorizon_s = 100\n[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 5\nburst = 1\n\
                    until_s = 40\n[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 2\nburst = 1\nfrom_s = 40";
        let scenario = Scenario::parse("x", text).unwrap();
        assert_eq!(changes(&scenario), [(0.0, 5.0), (40.0, 2.0)]);
    }
}

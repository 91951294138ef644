//! Samples over time, for charts, convergence and recovery times.
//!
//! Bounded: accepted requests and rates are sums per bin, rejections are times up to a maximum. A chart never needs
//! the whole run.

/// Bins over the horizon: two per pixel column of a wide chart.
pub(crate) const BINS: usize = 2400;
/// Maximum of stored rejections; more add nothing to a chart.
const REJECTIONS_MAX: usize = 20_000;

/// Samples of one run.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Length of a bin.
    pub bin_s: f64,
    accepted: Vec<u32>,
    refused: Vec<u32>,
    rate_sum: Vec<f64>,
    rate_samples: Vec<u32>,
    /// Times of refusals.
    pub rejections: Vec<f64>,
}

impl Trace {
    /// An empty trace over `horizon_s`.
    pub fn new(horizon_s: f64) -> Self {
        Self {
            bin_s: horizon_s / BINS as f64,
            accepted: vec![0; BINS],
            refused: vec![0; BINS],
            rate_sum: vec![0.0; BINS],
            rate_samples: vec![0; BINS],
            rejections: Vec::new(),
        }
    }

    fn bin(&self, at_s: f64) -> usize {
        ((at_s / self.bin_s) as usize).min(BINS - 1)
    }

    pub(crate) fn accepted(&mut self, at_s: f64) {
        let bin = self.bin(at_s);
        self.accepted[bin] += 1;
    }

    pub(crate) fn rejected(&mut self, at_s: f64) {
        let bin = self.bin(at_s);
        self.refused[bin] += 1;
        if self.rejections.len() < REJECTIONS_MAX {
            self.rejections.push(at_s);
        }
    }

    pub(crate) fn rate(&mut self, at_s: f64, rate_per_s: Option<f64>) {
        if let Some(rate) = rate_per_s {
            let bin = self.bin(at_s);
            self.rate_sum[bin] += rate;
            self.rate_samples[bin] += 1;
        }
    }

    /// Accepted requests in bins `from..to`.
    pub fn accepted_in(&self, from: usize, to: usize) -> u64 {
        self.accepted[from.min(BINS)..to.min(BINS)].iter().map(|&n| u64::from(n)).sum()
    }

    /// All refused requests in bins `from..to`.
    pub fn refused_in(&self, from: usize, to: usize) -> u64 {
        self.refused[from.min(BINS)..to.min(BINS)].iter().map(|&n| u64::from(n)).sum()
    }

    /// The law's mean estimate of its rate in bins `from..to`, if any.
    pub fn rate_in(&self, from: usize, to: usize) -> Option<f64> {
        let samples: u32 = self.rate_samples[from.min(BINS)..to.min(BINS)].iter().sum();
        let sum: f64 = self.rate_sum[from.min(BINS)..to.min(BINS)].iter().sum();
        (samples > 0).then(|| sum / f64::from(samples))
    }

    /// Time after `from_s` at which the law begins to hold `goal` for its span; `None` when it never does before
    /// `until_s`.
    pub fn reaches(&self, goal: &Goal, from_s: f64, until_s: f64) -> Option<f64> {
        let span = ((goal.span_s / self.bin_s).ceil() as usize).max(1);
        let needed = goal.accepted_per_s * span as f64 * self.bin_s;
        let (first, last) = (self.bin(from_s), ((until_s / self.bin_s) as usize).min(BINS));
        (first..(last + 1).saturating_sub(span).max(first))
            .find(|&bin| {
                let (accepted, refused) = (self.accepted_in(bin, bin + span), self.refused_in(bin, bin + span));
                accepted as f64 >= needed && refused as f64 <= goal.refused_max * (accepted + refused) as f64
            })
            .map(|bin| (bin as f64 * self.bin_s - from_s).max(0.0))
    }
}

/// Condition for convergence.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// Minimum rate of accepted requests.
    pub accepted_per_s: f64,
    /// Maximum share of refused requests: a law that is always refused has found nothing.
    pub refused_max: f64,
    /// Duration.
    pub span_s: f64,
}

//! Many hosts as a program reads them: sums over all of them, and the ones that are used most, as JSON.

use super::Domains;
use gleaner_governor::WaitReason;
use gleaner_governor::keyed::KeySnapshot;
use serde::Serialize;
use std::time::Duration;

/// All hosts.
#[derive(Clone, Debug, Serialize)]
pub struct DomainsStatus {
    /// Requests that were let through.
    pub granted: u64,
    /// Of those, the ones that waited longer than the threshold.
    pub throttled: u64,
    /// Questions that an open circuit answered with no.
    pub denied: u64,
    /// Retries that were advised.
    pub retries: u64,
    /// Hosts that are known.
    pub known: usize,
    /// Of those, the ones that are used now or whose circuit is not closed.
    pub active: usize,
    /// Hosts that were forgotten.
    pub forgotten: u64,
    /// Circuits that let nothing through.
    pub circuits_open: usize,
    /// Circuits that let a probe through.
    pub circuits_half_open: usize,
    /// The hosts that are used most.
    pub hosts: Vec<DomainStatus>,
}

/// One host.
#[derive(Clone, Debug, Serialize)]
pub struct DomainStatus {
    /// Which.
    pub domain: Box<str>,
    /// The present rate.
    pub rate_per_s: f64,
    /// Requests that may go out at once.
    pub tokens: f64,
    /// The smoothed mean of latencies; `None` before the first answer.
    pub latency_mean_ms: Option<f64>,
    /// The 95th percentile of the last latencies.
    pub latency_p95_ms: Option<f64>,
    /// The share of recent answers that failed.
    pub error_rate: f64,
    /// The circuit: `closed`, `half_open` or `open`.
    pub circuit: &'static str,
    /// Failures in a row.
    pub failures_in_row: u16,
    /// Time until a Retry-After, a ban or an open circuit is over.
    pub opens_in_ms: f64,
    /// What a request would wait for now.
    pub waits_for: Option<&'static str>,
    /// Requests on their way.
    pub in_flight: u16,
}

impl Domains {
    /// How all hosts are, with the `top` ones that are used most; no more than the settings allow.
    #[must_use]
    pub fn status(&self, top: usize) -> DomainsStatus {
        let snapshot = self.snapshot(top);
        DomainsStatus {
            granted: snapshot.totals.granted,
            throttled: snapshot.totals.throttled,
            denied: snapshot.totals.denied,
            retries: snapshot.totals.retries,
            known: snapshot.keys_known,
            active: snapshot.keys_active,
            forgotten: snapshot.keys_forgotten,
            circuits_open: snapshot.circuits_open,
            circuits_half_open: snapshot.circuits_half_open,
            hosts: snapshot.keys.into_iter().map(DomainStatus::from).collect(),
        }
    }
}

impl From<KeySnapshot> for DomainStatus {
    fn from(key: KeySnapshot) -> Self {
        Self {
            domain: key.domain,
            rate_per_s: key.rate_per_s,
            tokens: key.tokens,
            latency_mean_ms: key.latency_mean.map(millis),
            latency_p95_ms: key.latency_p95.map(millis),
            error_rate: key.error_rate,
            circuit: key.circuit.as_str(),
            failures_in_row: key.failures_in_row,
            opens_in_ms: millis(key.opens_in),
            waits_for: key.waits_for.map(WaitReason::as_str),
            in_flight: key.in_flight,
        }
    }
}

/// With its fractions: an answer of a tenth of a millisecond is one.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

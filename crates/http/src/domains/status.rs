//! Many hosts as JSON: totals, and the most used hosts.

use super::Domains;
use gleaner_governor::WaitReason;
use gleaner_governor::keyed::KeySnapshot;
use serde_json::{Value, json};
use std::time::Duration;

impl Domains {
    /// State of all hosts as JSON, with the `top` most used ones, up to the limit in the settings. docs/fetch.md
    /// lists the fields.
    #[must_use]
    pub fn status(&self, top: usize) -> Value {
        let snapshot = self.snapshot(top);
        json!({
            "granted": snapshot.totals.granted,
            "throttled": snapshot.totals.throttled,
            "denied": snapshot.totals.denied,
            "retries": snapshot.totals.retries,
            "known": snapshot.keys_known,
            "active": snapshot.keys_active,
            "forgotten": snapshot.keys_forgotten,
            "circuits_open": snapshot.circuits_open,
            "circuits_half_open": snapshot.circuits_half_open,
            "hosts": snapshot.keys.iter().map(host).collect::<Vec<_>>(),
        })
    }
}

fn host(key: &KeySnapshot) -> Value {
    json!({
        "domain": key.domain,
        "rate_per_s": key.rate_per_s,
        "tokens": key.tokens,
        "latency_mean_ms": key.latency_mean.map(millis),
        "latency_p95_ms": key.latency_p95.map(millis),
        "error_rate": key.error_rate,
        "circuit": key.circuit.as_str(),
        "failures_in_row": key.failures_in_row,
        "opens_in_ms": millis(key.opens_in),
        "waits_for": key.waits_for.map(WaitReason::as_str),
        "in_flight": key.in_flight,
    })
}

/// With fractions: an answer may take a tenth of a millisecond.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

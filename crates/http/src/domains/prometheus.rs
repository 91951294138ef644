//! Many hosts as Prometheus text: totals, and the most used hosts.
//!
//! Hosts are labels, limited by the size of a snapshot: a scrape must not grow with the crawl.

use super::Domains;
use crate::metrics::{CIRCUIT_HELP, Gauge, circuit_number, encode_gauges, text_of};
use gleaner_governor::keyed::{KeySnapshot, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;

/// The figures of all hosts in the Prometheus text format (OpenMetrics 1.0), with the `top` most used hosts, up to
/// the limit in the settings.
///
/// # Errors
/// Writing to a string fails, which never happens.
pub fn domains_prometheus_text(domains: &Domains, top: usize) -> Result<String, fmt::Error> {
    text_of("gleaner_domains", Figures { snapshot: domains.snapshot(top) })
}

#[derive(Debug)]
struct Figures {
    snapshot: Snapshot,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_sums(&mut encoder)?;
        encode_gauges(&mut encoder, "domain", &self.snapshot.keys, |key| key.domain.to_string(), &gauges())
    }
}

impl Figures {
    fn encode_sums(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals = &self.snapshot.totals;
        for (name, help, count) in [
            ("granted", "Requests admitted", totals.granted),
            ("throttled", "Requests that waited longer than the threshold", totals.throttled),
            ("denied", "Requests denied by an open circuit", totals.denied),
            ("retries", "Retries", totals.retries),
            ("forgotten", "Hosts dropped", self.snapshot.keys_forgotten),
        ] {
            let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(counter)?;
        }
        for (name, help, count) in [
            ("known", "Hosts known", self.snapshot.keys_known),
            ("active", "Hosts in use, or whose circuit is not closed", self.snapshot.keys_active),
            ("circuits_open", "Open circuits", self.snapshot.circuits_open),
            ("circuits_half_open", "Half-open circuits", self.snapshot.circuits_half_open),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(count as f64).encode(gauge)?;
        }
        Ok(())
    }
}

fn gauges() -> [Gauge<KeySnapshot>; 8] {
    let seconds = || Some(Unit::Seconds);
    [
        ("rate", "Current rate per second", None, |key| Some(key.rate_per_s)),
        ("tokens", "Requests that may be sent at once", None, |key| Some(key.tokens)),
        ("latency_mean", "Smoothed mean latency", seconds(), |key| Some(key.latency_mean?.as_secs_f64())),
        ("latency_p95", "95th percentile of the last latencies", seconds(), |key| Some(key.latency_p95?.as_secs_f64())),
        ("error_rate", "Share of recent answers that failed", None, |key| Some(key.error_rate)),
        ("failures_in_row", "Failures in a row", None, |key| Some(f64::from(key.failures_in_row))),
        ("opens_in", "Time until the host may be asked again", seconds(), |key| Some(key.opens_in.as_secs_f64())),
        ("circuit", CIRCUIT_HELP, None, |key| Some(circuit_number(key.circuit))),
    ]
}

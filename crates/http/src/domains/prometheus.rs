//! Many hosts as Prometheus text: sums over all of them, and the ones that are used most.
//!
//! Labels are hosts, and no more of them than a snapshot may have: a scrape must not grow with the crawl.

use super::Domains;
use gleaner_governor::CircuitState;
use gleaner_governor::keyed::{KeySnapshot, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// The figures of all hosts in the text format that Prometheus reads (OpenMetrics 1.0), with the `top` hosts that are
/// used most; no more than the settings allow.
///
/// # Errors
/// When writing to a string fails, which it does not.
pub fn domains_prometheus_text(domains: &Domains, top: usize) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("gleaner_domains");
    registry.register_collector(Box::new(Figures { snapshot: domains.snapshot(top) }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Figures {
    snapshot: Snapshot,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_sums(&mut encoder)?;
        self.encode_hosts(&mut encoder)
    }
}

impl Figures {
    fn encode_sums(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals = &self.snapshot.totals;
        for (name, help, count) in [
            ("granted", "Requests that were let through", totals.granted),
            ("throttled", "Requests that waited longer than the threshold", totals.throttled),
            ("denied", "Questions that an open circuit answered", totals.denied),
            ("retries", "Retries that were advised", totals.retries),
            ("forgotten", "Hosts that were forgotten", self.snapshot.keys_forgotten),
        ] {
            let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(counter)?;
        }
        for (name, help, count) in [
            ("known", "Hosts that are known", self.snapshot.keys_known),
            ("active", "Hosts that are used now or whose circuit is not closed", self.snapshot.keys_active),
            ("circuits_open", "Circuits that let nothing through", self.snapshot.circuits_open),
            ("circuits_half_open", "Circuits that let a probe through", self.snapshot.circuits_half_open),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(count as f64).encode(gauge)?;
        }
        Ok(())
    }

    fn encode_hosts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seconds = Some(&Unit::Seconds);
        let s = |duration: std::time::Duration| duration.as_secs_f64();
        self.gauge(encoder, "rate", "Present rate per second", None, |key| Some(key.rate_per_s))?;
        self.gauge(encoder, "tokens", "Requests that may go out at once", None, |key| Some(key.tokens))?;
        let help = "Smoothed mean latency";
        self.gauge(encoder, "latency_mean", help, seconds, |key| key.latency_mean.map(s))?;
        let help = "95th percentile of the last latencies";
        self.gauge(encoder, "latency_p95", help, seconds, |key| key.latency_p95.map(s))?;
        let help = "Share of recent answers that failed";
        self.gauge(encoder, "error_rate", help, None, |key| Some(key.error_rate))?;
        let help = "Failures in a row";
        self.gauge(encoder, "failures_in_row", help, None, |key| Some(f64::from(key.failures_in_row)))?;
        let help = "Time until the host is open again";
        self.gauge(encoder, "opens_in", help, seconds, |key| Some(s(key.opens_in)))?;
        let help = "The circuit: 0 closed, 1 half open, 2 open";
        self.gauge(encoder, "circuit", help, None, |key| {
            Some(match key.circuit {
                CircuitState::Closed => 0.0,
                CircuitState::HalfOpen => 1.0,
                CircuitState::Open => 2.0,
            })
        })
    }

    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        read: impl Fn(&KeySnapshot) -> Option<f64>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for key in &self.snapshot.keys {
            if let Some(value) = read(key) {
                ConstGauge::new(value).encode(family.encode_family(&[("domain", &*key.domain)])?)?;
            }
        }
        Ok(())
    }
}

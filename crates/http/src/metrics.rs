//! All keys of a registry as Prometheus text.
//!
//! Read from the governors when somebody asks, instead of counted a second time beside them: the figures
//! of `/.gleaner/metrics` and of `/.gleaner/status` cannot disagree. Labels are keys, reasons and
//! meanings: closed sets, or bounded by the number of keys.

use crate::figures::{ANSWERS, WAIT_REASONS};
use crate::governors::Governors;
use crate::send_governor::SendGovernor;
use gleaner_governor::CircuitState;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// The figures of all keys in the text format that Prometheus reads (OpenMetrics 1.0).
///
/// # Errors
/// When writing to a string fails, which it does not.
pub fn prometheus_text(governors: &Governors) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("gleaner");
    registry.register_collector(Box::new(Figures { all: governors.all() }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Figures {
    all: Vec<SendGovernor>,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_counts(&mut encoder)?;
        self.encode_waits(&mut encoder)?;
        self.encode_pacing(&mut encoder)
    }
}

impl Figures {
    fn encode_counts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Attempts that were answered, or failed, by what the answer meant";
        let mut family = encoder.encode_descriptor("answers", help, None, MetricType::Counter)?;
        for governor in &self.all {
            let counts = governor.shared.lock().figures.answers;
            for (meaning, count) in ANSWERS.iter().zip(counts) {
                let labels = [("key", governor.key().to_string()), ("meaning", (*meaning).to_owned())];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        self.counter(encoder, "attempts", "Attempts that went out, retries included", |state| state.figures.sent)?;
        self.counter(encoder, "retries", "Attempts that repeated one before", |state| state.figures.retried)?;
        let help = "Times that what was learned could not be written down";
        self.counter(encoder, "memory_errors", help, |state| state.figures.memory_errors)
    }

    fn encode_waits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time that requests waited before they were sent, by what they waited for";
        let mut family = encoder.encode_descriptor("wait", help, Some(&Unit::Seconds), MetricType::Counter)?;
        for governor in &self.all {
            let waited = governor.shared.lock().figures.waited;
            for (reason, (_, sum)) in WAIT_REASONS.iter().zip(waited) {
                let labels = [("key", governor.key().to_string()), ("reason", (*reason).to_owned())];
                ConstCounter::new(sum.as_secs_f64()).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Requests that wait for their turn now";
        self.gauge(encoder, "waiting", help, None, |governor| Some(governor.shared.lock().waiting() as f64))
    }

    fn encode_pacing(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seconds = Some(&Unit::Seconds);
        let snapshot = |governor: &SendGovernor| {
            let now = governor.shared.clock.now();
            governor.shared.lock().governor.snapshot(now).map(|snapshot| (snapshot, now))
        };
        let help = "Present time between two sends; absent when pacing is opted out";
        self.gauge(encoder, "interval", help, seconds, |governor| {
            snapshot(governor).map(|(snapshot, _)| snapshot.interval.as_secs_f64())
        })?;
        let help = "The owner's shortest time between two sends";
        self.gauge(encoder, "ceiling_interval", help, seconds, |governor| {
            snapshot(governor).map(|(snapshot, _)| snapshot.ceiling_interval.as_secs_f64())
        })?;
        let help = "Time until the next request may go out";
        self.gauge(encoder, "next_send", help, seconds, |governor| {
            snapshot(governor).map(|(snapshot, now)| snapshot.next_allowed.since(now).as_secs_f64())
        })?;
        let help = "Requests in flight";
        self.gauge(encoder, "in_flight", help, None, |governor| {
            snapshot(governor).map(|(snapshot, _)| f64::from(snapshot.in_flight))
        })?;
        let help = "The circuit: 0 closed, 1 half open, 2 open";
        self.gauge(encoder, "circuit", help, None, |governor| {
            let now = governor.shared.clock.now();
            Some(match governor.shared.lock().governor.circuit(now) {
                CircuitState::Closed => 0.0,
                CircuitState::HalfOpen => 1.0,
                CircuitState::Open => 2.0,
            })
        })
    }

    fn counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        read: impl Fn(&crate::send_governor::State) -> u64,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for governor in &self.all {
            let labels = [("key", governor.key().to_string())];
            let count = read(&governor.shared.lock());
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        read: impl Fn(&SendGovernor) -> Option<f64>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for governor in &self.all {
            let labels = [("key", governor.key().to_string())];
            if let Some(value) = read(governor) {
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governors::Settings;
    use crate::key::Key;

    #[test]
    fn every_key_is_there_and_what_is_unknown_is_absent() {
        let governors = Governors::new();
        governors.governor(&Key::new("paced"), &Settings::default()).unwrap();
        let mut settings = Settings::default();
        settings.config.discovery_interval = std::time::Duration::ZERO;
        governors.governor(&Key::new("free"), &settings).unwrap();
        let text = prometheus_text(&governors).unwrap();
        for line in [
            "gleaner_interval_seconds{key=\"paced\"} 1.0",
            "gleaner_attempts_total{key=\"free\"} 0",
            "gleaner_answers_total{key=\"paced\",meaning=\"rejected\"} 0",
            "gleaner_wait_seconds_total{key=\"paced\",reason=\"gate\"} 0.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("gleaner_interval_seconds{key=\"free\"}"), "{text}");
    }
}

//! All keys of a registry as Prometheus text.
//!
//! Read from the governors on each scrape instead of counted twice, so that `/.gleaner/metrics` and
//! `/.gleaner/status` cannot disagree. Labels are keys, reasons and meanings: fixed sets, or limited by the number of
//! keys.

use crate::figures::{ANSWERS, WAIT_REASONS};
use crate::governors::Governors;
use crate::send_governor::{SendGovernor, State};
use gleaner_governor::{CircuitState, Snapshot, Time};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// The figures of all keys in the Prometheus text format (OpenMetrics 1.0).
///
/// # Errors
/// Writing to a string fails, which never happens.
pub fn prometheus_text(governors: &Governors) -> Result<String, fmt::Error> {
    text_of("gleaner", Figures { all: governors.all() })
}

pub(crate) fn text_of(prefix: &str, collector: impl Collector) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// A gauge per thing: name, help, unit, and reader; `None` where there is no value.
pub(crate) type Gauge<T> = (&'static str, &'static str, Option<Unit>, fn(&T) -> Option<f64>);

/// Writes gauges of all of `things`, each with its name under `label`.
pub(crate) fn encode_gauges<T>(
    encoder: &mut DescriptorEncoder<'_>,
    label: &str,
    things: &[T],
    name_of: fn(&T) -> String,
    gauges: &[Gauge<T>],
) -> fmt::Result {
    for (name, help, unit, read) in gauges {
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for thing in things {
            if let Some(value) = read(thing) {
                ConstGauge::new(value).encode(family.encode_family(&[(label, name_of(thing))])?)?;
            }
        }
    }
    Ok(())
}

/// Meaning of the numbers of [`circuit_number`].
pub(crate) const CIRCUIT_HELP: &str = "The circuit: 0 closed, 1 half open, 2 open";

pub(crate) fn circuit_number(circuit: CircuitState) -> f64 {
    match circuit {
        CircuitState::Closed => 0.0,
        CircuitState::HalfOpen => 1.0,
        CircuitState::Open => 2.0,
    }
}

/// A counter per key: name, help and reader.
type Counter = (&'static str, &'static str, fn(&State) -> u64);

#[derive(Debug)]
struct Figures {
    all: Vec<SendGovernor>,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_counts(&mut encoder)?;
        self.encode_waits(&mut encoder)?;
        encode_gauges(&mut encoder, "key", &self.all, |governor| governor.key().to_string(), &gauges())
    }
}

impl Figures {
    fn encode_counts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Attempts that were answered or failed, by meaning of the answer";
        let mut family = encoder.encode_descriptor("answers", help, None, MetricType::Counter)?;
        for governor in &self.all {
            let counts = governor.shared.lock().figures.answers;
            for (meaning, count) in ANSWERS.iter().zip(counts) {
                let labels = [("key", governor.key().to_string()), ("meaning", (*meaning).to_owned())];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let counters: [Counter; 3] = [
            ("attempts", "Attempts sent, retries included", |state| state.figures.sent),
            ("retries", "Retries sent", |state| state.figures.retried),
            ("memory_errors", "Failures to save learned rates", |state| state.figures.memory_errors),
        ];
        for (name, help, read) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for governor in &self.all {
                let count = read(&governor.shared.lock());
                ConstCounter::new(count).encode(family.encode_family(&[("key", governor.key().to_string())])?)?;
            }
        }
        Ok(())
    }

    fn encode_waits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time that requests waited before they were sent, by reason";
        let mut family = encoder.encode_descriptor("wait", help, Some(&Unit::Seconds), MetricType::Counter)?;
        for governor in &self.all {
            let waited = governor.shared.lock().figures.waited;
            for (reason, (_, sum)) in WAIT_REASONS.iter().zip(waited) {
                let labels = [("key", governor.key().to_string()), ("reason", (*reason).to_owned())];
                ConstCounter::new(sum.as_secs_f64()).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Gauges of pacing are absent when pacing is off.
fn gauges() -> [Gauge<SendGovernor>; 6] {
    fn of<T>(governor: &SendGovernor, read: impl FnOnce(Snapshot, Time) -> T) -> Option<T> {
        let now = governor.shared.clock.now();
        governor.shared.lock().governor.snapshot(now).map(|snapshot| read(snapshot, now))
    }
    let seconds = || Some(Unit::Seconds);
    [
        ("waiting", "Requests waiting for their turn", None, |governor| Some(governor.shared.lock().waiting() as f64)),
        ("interval", "Current interval between two sends; absent when pacing is off", seconds(), |governor| {
            of(governor, |snapshot, _| snapshot.interval.as_secs_f64())
        }),
        ("ceiling_interval", "Ceiling: shortest interval between two sends", seconds(), |governor| {
            of(governor, |snapshot, _| snapshot.ceiling_interval.as_secs_f64())
        }),
        ("next_send", "Time until the next request may be sent", seconds(), |governor| {
            of(governor, |snapshot, now| snapshot.next_allowed.since(now).as_secs_f64())
        }),
        ("in_flight", "Requests in flight", None, |governor| of(governor, |snapshot, _| f64::from(snapshot.in_flight))),
        ("circuit", CIRCUIT_HELP, None, |governor| {
            let now = governor.shared.clock.now();
            Some(circuit_number(governor.shared.lock().governor.circuit(now)))
        }),
    ]
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

//! Periodic work: dropping hosts, snapshots, saving, and the end with the last user.

use crate::hosts::{acquire, answer, exchange, fixed, ms, provider_takes, touchy};
use gleaner_http::{DomainSettings, Domains, domains_prometheus_text};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[tokio::test(start_paused = true)]
async fn hosts_that_nobody_uses_are_forgotten() {
    let domains = Domains::new(DomainSettings::default()).unwrap();
    let upkeep = tokio::spawn(domains.upkeep());
    for number in 0..100 {
        exchange(&domains, &format!("h{number}.com"), 200, Duration::ZERO).await;
    }
    let kept = domains.handle("h7.com").unwrap();
    provider_takes(Duration::from_secs(60)).await;
    assert_eq!((domains.len(), domains.snapshot(100).keys_active), (100, 0), "put away");
    provider_takes(Duration::from_secs(3600)).await;
    assert_eq!(domains.len(), 1);
    drop(kept);
    drop(domains);
    upkeep.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_comes_through_the_channel_as_often_as_it_was_asked_for() {
    let settings = DomainSettings { snapshot_every: Some(Duration::from_secs(5)), ..fixed(100.0) };
    let domains = Domains::new(settings).unwrap();
    let mut snapshots = domains.snapshots();
    let _upkeep = tokio::spawn(domains.upkeep());
    exchange(&domains, "a.com", 200, ms(10)).await;
    let start = tokio::time::Instant::now();
    snapshots.changed().await.unwrap();
    assert!(start.elapsed() >= ms(4900) && start.elapsed() <= ms(6000), "{:?}", start.elapsed());
    let snapshot = Arc::clone(&snapshots.borrow_and_update());
    assert_eq!((snapshot.totals.granted, &*snapshot.keys[0].domain), (1, "a.com"));
    snapshots.changed().await.unwrap();
    assert!(start.elapsed() <= ms(11_000));
}

#[tokio::test(start_paused = true)]
async fn without_being_asked_nothing_is_shown() {
    let domains = Domains::new(fixed(100.0)).unwrap();
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let snapshots = domains.snapshots();
    let _upkeep = tokio::spawn(domains.upkeep());
    exchange(&domains, "a.com", 200, ms(10)).await;
    provider_takes(Duration::from_secs(600)).await;
    assert!(!snapshots.has_changed().unwrap());
    assert_eq!(log.lines("domain"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_goes_to_the_log() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let domains =
        Domains::new(DomainSettings { snapshot_every: Some(Duration::from_secs(5)), ..fixed(100.0) }).unwrap();
    let _upkeep = tokio::spawn(domains.upkeep());
    exchange(&domains, "a.com", 500, ms(10)).await;
    provider_takes(Duration::from_secs(7)).await;
    let sums = log.lines("domains");
    assert!(
        sums[0].contains(" keys=1 active=1 granted=1 throttled=0 denied=0 retries=1 open=0 half_open=0"),
        "{sums:?}"
    );
    let hosts = log.lines("domain");
    assert!(hosts[0].contains(" domain=a.com rate_per_s=100"), "{hosts:?}");
    assert!(hosts[0].contains(" error_rate=1 circuit=closed failures_in_row=1 opens_in_ms=0"), "{hosts:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_learned_is_saved_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hosts.learned");
    let domains = Domains::remembering(DomainSettings::default(), &file).unwrap();
    let _upkeep = tokio::spawn(domains.upkeep());
    for _ in 0..100 {
        exchange(&domains, "a.com", 200, ms(10)).await;
    }
    provider_takes(Duration::from_secs(30)).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("a.com gleaner-learned-1 "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn prometheus_gets_sums_and_the_hosts_that_are_used_most() {
    let mut settings = fixed(100.0);
    settings.config.snapshot_keys_max = 2;
    settings.config.key.breaker = touchy();
    let domains = Domains::new(settings).unwrap();
    for number in 0..4 {
        for _ in 0..=number {
            exchange(&domains, &format!("h{number}.com"), 200, ms(20)).await;
        }
    }
    let permit = acquire(&domains, "h3.com").await.unwrap();
    answer(permit, 500, ms(20), "").await;
    assert!(acquire(&domains, "h3.com").await.is_err());
    let text = domains_prometheus_text(&domains, 1000).unwrap();
    for line in [
        "gleaner_domains_granted_total 11",
        "gleaner_domains_denied_total 1",
        "gleaner_domains_retries_total 0",
        "gleaner_domains_known 4.0",
        "gleaner_domains_circuits_open 1.0",
        "gleaner_domains_rate{domain=\"h3.com\"} 100.0",
        "gleaner_domains_circuit{domain=\"h3.com\"} 2.0",
        "gleaner_domains_error_rate{domain=\"h3.com\"} 0.2",
        "# EOF",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("h0.com"), "no more hosts than a snapshot may have: {text}");
}

/// Log lines as `message field=value ...`.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    fn lines(&self, message: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.split(' ').next() == Some(message)).cloned().collect()
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields += &format!(" {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields += &format!(" {}={value:?}", field.name());
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields += &format!(" {}={value}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("gleaner_http")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.message + &line.fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

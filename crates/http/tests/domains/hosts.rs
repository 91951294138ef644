//! Hosts in memory that answer by a script, and shorthands.

use gleaner_http::governor::keyed::RegistryConfig;
use gleaner_http::governor::{
    BreakerConfig, Classifier as _, DefaultClassifier, Outcome, ResponseView, Strategy, WallTime, network_error,
};
use gleaner_http::{AcquireError, CallLimits, DomainPermit, DomainSettings, Domains, Next};
use std::time::Duration;

/// A token bucket that keeps its rate, so that times can be computed by hand.
pub(crate) fn fixed(per_s: f64) -> DomainSettings {
    let mut settings = aimd(per_s);
    let key = &mut settings.config.key;
    key.strategy = Strategy::Fixed;
    key.ceiling_interval = ms(1);
    key.burst = 1.0;
    key.max_concurrency = 100;
    settings
}

/// Opens at the first failure.
pub(crate) fn touchy() -> BreakerConfig {
    BreakerConfig { throughput_min: 1, consecutive_failures: 1, ..BreakerConfig::default() }
}

pub(crate) fn aimd(per_s: f64) -> DomainSettings {
    let mut settings = DomainSettings { config: RegistryConfig::aimd(), ..DomainSettings::default() };
    settings.config.key.discovery_interval = Duration::from_secs_f64(1.0 / per_s);
    settings
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn within(max_wait: Duration) -> CallLimits {
    CallLimits { max_wait: Some(max_wait), ..CallLimits::default() }
}

pub(crate) async fn acquire(domains: &Domains, host: &str) -> Result<DomainPermit, AcquireError> {
    domains.acquire(host, &CallLimits::default()).await
}

/// The provider's time, not ours.
#[expect(clippy::disallowed_methods, reason = "this is the far side")]
pub(crate) async fn provider_takes(time: Duration) {
    tokio::time::sleep(time).await;
}

fn classified(status: u16, retry_after: &str) -> Outcome {
    let headers: &[(&str, &str)] = if retry_after.is_empty() { &[] } else { &[("retry-after", retry_after)] };
    DefaultClassifier::new().classify(&ResponseView::new(status, &headers), WallTime::from_unix_millis(0))
}

/// Tells what came back for a request that goes out now: a status (0: nothing) after some time.
pub(crate) async fn answer(mut permit: DomainPermit, status: u16, latency: Duration, retry_after: &str) -> Next {
    permit.sent();
    provider_takes(latency).await;
    if status == 0 {
        return permit.answer(&network_error(), None, 0).await;
    }
    let outcome = classified(status, retry_after);
    permit.answer(&outcome, Some(status), 0).await
}

/// Waits, sends, and gets `status` after `latency`.
pub(crate) async fn exchange(domains: &Domains, host: &str, status: u16, latency: Duration) -> Next {
    answer(acquire(domains, host).await.unwrap(), status, latency, "").await
}

/// The rate of a host.
pub(crate) fn rate(domains: &Domains, host: &str) -> f64 {
    domains.snapshot(100).keys.iter().find(|key| &*key.domain == host).unwrap().rate_per_s
}

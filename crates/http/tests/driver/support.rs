//! A provider in memory whose every send is on record, and shorthands.

use gleaner_http::governor::{Classifier, DefaultClassifier, Outcome, ResponseView, WallTime, network_error};
use gleaner_http::{
    CallLimits, Failure, Finished, Governors, Key, Refused, Repeatable, SendGovernor, Settings, Transport,
};
use http::{Method, StatusCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The provider's answer: a status, headers, and a duration.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) latency: Duration,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), latency: Duration::ZERO }
    }

    pub(crate) fn throttled(retry_after: &str) -> Self {
        Self { headers: vec![("retry-after", retry_after.to_owned())], ..Self::status(429) }
    }

    pub(crate) fn after(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }
}

type Script = Box<dyn FnMut(usize) -> Reply + Send>;

/// A provider, and one request to it as often as it is asked for.
#[derive(Clone)]
pub(crate) struct Provider {
    inner: Arc<Mutex<Inner>>,
    method: Method,
}

struct Inner {
    script: Script,
    sends: Vec<Instant>,
}

impl Provider {
    /// `script` gets the number of the send, from 0.
    pub(crate) fn new(script: impl FnMut(usize) -> Reply + Send + 'static) -> Self {
        let inner = Inner { script: Box::new(script), sends: Vec::new() };
        Self { inner: Arc::new(Mutex::new(inner)), method: Method::GET }
    }

    pub(crate) fn always(status: u16) -> Self {
        Self::new(move |_| Reply::status(status))
    }

    /// These statuses, and 200 from then on.
    pub(crate) fn first(replies: Vec<Reply>) -> Self {
        Self::new(move |send| replies.get(send).cloned().unwrap_or_else(|| Reply::status(200)))
    }

    pub(crate) fn post(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), method: Method::POST }
    }

    pub(crate) fn sends(&self) -> Vec<Instant> {
        self.inner.lock().unwrap().sends.clone()
    }

    pub(crate) fn gaps(&self) -> Vec<Duration> {
        self.sends().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

impl Transport for Provider {
    type Answer = Reply;
    type Failure = Failure;

    async fn send(&mut self) -> Result<Reply, Failure> {
        let reply = {
            let mut inner = self.inner.lock().unwrap();
            let send = inner.sends.len();
            inner.sends.push(Instant::now());
            (inner.script)(send)
        };
        provider_takes(reply.latency).await;
        if reply.status == 0 { Err(Failure::Lost) } else { Ok(reply) }
    }

    fn timed_out(&self, _limit: Duration) -> Failure {
        Failure::Lost
    }

    fn classify(&self, result: Result<&Reply, &Failure>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(reply) => DefaultClassifier::new().classify(&ResponseView::new(reply.status, &reply.headers), wall_now),
            Err(_) => network_error(),
        }
    }

    fn may_repeat(&self, result: Result<&Reply, &Failure>, outcome: &Outcome) -> bool {
        let request = Repeatable::new(&self.method, true);
        match result {
            Ok(reply) => {
                request.after_answer(StatusCode::from_u16(reply.status).unwrap(), outcome.retry_after.is_some())
            }
            Err(&failure) => request.after_failure(failure),
        }
    }
}

/// The provider's time, not ours.
#[expect(clippy::disallowed_methods, reason = "this is the far side")]
pub(crate) async fn provider_takes(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A governor nobody else has.
pub(crate) fn governor(settings: &Settings) -> SendGovernor {
    Governors::new().governor(&Key::new("example"), settings).unwrap()
}

/// A governor that keeps `interval` whatever happens to it: ceiling and start are the same.
pub(crate) fn steady(interval: Duration) -> Settings {
    let mut settings = Settings::default();
    settings.config.discovery_interval = interval;
    settings.config.ceiling_interval = interval;
    settings
}

pub(crate) async fn fetch(governor: &SendGovernor, provider: &Provider) -> Result<Finished<Provider>, Refused> {
    fetch_with(governor, provider, &CallLimits::default()).await
}

pub(crate) async fn fetch_with(
    governor: &SendGovernor,
    provider: &Provider,
    call_limits: &CallLimits,
) -> Result<Finished<Provider>, Refused> {
    governor.run(call_limits, &mut provider.clone()).await
}

/// Asserts that two spans differ by less than the grain of the clock: a timer fires on the millisecond,
/// and pacing may give back up to two of them.
#[track_caller]
pub(crate) fn assert_about(actual: Duration, expected: Duration) {
    assert!(actual.abs_diff(expected) <= Duration::from_millis(3), "{actual:?} is not about {expected:?}");
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

//! Governed requests that another program sends, such as a page in a browser.
//!
//! Why it exists: the owner's session may exist only in a browser. Such a request is governed like any other: the
//! same queue, the same single wait, the same classifier, and a retry needs a new permit. Only the send itself is the
//! caller's, and it blocks. This module never follows redirects, stores cookies or decodes bodies: the sender does
//! that.

use crate::blocking::Engine;
use crate::call_limits::CallLimits;
use crate::client::send::final_refusal;
use crate::client::{Error, ShownUrl, Terminal, TransportKind};
use crate::headers::Headers;
use crate::retry::{Failure, Repeatable};
use crate::send_governor::SendGovernor;
use crate::transport::{Finished, Transport};
use bytes::Bytes;
use gleaner_governor::{
    Classifier, DefaultClassifier, Outcome, ResponseView, WallTime, network_error, untrusted_certificate,
};
use http::{HeaderMap, Method, StatusCode};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers that the sender may see.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The latest time at which the provider had the request, as far as the sender knows. `None`: the time of the
    /// send.
    pub arrived: Option<std::time::Instant>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The provider has not seen the request.
    NotSent,
    /// The provider may have seen the request.
    Lost,
    /// No answer within the time limit.
    TimedOut,
    /// A retry cannot help: the sender is gone, or cannot take the answer.
    InVain,
}

/// Governs requests to a provider that another program sends. Cheap to clone.
#[derive(Clone)]
pub struct ExternalSender {
    name: Box<str>,
    governor: SendGovernor,
    engine: Engine,
    classifier: Arc<dyn Classifier + Send + Sync>,
    call_limits: CallLimits,
}

gleaner_base::debug_only!(ExternalSender, |it| governor = it.governor);

impl ExternalSender {
    /// Governs requests to the provider `name` by `governor`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(name: &str, governor: SendGovernor) -> Result<Self, Error> {
        let classifier = Arc::new(DefaultClassifier::new());
        Ok(Self {
            name: name.into(),
            governor,
            engine: Engine::start()?,
            classifier,
            call_limits: CallLimits::default(),
        })
    }

    /// The same with other limits per call.
    #[must_use]
    pub const fn call_limits(mut self, call_limits: CallLimits) -> Self {
        self.call_limits = call_limits;
        self
    }

    /// The send governor that every attempt passes.
    #[must_use]
    pub const fn governor(&self) -> &SendGovernor {
        &self.governor
    }

    /// Sends a request with `send`, and retries while that helps and is safe. `send` gets the time limit; it must not
    /// wait for anything but the provider.
    ///
    /// # Errors
    /// It was not sent, has no answer, or the answer has an error status (400 and above).
    pub fn send<S>(&self, method: &Method, url: &Url, send: S) -> Result<Reply, Error>
    where
        S: Fn(Duration) -> Result<Reply, NoReply> + Send + Sync + 'static,
    {
        let mut request = ExternalRequest {
            send: Arc::new(send),
            classifier: self.classifier.as_ref(),
            repeatable: Repeatable::new(method, true),
            ends: None,
        };
        let finished = self.engine.run(async { Ok(self.governor.run(&self.call_limits, &mut request).await?) })?;
        self.conclude(url, finished)
    }

    fn conclude<S>(&self, url: &Url, finished: Finished<ExternalRequest<'_, S>>) -> Result<Reply, Error>
    where
        S: Fn(Duration) -> Result<Reply, NoReply> + Send + Sync + 'static,
    {
        let (place, deferred) = (ShownUrl::new(url), finished.end.deferral());
        let reply = match finished.result {
            Ok(reply) => reply,
            Err(no_reply) => {
                let kind = match no_reply {
                    NoReply::NotSent => TransportKind::Connect,
                    NoReply::Lost | NoReply::InVain => TransportKind::Lost,
                    NoReply::TimedOut => TransportKind::Timeout(self.call_limits.attempt_timeout),
                };
                return Err(Error::Transport { place, kind, source: None, deferred });
            }
        };
        let status = reply.status;
        if let Some((reason, retry_in)) = final_refusal(finished.verdict, finished.end) {
            let (name, attempts) = (self.name.clone(), finished.attempts);
            return Err(Terminal { name, reason, status, attempts, retry_in }.into());
        }
        if status.is_client_error() || status.is_server_error() {
            return Err(Error::Status { place, status, deferred });
        }
        Ok(reply)
    }
}

/// One request being sent.
struct ExternalRequest<'a, S> {
    send: Arc<S>,
    classifier: &'a (dyn Classifier + Send + Sync),
    repeatable: Repeatable,
    /// When the current attempt times out.
    ends: Option<Instant>,
}

impl<S> Transport for ExternalRequest<'_, S>
where
    S: Fn(Duration) -> Result<Reply, NoReply> + Send + Sync + 'static,
{
    type Answer = Reply;
    type Failure = NoReply;
    /// The sender knows no governors.
    const IS_LAST_HOP: bool = true;

    fn on_attempt(&mut self, ends: Instant) {
        self.ends = Some(ends);
    }

    async fn send(&mut self) -> Result<Reply, NoReply> {
        let send = Arc::clone(&self.send);
        let limit = self.ends.map_or(Duration::MAX, |ends| ends.saturating_duration_since(Instant::now()));
        match tokio::task::spawn_blocking(move || send(limit)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                // Passes on a panic of the caller's code.
                Ok(panic) => resume_unwind(panic),
                Err(_cancelled) => Err(NoReply::Lost),
            },
        }
    }

    fn arrived(&self, result: Result<&Reply, &NoReply>) -> Option<Instant> {
        match result {
            Ok(reply) => reply.arrived.map(Instant::from_std),
            Err(NoReply::NotSent) => None,
            // A request without an answer may have left at any time until now.
            Err(NoReply::Lost | NoReply::TimedOut | NoReply::InVain) => Some(Instant::now()),
        }
    }

    fn timed_out(&self, _limit: Duration) -> NoReply {
        NoReply::TimedOut
    }

    fn classify(&self, result: Result<&Reply, &NoReply>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(reply) => {
                let headers = Headers(&reply.headers);
                let view = ResponseView::new(reply.status.as_u16(), &headers);
                // As for the client's answers: only errors have a meaning in their body.
                let is_error = reply.status.is_client_error() || reply.status.is_server_error();
                let view = if is_error { view.with_body(&reply.body) } else { view };
                self.classifier.classify(&view, wall_now)
            }
            // It says nothing about the provider.
            Err(NoReply::InVain) => untrusted_certificate(),
            Err(_) => network_error(),
        }
    }

    fn may_repeat(&self, result: Result<&Reply, &NoReply>, outcome: &Outcome) -> bool {
        match result {
            Ok(reply) => self.repeatable.after_answer(reply.status, outcome.retry_after.is_some()),
            Err(NoReply::InVain) => false,
            Err(NoReply::NotSent) => self.repeatable.after_failure(Failure::NotSent),
            Err(NoReply::Lost | NoReply::TimedOut) => self.repeatable.after_failure(Failure::Lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governors::{Governors, Settings};
    use std::sync::Mutex;
    use std::time::Instant as StdInstant;

    const CEILING: Duration = Duration::from_millis(40);

    fn sender(jitter: Duration) -> ExternalSender {
        let mut settings = Settings { launch_jitter: jitter, ..Settings::default() };
        settings.config.ceiling_interval = CEILING;
        settings.config.discovery_interval = CEILING;
        settings.config.max_concurrency = 1;
        let governors = Governors::new();
        let governor = governors.governor(&governors.key("somewhere", None), &settings).unwrap();
        ExternalSender::new("somewhere", governor).unwrap()
    }

    fn reply(status: u16) -> Result<Reply, NoReply> {
        let (status, headers) = (StatusCode::from_u16(status).unwrap(), HeaderMap::new());
        Ok(Reply { status, headers, body: Bytes::new(), arrived: None })
    }

    fn url() -> Url {
        Url::parse("https://somewhere.example/list?token=secret").unwrap()
    }

    /// The moments at which something was sent, while the replies last.
    fn sends(way: &ExternalSender, calls: usize, replies: &[u16]) -> (Vec<StdInstant>, Option<Error>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut last = None;
        for _ in 0..calls {
            let (sent, replies) = (Arc::clone(&sent), replies.to_vec());
            let result = way.send(&Method::GET, &url(), move |_| {
                let mut sent = sent.lock().unwrap();
                let arrived = StdInstant::now();
                sent.push(arrived);
                let reply = reply(replies.get(sent.len() - 1).copied().unwrap_or(200));
                reply.map(|reply| Reply { arrived: Some(arrived), ..reply })
            });
            last = result.err();
        }
        (Arc::try_unwrap(sent).unwrap().into_inner().unwrap(), last)
    }

    #[test]
    fn every_attempt_passes_the_same_governor_retries_included() {
        let way = sender(Duration::ZERO);
        let (sent, error) = sends(&way, 3, &[200, 429, 200]);
        assert_eq!((sent.len(), error.is_none()), (4, true), "one of three was sent again");
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= CEILING), "{sent:?}");
        assert_eq!((way.governor().status().sent, way.governor().status().rejected), (4, 1));
    }

    #[expect(clippy::disallowed_methods, reason = "what sends takes its time, and is no part of the governor")]
    fn take(time: Duration) {
        std::thread::sleep(time);
    }

    /// Gaps between sends that leave after their turn, some more and some less so, and say so or not.
    fn gaps_of_late_sends(says_so: bool) -> Vec<Duration> {
        const LATE: [u64; 5] = [30, 0, 30, 15, 0];
        let (way, left) = (sender(Duration::ZERO), Arc::new(Mutex::new(Vec::new())));
        for late in LATE {
            let left = Arc::clone(&left);
            let sent = way.send(&Method::GET, &url(), move |_| {
                take(Duration::from_millis(late));
                let now = StdInstant::now();
                left.lock().unwrap().push(now);
                reply(200).map(|reply| Reply { arrived: says_so.then_some(now), ..reply })
            });
            sent.unwrap();
        }
        let left = left.lock().unwrap();
        left.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn two_that_leave_late_are_apart_as_they_left() {
        let gaps = gaps_of_late_sends(true);
        assert!(gaps.iter().all(|gap| *gap >= CEILING), "{gaps:?}");
        let gaps = gaps_of_late_sends(false);
        assert!(gaps.iter().any(|gap| *gap < CEILING), "or it was not about that: {gaps:?}");
    }

    #[test]
    fn what_was_lost_may_have_left_until_it_was_given_up() {
        let (way, left) = (sender(Duration::ZERO), Arc::new(Mutex::new(Vec::new())));
        for _ in 0..2 {
            let left = Arc::clone(&left);
            let way = way.clone().call_limits(CallLimits::single_attempt());
            drop(way.send(&Method::GET, &url(), move |_| {
                let is_first = left.lock().unwrap().is_empty();
                take(Duration::from_millis(if is_first { 30 } else { 0 }));
                left.lock().unwrap().push(StdInstant::now());
                Err(NoReply::Lost)
            }));
        }
        let left = left.lock().unwrap();
        assert!(left[1] - left[0] >= CEILING, "{:?}", left[1] - left[0]);
    }

    #[test]
    fn pressure_is_told_as_with_the_client_and_shows_no_query() {
        let way = sender(Duration::ZERO).call_limits(CallLimits::single_attempt());
        let (_, error) = sends(&way, 1, &[429]);
        assert!(matches!(error, Some(Error::Terminal(terminal)) if terminal.pressure().is_some()));
        let (_, error) = sends(&sender(Duration::ZERO), 1, &[404]);
        let error = error.unwrap();
        assert!(matches!(error, Error::Status { status, .. } if status == 404), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn the_jitter_window_is_never_a_floor_and_never_added_to_the_pace() {
        // The window is as long as the interval: as a floor, or added, it would cost half of it again on average, each
        // time. A machine that is busy costs something once.
        let took = (0..4).map(|_| {
            let (sent, _) = sends(&sender(CEILING), 21, &[]);
            assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= CEILING), "{sent:?}");
            sent[20] - sent[0]
        });
        let took = took.take_while(|took| *took >= CEILING * 20 * 13 / 10).collect::<Vec<_>>();
        assert!(took.len() < 4, "{took:?}");
    }

    #[test]
    fn what_is_in_vain_is_not_sent_again() {
        let way = sender(Duration::ZERO);
        let error = way.send(&Method::GET, &url(), |_| Err(NoReply::InVain)).unwrap_err();
        assert!(matches!(error, Error::Transport { .. }), "{error}");
        assert_eq!(way.governor().status().sent, 1);
    }

    #[test]
    fn what_panics_elsewhere_panics_here() {
        let way = sender(Duration::ZERO);
        let call = || drop(way.send(&Method::GET, &url(), |_| panic!("in the caller's code")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    }
}

//! A call: its hops and their attempts, all through a send governor.
//!
//! The client's key admits hops to the caller's own origin. Other hops use the key of their host, without a
//! credential, because it is another provider's limit. This module never waits and never decides on retries; the send
//! governor does.

use super::Inner;
use super::error::{Error, Terminal, TerminalReason};
use super::record_replay::{Asked, NoReply, Player, Reply};
use super::redirect::{Hop, Redirects};
use super::response::{Answer, CallStats};
use super::shown_url::ShownUrl;
use crate::call_limits::CallLimits;
use crate::governors::Settings;
use crate::headers::Headers;
use crate::key::Key;
use crate::retry::{End, Failure, Repeatable};
use crate::send_governor::SendGovernor;
use crate::transport::{Finished, Transport};
use crate::wire::{Body, NoAnswer, RedirectFault, TransportKind, Why};
use gleaner_governor::{DeferReason, Outcome, PressureReason, ResponseView, Verdict, WallTime};
use http::{HeaderMap, Method, Version};
use std::borrow::Cow;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// Sends `hop` and follows redirects; `hop` is then the last one.
pub(crate) async fn call<'a>(
    client: &'a Inner,
    hop: &mut Hop<'a>,
    call_limits: &CallLimits,
) -> Result<Box<Answer>, Error> {
    let start = call_limits.max_wait.map(|_| Instant::now());
    let mut redirects = Redirects::new(client.redirect_rules);
    let mut stats = CallStats::default();
    loop {
        let governor = client.governor_of(&redirects, &hop.url)?;
        let mut attempt = Attempt {
            client,
            wire: client.wire(redirects.must_be_public(&hop.url))?,
            repeatable: Repeatable::new(&hop.method, true),
            hop,
            deadline: call_limits.deadline,
            ends: None,
            asked: None,
        };
        let left = left_of(*call_limits, start);
        let finished = governor.run(&left, &mut attempt).await?;
        stats.attempts += finished.attempts;
        stats.waited += finished.waited;
        stats.deferred = finished.end.deferral();
        let mut answer = conclude(client, &hop.url, finished)?;
        let next = redirects.next(hop, answer.status, &answer.headers);
        let next = next.map_err(|fault| Error::Redirect { place: ShownUrl::new(&hop.url), fault })?;
        let Some(next) = next else {
            stats.redirects = redirects.followed;
            answer.stats = stats;
            return Ok(answer);
        };
        tracing::debug!(status = answer.status.as_u16(), to = %ShownUrl::new(&next.url), "redirected");
        *hop = next;
    }
}

/// The caller's limits for the next hop: `max_wait` covers the whole call.
fn left_of(call_limits: CallLimits, start: Option<Instant>) -> CallLimits {
    let max_wait = call_limits.max_wait.zip(start).map(|(wait, start)| wait.saturating_sub(start.elapsed()));
    CallLimits { max_wait, ..call_limits }
}

impl Inner {
    fn governor_of(&self, redirects: &Redirects, url: &Url) -> Result<Cow<'_, SendGovernor>, Error> {
        if let Some(replay) = &self.replay_governor {
            return Ok(Cow::Borrowed(replay));
        }
        if redirects.is_home(url) {
            return Ok(Cow::Borrowed(&self.governor));
        }
        // If that host is already governed, its settings win.
        Ok(Cow::Owned(self.governors.known_or(&Key::of_host(url), &Settings::default())?))
    }
}

/// Sends one hop, once per call.
struct Attempt<'a> {
    client: &'a Inner,
    wire: &'a reqwest::Client,
    hop: &'a Hop<'a>,
    repeatable: Repeatable,
    deadline: Option<Instant>,
    /// When the current attempt times out.
    ends: Option<Instant>,
    /// The request and its start, if it is recorded.
    asked: Option<(Asked, Instant)>,
}

impl Transport for Attempt<'_> {
    type Answer = Box<Answer>;
    type Failure = NoAnswer;
    /// reqwest knows no governors.
    const IS_LAST_HOP: bool = true;

    fn on_attempt(&mut self, ends: Instant) {
        self.ends = Some(ends);
    }

    async fn send(&mut self) -> Result<Box<Answer>, NoAnswer> {
        let mut request = request_of(self.hop);
        if let Some(cookies) = &self.client.cookies {
            cookies.add_to(request.headers_mut(), &self.hop.url);
        }
        if self.client.record_replay.is_off() {
            return self.ask(request).await;
        }
        // Boxed: recording is slow anyway, and the common future stays small.
        Box::pin(self.exchange(request)).await
    }

    fn timed_out(&self, limit: Duration) -> NoAnswer {
        self.record(Err(NoReply::Timeout));
        NoAnswer::new(TransportKind::Timeout(limit))
    }

    fn classify(&self, result: Result<&Box<Answer>, &NoAnswer>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(answer) => {
                let headers = Headers(&answer.headers);
                let view = ResponseView::new(answer.status.as_u16(), &headers);
                let front = &answer.body.front;
                let view = if front.is_empty() { view } else { view.with_body(front) };
                self.client.classifier.classify(&view, wall_now)
            }
            Err(failure) => failure.outcome(),
        }
    }

    fn may_repeat(&self, result: Result<&Box<Answer>, &NoAnswer>, outcome: &Outcome) -> bool {
        match result {
            Ok(answer) => self.repeatable.after_answer(answer.status, outcome.retry_after.is_some()),
            Err(NoAnswer { why: Why::Transport(TransportKind::Connect), .. }) => {
                self.repeatable.after_failure(Failure::NotSent)
            }
            Err(_) => self.repeatable.after_failure(Failure::Lost),
        }
    }
}

impl Attempt<'_> {
    /// Sends the request to the provider.
    async fn ask(&self, request: reqwest::Request) -> Result<Box<Answer>, NoAnswer> {
        let mut response = self.wire.execute(request).await.map_err(NoAnswer::from)?;
        let (status, version) = (response.status(), response.version());
        let mut headers = std::mem::take(response.headers_mut());
        if let Some(cookies) = &self.client.cookies {
            cookies.keep(&headers, &self.hop.url);
        }
        let body = Body::new(&self.hop.method, response, &mut headers, self.client.body_limits, self.deadline);
        // Boxed before any await: otherwise the future would be as large.
        let mut answer = Box::new(Answer { status, version, headers, body, stats: CallStats::default() });
        let peek = self.client.peek_of(status);
        if peek > 0 {
            answer.body.peek(peek, self.time_to_read()).await;
        }
        Ok(answer)
    }

    /// Less than the time left: an attempt that times out while its body is read would lose its head.
    fn time_to_read(&self) -> Duration {
        self.ends.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now())) / 2
    }

    /// Asks the provider or the recording, and records the answer.
    async fn exchange(&mut self, request: reqwest::Request) -> Result<Box<Answer>, NoAnswer> {
        let record_replay = &self.client.record_replay;
        let asked = Asked::from_request(&request);
        let result = match &record_replay.player {
            Some(player) => self.played(player.as_ref(), &asked),
            None => {
                self.asked = Some((asked.clone(), Instant::now()));
                self.ask(request).await
            }
        };
        let Some(recorder) = &record_replay.recorder else { return result };
        self.asked.get_or_insert_with(|| (asked, Instant::now()));
        match result {
            Ok(mut answer) => {
                let end = answer.body.read_ahead(recorder.body_bytes_max(), self.time_to_read()).await;
                self.record(Ok(&Reply::from_answer(&answer, end)));
                self.asked = None;
                Ok(answer)
            }
            Err(failure) => {
                if let Some(no_reply) = failure.no_reply() {
                    self.record(Err(no_reply));
                }
                self.asked = None;
                Err(failure)
            }
        }
    }

    /// The answer from the recording.
    fn played(&self, player: &dyn Player, asked: &Asked) -> Result<Box<Answer>, NoAnswer> {
        let reply = player.play(asked).map_err(NoAnswer::not_recorded)?.map_err(NoAnswer::from_recording)?;
        let (status, headers) = reply.head()?;
        let body = Body::recorded(reply.body.into(), reply.body_end, self.client.body_limits);
        Ok(Box::new(Answer { status, version: Version::HTTP_11, headers, body, stats: CallStats::default() }))
    }

    fn record(&self, came: Result<&Reply, NoReply>) {
        if let (Some(recorder), Some((asked, since))) = (&self.client.record_replay.recorder, &self.asked) {
            recorder.record(asked, came, since.elapsed());
        }
    }
}

fn request_of(hop: &Hop<'_>) -> reqwest::Request {
    let mut request = reqwest::Request::new(hop.method.clone(), hop.url.clone());
    *request.headers_mut() = HeaderMap::clone(&hop.headers);
    // Servers expect `Content-Length: 0` for these methods, and none for others.
    let has_body = matches!(hop.method, Method::POST | Method::PUT | Method::PATCH) || !hop.body.is_empty();
    if has_body {
        *request.body_mut() = Some(hop.body.clone().into());
    }
    request
}

/// Returns the answer, or the final refusal.
fn conclude(client: &Inner, url: &Url, finished: Finished<Attempt<'_>>) -> Result<Box<Answer>, Error> {
    let answer = finished.result.map_err(|failure| failure.into_error(url, finished.end.deferral()))?;
    let Some((reason, retry_in)) = final_refusal(finished.verdict, finished.end) else { return Ok(answer) };
    let name = client.name.clone();
    let (status, attempts) = (answer.status, finished.attempts);
    Err(Terminal { name, reason, status, attempts, retry_in }.into())
}

/// Why a refusal is final. Other failures are answers: the caller sees the status.
pub(crate) fn final_refusal(verdict: Verdict, end: End) -> Option<(TerminalReason, Option<Duration>)> {
    match end {
        End::Pressure { reason, retry_in } => Some((TerminalReason::Pressure(reason), retry_in)),
        _ if verdict != Verdict::Throttled => None,
        End::Deferred { reason, retry_in } => Some((TerminalReason::Deferred(reason), retry_in)),
        // The provider asks for more time than is left.
        End::TooLate(retry_in) => Some((TerminalReason::Pressure(PressureReason::RateLimited), Some(retry_in))),
        End::Done => None,
    }
}

/// Conversions for recordings.
impl NoAnswer {
    /// From a recorded failure.
    const fn from_recording(no_reply: NoReply) -> Self {
        let why = match no_reply {
            NoReply::Connect => Why::Transport(TransportKind::Connect),
            NoReply::Timeout => Why::Transport(TransportKind::Timeout(Duration::ZERO)),
            NoReply::Lost => Why::Transport(TransportKind::Lost),
            NoReply::Untrusted => Why::Untrusted,
            NoReply::PrivateTarget => Why::Private,
        };
        Self { why, cause: None }
    }

    /// For recording; `None` when no request was sent.
    const fn no_reply(&self) -> Option<NoReply> {
        Some(match self.why {
            Why::Transport(TransportKind::Connect) => NoReply::Connect,
            Why::Transport(TransportKind::Timeout(_)) => NoReply::Timeout,
            Why::Transport(TransportKind::Lost) => NoReply::Lost,
            Why::Untrusted => NoReply::Untrusted,
            Why::Private => NoReply::PrivateTarget,
            Why::NotRecorded => return None,
        })
    }

    fn into_error(self, url: &Url, deferred: Option<DeferReason>) -> Error {
        let place = ShownUrl::new(url);
        match (self.why, self.cause) {
            (Why::Transport(kind), source) => Error::Transport { place, kind, source, deferred },
            (Why::Untrusted, Some(source)) => Error::UntrustedCertificate { place, source },
            (Why::Untrusted, None) => Error::Transport { place, kind: TransportKind::Connect, source: None, deferred },
            (Why::NotRecorded, what) => {
                Error::NotRecorded(what.map(|what| what.to_string()).unwrap_or_default().into())
            }
            (Why::Private, _) => Error::Redirect { place, fault: RedirectFault::PrivateTarget },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_secs(3));

    #[test]
    fn only_a_refusal_by_the_provider_is_terminal() {
        let pressure = TerminalReason::Pressure(PressureReason::RateLimited);
        let spent = TerminalReason::Deferred(DeferReason::RetryBudget);
        let pushed = End::Pressure { reason: PressureReason::RateLimited, retry_in: SOON };
        let budget = End::Deferred { reason: DeferReason::RetryBudget, retry_in: None };
        let impatient = End::TooLate(Duration::from_secs(3));
        for (verdict, end, expected) in [
            (Verdict::Throttled, pushed, Some((pressure, SOON))),
            (Verdict::Throttled, budget, Some((spent, None))),
            (Verdict::Throttled, impatient, Some((pressure, SOON))),
            (Verdict::ServerError, budget, None),
            (Verdict::ServerError, impatient, None),
            (Verdict::Success, End::Done, None),
            (Verdict::Forbidden, End::Done, None),
        ] {
            assert_eq!(final_refusal(verdict, end), expected, "{verdict:?} {end:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_bound_on_waits_is_one_for_all_hops() {
        let call_limits = CallLimits { max_wait: Some(Duration::from_secs(10)), ..CallLimits::default() };
        let start = Some(Instant::now());
        for (seconds, left) in [(0, 10), (3, 7), (9, 0)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert_eq!(left_of(call_limits, start).max_wait, Some(Duration::from_secs(left)));
        }
    }
}

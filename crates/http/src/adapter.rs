//! Shared parts of middleware and layer: the mark on a governed request, the report on its answer, and the meaning of
//! an error.
//!
//! Why a mark in the request and not only the task-local of `transport.rs`: the task-local detects nesting at one
//! provider, and two layers in one stack may have two names. A mark travels with the request, so the inner layer sees
//! it under any name and refuses before it waits. Never sends, never waits, never reads a body.

use crate::call_limits::CallLimits;
use crate::causes::causes;
use crate::headers::Headers;
use crate::key::Key;
use crate::refusal::{Refusal, Refused};
use crate::retry::{End, Failure, Repeatable};
use crate::send_governor::SendGovernor;
use crate::transport::{Finished, Transport};
use gleaner_governor::{
    Classifier, DefaultClassifier, Outcome, ResponseView, Verdict, WallTime, network_error, untrusted_certificate,
};
use http::{Extensions, HeaderMap, Method, StatusCode};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Report on a call, in the extensions of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// Number of sends.
    pub attempts: u32,
    /// Total wait before the sends.
    pub waited: Duration,
    /// Meaning of the answer.
    pub verdict: Verdict,
    /// Why it was not retried.
    pub end: End,
}

impl CallReport {
    pub(crate) fn from_finished<T: Transport>(finished: &Finished<T>) -> Self {
        let Finished { attempts, waited, end, verdict, .. } = finished;
        Self { attempts: *attempts, waited: *waited, verdict: *verdict, end: *end }
    }
}

/// An attempt took longer than [`CallLimits::attempt_timeout`], counted from its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {} ms of the send", .after.as_millis())]
pub struct TimedOut {
    /// The timeout.
    pub after: Duration,
}

/// Marks a governed request in its extensions.
#[derive(Clone, Debug)]
pub(crate) struct GovernedBy(Arc<Key>);

impl GovernedBy {
    pub(crate) fn new(governor: &SendGovernor) -> Self {
        Self(Arc::clone(&governor.shared.key))
    }

    /// Refuses a request that another governed layer has marked, whatever that layer's name.
    pub(crate) fn refuse_second(extensions: &Extensions, governor: &SendGovernor) -> Result<(), Refused> {
        let Some(Self(by)) = extensions.get() else { return Ok(()) };
        Err(governor.shared.refused(Refusal::GovernedTwice((**by).clone()), None))
    }
}

/// Options of a layer.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) call_limits: CallLimits,
    pub(crate) classifier: Arc<dyn Classifier + Send + Sync>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { call_limits: CallLimits::default(), classifier: Arc::new(DefaultClassifier::new()) }
    }
}

impl CallOptions {
    /// The limits of one request: its own, or those of the layer.
    pub(crate) fn limits_of(&self, extensions: &Extensions) -> CallLimits {
        extensions.get().copied().unwrap_or(self.call_limits)
    }

    pub(crate) fn outcome_of_answer(&self, status: StatusCode, headers: &HeaderMap, wall_now: WallTime) -> Outcome {
        self.classifier.classify(&ResponseView::new(status.as_u16(), &Headers(headers)), wall_now)
    }
}

gleaner_base::debug_only!(CallOptions, |it| call_limits = it.call_limits);

/// A request, and a copy for the next attempt while there may be one.
#[derive(Debug)]
pub(crate) struct Copies<R> {
    next: Option<R>,
    method: Method,
    left: u32,
}

impl<R> Copies<R> {
    pub(crate) fn new(request: R, method: Method, call_limits: &CallLimits) -> Self {
        Self { next: Some(request), method, left: call_limits.attempts.saturating_sub(1) }
    }

    /// The request of this attempt. `copy` is not called before the last attempt, because a copy allocates.
    pub(crate) fn take(&mut self, copy: impl FnOnce(&R) -> Option<R>) -> Option<R> {
        let request = self.next.take()?;
        if self.left > 0 {
            self.left -= 1;
            self.next = copy(&request);
        }
        Some(request)
    }

    fn repeatable(&self) -> Repeatable {
        Repeatable::new(&self.method, self.next.is_some())
    }

    pub(crate) fn may_repeat_after(&self, status: StatusCode, outcome: &Outcome) -> bool {
        self.repeatable().after_answer(status, outcome.retry_after.is_some())
    }

    pub(crate) fn may_repeat_without_answer(&self, failure: Failure) -> bool {
        self.repeatable().after_failure(failure)
    }
}

/// The meaning of a failed send for the governor.
pub(crate) fn outcome_of_failure(error: &(dyn Error + 'static)) -> Outcome {
    if causes(error).any(is_untrusted_certificate) { untrusted_certificate() } else { network_error() }
}

/// Whether the provider may have seen a request that failed with `error`.
pub(crate) fn failure_of(error: &(dyn Error + 'static)) -> Failure {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let never_connected = |cause: &(dyn Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable))
    };
    if causes(error).any(never_connected) { Failure::NotSent } else { Failure::Lost }
}

/// Matches the text and not the type: the caller's stack may use another version of rustls, or OpenSSL.
fn is_untrusted_certificate(cause: &(dyn Error + 'static)) -> bool {
    let text = cause.to_string();
    UNTRUSTED.iter().any(|words| text.contains(words))
}

/// Texts of rustls and OpenSSL.
const UNTRUSTED: [&str; 2] = ["invalid peer certificate", "certificate verify failed"];

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct ClientError(#[source] io::Error);

    fn rejected_certificate() -> io::Error {
        let error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    #[test]
    fn an_untrusted_certificate_is_final_however_deep_it_is_wrapped() {
        assert_eq!(outcome_of_failure(&rejected_certificate()).verdict, Verdict::Permanent);
        assert_eq!(outcome_of_failure(&ClientError(rejected_certificate())).verdict, Verdict::Permanent);
        let wrapped = io::Error::other(ClientError(rejected_certificate()));
        assert_eq!(outcome_of_failure(&wrapped).verdict, Verdict::Permanent);
        assert_eq!(outcome_of_failure(&ClientError(io::Error::other("reset"))).verdict, Verdict::Network);
    }

    #[test]
    fn only_a_connection_that_was_never_made_proves_that_nothing_was_done() {
        for (kind, expected) in [
            (io::ErrorKind::ConnectionRefused, Failure::NotSent),
            (io::ErrorKind::HostUnreachable, Failure::NotSent),
            (io::ErrorKind::ConnectionReset, Failure::Lost),
            (io::ErrorKind::TimedOut, Failure::Lost),
        ] {
            assert_eq!(failure_of(&ClientError(kind.into())), expected, "{kind}");
            // As connectors wrap it once more.
            assert_eq!(failure_of(&io::Error::other(io::Error::from(kind))), expected, "{kind}");
        }
    }

    #[test]
    fn no_copy_is_made_for_the_last_attempt() {
        let call_limits = CallLimits { attempts: 2, ..CallLimits::default() };
        let mut copies = Copies::new("request", Method::GET, &call_limits);
        let mut made = 0;
        let mut copy = |request: &&'static str| {
            made += 1;
            Some(*request)
        };
        assert_eq!(
            [copies.take(&mut copy), copies.take(&mut copy), copies.take(&mut copy)],
            [Some("request"), Some("request"), None]
        );
        assert_eq!(made, 1);
    }
}

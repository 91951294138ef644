//! Classifies an answer, once, before the governor sees it.
//!
//! Why an extension point and not a table of status codes inside the governor: half of the providers throttle with
//! something else than 429 (Google with a 403 and a reason, Shopify inside a 200), and each of them is one function
//! here. Never keeps, prints or copies a header or a body, and never reads a clock.

use std::fmt;
use std::time::Duration;

use crate::signals::outcome::{Outcome, Quotas, Verdict};
use crate::signals::quota_headers::read_quotas;
use crate::signals::retry_after::read_retry_after;
use crate::time::WallTime;

/// Source of header values; an HTTP client implements it for its own header map.
///
/// It is implemented for lists of name and value (text or bytes), and for `()`: no headers.
pub trait HeaderSource {
    /// Calls `visit` with each value of the header `name`, in order. `name` is in lower case; match it
    /// case-insensitively.
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8]));

    /// Whether any header name may contain `part`, given in lower case. A fast answer saves the classifier twenty
    /// lookups of quota headers.
    fn may_name(&self, _part: &str) -> bool {
        true
    }
}

impl HeaderSource for () {
    fn for_each_value(&self, _name: &str, _visit: &mut dyn FnMut(&[u8])) {}
}

impl<N: AsRef<str>, V: AsRef<[u8]>> HeaderSource for [(N, V)] {
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for (_, value) in self.iter().filter(|(own, _)| own.as_ref().eq_ignore_ascii_case(name)) {
            visit(value.as_ref());
        }
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const LEN: usize> HeaderSource for [(N, V); LEN] {
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.as_slice().for_each_value(name, visit);
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> HeaderSource for Vec<(N, V)> {
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.as_slice().for_each_value(name, visit);
    }
}

impl<T: HeaderSource + ?Sized> HeaderSource for &T {
    fn for_each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        (**self).for_each_value(name, visit);
    }

    fn may_name(&self, part: &str) -> bool {
        (**self).may_name(part)
    }
}

/// The answer as a classifier sees it.
#[derive(Clone, Copy)]
pub struct ResponseView<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: &'a dyn HeaderSource,
    /// The beginning of the body, if the caller has read it.
    pub body: Option<&'a [u8]>,
}

impl<'a> ResponseView<'a> {
    /// An answer whose body was not read.
    #[must_use]
    pub const fn new(status: u16, headers: &'a dyn HeaderSource) -> Self {
        Self { status, headers, body: None }
    }

    /// The same answer with the beginning of its body.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Whether the known part of the body contains `text`.
    #[must_use]
    pub fn body_contains(&self, text: &str) -> bool {
        let body = self.body.unwrap_or_default();
        text.is_empty() || body.windows(text.len()).any(|part| part == text.as_bytes())
    }

    /// The Retry-After of the provider.
    #[must_use]
    pub fn retry_after(&self, wall_now: WallTime) -> Option<Duration> {
        read_retry_after(self.headers, wall_now)
    }

    /// The quotas in the headers.
    #[must_use]
    pub fn quotas(&self, wall_now: WallTime) -> Quotas {
        read_quotas(self.headers, wall_now)
    }

    /// The outcome with this verdict and the header values. A success has no `retry_after`: on a 2xx the header means
    /// something else (a running job, a redirect).
    #[must_use]
    pub fn outcome(&self, verdict: Verdict, wall_now: WallTime) -> Outcome {
        let retry_after = match verdict {
            Verdict::Success => None,
            _ => self.retry_after(wall_now),
        };
        Outcome { verdict, retry_after, quotas: self.quotas(wall_now) }
    }
}

/// Omits headers and body: they carry tokens and private data.
impl fmt::Debug for ResponseView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseView").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Classifies an answer. [`DefaultClassifier`] knows HTTP; a closure can know a provider.
///
/// A provider that throttles with a 403 and a reason, as Google does:
///
/// ```
/// use gleaner_governor::{Classifier, DefaultClassifier, ResponseView, Verdict, WallTime};
///
/// let http = DefaultClassifier::new();
/// let google = |view: &ResponseView<'_>, wall_now: WallTime| {
///     let told = view.body_contains("rateLimitExceeded") || view.body_contains("userRateLimitExceeded");
///     match view.status {
///         403 if told => view.outcome(Verdict::Throttled, wall_now),
///         _ => http.classify(view, wall_now),
///     }
/// };
///
/// let now = WallTime::from_unix_millis(1_794_830_400_000);
/// let answer = ResponseView::new(403, &[("retry-after", "3")]).with_body(b"{\"reason\":\"rateLimitExceeded\"}");
/// let outcome = google.classify(&answer, now);
/// assert_eq!(outcome.verdict, Verdict::Throttled);
/// assert_eq!(outcome.retry_after.map(|wait| wait.as_secs()), Some(3));
/// assert_eq!(google.classify(&ResponseView::new(403, &()), now).verdict, Verdict::Forbidden);
/// ```
///
/// A provider that throttles inside a 200, as Shopify's GraphQL does:
///
/// ```
/// use gleaner_governor::{Classifier, DefaultClassifier, ResponseView, Verdict, WallTime};
///
/// let shopify = |view: &ResponseView<'_>, wall_now: WallTime| {
///     if view.status == 200 && view.body_contains("\"code\":\"THROTTLED\"") {
///         return view.outcome(Verdict::Throttled, wall_now);
///     }
///     DefaultClassifier::new().classify(view, wall_now)
/// };
///
/// let now = WallTime::from_unix_millis(1_794_830_400_000);
/// let throttled = ResponseView::new(200, &()).with_body(b"{\"errors\":[{\"extensions\":{\"code\":\"THROTTLED\"}}]}");
/// assert_eq!(shopify.classify(&throttled, now).verdict, Verdict::Throttled);
/// assert_eq!(shopify.classify(&ResponseView::new(200, &()), now).verdict, Verdict::Success);
/// ```
pub trait Classifier {
    /// Classifies `view`, an answer that arrived at wall-clock time `wall_now`.
    fn classify(&self, view: &ResponseView<'_>, wall_now: WallTime) -> Outcome;
}

impl<F: Fn(&ResponseView<'_>, WallTime) -> Outcome> Classifier for F {
    fn classify(&self, view: &ResponseView<'_>, wall_now: WallTime) -> Outcome {
        self(view, wall_now)
    }
}

/// The classes of HTTP itself, plus common and unambiguous throttle statuses.
#[derive(Clone, Debug, Default)]
pub struct DefaultClassifier {
    extra_throttles: Vec<u16>,
}

impl DefaultClassifier {
    /// Throttles are 429, 503, 418, 420 and 529.
    #[must_use]
    pub const fn new() -> Self {
        Self { extra_throttles: Vec::new() }
    }

    /// Also treats `status` as a throttle.
    #[must_use]
    pub fn also_throttled(mut self, status: u16) -> Self {
        self.extra_throttles.push(status);
        self
    }

    fn verdict_of(&self, status: u16) -> Verdict {
        match status {
            _ if self.extra_throttles.contains(&status) => Verdict::Throttled,
            200..=399 => Verdict::Success,
            // Nonstandard: 418 and 420 mean "slow down or be banned" (3commas, EVE), 529 means "overloaded" (Notion).
            418 | 420 | 429 | 503 | 529 => Verdict::Throttled,
            401 | 403 => Verdict::Forbidden,
            408 | 500..=599 => Verdict::ServerError,
            // Other 4xx, and unknown statuses: a retry cannot help.
            _ => Verdict::Permanent,
        }
    }
}

impl Classifier for DefaultClassifier {
    fn classify(&self, view: &ResponseView<'_>, wall_now: WallTime) -> Outcome {
        let mut outcome = view.outcome(self.verdict_of(view.status), wall_now);
        if view.status == 403 && tells_a_limit(&outcome) {
            outcome.verdict = Verdict::Throttled;
        }
        outcome
    }
}

/// A refusal with a Retry-After or an empty quota is about rate, not about rights (GitHub answers its limits with a
/// 403).
fn tells_a_limit(outcome: &Outcome) -> bool {
    outcome.retry_after.is_some() || outcome.quotas.as_slice().iter().any(|quota| quota.remaining == Some(0))
}

/// No answer came: timeout, reset, refused connection, name not found. Retryable.
#[must_use]
pub const fn network_error() -> Outcome {
    Outcome::bare(Verdict::Network)
}

/// The provider's certificate is not trusted: a retry would meet the same one, and it says nothing about our rate
/// (F48).
#[must_use]
pub const fn untrusted_certificate() -> Outcome {
    Outcome::bare(Verdict::Permanent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);

    fn classified(status: u16, headers: &[(&str, &str)]) -> Outcome {
        DefaultClassifier::new().classify(&ResponseView::new(status, &headers), NOW)
    }

    #[test]
    fn a_status_without_headers_means_what_http_says() {
        for (status, verdict) in [
            (200, Verdict::Success),
            (204, Verdict::Success),
            (304, Verdict::Success),
            (400, Verdict::Permanent),
            (401, Verdict::Forbidden),
            (403, Verdict::Forbidden),
            (404, Verdict::Permanent),
            (408, Verdict::ServerError),
            (410, Verdict::Permanent),
            (418, Verdict::Throttled),
            (420, Verdict::Throttled),
            (429, Verdict::Throttled),
            (451, Verdict::Permanent),
            (500, Verdict::ServerError),
            (502, Verdict::ServerError),
            (503, Verdict::Throttled),
            (504, Verdict::ServerError),
            (529, Verdict::Throttled),
            (599, Verdict::ServerError),
            (0, Verdict::Permanent),
            (101, Verdict::Permanent),
            (999, Verdict::Permanent),
        ] {
            assert_eq!(classified(status, &[]), Outcome::bare(verdict), "{status}");
        }
    }

    #[test]
    fn a_403_is_a_throttle_when_it_tells_a_limit() {
        for (headers, verdict) in [
            ([("Retry-After", "60")], Verdict::Throttled),
            ([("Retry-After", "0")], Verdict::Throttled),
            ([("Retry-After", "soon")], Verdict::Forbidden),
            ([("X-RateLimit-Remaining", "0")], Verdict::Throttled),
            ([("X-RateLimit-Remaining", "1")], Verdict::Forbidden),
            ([("RateLimit", "\"default\";r=0;t=30")], Verdict::Throttled),
            ([("X-Rate-Limit", "200/200")], Verdict::Throttled),
        ] {
            assert_eq!(classified(403, &headers).verdict, verdict, "{headers:?}");
        }
        assert_eq!(classified(401, &[("Retry-After", "60")]).verdict, Verdict::Forbidden);
        assert_eq!(classified(404, &[("X-RateLimit-Remaining", "0")]).verdict, Verdict::Permanent);
    }

    #[test]
    fn retry_after_is_read_from_every_answer_but_a_success() {
        let header = [("Retry-After", "60")];
        for status in [429, 503, 403, 500, 408, 404] {
            assert_eq!(classified(status, &header).retry_after, Some(Duration::from_secs(60)), "{status}");
        }
        for status in [200, 202, 301] {
            assert_eq!(classified(status, &header), Outcome::success(), "{status}");
        }
    }

    #[test]
    fn quotas_are_read_from_successes_and_from_throttles() {
        for status in [200, 429] {
            let outcome = classified(status, &[("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "7")]);
            assert_eq!(outcome.quotas.as_slice()[0].remaining, Some(7), "{status}");
        }
    }

    #[test]
    fn an_owner_can_name_further_throttle_statuses() {
        let classifier = DefaultClassifier::new().also_throttled(999).also_throttled(403);
        for (status, verdict) in
            [(999, Verdict::Throttled), (403, Verdict::Throttled), (429, Verdict::Throttled), (401, Verdict::Forbidden)]
        {
            assert_eq!(classifier.classify(&ResponseView::new(status, &()), NOW).verdict, verdict, "{status}");
        }
    }

    #[test]
    fn a_closure_that_says_throttled_gets_the_retry_after_of_a_200() {
        let mediawiki = |view: &ResponseView<'_>, now: WallTime| match view.body_contains("\"maxlag\"") {
            true => view.outcome(Verdict::Throttled, now),
            false => DefaultClassifier::new().classify(view, now),
        };
        let headers = [("Retry-After", "5")];
        let lagged = ResponseView::new(200, &headers).with_body(b"{\"error\":{\"code\":\"maxlag\"}}");
        assert_eq!(mediawiki.classify(&lagged, NOW), Outcome::throttled(Some(Duration::from_secs(5))));
        assert_eq!(mediawiki.classify(&ResponseView::new(200, &headers), NOW), Outcome::success());
    }

    #[test]
    fn debug_output_shows_neither_headers_nor_body() {
        let headers = [("Authorization", "secret")];
        let view = ResponseView::new(200, &headers).with_body(b"private");
        assert_eq!(format!("{view:?}"), "ResponseView { status: 200, .. }");
    }

    #[test]
    fn every_kind_of_header_list_is_looked_up_without_regard_to_case() {
        let owned = vec![("ReTry-AFTER".to_owned(), b"9".to_vec())];
        let slice: &[(&str, &str)] = &[("retry-after", "9")];
        let sources: [&dyn HeaderSource; 3] = [&owned, &slice, &[("RETRY-AFTER", "9")]];
        for source in sources {
            assert_eq!(read_retry_after(source, NOW), Some(Duration::from_secs(9)));
        }
    }

    #[test]
    fn a_network_error_is_worth_another_try_and_an_untrusted_certificate_is_not() {
        assert!(network_error().verdict.is_retryable());
        assert!(!untrusted_certificate().verdict.is_retryable());
    }

    proptest! {
        #[test]
        fn no_header_ever_turns_an_error_into_a_success(
            status in 400_u16..,
            names in proptest::collection::vec("(retry-after|date|x-ratelimit-remaining|ratelimit|x-rate-limit)", 0..4),
            value in "[ -~]{0,30}",
        ) {
            let headers: Vec<_> = names.iter().map(|name| (name, &value)).collect();
            let outcome = DefaultClassifier::new().classify(&ResponseView::new(status, &headers), NOW);
            prop_assert_ne!(outcome.verdict, Verdict::Success);
        }
    }
}

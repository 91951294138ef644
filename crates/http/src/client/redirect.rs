//! Computes the request that follows a redirect, without sending anything.
//!
//! Why not reqwest's own: every hop is a request to a provider and needs a permit, and a hop to another origin must
//! not carry headers meant for the first. reqwest drops three headers; an API key in `X-Api-Key` would be sent along.
//! Here only headers known to be harmless cross an origin, a body never does, and https never becomes http.

use crate::wire::{RedirectFault, is_redirect, names_private_address, redirect_target};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::borrow::Cow;
use url::{Origin, Url};

/// One request of a call: the caller's, or one after a redirect.
#[derive(Clone)]
pub(crate) struct Hop<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The client's, for a request without its own.
    pub(crate) headers: Cow<'a, HeaderMap>,
    pub(crate) body: Bytes,
}

/// The redirects of one call.
pub(crate) struct Redirects {
    /// Origin of the caller's request; returning there is always allowed. `None` before the first redirect.
    home: Option<Origin>,
    rules: RedirectRules,
    pub(crate) followed: u32,
    /// At most as many as redirects.
    seen: Vec<(Method, Url)>,
}

/// The owner's rules for redirects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedirectRules {
    pub(crate) max: u32,
    pub(crate) private_allowed: bool,
}

/// As in reqwest and RFC 2068; a real chain has two or three.
const REDIRECTS_MAX: u32 = 10;

impl Default for RedirectRules {
    fn default() -> Self {
        Self { max: REDIRECTS_MAX, private_allowed: false }
    }
}

impl Redirects {
    pub(crate) fn new(rules: RedirectRules) -> Self {
        Self { home: None, rules, followed: 0, seen: Vec::new() }
    }

    /// Whether `url` is at the origin of the caller's request.
    pub(crate) fn is_home(&self, url: &Url) -> bool {
        self.home.as_ref().is_none_or(|home| url.origin() == *home)
    }

    /// Whether `url` must resolve to public addresses.
    pub(crate) fn must_be_public(&self, url: &Url) -> bool {
        !self.rules.private_allowed && !self.is_home(url)
    }

    /// The request that follows an answer to `hop`; `None` when it is no redirect, or when redirects are off.
    pub(crate) fn next<'a>(
        &mut self,
        hop: &Hop<'a>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Hop<'a>>, RedirectFault> {
        if self.rules.max == 0 || !is_redirect(status) {
            return Ok(None);
        }
        let url = redirect_target(&hop.url, headers)?;
        self.home.get_or_insert_with(|| hop.url.origin());
        if self.must_be_public(&url) && names_private_address(&url) {
            return Err(RedirectFault::PrivateTarget);
        }
        self.seen.push((hop.method.clone(), hop.url.clone()));
        let next = redirected(hop, status, url)?;
        // A new cookie makes the same request a different one: sites that set it and redirect back are common.
        let sets_cookie = headers.contains_key(header::SET_COOKIE);
        if !sets_cookie && self.seen.contains(&(next.method.clone(), next.url.clone())) {
            return Err(RedirectFault::Loop);
        }
        if self.followed == self.rules.max {
            return Err(RedirectFault::TooMany(self.rules.max));
        }
        self.followed += 1;
        Ok(Some(next))
    }
}

/// Method, headers and body after a redirect (RFC 9110, section 15.4, and browser behavior).
fn redirected<'a>(hop: &Hop<'a>, status: StatusCode, url: Url) -> Result<Hop<'a>, RedirectFault> {
    let Hop { mut method, mut headers, mut body, .. } = hop.clone();
    let becomes_get = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        StatusCode::SEE_OTHER => method != Method::GET && method != Method::HEAD,
        _ => false,
    };
    if becomes_get {
        method = Method::GET;
        body = Bytes::new();
        let kept = headers.to_mut();
        OF_THE_BODY.iter().for_each(|name| drop(kept.remove(name)));
    }
    if url.origin() != hop.url.origin() {
        if !body.is_empty() {
            return Err(RedirectFault::BodyToOtherOrigin);
        }
        headers = Cow::Owned(harmless(&headers));
    }
    Ok(Hop { method, url, headers, body })
}

/// Headers that describe a body and are dropped with it.
const OF_THE_BODY: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::TRANSFER_ENCODING,
];

/// Headers that describe the content wanted and nothing about the user.
const HARMLESS: [HeaderName; 10] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::USER_AGENT,
];

fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| HARMLESS.contains(name));
    kept.map(|(name, value): (&HeaderName, &HeaderValue)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: &str, url: &str, body: &'static str) -> Hop<'static> {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("cookie", "sid=secret"),
            ("x-api-key", "secret"),
            ("proxy-authorization", "secret"),
            ("accept", "application/json"),
            ("user-agent", "test"),
            ("if-none-match", "\"1\""),
            ("content-type", "text/plain"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Hop {
            method: method.parse().unwrap(),
            url: Url::parse(url).unwrap(),
            headers: Cow::Owned(headers),
            body: body.into(),
        }
    }

    fn location(to: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_bytes(to.as_bytes()).unwrap())])
    }

    fn follow<'a>(hop: &Hop<'a>, status: u16, to: &str) -> Result<Option<Hop<'a>>, RedirectFault> {
        let status = StatusCode::from_u16(status).unwrap();
        Redirects::new(RedirectRules::default()).next(hop, status, &location(to))
    }

    #[test]
    fn method_and_body_change_as_in_browsers() {
        for (method, status, expected) in [
            ("GET", 301, "GET"),
            ("POST", 301, "GET"),
            ("POST", 302, "GET"),
            ("POST", 303, "GET"),
            ("PUT", 301, "PUT body"),
            ("DELETE", 302, "DELETE body"),
            ("PUT", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("POST", 307, "POST body"),
            ("POST", 308, "POST body"),
        ] {
            let body = if method == "GET" || method == "HEAD" { "" } else { "body" };
            let next = follow(&hop(method, "https://a.example/x", body), status, "/y").unwrap().unwrap();
            let sent = format!("{} {}", next.method, std::str::from_utf8(&next.body).unwrap());
            assert_eq!(sent.trim(), expected, "{method} {status}");
            assert_eq!(next.url.as_str(), "https://a.example/y");
            let describes_body = next.headers.contains_key("content-type");
            assert_eq!(
                describes_body,
                method == "GET" || method == "HEAD" || !next.body.is_empty(),
                "{method} {status}"
            );
            assert!(next.headers.contains_key("authorization"), "the origin is the same");
        }
        for status in [200, 300, 304, 305, 306, 404] {
            assert!(follow(&hop("GET", "https://a.example/", ""), status, "/y").unwrap().is_none(), "{status}");
        }
    }

    #[test]
    fn only_harmless_headers_cross_an_origin() {
        for to in ["https://b.example/", "https://a.example:444/", "https://sub.a.example/", "//b.example/"] {
            let next = follow(&hop("GET", "https://a.example/", ""), 302, to).unwrap().unwrap();
            let mut names: Vec<_> = next.headers.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["accept", "if-none-match", "user-agent"], "{to}");
        }
        // Also from http to https: another origin, and who wrote the redirect is unknown.
        let next = follow(&hop("GET", "http://a.example/", ""), 302, "https://a.example/").unwrap().unwrap();
        assert!(!next.headers.contains_key("authorization"));
    }

    #[test]
    fn what_was_dropped_at_an_origin_does_not_come_back() {
        let first = hop("GET", "https://a.example/", "");
        let mut redirects = Redirects::new(RedirectRules::default());
        let away = redirects.next(&first, StatusCode::FOUND, &location("https://b.example/")).unwrap().unwrap();
        let back = redirects.next(&away, StatusCode::FOUND, &location("https://a.example/2")).unwrap().unwrap();
        assert!(!back.headers.contains_key("authorization") && redirects.is_home(&back.url));
    }

    #[test]
    fn a_redirect_that_is_not_followed_says_why() {
        for (method, from, to, fault) in [
            ("GET", "https://a.example/", "http://a.example/", RedirectFault::Insecure),
            ("GET", "https://a.example/", "http://b.example/", RedirectFault::Insecure),
            ("GET", "https://a.example/", "file:///etc/passwd", RedirectFault::Scheme),
            ("GET", "https://a.example/", "javascript:alert(1)", RedirectFault::Scheme),
            ("GET", "https://a.example/", "data:text/plain,x", RedirectFault::Scheme),
            ("GET", "https://a.example/", "https://", RedirectFault::InvalidLocation),
            ("GET", "https://a.example/", "https://a.example:99999/", RedirectFault::InvalidLocation),
            ("GET", "https://a.example/", "https://a.example/", RedirectFault::Loop),
            ("POST", "https://a.example/", "https://b.example/", RedirectFault::BodyToOtherOrigin),
            ("GET", "http://a.example/", "http://127.0.0.1/", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://127.1/", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://0x7f000001/", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://2130706433/", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://169.254.169.254/latest", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://[::1]/", RedirectFault::PrivateTarget),
            ("GET", "http://a.example/", "http://[::ffff:10.0.0.1]/", RedirectFault::PrivateTarget),
            ("GET", "http://127.0.0.1:1/", "http://127.0.0.1:2/", RedirectFault::PrivateTarget),
        ] {
            let body = if method == "POST" { "body" } else { "" };
            let result = follow(&hop(method, from, body), 307, to);
            assert_eq!(result.map(|next| next.map(|hop| hop.url)), Err(fault), "{from} {to}");
        }
        let nowhere = Redirects::new(RedirectRules::default()).next(
            &hop("GET", "https://a.example/", ""),
            StatusCode::FOUND,
            &HeaderMap::new(),
        );
        assert!(matches!(nowhere, Err(RedirectFault::NoLocation)));
    }

    #[test]
    fn the_callers_own_origin_may_be_private() {
        let next = follow(&hop("GET", "http://127.0.0.1:1/", ""), 302, "http://127.0.0.1:1/y").unwrap();
        assert!(next.is_some());
    }

    #[test]
    fn a_loop_is_one_unless_a_cookie_was_set() {
        let first = hop("GET", "https://a.example/", "");
        let mut headers = location("https://a.example/");
        headers.insert(header::SET_COOKIE, HeaderValue::from_static("a=b"));
        let mut redirects = Redirects::new(RedirectRules::default());
        for _ in 0..REDIRECTS_MAX {
            assert!(redirects.next(&first, StatusCode::FOUND, &headers).unwrap().is_some());
        }
        let last = redirects.next(&first, StatusCode::FOUND, &headers);
        assert!(matches!(last, Err(RedirectFault::TooMany(10))));
    }

    #[test]
    fn a_password_in_a_location_is_not_used() {
        let next = follow(&hop("GET", "https://a.example/", ""), 302, "https://u:p@b.example/").unwrap().unwrap();
        assert_eq!(next.url.as_str(), "https://b.example/");
    }
}

//! Removes headers that must not pass the sidecar.
//!
//! Headers about one connection stay on it (RFC 9110, section 7.6.1). Nothing tells the upstream of a sidecar, not
//! even `Via`: some servers stop compressing or answer differently when they see it, and a caller wants the same
//! answers as without us. Never looks at a body.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Hop-by-hop headers.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Prefix of headers between caller and sidecar, in both directions.
const OURS: &str = "gleaner-";

/// Keeps the headers of a request that are meant for the upstream.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    let wants_trailers = list_holds(headers, &header::TE, "trailers");
    remove_hop_by_hop(headers);
    // The only value that HTTP/2 allows; without it gRPC and others send no trailers.
    if wants_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    // The client sets it for the upstream.
    headers.remove(header::HOST);
    // We already sent `100 Continue`: the body is here.
    headers.remove(header::EXPECT);
}

/// Keeps the headers of an answer that are meant for the caller.
pub(crate) fn clean_answer(headers: &mut HeaderMap) {
    // If both are present, the chunks are right (RFC 9112, section 6.3); keeping both would truncate the answer.
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    remove_hop_by_hop(headers);
    // It would lead callers around the sidecar.
    headers.remove(header::ALT_SVC);
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = list(headers, &header::CONNECTION).filter_map(|name| name.parse().ok()).collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    let ours: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(OURS)).cloned().collect();
    for name in &ours {
        headers.remove(name);
    }
}

/// Whether `word` is in the comma-separated list of `name`; parameters do not count.
pub(crate) fn list_holds(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    list(headers, name).any(|item| item.split(';').next().is_some_and(|item| item.trim().eq_ignore_ascii_case(word)))
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_belongs_to_a_connection_stays_on_it() {
        let lines = [
            ("connection", "close, X-Private , te"),
            ("connection", "x-other"),
            ("x-private", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("proxy-authenticate", "Basic"),
            ("proxy-connection", "keep-alive"),
            ("te", "gzip, trailers;q=0.5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("gleaner-max-wait", "5"),
            ("gleaner-anything", "5"),
            ("host", "localhost"),
            ("expect", "100-continue"),
            ("trailer", "x-checksum"),
            ("accept-encoding", "br"),
            ("authorization", "Bearer x"),
            ("x-kept", "1"),
        ];
        let mut request = headers(&lines);
        clean_request(&mut request);
        assert_eq!(names(&request), ["accept-encoding", "authorization", "te", "trailer", "x-kept"]);
        assert_eq!(request["te"], "trailers");
    }

    #[test]
    fn an_answer_names_no_way_around_and_cannot_speak_for_us() {
        let lines = [
            ("connection", "x-private"),
            ("x-private", "1"),
            ("alt-svc", "h3=\":443\""),
            ("gleaner-reason", "max_wait"),
            ("te", "trailers"),
            ("content-encoding", "br"),
            ("via", "1.1 theirs"),
        ];
        let mut answer = headers(&lines);
        clean_answer(&mut answer);
        assert_eq!(names(&answer), ["content-encoding", "via"]);
    }

    #[test]
    fn a_header_that_is_no_text_is_not_read() {
        let mut odd = HeaderMap::new();
        odd.insert(header::CONNECTION, HeaderValue::from_bytes(b"close, \xff").unwrap());
        clean_request(&mut odd);
        assert!(odd.is_empty());
    }
}

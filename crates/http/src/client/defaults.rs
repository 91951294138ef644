//! Default headers of a client.
//!
//! Why separate from a request's headers: most requests have none of their own; they share these, and nothing is
//! copied before the wire needs it. Only harmless ones follow a redirect to another origin (`redirect.rs`).

use crate::wire::ACCEPTED;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderValue, RANGE};
use std::borrow::Cow;

/// Headers set by the owner, and the encodings that this client can decode.
pub(crate) struct DefaultHeaders {
    pub(crate) all: HeaderMap,
    /// Whether the owner left `Accept-Encoding` to us.
    encoding_is_ours: bool,
}

impl DefaultHeaders {
    pub(crate) fn new(mut owners: HeaderMap) -> Self {
        // A range of an encoded body cannot be decoded, so a range is requested unencoded.
        let encoding_is_ours = !owners.contains_key(ACCEPT_ENCODING) && !owners.contains_key(RANGE);
        if encoding_is_ours {
            owners.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        }
        // reqwest would add it to each copy that is sent, and each copy would have to grow.
        owners.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        Self { all: owners, encoding_is_ours }
    }

    /// The headers of a request: its own, completed with the defaults.
    pub(crate) fn with(&self, own: HeaderMap) -> Cow<'_, HeaderMap> {
        if own.is_empty() {
            return Cow::Borrowed(&self.all);
        }
        let mut headers = self.all.clone();
        if self.encoding_is_ours && own.contains_key(RANGE) {
            headers.remove(ACCEPT_ENCODING);
        }
        headers.extend(own);
        Cow::Owned(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        headers.iter().map(pair).collect()
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut shown: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_requests_own_headers_replace_the_default_ones() {
        let defaults = DefaultHeaders::new(map(&[("accept", "text/plain"), ("x-a", "1")]));
        let mut own = map(&[("x-a", "2")]);
        own.append("x-a", HeaderValue::from_static("3"));
        let expected = ["accept-encoding: gzip, br, zstd", "accept: text/plain", "x-a: 2", "x-a: 3"];
        assert_eq!(shown(&defaults.with(own)), expected);
        assert_eq!(
            shown(&defaults.with(HeaderMap::new())),
            ["accept-encoding: gzip, br, zstd", "accept: text/plain", "x-a: 1"]
        );
    }

    #[test]
    fn a_part_of_a_body_is_not_asked_for_encoded_unless_somebody_says_so() {
        let encoding = |owners: &[(&'static str, &'static str)], own: &[(&'static str, &'static str)]| {
            let defaults = DefaultHeaders::new(map(owners));
            defaults.with(map(own)).get(ACCEPT_ENCODING).map(|value| value.to_str().unwrap().to_owned())
        };
        let (range, br) = (("range", "bytes=0-9"), ("accept-encoding", "br"));
        assert_eq!(encoding(&[], &[]).as_deref(), Some(ACCEPTED));
        assert_eq!(encoding(&[], &[range]), None);
        assert_eq!(encoding(&[range], &[]), None);
        assert_eq!(encoding(&[], &[range, br]).as_deref(), Some("br"));
        assert_eq!(encoding(&[br], &[range]).as_deref(), Some("br"));
        assert_eq!(encoding(&[br], &[]).as_deref(), Some("br"));
    }
}

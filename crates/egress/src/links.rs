//! Rewrites links to the upstream in response headers, so that callers stay on the sidecar.
//!
//! A paging caller follows `Link`, a redirected one `Location`. Unchanged, the second page would bypass the governor.
//! Only headers are rewritten, only scheme, host, port and base path; the rest of a link stays byte for byte. Bodies
//! are never rewritten: they may be signed or compressed, or use a URL in another meaning.

use crate::upstream::Upstream;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use url::Url;

/// Headers whose value is one link.
const ONE_LINK: [HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// Rewrites the links of an answer for a caller that knows us as `own_origin`, such as `http://localhost:8717`.
pub(crate) fn rewrite(headers: &mut HeaderMap, upstream: &Upstream, own_origin: &str) {
    for name in &ONE_LINK {
        rewrite_each(headers, name, |value| rewrite_one(value, upstream, own_origin));
    }
    rewrite_each(headers, &header::LINK, |value| rewrite_list(value, upstream, own_origin));
}

fn rewrite_each(headers: &mut HeaderMap, name: &HeaderName, rewrite: impl Fn(&str) -> Option<String>) {
    let header::Entry::Occupied(mut values) = headers.entry(name) else { return };
    for value in values.iter_mut() {
        let new = value.to_str().ok().and_then(&rewrite).and_then(|text| HeaderValue::try_from(text).ok());
        if let Some(new) = new {
            *value = new;
        }
    }
}

/// The new form of one link; `None` when it is unchanged.
fn rewrite_one(link: &str, upstream: &Upstream, own_origin: &str) -> Option<String> {
    let scheme = upstream.url.scheme();
    let absolute: Cow<'_, str> = match link {
        // The caller would use our scheme, which differs.
        _ if link.starts_with("//") => format!("{scheme}:{link}").into(),
        _ if link.starts_with('/') => format!("{scheme}://{}{link}", upstream.provider()).into(),
        // An absolute link, or one relative to the request, which is right already.
        _ => link.into(),
    };
    if let Some(rest) = rest_below_base(&absolute, upstream) {
        // A path stays a path, unless it would look like a host name.
        let is_path = link.starts_with('/') && !link.starts_with("//") && !rest.starts_with("//");
        let origin = if is_path { "" } else { own_origin };
        let slash = if rest.starts_with('/') { "" } else { "/" };
        return Some(format!("{origin}{slash}{rest}"));
    }
    // Outside the base path: the caller goes there directly.
    (absolute != link).then(|| absolute.into_owned())
}

/// The part after the base path in a link to the upstream; `None` for other links.
fn rest_below_base<'a>(link: &'a str, upstream: &Upstream) -> Option<&'a str> {
    let url = Url::parse(link).ok()?;
    let is_upstream = url.origin() == upstream.url.origin() && url.username().is_empty() && url.password().is_none();
    // The parsed path contains no dots, so `/base/../admin` is not below the base.
    if !is_upstream || !is_below(url.path(), &upstream.base) {
        return None;
    }
    let (_scheme, after) = link.split_once("://")?;
    let path = &after[after.find(['/', '?', '#']).unwrap_or(after.len())..];
    path.strip_prefix(&upstream.base)
}

fn is_below(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The new form of a `Link` header: `<link>; rel="next", <link>; title="a, <b>"`.
fn rewrite_list(list: &str, upstream: &Upstream, own_origin: &str) -> Option<String> {
    let mut new = String::with_capacity(list.len());
    let mut rest = list;
    let mut is_changed = false;
    while let Some(start) = find_unquoted_bracket(rest) {
        let (before, link) = rest.split_at(start + 1);
        let Some(end) = link.find('>') else { break };
        let (link, after) = link.split_at(end);
        let rewritten = rewrite_one(link, upstream, own_origin);
        is_changed |= rewritten.is_some();
        new.push_str(before);
        new.push_str(rewritten.as_deref().unwrap_or(link));
        rest = after;
    }
    new.push_str(rest);
    is_changed.then_some(new)
}

/// The next `<` outside quotes.
fn find_unquoted_bracket(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            _ if was_escaped => {}
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'<' => return !is_quoted,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "http://localhost:8717";

    fn check(upstream: &str, link: &str, expected: &str) {
        let upstream = Upstream::parse(upstream).unwrap();
        let new = rewrite_one(link, &upstream, OWN);
        assert_eq!(new.as_deref().unwrap_or(link), expected, "{link} of {upstream}");
    }

    #[test]
    fn links_to_the_upstream_lead_to_us_and_others_stay() {
        let root = "https://api.example.com";
        for (link, expected) in [
            ("https://api.example.com/items?page=2#x", "http://localhost:8717/items?page=2#x"),
            ("https://API.EXAMPLE.COM:443/items", "http://localhost:8717/items"),
            ("HTTPS://api.example.com/a%2Fb//c", "http://localhost:8717/a%2Fb//c"),
            ("https://api.example.com", "http://localhost:8717/"),
            ("https://api.example.com?page=2", "http://localhost:8717/?page=2"),
            ("//api.example.com/items", "http://localhost:8717/items"),
            ("/items?page=2", "/items?page=2"),
            ("items?page=2", "items?page=2"),
            ("?page=2", "?page=2"),
            ("#x", "#x"),
            ("", ""),
            ("//cdn.example.com/x", "https://cdn.example.com/x"),
            ("https://cdn.example.com/x", "https://cdn.example.com/x"),
            ("https://api.example.com.evil.example/x", "https://api.example.com.evil.example/x"),
            ("https://api.example.com@evil.example/x", "https://api.example.com@evil.example/x"),
            ("https://user@api.example.com/x", "https://user@api.example.com/x"),
            ("http://api.example.com/x", "http://api.example.com/x"),
            ("https://api.example.com:8443/x", "https://api.example.com:8443/x"),
            ("mailto:a@api.example.com", "mailto:a@api.example.com"),
        ] {
            check(root, link, expected);
        }
    }

    #[test]
    fn a_base_path_is_taken_off_and_what_is_outside_of_it_is_named_in_full() {
        let below = "https://api.example.com/v2";
        for (link, expected) in [
            ("https://api.example.com/v2/items", "http://localhost:8717/items"),
            ("https://api.example.com/v2", "http://localhost:8717/"),
            ("https://api.example.com/v2?page=2", "http://localhost:8717/?page=2"),
            ("/v2/items?page=2", "/items?page=2"),
            ("/v2", "/"),
            ("/v2//evil.example/x", "http://localhost:8717//evil.example/x"),
            ("/v20/items", "https://api.example.com/v20/items"),
            ("/login", "https://api.example.com/login"),
            ("https://api.example.com/v20/items", "https://api.example.com/v20/items"),
            ("https://api.example.com/v2/../admin", "https://api.example.com/v2/../admin"),
            ("https://api.example.com/v2/%2e%2e/admin", "https://api.example.com/v2/%2e%2e/admin"),
            ("items", "items"),
        ] {
            check(below, link, expected);
        }
    }

    #[test]
    fn every_link_of_a_list_is_rewritten_and_nothing_else_of_it() {
        let upstream = Upstream::parse("https://api.example.com").unwrap();
        let mut headers = HeaderMap::new();
        let list = "<https://api.example.com/i?page=2>; rel=\"next\"; title=\"a, <https://api.example.com/no> \\\" <\", \
                    <https://other.example/x>;rel=help,</i?page=9>; rel=last";
        headers.append(header::LINK, list.parse().unwrap());
        headers.append(header::LINK, "<https://api.example.com/second>; rel=up".parse().unwrap());
        headers.append(header::LINK, "<https://api.example.com/unclosed".parse().unwrap());
        rewrite(&mut headers, &upstream, OWN);
        let values: Vec<&str> = headers.get_all(header::LINK).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(values[0], list.replacen("https://api.example.com", OWN, 1));
        assert_eq!(values[1], "<http://localhost:8717/second>; rel=up");
        assert_eq!(values[2], "<https://api.example.com/unclosed");
    }

    #[test]
    fn a_value_that_is_no_text_passes_as_it_is() {
        let upstream = Upstream::parse("https://api.example.com").unwrap();
        let mut headers = HeaderMap::new();
        let odd = HeaderValue::from_bytes(b"https://api.example.com/\xe4").unwrap();
        headers.insert(header::LOCATION, odd.clone());
        rewrite(&mut headers, &upstream, OWN);
        assert_eq!(headers[header::LOCATION], odd);
    }
}

//! The path below which the console lives, where a proxy has other things beside it: `/gleaner`.
//!
//! Nothing inside knows of it. Paths of requests come in without it, and addresses go out with it: in `Location` and
//! `HX-Redirect`, and in the attributes of pages that hold addresses. That is done here, once, and not by every template,
//! because a page that forgets it would only be found by whoever has such a proxy. It is sound because text from outside is written with its quotes
//! escaped: `href="/` can only be markup of ours.

use crate::problem::Problem;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri};

/// The longest. It stands in every address.
const BYTES_MAX: usize = 100;
/// The longest page. All of ours are some hundred kilobytes at most.
const PAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A path that no route has: what a request outside of the base asks for.
const NOWHERE: &str = "/-";
/// What holds addresses in our pages.
const ATTRIBUTES: [&str; 8] = [
    " href=\"/",
    " src=\"/",
    " action=\"/",
    " formaction=\"/",
    " hx-get=\"/",
    " hx-post=\"/",
    " data-chart=\"/",
    " data-events=\"/",
];

/// Where the script that sent a form goes on.
pub(crate) const HX_REDIRECT: HeaderName = HeaderName::from_static("hx-redirect");

/// Nothing, or `/` and parts, without a `/` at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// A path like `/gleaner`; `/` is none. Nothing when it cannot be one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.is_empty() {
            return Some(Self::default());
        }
        let is_part = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'.');
            !part.is_empty() && part.bytes().all(plain) && !part.bytes().all(|byte| byte == b'.')
        };
        let is_path = text.len() <= BYTES_MAX && text.strip_prefix('/')?.split('/').all(is_part);
        is_path.then(|| Self(text.to_owned()))
    }

    /// As it stands before a path; empty when there is none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// To which paths a cookie is sent.
    pub(crate) fn of_cookie(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }

    /// What is asked for, as it is called inside.
    pub(crate) fn inside(&self, asked: &Uri) -> Uri {
        if self.0.is_empty() {
            return asked.clone();
        }
        let below = asked.path().strip_prefix(&self.0);
        let path = match below {
            Some("") => "/",
            Some(path) if path.starts_with('/') => path,
            Some(_) | None => NOWHERE,
        };
        let query = asked.query().filter(|_| path != NOWHERE).map(|query| format!("?{query}")).unwrap_or_default();
        let mut parts = asked.clone().into_parts();
        // Parts of an address that was one.
        parts.path_and_query = PathAndQuery::try_from(format!("{path}{query}")).ok();
        Uri::from_parts(parts).unwrap_or_else(|_| Uri::from_static(NOWHERE))
    }

    /// An answer, with its addresses as they are called outside.
    pub(crate) async fn outside(&self, response: Response) -> Response {
        if self.0.is_empty() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        for name in [LOCATION, HX_REDIRECT] {
            let to = parts.headers.get(&name).and_then(|to| to.to_str().ok()).filter(|to| to.starts_with('/'));
            if let Some(to) = to.and_then(|to| HeaderValue::from_str(&format!("{}{to}", self.0)).ok()) {
                parts.headers.insert(name, to);
            }
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/html") {
            return Response::from_parts(parts, body);
        }
        let page = to_bytes(body, PAGE_BYTES_MAX).await.ok().and_then(|page| String::from_utf8(page.into()).ok());
        let Some(page) = page else { return Problem::internal("the page is too long").into_response() };
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(self.in_page(page)))
    }

    fn in_page(&self, page: String) -> String {
        ATTRIBUTES.iter().fold(page, |page, attribute| {
            let with_base = format!("{}{}/", attribute.strip_suffix('/').unwrap_or(attribute), self.0);
            page.replace(attribute, &with_base)
        })
    }
}

impl std::fmt::Display for BasePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> BasePath {
        BasePath::new("/my/gleaner/").unwrap()
    }

    #[test]
    fn a_base_is_a_plain_path() {
        assert_eq!(base().as_str(), "/my/gleaner");
        assert_eq!((BasePath::new("/"), BasePath::new("")), (Some(BasePath::default()), Some(BasePath::default())));
        for wrong in ["gleaner", "//x", "/a//b", "/a/../b", "/.", "/a b", "/a?b", "/a\"b", "/ä", &"/a".repeat(60)] {
            assert_eq!(BasePath::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn paths_come_in_without_it_and_nothing_beside_it_is_there() {
        let inside = |asked: &str| base().inside(&asked.parse().unwrap()).to_string();
        assert_eq!(inside("/my/gleaner/open?code=a"), "/open?code=a");
        assert_eq!((inside("/my/gleaner"), inside("/my/gleaner/")), ("/".to_owned(), "/".to_owned()));
        for outside in ["/", "/open", "/healthz", "/my/gleanerx/open", "/my", "*", "/MY/gleaner/open"] {
            assert_eq!(inside(outside), NOWHERE, "{outside}");
        }
        assert_eq!(inside("http://h:1/my/gleaner/gaps"), "http://h:1/gaps", "its name stays");
        assert_eq!(BasePath::default().inside(&"/open?x".parse().unwrap()).to_string(), "/open?x");
    }

    #[test]
    fn addresses_go_out_with_it_and_texts_stay_as_they_are() {
        let page = "<a class=\"x\" href=\"/gaps\">href=&#34;/gaps&#34;</a><input value=\"/gaps\"><a href=\"#main\">\
                    <form action=\"/\"><a href=\"https://example.com/\"><div hx-get=\"/inbox?a=1\">";
        let expected = "<a class=\"x\" href=\"/my/gleaner/gaps\">href=&#34;/gaps&#34;</a><input value=\"/gaps\">\
                        <a href=\"#main\"><form action=\"/my/gleaner/\"><a href=\"https://example.com/\">\
                        <div hx-get=\"/my/gleaner/inbox?a=1\">";
        assert_eq!(base().in_page(page.to_owned()), expected);
    }

    /// Every attribute of a template that holds an address is one that is looked at.
    #[test]
    fn who_is_sent_elsewhere_is_sent_below_it() {
        let base = BasePath::new("/my/gleaner").unwrap();
        let sent = |name: HeaderName, to: &str| {
            let response = (http::StatusCode::NO_CONTENT, [(name.clone(), to.to_owned())]).into_response();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(base.outside(response)).headers()[name].to_str().unwrap().to_owned()
        };
        for name in [LOCATION, HX_REDIRECT] {
            assert_eq!(sent(name.clone(), "/add?x=/y"), "/my/gleaner/add?x=/y");
            assert_eq!(sent(name, "https://elsewhere.test/"), "https://elsewhere.test/");
        }
    }

    #[test]
    fn no_template_has_an_address_elsewhere() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for (at, _) in text.match_indices("=\"/") {
                seen += 1;
                let known = ATTRIBUTES.iter().any(|attribute| text[..at + 3].ends_with(attribute));
                assert!(known, "{}: {}", path.display(), &text[at.saturating_sub(30)..at + 20]);
            }
            for name in text.split("hx-").skip(1) {
                let name = name.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
                let others = [
                    "trigger",
                    "select",
                    "select-oob",
                    "swap",
                    "sync",
                    "preserve",
                    "target",
                    "disabled-elt",
                    "get",
                    "post",
                ];
                assert!(others.contains(&name), "{}: hx-{name} may hold an address", path.display());
            }
        }
        assert!(seen > 5, "{seen}");
    }
}

//! Checks of incoming requests: meant for this sidecar, and possible to forward.
//!
//! A sidecar on loopback accepts only names of this machine. Otherwise a web page could point its own name to
//! 127.0.0.1 (DNS rebinding) and use the sidecar, with the rights of the caller's account, from a browser. Only the
//! head of a request is read here.

use crate::hygiene::list_holds;
use crate::respond::Reply;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use std::net::{IpAddr, SocketAddr};

/// Rules for accepting requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestCheck {
    listen: SocketAddr,
}

/// An accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The sidecar's name as the caller uses it, such as `localhost:8717`.
    pub(crate) own_name: String,
    /// The requested path.
    pub(crate) target: PathAndQuery,
}

impl RequestCheck {
    pub(crate) const fn new(listen: SocketAddr) -> Self {
        Self { listen }
    }

    /// Accepts a request, or returns the refusal.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<Entry, Reply> {
        if request.method() == Method::CONNECT || wants_another_protocol(request.headers()) {
            return Err(Reply::new(
                StatusCode::NOT_IMPLEMENTED,
                "not_forwarded",
                "CONNECT, Upgrade and WebSocket are not forwarded",
                "connect to the upstream directly for these; rate limits do not count them",
            ));
        }
        let own_name = self.own_name(request)?;
        if self.listen.ip().is_loopback() && is_from_a_foreign_page(request.headers()) {
            return Err(Reply::new(
                StatusCode::FORBIDDEN,
                "foreign_page",
                "a web page of another site sent this request; the sidecar is only for programs on this machine",
                "send it from a program, or from a page served by this machine",
            ));
        }
        match request.uri().path_and_query() {
            Some(target) if target.as_str().starts_with('/') => Ok(Entry { own_name, target: target.clone() }),
            _ => Err(Reply::new(
                StatusCode::NOT_IMPLEMENTED,
                "not_forwarded",
                "only requests for a path are forwarded",
                "request a path, for example OPTIONS / instead of OPTIONS *",
            )),
        }
    }

    /// The sidecar's name as the caller uses it: `:authority` in HTTP/2, the target's authority, or `Host`.
    fn own_name<B>(&self, request: &Request<B>) -> Result<String, Reply> {
        let host = host_header(request.headers())?;
        let Some(authority) = request.uri().authority().cloned().or_else(|| host.clone()) else {
            // HTTP/1.0 has no Host, and browsers do not use it.
            return if request.version() == Version::HTTP_10 { Ok(self.listen.to_string()) } else { Err(no_host()) };
        };
        let names_itself = request.version() >= Version::HTTP_2 || request.uri().authority().is_none();
        let is_ours =
            names_itself || (request.uri().scheme_str() == Some("http") && host.is_none_or(|host| host == authority));
        let is_allowed = !self.listen.ip().is_loopback() || is_name_of_this_machine(&authority);
        if !is_ours || !is_allowed || authority.as_str().contains('@') {
            return Err(misdirected());
        }
        Ok(authority.to_string())
    }
}

/// The only `Host`, if any. Two contradict each other.
fn host_header(headers: &HeaderMap) -> Result<Option<Authority>, Reply> {
    let mut values = headers.get_all(header::HOST).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (Authority::try_from(value.as_bytes()), values.next()) {
        (Ok(authority), None) => Ok(Some(authority)),
        _ => Err(no_host()),
    }
}

/// `localhost` or a loopback address, at any port: a forwarded port is still this machine.
fn is_name_of_this_machine(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Browsers send the origin of the page. Pages of other sites are refused: they would use up the quota, and act with
/// the rights of this machine at the upstream.
fn is_from_a_foreign_page(headers: &HeaderMap) -> bool {
    let is_local = |origin: &http::HeaderValue| {
        let authority = origin.to_str().ok().and_then(|text| text.split_once("://")).map(|(_scheme, rest)| rest);
        authority.and_then(|text| Authority::try_from(text).ok()).is_some_and(|name| is_name_of_this_machine(&name))
    };
    match headers.get(header::ORIGIN) {
        Some(origin) => !is_local(origin),
        None => headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site"),
    }
}

/// An offer of HTTP/2 may be ignored, and some clients (Java's) send it with every request.
fn wants_another_protocol(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && list_holds(headers, &header::CONNECTION, "upgrade")
        && !list_holds(headers, &header::UPGRADE, "h2c")
}

fn no_host() -> Reply {
    let error = "the request has no Host header, or contradicting ones";
    Reply::new(StatusCode::BAD_REQUEST, "bad_host", error, "send one Host header")
}

fn misdirected() -> Reply {
    Reply::new(
        StatusCode::MISDIRECTED_REQUEST,
        "wrong_host",
        "this sidecar answers only to localhost and loopback addresses, and is not a forward proxy",
        "make http://127.0.0.1 and the port of the sidecar the base URL of your program; do not set it as http_proxy",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, request: http::request::Builder) -> Result<String, u16> {
        let check = RequestCheck::new(listen.parse().unwrap());
        let request = request.body(()).unwrap();
        check.check(&request).map(|entry| entry.own_name).map_err(|reply| reply.status.as_u16())
    }

    fn get(target: &str, host: &str) -> http::request::Builder {
        Request::get(target).header("host", host)
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_come_in() {
        for (host, is_let_in) in [
            ("localhost", true),
            ("LOCALHOST:8717", true),
            ("127.0.0.1:8717", true),
            ("127.8.8.8", true),
            ("[::1]:9", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:8717", false),
            ("evil@localhost", false),
            ("192.168.0.1:8717", false),
            ("0.0.0.0:8717", false),
        ] {
            let expected = if is_let_in { Ok(host.to_owned()) } else { Err(421) };
            assert_eq!(check("127.0.0.1:8717", get("/x", host)), expected, "{host}");
            assert_eq!(check("[::1]:8717", get("/x", host)).is_ok(), is_let_in, "{host}");
        }
        assert_eq!(check("0.0.0.0:8717", get("/x", "nas.local:8717")), Ok("nas.local:8717".to_owned()));
    }

    #[test]
    fn a_target_with_a_host_must_name_us() {
        let here = "127.0.0.1:8717";
        assert_eq!(check(here, get("http://localhost:8717/x", "localhost:8717")), Ok("localhost:8717".to_owned()));
        assert_eq!(check(here, get("http://api.example.com/x", "api.example.com")), Err(421));
        assert_eq!(check(here, get("http://api.example.com/x", "localhost")), Err(421));
        assert_eq!(check(here, get("http://localhost/x", "127.0.0.1")), Err(421));
        assert_eq!(check(here, get("https://localhost/x", "localhost")), Err(421));
        let http2 = Request::get("http://evil.example/x").version(Version::HTTP_2);
        assert_eq!(check(here, http2), Err(421));
        let http2 = Request::get("http://localhost:1/x").version(Version::HTTP_2);
        assert_eq!(check(here, http2), Ok("localhost:1".to_owned()));
    }

    #[test]
    fn a_request_without_one_host_is_bad() {
        let here = "127.0.0.1:8717";
        assert_eq!(check(here, Request::get("/x")), Err(400));
        assert_eq!(check(here, get("/x", "localhost").header("host", "localhost")), Err(400));
        assert_eq!(check(here, get("/x", "not a host")), Err(400));
        assert_eq!(check(here, Request::get("/x").version(Version::HTTP_10)), Ok(here.to_owned()));
    }

    #[test]
    fn tunnels_and_other_protocols_stay_outside() {
        let here = "127.0.0.1:8717";
        let host = "localhost";
        assert_eq!(check(here, Request::builder().method("CONNECT").uri("a:443").header("host", host)), Err(501));
        assert_eq!(check(here, Request::options("*").header("host", host)), Err(501));
        let websocket = get("/", host).header("connection", "keep-alive, Upgrade").header("upgrade", "websocket");
        assert_eq!(check(here, websocket), Err(501));
        let java = get("/", host).header("connection", "Upgrade, HTTP2-Settings").header("upgrade", "h2c");
        assert!(check(here, java).is_ok());
    }
}

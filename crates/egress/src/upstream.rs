//! The upstream: an origin and a base path, and the mapping of a caller's path to it.
//!
//! Parsed once from the command line, with clear refusals: a password would appear in the process list, a query would
//! be lost. Never resolves a name and never connects.

use http::uri::{Authority, InvalidUriParts, PathAndQuery, Scheme, Uri};
use std::fmt;
use std::net::IpAddr;
use url::{Host, Url};

/// The service behind a sidecar, for example `https://api.example.com/v2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Scheme, host, port and base path; no user, query or fragment.
    pub(crate) url: Url,
    authority: Authority,
    /// The base path without its last slash; empty for the root.
    pub(crate) base: String,
}

/// Why a text is not a valid upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Not a URL. The text is not repeated: it may hold a password.
    #[error("not a URL: {0}")]
    NotAUrl(String),
    /// Not HTTP.
    #[error("the scheme {0}: is not supported; use http or https")]
    Scheme(String),
    /// There is a user or a password in it.
    #[error("the URL contains a user or password, which everyone on this machine could see in the process list")]
    Credentials,
    /// There is a query or a fragment in it.
    #[error("the upstream URL must not have a query or fragment")]
    QueryOrFragment,
}

impl Upstream {
    /// Parses the owner's text.
    ///
    /// # Errors
    /// It is not an HTTP URL, or has parts that do not belong there.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let mut url = Url::parse(text).map_err(|error| UpstreamError::NotAUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UpstreamError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UpstreamError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(UpstreamError::QueryOrFragment);
        }
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&base);
        let authority = Authority::try_from(&url[url::Position::BeforeHost..url::Position::AfterPort])
            .map_err(|error| UpstreamError::NotAUrl(error.to_string()))?;
        Ok(Self { url, authority, base })
    }

    /// Name of the key: host, and port if it is not the default. Without the base path, because providers count per
    /// account and not per path.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.authority.as_str()
    }

    /// Whether requests can be read on the network path.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.url.scheme() == "http" && !self.is_loopback()
    }

    /// Whether it uses TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether it is on this machine, judging by the name.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            None => false,
        }
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.url.port_or_known_default()
    }

    /// The URL for a request for `target`: the base path, then the caller's path unchanged.
    pub(crate) fn target(&self, target: &PathAndQuery) -> Result<Uri, InvalidUriParts> {
        let scheme = if self.is_tls() { Scheme::HTTPS } else { Scheme::HTTP };
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(scheme);
        parts.authority = Some(self.authority.clone());
        // Two valid paths make a valid path; otherwise the missing path is refused below.
        parts.path_and_query = match self.base.as_str() {
            "" => Some(target.clone()),
            base => PathAndQuery::try_from(format!("{base}{target}")).ok(),
        };
        Uri::from_parts(parts)
    }
}

/// As it was typed, without a last slash.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme(), self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_without_repeating_a_password() {
        for (text, part) in [
            ("api.example.com", "not a URL"),
            ("ftp://api.example.com", "ftp"),
            ("https://user:hunter2@api.example.com", "process list"),
            ("https://token@api.example.com", "process list"),
            ("https://api.example.com/?a=1", "must not have a query"),
            ("https://api.example.com/#top", "query or fragment"),
            ("https://", "not a URL"),
        ] {
            let error = Upstream::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn the_callers_path_follows_the_base_path_unchanged() {
        for (upstream, target, expected) in [
            ("https://api.example.com", "/", "https://api.example.com/"),
            ("https://API.example.com:443/", "/a?b=%2F&c", "https://api.example.com/a?b=%2F&c"),
            ("http://127.0.0.1:8080/v2/", "/items//x?q", "http://127.0.0.1:8080/v2/items//x?q"),
            ("https://[::1]:8443/v2", "//evil.example/x", "https://[::1]:8443/v2//evil.example/x"),
            ("https://api.example.com", "//evil.example/x", "https://api.example.com//evil.example/x"),
        ] {
            let upstream = Upstream::parse(upstream).unwrap();
            let target = upstream.target(&PathAndQuery::try_from(target).unwrap()).unwrap();
            assert_eq!(target.to_string(), expected);
        }
    }

    #[test]
    fn only_plain_http_that_leaves_the_machine_is_insecure() {
        for (text, expected) in [
            ("http://api.example.com", true),
            ("https://api.example.com", false),
            ("http://localhost:1", false),
            ("http://127.8.0.1", false),
            ("http://[::1]", false),
            ("http://10.0.0.1", true),
            ("http://localhost.example.com", true),
        ] {
            assert_eq!(Upstream::parse(text).unwrap().is_insecure(), expected, "{text}");
        }
    }

    #[test]
    fn it_is_shown_as_it_is_called() {
        let upstream = Upstream::parse("https://API.example.com:443/v2/").unwrap();
        assert_eq!(
            (upstream.to_string().as_str(), upstream.provider()),
            ("https://api.example.com/v2", "api.example.com")
        );
    }
}

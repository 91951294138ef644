//! The names under which we may be asked.
//!
//! A browser that was led here by somebody else's DNS still says the other name. So the list is short: the loopback names
//! with the port that we listen on, and what the owner adds for a proxy of theirs. Never a pattern.

use super::Said;
use std::net::{IpAddr, SocketAddr};

/// A name that the owner adds, as it stands in a `Host` header: `console.example` or `console.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName(String);

/// The longest name that DNS has, and a port.
const NAME_BYTES_MAX: usize = 260;

impl OtherName {
    /// A name, with a port where it is not the scheme's own; nothing when it cannot be one.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_part);
        is_name.then(|| Self(name.to_ascii_lowercase()))
    }
}

impl std::fmt::Display for OtherName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One name of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    host: String,
    scheme: Scheme,
}

/// How a browser speaks with us under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// In the clear, over loopback.
    Http,
    /// By TLS of our own.
    Https,
    /// Something before us may speak TLS, and we do not see it.
    Either,
}

impl Name {
    /// Whether a page that was loaded under this name says so about itself.
    pub(crate) fn is_origin(&self, origin: &str) -> bool {
        match origin.split_once("://") {
            Some(("http", host)) => self.scheme != Scheme::Https && host.eq_ignore_ascii_case(&self.host),
            Some(("https", host)) => self.scheme != Scheme::Http && host.eq_ignore_ascii_case(&self.host),
            Some(_) | None => false,
        }
    }
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(Vec<Name>);

impl Names {
    pub(crate) fn of(listens: SocketAddr, others: &[OtherName], has_tls: bool) -> Self {
        let port = listens.port();
        let scheme = if has_tls { Scheme::Https } else { Scheme::Http };
        let mut hosts = match listens.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => vec![ip.to_string(), "localhost".to_owned()],
            IpAddr::V6(ip) if ip.is_loopback() => vec![format!("[{ip}]"), "localhost".to_owned()],
            // Reached from elsewhere: only by the names that the owner gives.
            IpAddr::V4(_) | IpAddr::V6(_) => Vec::new(),
        };
        if port != if has_tls { 443 } else { 80 } {
            // Browsers leave out the port that is the scheme's own.
            hosts = hosts.into_iter().map(|host| format!("{host}:{port}")).collect();
        }
        let ours = hosts.into_iter().map(|host| Name { host, scheme });
        let theirs = if has_tls { Scheme::Https } else { Scheme::Either };
        let others = others.iter().map(|OtherName(host)| Name { host: host.clone(), scheme: theirs });
        Self(ours.chain(others).collect())
    }

    pub(crate) fn find(&self, host: &Said<'_>) -> Option<&Name> {
        let Said::Once(host) = host else { return None };
        self.0.iter().find(|name| name.host.eq_ignore_ascii_case(host))
    }
}

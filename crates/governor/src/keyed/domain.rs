//! Normalized host names, so that each host has one key.
//!
//! Lower case, no default port, no trailing dot, addresses in canonical form. Otherwise `Example.com`,
//! `example.com:443` and `example.com.` would be three keys with three times the limit. Non-ASCII names need tables
//! that this crate does not have; the caller passes a function for them ([`Domain::parse_with`]).

use std::fmt;
use std::net::Ipv6Addr;

/// Maximum length of a name (RFC 1035).
const NAME_MAX: usize = 253;
/// Maximum length of a label.
const LABEL_MAX: usize = 63;

/// A normalized host, with its port unless that is the default one.
///
/// ```
/// use gleaner_governor::keyed::Domain;
/// let domain = Domain::parse("HTTPS://Example.COM:443/path?query").unwrap();
/// assert_eq!(domain.as_str(), "example.com");
/// assert_eq!(Domain::parse("[2001:DB8::0:1]:8080").unwrap().as_str(), "[2001:db8::1]:8080");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(Box<str>);

/// Why a text is not a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainError {
    /// It contains no host.
    Empty,
    /// The host name is too long.
    TooLong,
    /// A label is empty, too long, or has invalid characters.
    BadLabel,
    /// The port is invalid.
    BadPort,
    /// The text in brackets is not an IPv6 address.
    BadAddress,
    /// The host is not ASCII, and there was no translation or it failed.
    NotAscii,
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no host given",
            Self::TooLong => "the host is too long",
            Self::BadLabel => "a label of the host is empty, too long, or has invalid characters",
            Self::BadPort => "the port is not a number from 1 to 65535",
            Self::BadAddress => "the text in brackets is not an IPv6 address",
            Self::NotAscii => "the host has characters that are not allowed in a domain name",
        })
    }
}

impl std::error::Error for DomainError {}

impl Domain {
    /// Parses a host, a host with a port, or a whole URL.
    ///
    /// # Errors
    /// The text contains no host, or the host is not ASCII.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        Self::parse_with(text, |_| None)
    }

    /// Like [`parse`](Self::parse), with a function that translates a non-ASCII host (IDNA).
    ///
    /// # Errors
    /// The text contains no host.
    pub fn parse_with(text: &str, to_ascii: impl FnOnce(&str) -> Option<String>) -> Result<Self, DomainError> {
        let rest = text.split_once("://").map_or(text, |(_scheme, rest)| rest);
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let (host, port) = split_port(authority.rsplit('@').next().unwrap_or_default())?;
        let mut name = if host.starts_with('[') || host.contains(':') {
            address(host)?
        } else if host.is_ascii() {
            host_name(host)?
        } else {
            host_name(&to_ascii(host).ok_or(DomainError::NotAscii)?)?
        };
        if let Some(port) = port.filter(|port| !USUAL_PORTS.contains(port)) {
            name.push_str(&format!(":{port}"));
        }
        Ok(Self(name.into()))
    }

    /// The normalized name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ports that URLs leave out. They are dropped for every scheme: the name must not depend on the form of the URL, and
/// both default ports of a host are one server.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Splits host and port. An address without brackets contains colons, and has no port.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), DomainError> {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    if end == 0 && authority.matches(':').count() > 1 {
        return Ok((authority, None));
    }
    let Some(colon) = authority[end..].find(':').map(|at| end + at) else { return Ok((authority, None)) };
    let (host, port) = (&authority[..colon], &authority[colon + 1..]);
    if port.is_empty() {
        return Ok((host, None));
    }
    // `parse` would accept a sign.
    let number = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    match number {
        None | Some(0) => Err(DomainError::BadPort),
        port => Ok((host, port)),
    }
}

fn address(host: &str) -> Result<String, DomainError> {
    let inner = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or(DomainError::BadAddress)?,
        None => host,
    };
    let address: Ipv6Addr = inner.parse().map_err(|_| DomainError::BadAddress)?;
    Ok(format!("[{address}]"))
}

fn host_name(host: &str) -> Result<String, DomainError> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(DomainError::Empty);
    }
    if host.len() > NAME_MAX {
        return Err(DomainError::TooLong);
    }
    let is_label = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !host.split('.').all(is_label) {
        return Err(DomainError::BadLabel);
    }
    Ok(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> String {
        Domain::parse(text).map_or_else(|error| format!("{error:?}"), |domain| domain.to_string())
    }

    #[test]
    fn one_host_has_one_spelling() {
        for text in [
            "example.com",
            "Example.COM",
            "example.com.",
            "example.com:80",
            "example.com:443",
            "example.com:",
            "http://example.com",
            "HTTP://example.com:80/a?b#c",
            "https://user:pass@EXAMPLE.com:443/",
            "https://example.com?x=@other.com",
            "wss://example.com:443",
        ] {
            assert_eq!(parsed(text), "example.com", "{text}");
        }
    }

    #[test]
    fn a_port_that_is_not_usual_is_another_server() {
        assert_eq!(parsed("example.com:8080"), "example.com:8080");
        assert_eq!(parsed("https://example.com:8443/"), "example.com:8443");
        assert_eq!(parsed("ftp://example.com:21"), "example.com:21");
    }

    #[test]
    fn addresses_have_their_canonical_form() {
        assert_eq!(parsed("[2001:DB8:0::1]"), "[2001:db8::1]");
        assert_eq!(parsed("2001:db8:0:0:0:0:0:1"), "[2001:db8::1]");
        assert_eq!(parsed("http://[::1]:80/"), "[::1]");
        assert_eq!(parsed("[::1]:8080"), "[::1]:8080");
        assert_eq!(parsed("[::ffff:10.0.0.1]"), "[::ffff:10.0.0.1]");
        assert_eq!(parsed("127.0.0.1:80"), "127.0.0.1");
    }

    #[test]
    fn what_names_no_host_is_refused_with_its_reason() {
        for (text, error) in [
            ("", DomainError::Empty),
            ("https://", DomainError::Empty),
            (".", DomainError::Empty),
            ("a..b", DomainError::BadLabel),
            ("a b", DomainError::BadLabel),
            ("exa%6dple.com", DomainError::BadLabel),
            (&"a".repeat(64), DomainError::BadLabel),
            (&"a.".repeat(128), DomainError::TooLong),
            ("a:0", DomainError::BadPort),
            ("a:65536", DomainError::BadPort),
            ("a:+80", DomainError::BadPort),
            ("a:b", DomainError::BadPort),
            ("[::1", DomainError::BadAddress),
            ("[::1%eth0]", DomainError::BadAddress),
            ("::g", DomainError::BadAddress),
            ("bücher.example", DomainError::NotAscii),
        ] {
            assert_eq!(Domain::parse(text), Err(error), "{text}");
        }
        assert_eq!(parsed(&"a.".repeat(127)).len(), NAME_MAX, "the dot at the end does not count");
    }

    #[test]
    fn a_name_that_is_not_ascii_is_translated_by_the_caller() {
        let domain = Domain::parse_with("https://BÜCHER.example:8443/", |host| {
            assert_eq!(host, "BÜCHER.example");
            Some("xn--bcher-kva.example".to_owned())
        });
        assert_eq!(domain.unwrap().as_str(), "xn--bcher-kva.example:8443");
        assert_eq!(Domain::parse_with("ü", |_| Some("a b".to_owned())), Err(DomainError::BadLabel));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_spelling_spells_itself(text in "\\PC{0,40}") {
            if let Ok(domain) = Domain::parse_with(&text, |host| Some(host.chars().filter(char::is_ascii).collect())) {
                prop_assert_eq!(Domain::parse(domain.as_str()), Ok(domain));
            }
        }

        #[test]
        fn case_and_dots_at_the_end_make_no_difference(name in "[a-z0-9]{1,9}(\\.[a-z0-9-]{1,9}){0,3}") {
            prop_assert_eq!(Domain::parse(&name), Domain::parse(&format!("{}.", name.to_ascii_uppercase())));
        }
    }
}

//! Where the service is. Pure.
//!
//! It is chatgpt.com. A test may say otherwise, and nobody else: an address that can be set to anything would be a way
//! to have an owner's password typed into somebody else's page. So only this machine itself is taken in its place.

use gleaner_sdk::Stop;
use gleaner_sdk::protocol::RecoveryAction;
use url::{Host, Url};

/// What a test may set.
pub(super) const VARIABLE: &str = "PDPP_CHATGPT_BASE_URL";
const HOME: &str = "https://chatgpt.com/";

/// The service.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) home: Url,
}

impl Service {
    /// The service, or what a test has put in its place on this machine.
    pub(super) fn new(setting: Option<&str>) -> Result<Self, Stop> {
        let text = setting.map_or(HOME, str::trim);
        let allowed = |url: &Url| url.as_str() == HOME || (url.scheme() == "http" && is_loopback(url));
        let refused = || {
            let message =
                format!("{VARIABLE} may only name this machine itself (http://127.0.0.1:PORT), for tests; unset it");
            Stop::for_good(message, RecoveryAction::NotRetriable)
        };
        let home = Url::parse(text).ok().filter(allowed).ok_or_else(refused)?;
        Ok(Self { home })
    }

    /// An address of the service. `path` is ours and begins with a slash.
    pub(super) fn at(&self, path: &str) -> Url {
        // A path that begins with one slash stays on its host.
        self.home.join(path).unwrap_or_else(|_| self.home.clone())
    }

    /// Whether a page is the service's own, so that its requests are too.
    pub(super) fn is_ours(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| url.origin() == self.home.origin())
    }
}

fn is_loopback(url: &Url) -> bool {
    let is_plain = url.username().is_empty() && url.password().is_none() && url.path() == "/" && url.query().is_none();
    is_plain
        && match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(_)) | None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_service_and_this_machine_are_taken() {
        assert_eq!(Service::new(None).unwrap().at("/a?b=c").as_str(), "https://chatgpt.com/a?b=c");
        assert_eq!(Service::new(Some("http://127.0.0.1:8080")).unwrap().home.as_str(), "http://127.0.0.1:8080/");
        assert!(Service::new(Some("http://[::1]:8080/")).is_ok());
        for bad in [
            "http://chatgpt.com",
            "https://evil.example",
            "http://10.0.0.1",
            "http://localhost:80",
            "http://127.0.0.1@evil.example",
            "http://127.0.0.1.evil.example",
            "http://u:p@127.0.0.1",
            "ftp://127.0.0.1",
            "http://127.0.0.1/x",
            "nonsense",
            "http://0.0.0.0",
        ] {
            assert!(Service::new(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_elsewhere_is_not_the_services() {
        let service = Service::new(None).unwrap();
        assert!(service.is_ours("https://chatgpt.com/c/123?x=y"));
        for other in
            ["https://auth.openai.com/", "http://chatgpt.com/", "about:blank", "", "https://chatgpt.com.evil.example/"]
        {
            assert!(!service.is_ours(other), "{other}");
        }
    }
}

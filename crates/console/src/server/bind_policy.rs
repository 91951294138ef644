//! From where the console can be reached, and by what: an address, TLS, a proxy, a path.
//!
//! Loopback needs nothing. Any other address needs a name under which it may be asked, and either TLS of its own or the
//! owner's word that a proxy with TLS stands before it: otherwise a token or a session would cross a network in the clear.
//! There is no way to turn authentication off.

use crate::auth::guard::OtherName;
use crate::error::ConsoleError;
use crate::server::base_path::BasePath;
use crate::server::tls::TlsFiles;
use std::net::SocketAddr;

/// How it is reached other than directly, over loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindPolicy {
    /// TLS of its own.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy of the owner's stands before it, which speaks TLS with browsers.
    pub behind_proxy: bool,
    /// The path below which it lives.
    pub base: BasePath,
}

impl BindPolicy {
    /// Whether it may listen there.
    pub(crate) fn allows(&self, listen: SocketAddr, names: &[OtherName]) -> Result<(), ConsoleError> {
        if listen.ip().is_loopback() {
            return Ok(());
        }
        if names.is_empty() {
            return Err(ConsoleError::NotLoopback(listen));
        }
        if self.tls.is_none() && !self.behind_proxy {
            return Err(ConsoleError::InTheClear(listen));
        }
        Ok(())
    }

    /// Whether browsers reach it by TLS, so that its cookie must go no other way.
    pub(crate) const fn is_secure(&self) -> bool {
        self.tls.is_some() || self.behind_proxy
    }

    /// What stands before the name in a link: a proxy has a name of its own, and TLS.
    pub(crate) fn address(&self, listens: SocketAddr, names: &[OtherName]) -> String {
        let is_theirs = !listens.ip().is_loopback() || self.behind_proxy;
        let (name, scheme) = match names.first().filter(|_| is_theirs) {
            Some(name) => (name.to_string(), if self.is_secure() { "https" } else { "http" }),
            None => (listens.to_string(), if self.tls.is_some() { "https" } else { "http" }),
        };
        format!("{scheme}://{name}{}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<OtherName> {
        names.iter().map(|name| OtherName::new(name).unwrap()).collect()
    }

    #[test]
    fn another_address_needs_a_name_and_tls_or_a_proxy() {
        let tls = || Some(TlsFiles { certificate: "c".into(), key: "k".into() });
        let (here, there) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
        let name = names(&["a.example"]);
        let with = |tls, behind_proxy| BindPolicy { tls, behind_proxy, base: BasePath::default() };
        assert!(with(None, false).allows(here, &[]).is_ok());
        assert!(matches!(with(tls(), true).allows(there, &[]), Err(ConsoleError::NotLoopback(_))));
        assert!(matches!(with(None, false).allows(there, &name), Err(ConsoleError::InTheClear(_))));
        assert!(with(tls(), false).allows(there, &name).is_ok() && with(None, true).allows(there, &name).is_ok());
    }

    #[test]
    fn a_link_leads_where_a_browser_can_go() {
        let tls = Some(TlsFiles { certificate: "c".into(), key: "k".into() });
        let (here, there) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
        let name = names(&["a.example"]);
        let base = BasePath::new("/g").unwrap();
        assert_eq!(BindPolicy::default().address(here, &name), "http://127.0.0.1:1");
        assert_eq!(BindPolicy { tls: tls.clone(), ..BindPolicy::default() }.address(here, &[]), "https://127.0.0.1:1");
        assert_eq!(BindPolicy { tls, ..BindPolicy::default() }.address(there, &name), "https://a.example");
        assert_eq!(
            BindPolicy { behind_proxy: true, base, ..BindPolicy::default() }.address(here, &name),
            "https://a.example/g"
        );
    }
}

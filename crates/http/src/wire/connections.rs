//! Connections of reqwest as everyone here opens them: nothing is sent that no governor knows of.

use super::address::PublicOnly;
use std::time::Duration;

/// Ten seconds to connect are three lost packets; and a connection that was never made is the one
/// failure after which every request may be sent again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes connections with the certificates of the platform, without redirects and retries of their own.
pub fn client_builder() -> reqwest::ClientBuilder {
    // Somebody else in this process was first: then theirs is used, by us too. ring: it builds with a C compiler and
    // nothing else.
    let _theirs_if_any = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        // A retry that the governor does not know of would be a second path to the provider. None at most,
        // too, or reqwest would keep a copy of each request that it never sends.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
}

/// Restricts connections to names that resolve to public addresses: for where a redirect leads to. Not through a proxy,
/// which would resolve the name out of our sight.
pub fn public_only(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    builder.dns_resolver(PublicOnly).no_proxy()
}

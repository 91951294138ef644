//! reqwest connections without hidden requests: no redirects or retries that no governor sees.

use super::address::PublicOnly;
use std::time::Duration;

/// Ten seconds to connect are three lost packets. A connection that was never made is the one failure after which
/// every request may be retried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client builder with the platform's certificates, without redirects and retries of reqwest.
pub fn client_builder() -> reqwest::ClientBuilder {
    // If another crate installed a provider first, it is used here too. ring needs only a C compiler to build.
    let _theirs_if_any = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        // A retry of reqwest would bypass the governor. The maximum of 0 also keeps reqwest from copying each
        // request.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
}

/// Restricts connections to names that resolve to public addresses, for redirect targets. No proxy, because a proxy
/// would resolve the name where we cannot check the address.
pub fn public_only(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    builder.dns_resolver(PublicOnly).no_proxy()
}

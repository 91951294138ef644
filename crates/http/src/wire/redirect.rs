//! Target of a redirect, and whether it may be followed.

use super::address::is_public;
use http::StatusCode;
use http::header::{self, HeaderMap};
use url::{Host, Url};

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectFault {
    /// It has no `Location`.
    #[error("it has no Location")]
    NoLocation,
    /// The `Location` is not a URL.
    #[error("its Location is not a URL")]
    InvalidLocation,
    /// Neither http nor https.
    #[error("it leads to something else than http or https")]
    Scheme,
    /// From https to http.
    #[error("it leads from https to http, where anyone on the way can read and change it")]
    Insecure,
    /// To a private address.
    #[error("it leads to an address that is not public; allow_private_redirects(true) would follow it")]
    PrivateTarget,
    /// It would send the body to another origin.
    #[error("it would send the body of the request to another origin; send it there yourself if you mean it")]
    BodyToOtherOrigin,
    /// The same request was redirected before.
    #[error("it leads back to a request that was redirected before")]
    Loop,
    /// Redirect limit reached. Holds the limit.
    #[error("redirect limit of {0} reached")]
    TooMany(u32),
}

/// Whether an answer with this status is a redirect.
#[must_use]
pub const fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of an answer to a request for `from`. Never from https to http, and never with a password.
///
/// # Errors
/// The `Location` is missing, invalid, or must not be followed.
pub fn redirect_target(from: &Url, headers: &HeaderMap) -> Result<Url, RedirectFault> {
    let location = headers.get(header::LOCATION).ok_or(RedirectFault::NoLocation)?;
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_not_text| RedirectFault::InvalidLocation)?;
    let mut url = from.join(location).map_err(|_not_a_url| RedirectFault::InvalidLocation)?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => return Err(RedirectFault::Insecure),
        (_, "http" | "https") => {}
        _ => return Err(RedirectFault::Scheme),
    }
    // A password in a Location would be chosen by the provider.
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.map_err(|()| RedirectFault::InvalidLocation)?;
    Ok(url)
}

/// Whether a URL names an address that is not public. Names are checked when they are resolved ([`public_only`](super::public_only)).
#[must_use]
pub fn names_private_address(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => !is_public(ip.into()),
        Some(Host::Ipv6(ip)) => !is_public(ip.into()),
        Some(Host::Domain(_)) => false,
        None => true,
    }
}

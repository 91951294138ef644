//! Who may ask anything at all, decided before anybody looks at what is asked for.
//!
//! Pure: what a request says about itself goes in, a verdict comes out. Nothing here knows a route beyond the two doors
//! that are open to strangers, so a path that does not exist and one that does are refused with the same bytes.
//!
//! What each check is against. **Host**: a name that somebody else's DNS points at this machine. **Sec-Fetch-Site** and
//! **Origin**: a page of another site, or of another port of this machine, that uses the owner's browser.
//! **Credential**: everybody else. A request that changes something and is signed in by cookie must name its origin,
//! because a browser adds the cookie by itself; a bearer token is never added by a browser.

mod asked;
mod names;

pub(crate) use asked::{Asked, Presented, SESSION_COOKIE, Said};
pub(crate) use names::Names;
pub use names::OtherName;

use http::{Method, StatusCode};

/// Which door a request is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Whether anybody is alive.
    Alive,
    /// Where a one-time link leads.
    SignIn,
    /// Everything else, whether it is there or not.
    Other,
}

/// Says only that something listens.
pub(crate) const ALIVE_PATH: &str = "/healthz";
/// Where a one-time link leads.
pub(crate) const SIGN_IN_PATH: &str = "/open";
/// How that looks.
pub(crate) const SIGN_IN_STYLE_PATH: &str = "/open.css";

impl Door {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let looks = matches!(*method, Method::GET | Method::HEAD);
        match path {
            ALIVE_PATH if looks => Self::Alive,
            SIGN_IN_STYLE_PATH if looks => Self::SignIn,
            SIGN_IN_PATH if looks || *method == Method::POST => Self::SignIn,
            _ => Self::Other,
        }
    }
}

/// What came of the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is the owner's.
    Yes,
    /// It is nobody's.
    No,
    /// It is nobody's, and there were too many of those lately.
    NoAndTooOften,
}

/// Why a request goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The name under which we were asked is not ours.
    NotOurName,
    /// A page of another site asks.
    ForeignSite,
    /// Something would be changed, and nobody says from which page.
    NoOrigin,
    /// Nobody says who asks, or it is wrong.
    NotSignedIn,
    /// It was wrong too often.
    TooManyGuesses,
}

impl Refusal {
    /// For programs.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::NotOurName => "not_our_name",
            Self::ForeignSite => "foreign_site",
            Self::NoOrigin => "no_origin",
            Self::NotSignedIn => "not_signed_in",
            Self::TooManyGuesses => "too_many_guesses",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::NotOurName => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignSite | Self::NoOrigin => StatusCode::FORBIDDEN,
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::TooManyGuesses => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// The verdict on one request. The credential is looked at only when everything before it is in order, and only where
/// one is needed.
pub(crate) fn judge(
    asked: &Asked<'_>,
    names: &Names,
    know: impl FnOnce(&Presented<'_>) -> Known,
) -> Result<(), Refusal> {
    let Some(name) = names.find(&asked.host) else { return Err(Refusal::NotOurName) };
    let changes = !asked.method.is_safe();
    match asked.fetch_site {
        Said::Nothing | Said::Once("same-origin") => {}
        // Typed into the address bar, or opened by another program.
        Said::Once("none") if !changes => {}
        Said::Once(_) | Said::Unclear => return Err(Refusal::ForeignSite),
    }
    let has_origin = match asked.origin {
        Said::Nothing => false,
        Said::Once(origin) if name.is_origin(origin) => true,
        Said::Once(_) | Said::Unclear => return Err(Refusal::ForeignSite),
    };
    let needs_origin = match asked.door {
        Door::Alive => return Ok(()),
        Door::SignIn => changes,
        Door::Other => {
            match know(&asked.presented) {
                Known::Yes => {}
                Known::No => return Err(Refusal::NotSignedIn),
                Known::NoAndTooOften => return Err(Refusal::TooManyGuesses),
            }
            changes && matches!(asked.presented, Presented::Session(_))
        }
    };
    if needs_origin && !has_origin { Err(Refusal::NoOrigin) } else { Ok(()) }
}

#[cfg(test)]
mod tests;

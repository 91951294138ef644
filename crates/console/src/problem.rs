//! What goes wrong with a request, in one shape: a code for programs, a message for people, and what to do next.
//!
//! A message never repeats a credential, an answer or a body, and one for a stranger names nothing that is inside.

use crate::auth::auth_attempts;
use crate::auth::guard::Refusal;
use axum::response::{IntoResponse, Response};
use gleaner_app::{AppError, ErrorKind};
use gleaner_store::StoreError;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// A refusal of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
    also: Also,
}

/// A header that some of them have.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Also {
    Nothing,
    RetryAfter(u64),
    Authenticate,
    Allow(String),
}

#[derive(Serialize)]
struct Wire<'a> {
    error: WireError<'a>,
}

#[derive(Serialize)]
struct WireError<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { status, code, message: message.into(), hint: hint.into(), also: Also::Nothing }
    }

    /// A request that cannot be understood.
    pub(crate) fn bad_request(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message, hint)
    }

    /// A request that is understood, and cannot be done as things are.
    pub(crate) fn makes_no_sense(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "makes_no_sense", message, hint)
    }

    /// Something that is not there.
    pub(crate) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message, hint)
    }

    /// No such path.
    pub(crate) fn no_route() -> Self {
        Self::not_found("there is nothing under this path", "/api/v1/openapi.json lists what there is")
    }

    /// The path is there, and this is not done with it.
    pub(crate) fn method_not_allowed(allowed: &str) -> Self {
        let hint = format!("allowed here: {allowed}");
        let message = "this path does not know this method";
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message, hint);
        Self { also: Also::Allow(allowed.to_owned()), ..problem }
    }

    /// Too much at once.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message, "try again in some seconds");
        Self { also: Also::RetryAfter(2), ..problem }
    }

    /// What was meant to stay inside; the log has more.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let hint = "the log of `gleaner serve` says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message, hint)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (message, hint) = match refusal {
            Refusal::NotOurName => {
                ("this name is not one that the console answers to", "use the address that `gleaner serve` printed")
            }
            Refusal::ForeignSite => (
                "a page of another site may not ask the console anything",
                "type the console's address into the address bar",
            ),
            Refusal::NoOrigin => (
                "a change by a signed-in browser must say from which page it comes",
                "send the header Origin, or use the bearer token",
            ),
            Refusal::NotSignedIn => (
                "nobody is signed in",
                "open the link that `gleaner serve` printed, or send the header Authorization: Bearer TOKEN",
            ),
            Refusal::TooManyGuesses => ("too many credentials were wrong lately", "wait a minute"),
        };
        let problem = Self::new(refusal.status(), refusal.code(), message, hint);
        let also = match refusal {
            Refusal::NotSignedIn => Also::Authenticate,
            Refusal::TooManyGuesses => Also::RetryAfter(auth_attempts::SPAN.as_secs()),
            Refusal::NotOurName | Refusal::ForeignSite | Refusal::NoOrigin => Also::Nothing,
        };
        Self { also, ..problem }
    }
}

impl From<AppError> for Problem {
    fn from(AppError { kind, message, hint }: AppError) -> Self {
        let (status, code) = match kind {
            ErrorKind::NotFound | ErrorKind::NoSuchQuestion => (StatusCode::NOT_FOUND, "not_found"),
            ErrorKind::Usage | ErrorKind::CredentialsRefused => (StatusCode::UNPROCESSABLE_ENTITY, "makes_no_sense"),
            ErrorKind::Conflict
            | ErrorKind::Unreachable
            | ErrorKind::Held
            | ErrorKind::NeedsOwner
            | ErrorKind::Resting(_) => (StatusCode::CONFLICT, "not_now"),
            ErrorKind::Failed | ErrorKind::NotInitialized => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
            ErrorKind::Store => {
                tracing::warn!(error = %message, "the console could not use the store");
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
            }
        };
        Self::new(status, code, message, hint)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::UnknownConnection(_) => {
                Self::not_found(error.to_string(), "/api/v1/connections lists what there is")
            }
            StoreError::UnknownStream { .. } => {
                Self::not_found(error.to_string(), "the connection's own page lists its streams")
            }
            StoreError::StandsForMany(_) => {
                let hint = "it is collected by and by; single records of it can be ignored when they are known";
                Self::new(StatusCode::CONFLICT, "not_now", error.to_string(), hint)
            }
            StoreError::Purging(_) => Self::new(
                StatusCode::GONE,
                "being_forgotten",
                error.to_string(),
                "`gleaner remove NAME --purge` goes on with it",
            ),
            // A browser that leaves a page is no fault, and there is nobody to tell.
            StoreError::Interrupted => Self::busy(error.to_string()),
            _ => {
                tracing::warn!(%error, "the console could not read the store");
                let hint = "run `gleaner doctor`";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", error.to_string(), hint)
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let wire = Wire { error: WireError { code: self.code, message: &self.message, hint: &self.hint } };
        // Three texts can always be written.
        let body = serde_json::to_string(&wire).unwrap_or_default();
        let mut response = (self.status, [(CONTENT_TYPE, "application/json")], body).into_response();
        let header = match self.also {
            Also::Nothing => None,
            Also::RetryAfter(seconds) => Some((RETRY_AFTER, HeaderValue::from(seconds))),
            Also::Authenticate => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"gleaner\""))),
            Also::Allow(methods) => HeaderValue::from_str(&methods).ok().map(|methods| (ALLOW, methods)),
        };
        response.headers_mut().extend(header);
        response
    }
}

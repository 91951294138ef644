//! What a request brings: parts of its path, of its query, and its body, read strictly and within bounds.
//!
//! An unknown parameter is refused, since whoever sent it expects something of it. What was sent is not repeated in an
//! error: it may be an answer with a password in it.

use crate::problem::Problem;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// The longest body: a form with a few long secrets.
pub(crate) const BODY_BYTES_MAX: usize = 160 * 1024;
/// How long a body may take to arrive.
const BODY_MAX: Duration = Duration::from_secs(10);
const SEE: &str = "see /api/v1/openapi.json";

/// Parts of the path.
pub(crate) struct UrlPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for UrlPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(place)| Self(place))
            .map_err(|_: PathRejection| Problem::bad_request("a part of the path is not what is expected there", SEE))
    }
}

/// The query.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(wanted)| Self(wanted)).map_err(|rejection| {
            Problem::bad_request(format!("the query cannot be read: {}", rejection.body_text()), SEE)
        })
    }
}

/// A body of JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        is_of_type(&request, "application/json")?;
        let bytes = read(request).await?;
        // Every body is an object; a list of its members' values would be read as one, too.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::bad_request("the body is no JSON object", SEE));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let message =
                format!("the body is not what is expected, in line {} column {}", error.line(), error.column());
            Problem::bad_request(message, SEE)
        })
    }
}

/// The text of a form.
pub(crate) struct Form(pub(crate) Vec<u8>);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        is_of_type(&request, "application/x-www-form-urlencoded")?;
        read(request).await.map(Self)
    }
}

fn is_of_type(request: &Request, expected: &str) -> Result<(), Problem> {
    let given = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if given.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let hint = format!("send the header Content-Type: {expected}");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong_type", "the body is of another type", hint))
}

async fn read(request: Request) -> Result<Vec<u8>, Problem> {
    let too_long = || {
        let message = format!("a body may have {BODY_BYTES_MAX} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_long", message, "send less")
    };
    // Said before it is sent, where the head says how long it is.
    if request.body().size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX);
    match timeout(BODY_MAX, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_long()),
        Ok(Err(_)) => Err(Problem::bad_request("the body ended before its end", "send it again")),
        Err(_) => {
            let hint = "send it faster";
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took too long to arrive", hint))
        }
    }
}

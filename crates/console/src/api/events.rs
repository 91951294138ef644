//! The stream of events, for pages that are to be live.

use crate::problem::Problem;
use crate::server::app_state::Shared;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};

/// One client more.
pub(crate) async fn stream(State(state): Shared) -> Result<Response, Problem> {
    let stream = state.events.subscribe()?;
    // A proxy that gathers answers before it passes them on would hold back what is to be live.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), (unbuffered, "no")];
    Ok((headers, Body::new(stream)).into_response())
}

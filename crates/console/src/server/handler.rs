//! One request from its head to its answer: the guard, then the routes, then what every answer has in common.
//!
//! The guard comes before the router and not as a layer of it, so that no route can be added around it. A handler that
//! panics or takes too long is one bad answer and nothing else.

use crate::api::sign_in;
use crate::auth::auth_attempts::AuthAttempts;
use crate::auth::guard::{Asked, Known, Names, Presented, judge};
use crate::auth::keys::Keys;
use crate::problem::Problem;
use crate::server::base_path::BasePath;
use crate::server::metrics::Figures;
use crate::server::routes;
use crate::server::security_headers;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use gleaner_app::dates;
use http::Request;
use hyper::body::Incoming;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tower::ServiceExt as _;

/// The longest that an answer may be worked on. What waits for a run to reply waits at most 25 seconds.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// What answers.
#[derive(Debug)]
pub(crate) struct RequestHandler {
    pub(crate) keys: Arc<Keys>,
    pub(crate) figures: Figures,
    pub(crate) attempts: Arc<AuthAttempts>,
    pub(crate) names: Names,
    pub(crate) base: BasePath,
    pub(crate) router: Router,
}

impl RequestHandler {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response {
        let (mut parts, body) = request.into_parts();
        parts.uri = self.base.inside(&parts.uri);
        let wants_page = sign_in::wants_page(&parts);
        let response = match judge(&Asked::of(&parts), &self.names, |presented| self.know(presented)) {
            Ok(()) => self.route(Request::from_parts(parts, Body::new(body))).await,
            Err(refusal) => {
                self.figures.count_refusal(refusal);
                sign_in::refused(Problem::from(refusal), refusal, wants_page)
            }
        };
        let mut response = self.base.outside(response).await;
        self.figures.count_answer(response.status());
        security_headers::put_on(response.headers_mut());
        response
    }

    fn know(&self, presented: &Presented<'_>) -> Known {
        let is_known = match presented {
            Presented::Nothing => return Known::No,
            Presented::Bearer(token) => self.keys.is_token(token),
            Presented::Session(session) => self.keys.is_session(session, dates::now()),
            Presented::Unclear => false,
        };
        match is_known {
            true => Known::Yes,
            false if self.attempts.wrong(Instant::now()) => Known::NoAndTooOften,
            false => Known::No,
        }
    }

    async fn route(&self, request: Request<Body>) -> Response {
        let routed = AssertUnwindSafe(self.router.clone().oneshot(request)).catch_unwind();
        match timeout(ANSWER_MAX, routed).await {
            Ok(Ok(Ok(response))) => routes::finish(response),
            Ok(Err(_)) => {
                tracing::error!("a request to the console ended in a fault of ours");
                Problem::internal("this request met a fault of ours").into_response()
            }
            Ok(Ok(Err(never))) => match never {},
            Err(_) => Problem::busy("the answer took too long").into_response(),
        }
    }
}

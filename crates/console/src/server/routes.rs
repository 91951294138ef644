//! Every path and method, once: the router is made of this list, and the list is compared with `openapi.json`.

use crate::api::export;
use crate::api::{
    actions, connection, connections, connectors, doctor, events, gaps, interactions, quarantine, records, runs,
    sign_in, status,
};
use crate::auth::guard::{ALIVE_PATH, SIGN_IN_PATH};
use crate::pages;
use crate::problem::Problem;
use crate::server::app_state::AppState;
use crate::server::metrics;
use axum::Router;
use axum::handler::Handler;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{Method, StatusCode};
use std::sync::Arc;

/// What the API is, for programs.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.json");

/// The router, and what is in it.
#[derive(Debug)]
pub(crate) struct Routes {
    router: Router<Arc<AppState>>,
    listed: Vec<(Method, &'static str)>,
}

impl Routes {
    /// All of them.
    pub(crate) fn all() -> Self {
        let routes = Self { router: Router::new(), listed: Vec::new() };
        routes
            .get(ALIVE_PATH, alive)
            .get("/metrics", metrics::metrics)
            .get(SIGN_IN_PATH, sign_in::page)
            .post(SIGN_IN_PATH, sign_in::exchange)
            .get("/api/v1/openapi.json", openapi)
            .get("/api/v1/status", status::status)
            .get("/api/v1/events", events::stream)
            .post("/api/v1/links", sign_in::new_link)
            .delete("/api/v1/session", sign_in::sign_out)
            .get("/api/v1/doctor", doctor::checks)
            .get("/api/v1/connectors", connectors::all)
            .post("/api/v1/connectors/{connector}/check", connectors::check)
            .get("/api/v1/connections", connections::all)
            .post("/api/v1/connections", connectors::add)
            .get("/api/v1/connections/{connection}", connection::one)
            .post("/api/v1/connections/{connection}/run", actions::run)
            .post("/api/v1/connections/{connection}/pause", actions::pause)
            .post("/api/v1/connections/{connection}/resume", actions::resume)
            .patch("/api/v1/connections/{connection}/schedule", actions::schedule)
            .get("/api/v1/connections/{connection}/runs", runs::of_connection)
            .get("/api/v1/connections/{connection}/gaps", gaps::of_connection)
            .post("/api/v1/connections/{connection}/gaps/retry", actions::retry_gaps)
            .post("/api/v1/connections/{connection}/gaps/{gap}/retry", actions::retry_gap)
            .post("/api/v1/connections/{connection}/gaps/{gap}/ignore", actions::ignore_gap)
            .delete("/api/v1/connections/{connection}/gaps/{gap}/ignore", actions::take_back_gap)
            .get("/api/v1/connections/{connection}/quarantine", quarantine::of_connection)
            .get("/api/v1/connections/{connection}/export", export::connection)
            .get("/api/v1/connections/{connection}/streams/{stream}/export", export::stream)
            .get("/api/v1/connections/{connection}/streams/{stream}/records", records::of_stream)
            .get("/api/v1/connections/{connection}/streams/{stream}/record", records::one)
            .get("/api/v1/connections/{connection}/streams/{stream}/history", records::history)
            .get("/api/v1/runs/{run}", runs::one)
            .get("/api/v1/runs/{run}/events", runs::events)
            .post("/api/v1/runs/{run}/cancel", actions::cancel)
            .get("/api/v1/interactions", interactions::all)
            .post("/api/v1/interactions/{interaction}/answer", actions::answer)
    }

    fn get<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::GET, MethodFilter::GET, path, handler)
    }

    fn post<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::POST, MethodFilter::POST, path, handler)
    }

    fn patch<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::PATCH, MethodFilter::PATCH, path, handler)
    }

    fn delete<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::DELETE, MethodFilter::DELETE, path, handler)
    }

    fn with<H: Handler<T, Arc<AppState>>, T: 'static>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.listed.push((method, path));
        Self { router: self.router.route(path, on(filter, handler)), listed: self.listed }
    }

    /// Every method and path.
    pub(crate) fn listed(&self) -> &[(Method, &'static str)] {
        &self.listed
    }

    pub(crate) fn router(self, state: Arc<AppState>) -> Router {
        let no_route = || async { Problem::no_route() };
        self.router.merge(pages::all().router()).fallback(no_route).with_state(state)
    }
}

/// The router answers a method that a path does not know by itself, without a body.
pub(crate) fn finish(response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    let allowed = response.headers().get(ALLOW).and_then(|allowed| allowed.to_str().ok()).unwrap_or_default();
    Problem::method_not_allowed(allowed).into_response()
}

/// Alive, and not a word more: strangers may ask.
async fn alive() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "alive\n").into_response()
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

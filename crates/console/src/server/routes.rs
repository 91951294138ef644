//! Every path and method, once: the router is made of these lists, and that of the API is compared with `openapi.json`.
//!
//! Most handlers are a function of the store or of the application. How each kind is called and answered is said here.

use crate::api::{
    actions, connection, connections, connectors, doctor, events, export, gaps, interactions, quarantine, records,
    runs, sign_in, status,
};
use crate::auth::guard::{ALIVE_PATH, SIGN_IN_PATH};
use crate::pages::{self, PageProblem, show};
use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::extract::Form;
use crate::server::metrics;
use askama::Template;
use axum::Router;
use axum::extract::{FromRequest, FromRequestParts, State};
use axum::handler::Handler;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, patch, post};
use gleaner_app::App;
use gleaner_store::Reader;
use http::header::{ALLOW, CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode};
use serde::Serialize;
use std::sync::Arc;

/// What the API is, for programs.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.json");

/// The router, and what is in it.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    router: Router<Arc<AppState>>,
    listed: Vec<(Method, &'static str)>,
}

impl Routes {
    /// Those of the API, and the few that are no pages.
    pub(crate) fn api() -> Self {
        const DONE: StatusCode = StatusCode::NO_CONTENT;
        // It is noted, and happens as soon as it can.
        const NOTED: StatusCode = StatusCode::ACCEPTED;
        Self::default()
            .get(ALIVE_PATH, alive)
            .get("/metrics", metrics::metrics)
            .get(SIGN_IN_PATH, sign_in::page)
            .post(SIGN_IN_PATH, sign_in::exchange)
            .get("/api/v1/openapi.json", openapi)
            .get("/api/v1/status", status::status)
            .get("/api/v1/events", events::stream)
            .post("/api/v1/links", sign_in::new_link)
            .with(Method::DELETE, "/api/v1/session", sign_in::sign_out)
            .get("/api/v1/doctor", doctor::checks)
            .get("/api/v1/connectors", connectors::all)
            .post("/api/v1/connectors/{connector}/check", connectors::check)
            .read("/api/v1/connections", connections::all)
            .post("/api/v1/connections", connectors::add)
            .read("/api/v1/connections/{connection}", connection::one)
            .act(Method::POST, "/api/v1/connections/{connection}/run", NOTED, actions::run)
            .act(Method::POST, "/api/v1/connections/{connection}/pause", DONE, actions::pause)
            .act(Method::POST, "/api/v1/connections/{connection}/resume", DONE, actions::resume)
            .act(Method::PATCH, "/api/v1/connections/{connection}/schedule", DONE, actions::schedule)
            .read("/api/v1/connections/{connection}/runs", runs::of_connection)
            .read("/api/v1/connections/{connection}/gaps", gaps::of_connection)
            .act(Method::POST, "/api/v1/connections/{connection}/gaps/retry", NOTED, actions::retry_gaps)
            .act(Method::POST, "/api/v1/connections/{connection}/gaps/{gap}/retry", NOTED, actions::retry_gap)
            .act(Method::POST, "/api/v1/connections/{connection}/gaps/{gap}/ignore", DONE, actions::ignore_gap)
            .act(Method::DELETE, "/api/v1/connections/{connection}/gaps/{gap}/ignore", NOTED, actions::take_back_gap)
            .read("/api/v1/connections/{connection}/quarantine", quarantine::of_connection)
            .get("/api/v1/connections/{connection}/export", export::connection)
            .get("/api/v1/connections/{connection}/streams/{stream}/export", export::stream)
            .read("/api/v1/connections/{connection}/streams/{stream}/records", records::of_stream)
            .read("/api/v1/connections/{connection}/streams/{stream}/record", records::one)
            .read("/api/v1/connections/{connection}/streams/{stream}/history", records::history)
            .read("/api/v1/runs/{run}", runs::one)
            .read("/api/v1/runs/{run}/events", runs::events)
            .act(Method::POST, "/api/v1/runs/{run}/cancel", NOTED, actions::cancel)
            .read("/api/v1/interactions", interactions::all)
            .act(Method::POST, "/api/v1/interactions/{interaction}/answer", DONE, actions::answer)
    }

    /// Gives what the store says, as JSON.
    pub(crate) fn read<A, T>(self, path: &'static str, ask: fn(&Reader, A) -> Result<T, Problem>) -> Self
    where
        A: FromRequestParts<Arc<AppState>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        self.get(path, move |State(state): Shared, asked: A| async move {
            state.responder.json(&state.reading.ask(move |reader| ask(reader, asked)).await?)
        })
    }

    /// Shows what the store says, as a page.
    pub(crate) fn page<A, T>(self, path: &'static str, gather: fn(&Reader, A) -> Result<T, Problem>) -> Self
    where
        A: FromRequestParts<Arc<AppState>> + Send + 'static,
        T: Template + Send + 'static,
    {
        self.get(path, move |State(state): Shared, asked: A| async move {
            show(&state.reading.ask(move |reader| gather(reader, asked)).await?)
        })
    }

    /// Acts for the owner. Each action changes something, so none is a GET.
    fn act<A, M, R>(
        self,
        method: Method,
        path: &'static str,
        done: StatusCode,
        act: fn(&App, A) -> Result<R, Problem>,
    ) -> Self
    where
        A: FromRequest<Arc<AppState>, M> + Send + 'static,
        M: 'static,
        R: Send + 'static,
    {
        self.with(method, path, move |State(state): Shared, asked: A| async move {
            state.act(move |app| act(app, asked)).await.map(|_| done)
        })
    }

    /// Does what a form says, and leads to the page that shows what came of it.
    pub(crate) fn form<A>(self, path: &'static str, act: fn(&App, A, &[u8]) -> Result<String, Problem>) -> Self
    where
        A: FromRequestParts<Arc<AppState>> + Send + 'static,
    {
        self.post(path, move |State(state): Shared, asked: A, Form(form): Form| async move {
            let shown = state.act(move |app| act(app, asked, &form)).await;
            shown.map(see_other).map_err(PageProblem::from)
        })
    }

    pub(crate) fn get<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::GET, path, handler)
    }

    pub(crate) fn post<H: Handler<T, Arc<AppState>>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.with(Method::POST, path, handler)
    }

    fn with<H: Handler<T, Arc<AppState>>, T: 'static>(self, method: Method, path: &'static str, handler: H) -> Self {
        let Self { router, mut listed } = self;
        let handler = match method {
            Method::GET => get(handler),
            Method::PATCH => patch(handler),
            Method::DELETE => delete(handler),
            _ => post(handler),
        };
        listed.push((method, path));
        Self { router: router.route(path, handler), listed }
    }

    /// Every method and path.
    pub(crate) fn listed(self) -> Vec<(String, &'static str)> {
        self.listed.into_iter().map(|(method, path)| (method.to_string(), path)).collect()
    }

    /// The whole router: API and pages.
    pub(crate) fn router(state: Arc<AppState>) -> Router {
        let no_route = || async { Problem::no_route() };
        Self::api().router.merge(pages::all().router).fallback(no_route).with_state(state)
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

/// Leads to another page, which is then asked for by GET.
pub(crate) fn see_other(address: String) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}

/// Alive, and not a word more: strangers may ask.
async fn alive() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "alive\n").into_response()
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

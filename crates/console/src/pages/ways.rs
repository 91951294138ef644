//! Every page and form with its method, so that whoever checks all of them has the list: it is made by what adds the routes.

use crate::server::app_state::AppState;
use axum::Router;
use axum::handler::Handler;
use axum::routing::MethodRouter;
use http::Method;
use std::sync::Arc;

/// One method of a path, and who answers it.
pub(super) struct Way {
    method: Method,
    handler: MethodRouter<Arc<AppState>>,
}

/// Looks at something.
pub(super) fn get<H: Handler<T, Arc<AppState>>, T: 'static>(handler: H) -> Way {
    Way { method: Method::GET, handler: axum::routing::get(handler) }
}

/// Changes something.
pub(super) fn post<H: Handler<T, Arc<AppState>>, T: 'static>(handler: H) -> Way {
    Way { method: Method::POST, handler: axum::routing::post(handler) }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    router: Router<Arc<AppState>>,
    listed: Vec<(Method, &'static str)>,
}

impl Pages {
    pub(super) fn route(mut self, path: &'static str, way: Way) -> Self {
        self.listed.push((way.method, path));
        Self { router: self.router.route(path, way.handler), ..self }
    }

    /// Every method and path.
    pub(crate) fn listed(&self) -> &[(Method, &'static str)] {
        &self.listed
    }

    pub(crate) fn router(self) -> Router<Arc<AppState>> {
        self.router
    }
}

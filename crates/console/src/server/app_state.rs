//! What the handlers share: the way to the store, to whoever collects, and to the owner's keys.

use crate::auth::auth_attempts::AuthAttempts;
use crate::auth::guard::SIGN_IN_PATH;
use crate::auth::keys::Keys;
use crate::error::ConsoleError;
use crate::problem::Problem;
use crate::server::base_path::BasePath;
use crate::server::events::Events;
use crate::server::job_queue::{Job, JobQueue};
use crate::server::metrics::Figures;
use crate::server::reading::Reading;
use crate::server::respond::Responder;
use axum::extract::State;
use gleaner_app::{App, AppError, dates};
use gleaner_engine::WallTime;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Actions at a time. People do one thing at a time, and each may wait for a run to look up.
pub(crate) const ACTIONS_MAX: usize = 4;

/// What a handler is given besides its request.
pub(crate) type Shared = State<Arc<AppState>>;

/// Everything behind the guard.
pub(crate) struct AppState {
    pub(crate) reading: Reading,
    pub(crate) responder: Responder,
    pub(crate) events: Events,
    pub(crate) figures: Figures,
    pub(crate) keys: Arc<Keys>,
    pub(crate) attempts: Arc<AuthAttempts>,
    pub(crate) app: App,
    pub(crate) acting: Arc<Semaphore>,
    pub(crate) jobs: JobQueue,
    /// `http://127.0.0.1:8716`, with the base path.
    pub(crate) address: String,
    /// Below which path we live, and whether browsers reach us by TLS alone: what cookies are bound to.
    pub(crate) base: BasePath,
    pub(crate) is_secure: bool,
    pub(crate) started_at: WallTime,
}

impl AppState {
    /// A link that signs a browser in, once.
    pub(crate) fn new_link(&self) -> Result<String, ConsoleError> {
        let code = self.keys.new_link(dates::now())?;
        Ok(format!("{}{SIGN_IN_PATH}?code={}", self.address, code.reveal()))
    }

    /// Acts for the owner, on a thread that may wait.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&App) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let place = Arc::clone(&self.acting).try_acquire_owned();
        self.on_a_thread(place.map_err(|_| Problem::busy("too many actions at a time"))?, act).await
    }

    /// Does something that takes long, unless the same is being done.
    pub(crate) async fn do_job<R: Send + 'static>(
        &self,
        job: Job,
        act: impl FnOnce(&App) -> Result<R, AppError> + Send + 'static,
    ) -> Result<R, Problem> {
        self.on_a_thread(self.jobs.take(job)?, |app| Ok(act(app)?)).await
    }

    async fn on_a_thread<R: Send + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        act: impl FnOnce(&App) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let app = self.app.clone();
        let acted = tokio::task::spawn_blocking(move || {
            let acted = act(&app);
            drop(place);
            acted
        });
        acted.await.unwrap_or_else(|_| Err(Problem::internal("the action met a fault of ours")))
    }
}

/// The others say what they are.
impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState").field("address", &self.address).finish_non_exhaustive()
    }
}

//! What the handlers share: the way to the store, to whoever collects, and to the owner's keys.

use crate::base_path::BasePath;
use crate::date;
use crate::error::ConsoleError;
use crate::events::Events;
use crate::figures::Figures;
use crate::giving::Giving;
use crate::guard::SIGN_IN_PATH;
use crate::guesses::Guesses;
use crate::keys::Keys;
use crate::problem::Problem;
use crate::reading::Reading;
use crate::turns::Turns;
use gleaner_app::{ActionError, Actions};
use gleaner_engine::WallTime;
use http::StatusCode;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Actions at a time. People do one thing at a time, and each may wait for a run to look up.
pub(crate) const ACTIONS_MAX: usize = 4;

/// Everything behind the guard.
pub(crate) struct Inside {
    pub(crate) reading: Reading,
    pub(crate) giving: Giving,
    pub(crate) events: Events,
    pub(crate) figures: Figures,
    pub(crate) keys: Arc<Keys>,
    pub(crate) guesses: Arc<Guesses>,
    pub(crate) actions: Arc<dyn Actions>,
    pub(crate) acting: Arc<Semaphore>,
    pub(crate) turns: Turns,
    /// `http://127.0.0.1:8716`, with the base path.
    pub(crate) address: String,
    /// Below which path we live, and whether browsers reach us by TLS alone: what cookies are bound to.
    pub(crate) base: BasePath,
    pub(crate) is_secure: bool,
    /// The data root.
    pub(crate) root: PathBuf,
    pub(crate) started_at: WallTime,
}

impl Inside {
    /// A link that signs a browser in, once.
    pub(crate) fn new_link(&self) -> Result<String, ConsoleError> {
        let code = self.keys.new_link(date::now())?;
        Ok(format!("{}{SIGN_IN_PATH}?code={}", self.address, code.reveal()))
    }

    /// Asks whoever collects, on a thread that may wait.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn Actions) -> Result<R, ActionError> + Send + 'static,
    ) -> Result<R, Problem> {
        let place = Arc::clone(&self.acting).try_acquire_owned();
        let place = place.map_err(|_| Problem::busy("too many actions at a time"))?;
        let actions = Arc::clone(&self.actions);
        let acted = tokio::task::spawn_blocking(move || {
            let acted = act(&*actions);
            drop(place);
            acted
        });
        match acted.await {
            Ok(done) => done.map_err(Problem::from),
            Err(_) => Err(Problem::internal("the action met a fault of ours")),
        }
    }
}

impl From<ActionError> for Problem {
    fn from(error: ActionError) -> Self {
        let message = error.to_string();
        let not_now = |hint: &str| Self::new(StatusCode::CONFLICT, "not_now", message.clone(), hint);
        match error {
            ActionError::NoSuchConnection(_) => Self::not_found(message, "/api/v1/connections lists what there is"),
            ActionError::NoSuchGap { .. } => Self::not_found(message, "the connection's list of gaps has their ids"),
            ActionError::NotIgnored { .. } => not_now("the connection's list of gaps says how each stands"),
            ActionError::Note(_) => Self::makes_no_sense(message, "say in a sentence why you do without it"),
            ActionError::NoSuchQuestion(_) => Self::not_found(message, "/api/v1/interactions lists what waits"),
            ActionError::Removed(_) => not_now("add it again with `gleaner add`"),
            ActionError::Paused(_) => not_now("resume it first"),
            ActionError::NotRunning(_) => not_now("nothing is to be done"),
            ActionError::Unreachable { .. } => not_now("try again; the run may be at its end"),
            ActionError::Setting(_) => Self::makes_no_sense(message, "nothing was changed"),
            ActionError::Store(error) => error.into(),
        }
    }
}

/// The others say what they are.
impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("address", &self.address).finish_non_exhaustive()
    }
}

//! What the handlers share: the way to the store, to whoever collects, and to the owner's keys.

use crate::actions::{Actions, NotDone, Why};
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
use gleaner_engine::WallTime;
use http::StatusCode;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Actions at a time. People do one thing at a time, and each may wait for a run to look up.
pub(crate) const ACTIONS_MAX: usize = 4;

/// Everything behind the guard.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) reading: Reading,
    pub(crate) giving: Giving,
    pub(crate) events: Events,
    pub(crate) figures: Figures,
    pub(crate) keys: Arc<Keys>,
    pub(crate) guesses: Arc<Guesses>,
    pub(crate) actions: Arc<dyn Actions>,
    pub(crate) acting: Arc<Semaphore>,
    /// `http://127.0.0.1:8716`
    pub(crate) address: String,
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
        act: impl FnOnce(&dyn Actions) -> Result<R, NotDone> + Send + 'static,
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

impl From<NotDone> for Problem {
    fn from(not_done: NotDone) -> Self {
        let (status, code, Why { message, hint }) = match not_done {
            NotDone::NoSuchThing(why) => (StatusCode::NOT_FOUND, "not_found", why),
            NotDone::NotNow(why) => (StatusCode::CONFLICT, "not_now", why),
            NotDone::BadWish(why) => (StatusCode::UNPROCESSABLE_ENTITY, "makes_no_sense", why),
            NotDone::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, "failed", why),
        };
        Self::new(status, code, message, hint)
    }
}

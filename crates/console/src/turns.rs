//! What takes long and is asked for by hand: each has a turn, so that no click makes the machine do it twice at once.
//!
//! Trying a connection starts a connector, the doctor reads every page of the store, a download holds a moment of it, and
//! the laboratory needs a processor. Whoever comes while it is somebody else's turn is told so, and nobody waits in line.

use crate::inside::Inside;
use crate::problem::Problem;
use gleaner_app::{Setup, SetupError, SetupErrorKind};
use http::StatusCode;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Downloads at a time. Each holds a moment of the store, whose log cannot shrink meanwhile.
const EXPORTS_MAX: usize = 2;
/// Threads that may be at work for all of these.
pub(crate) const THREADS_MAX: usize = 3 + EXPORTS_MAX;

/// The turns.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    trying: Arc<Semaphore>,
    examining: Arc<Semaphore>,
    exporting: Arc<Semaphore>,
    /// The one of the laboratory is waited for: the second asker gets what the first one made.
    pub(crate) simulating: Arc<Semaphore>,
}

/// What there is one turn for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// A connection is tried or added.
    Try,
    /// The doctor looks.
    Examine,
    /// Records are on their way out.
    Export,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let one = || Arc::new(Semaphore::new(1));
        Self { trying: one(), examining: one(), exporting: Arc::new(Semaphore::new(EXPORTS_MAX)), simulating: one() }
    }

    pub(crate) fn take(&self, turn: Turn) -> Result<OwnedSemaphorePermit, Problem> {
        let (turns, busy) = match turn {
            Turn::Try => (&self.trying, "another connection is being tried"),
            Turn::Examine => (&self.examining, "the checks are running already"),
            Turn::Export => (&self.exporting, "other downloads are on their way"),
        };
        Arc::clone(turns).try_acquire_owned().map_err(|_| Problem::busy(busy))
    }
}

impl Inside {
    /// Asks the whole program, on a thread that may wait, when it is its turn.
    pub(crate) async fn set_up<R: Send + 'static>(
        &self,
        turn: Turn,
        act: impl FnOnce(&dyn Setup) -> Result<R, SetupError> + Send + 'static,
    ) -> Result<R, Problem> {
        let place = self.turns.take(turn)?;
        self.ask_setup(place, act).await
    }

    /// Asks it something that is answered at once.
    pub(crate) async fn look_up<R: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn Setup) -> Result<R, SetupError> + Send + 'static,
    ) -> Result<R, Problem> {
        let place = Arc::clone(&self.acting).try_acquire_owned();
        let place = place.map_err(|_| Problem::busy("too many actions at a time"))?;
        self.ask_setup(place, act).await
    }

    async fn ask_setup<R: Send + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        act: impl FnOnce(&dyn Setup) -> Result<R, SetupError> + Send + 'static,
    ) -> Result<R, Problem> {
        let actions = Arc::clone(&self.actions);
        let asked = tokio::task::spawn_blocking(move || {
            let done = actions.setup().map(act);
            drop(place);
            done
        });
        match asked.await {
            Ok(Some(done)) => done.map_err(Problem::from),
            Ok(None) => {
                let message = "this console stands alone: it knows no connectors and cannot look at the machine";
                Err(Problem::not_found(message, "use the console of `gleaner serve`"))
            }
            Err(_) => Err(Problem::internal("it met a fault of ours")),
        }
    }
}

impl From<SetupError> for Problem {
    fn from(SetupError { kind, message, hint }: SetupError) -> Self {
        match kind {
            SetupErrorKind::NotThere => Self::not_found(message, hint),
            SetupErrorKind::Wrong => Self::makes_no_sense(message, hint),
            SetupErrorKind::NotNow => Self::new(StatusCode::CONFLICT, "not_now", message, hint),
            SetupErrorKind::Failed => Self::new(StatusCode::SERVICE_UNAVAILABLE, "failed", message, hint),
        }
    }
}

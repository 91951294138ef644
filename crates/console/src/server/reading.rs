//! Questions to the store, from a server that must not wait and must not be waited for.
//!
//! The store is read by blocking calls, so they run on threads of their own, few of them: each reader may hold some
//! megabytes, and a machine that collects has better things to do. A reader sees a moment of its own and holds up no
//! commit; but as long as it reads, the store's log cannot shrink. So a question that takes too long is interrupted,
//! and so is one that nobody waits for any more.

use crate::problem::Problem;
use gleaner_store::{Interrupter, Reader, StoreError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Questions at a time.
pub(crate) const READERS_MAX: usize = 4;
/// How long a question waits for its turn before its asker is told to come back.
const TURN_MAX: Duration = Duration::from_secs(5);
/// How long one may take. All of ours are answered from indexes and counters, in milliseconds.
const QUESTION_MAX: Duration = Duration::from_secs(10);

/// What asks the store.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    turns: Arc<Semaphore>,
    /// One is kept open between questions; more would hold memory for nothing.
    idle: Mutex<Option<Reader>>,
}

impl Reading {
    pub(crate) fn new(path: PathBuf) -> Self {
        let turns = Arc::new(Semaphore::new(READERS_MAX));
        Self { inner: Arc::new(Inner { path, turns, idle: Mutex::new(None) }) }
    }

    /// Asks, and answers what the store said.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Reader) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let turn = timeout(TURN_MAX, Arc::clone(&self.inner.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(Problem::busy("too many questions at a time")) };
        let stop = Stop::default();
        let (inner, asked) = (Arc::clone(&self.inner), Stop(Arc::clone(&stop.0)));
        let work = tokio::task::spawn_blocking(move || {
            let answer = inner.answer(&asked, question);
            drop(turn);
            answer
        });
        // Also when the future is dropped, because whoever asked hung up.
        let stop_at_end = StopAtEnd(stop);
        match timeout(QUESTION_MAX, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Problem::internal("a question to the store ended in a fault")),
            Err(_) => {
                drop(stop_at_end);
                Err(Problem::busy("the store took too long to answer"))
            }
        }
    }

    /// A reader of one's own, for whoever reads on and on.
    pub(crate) fn open(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.inner.path)
    }
}

impl Inner {
    fn answer<R>(&self, stop: &Stop, question: impl FnOnce(&mut Reader) -> Result<R, Problem>) -> Result<R, Problem> {
        // A store that was put back from a copy is another file.
        let idle = lock(&self.idle).take().filter(Reader::is_current);
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader::open(&self.path)?,
        };
        if !stop.may_interrupt(reader.interrupter()) {
            return Err(Problem::busy("nobody waits for the answer any more"));
        }
        let answer = question(&mut reader);
        stop.is_over();
        *lock(&self.idle) = Some(reader);
        answer
    }
}

/// The way to stop a question, as long as it is being answered and no longer.
#[derive(Clone, Debug, Default)]
struct Stop(Arc<Mutex<Stage>>);

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Waiting,
    RequestHandler(Interrupter),
    Over,
}

impl Stop {
    fn may_interrupt(&self, interrupter: Interrupter) -> bool {
        let mut stage = lock(&self.0);
        let wanted = matches!(*stage, Stage::Waiting);
        if wanted {
            *stage = Stage::RequestHandler(interrupter);
        }
        wanted
    }

    /// From now on the reader is somebody else's.
    fn is_over(&self) {
        *lock(&self.0) = Stage::Over;
    }
}

struct StopAtEnd(Stop);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        let mut stage = lock(&self.0.0);
        if let Stage::RequestHandler(interrupter) = &*stage {
            interrupter.interrupt();
        }
        *stage = Stage::Over;
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

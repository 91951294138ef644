//! Jobs that take long and are asked for by hand: no click makes the machine do one of them twice at once.
//!
//! Trying a connection starts a connector, the doctor reads every page of the store, a download holds a moment of it, and
//! the laboratory needs a processor. A request that comes while the job is under way is told so and does not wait.

use crate::problem::Problem;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Downloads at a time. Each holds a moment of the store, whose log cannot shrink meanwhile.
const EXPORTS_MAX: usize = 2;
/// Threads that may be at work for all of these.
pub(crate) const THREADS_MAX: usize = 3 + EXPORTS_MAX;

/// Which jobs are under way.
#[derive(Clone, Debug)]
pub(crate) struct JobQueue {
    trying: Arc<Semaphore>,
    examining: Arc<Semaphore>,
    exporting: Arc<Semaphore>,
    /// The one of the laboratory is waited for: the second asker gets what the first one made.
    pub(crate) simulating: Arc<Semaphore>,
}

/// A job that goes on once at a time, but for downloads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// A connection is tried or added.
    Try,
    /// The doctor looks.
    Examine,
    /// Records are on their way out.
    Export,
}

impl JobQueue {
    pub(crate) fn new() -> Self {
        let one = || Arc::new(Semaphore::new(1));
        Self { trying: one(), examining: one(), exporting: Arc::new(Semaphore::new(EXPORTS_MAX)), simulating: one() }
    }

    pub(crate) fn take(&self, job: Job) -> Result<OwnedSemaphorePermit, Problem> {
        let (jobs, busy) = match job {
            Job::Try => (&self.trying, "another connection is being tried"),
            Job::Examine => (&self.examining, "the checks are running already"),
            Job::Export => (&self.exporting, "other downloads are on their way"),
        };
        Arc::clone(jobs).try_acquire_owned().map_err(|_| Problem::busy(busy))
    }
}

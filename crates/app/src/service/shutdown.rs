//! The end of the service: nothing is begun any more, slices are finished, what is left is handed over.
//!
//! It is bounded, whatever runs do: asked to finish, told to stop, ended. What was stopped in the middle is noted as
//! wanted, so that the next service goes on with it at once; what is killed is found interrupted, and gone on with too.

use super::{Event, Service};
use crate::dates::now;
use gleaner_protocol::TerminalReason;
use gleaner_store::{Wanted, WantedBy};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// A run that is asked to stop finishes its slice within seven seconds, or is stopped by its own supervisor.
const IN_ORDER: Duration = Duration::from_secs(10);
/// Then it is told to stop at once, and has so long for that.
const AT_ONCE: Duration = Duration::from_secs(13);
/// Then it is ended; whoever is not gone by this time is left to the system.
const GIVE_UP: Duration = Duration::from_secs(16);
/// How often a run that should end is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Service {
    pub(super) fn shut_down(&mut self) {
        self.config.supervisor.stopping();
        tracing::info!("stopping; {} runs go on", self.runs.len());
        let began = Instant::now();
        let mut steps = [IN_ORDER, AT_ONCE].into_iter();
        let mut next = steps.next();
        self.stop_runs();
        while !self.runs.is_empty() && began.elapsed() < GIVE_UP {
            if next.is_some_and(|at| began.elapsed() >= at) {
                if next == Some(IN_ORDER) {
                    self.stop_runs()
                } else {
                    self.runs.values().for_each(super::child::Run::kill)
                }
                next = steps.next();
            }
            self.config.supervisor.alive();
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(Event::Ended(name)) => self.ended(&name),
                // Whoever asks twice does not want to wait.
                Ok(Event::Stop) => self.stop_runs(),
                Ok(Event::Changed | Event::Credential(..)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Err(error) = self.store.release(std::slice::from_ref(&self.lease)) {
            tracing::warn!("the lease could not be released, and expires: {error}");
        }
        tracing::info!("stopped after {} ms", began.elapsed().as_millis());
    }

    fn stop_runs(&mut self) {
        for run in self.runs.values_mut() {
            run.stop();
        }
    }

    /// Notes that the next service should go on with it, if it was stopped before its end.
    pub(super) fn hand_over(&mut self, name: &str, reason: Option<TerminalReason>) {
        if reason != Some(TerminalReason::Cancelled) {
            return;
        }
        if let Err(error) = self.store.want_run(name, Wanted { by: WantedBy::HandedOver, at: now() }) {
            tracing::warn!("{name:?} was not handed over, and runs when it is time: {error}");
        }
    }
}

//! Carrying out what the engine wants, one effect at a time.

use super::Supervisor;
use crate::frames::Frame;
use crate::observer::Saved;
use gleaner_engine::{Effect, OwnerEffect, ProcessEffect, StoreEffect, TraceEvent, Track};
use gleaner_protocol::{DoneError, Interaction};
use gleaner_store::{Settled, StoreError};

impl<T: Track> Supervisor<'_, T> {
    /// Carries out everything that is wanted.
    pub(super) fn settle(&mut self) {
        while self.step() {}
    }

    /// Carries out one effect; `false` when there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some(effect) = self.run.poll_effect() else { return false };
        let carried_out = match effect {
            Effect::Store(effect) => self.of_store(effect),
            Effect::Process(effect) => {
                self.of_process(&effect);
                Ok(())
            }
            Effect::Owner(effect) => self.of_owner(&effect),
            Effect::Finish(outcome) => self.finish(*outcome),
        };
        self.check(carried_out);
        true
    }

    /// A store that failed is asked for nothing more; the engine is told why.
    pub(super) fn check(&mut self, carried_out: Result<(), StoreError>) {
        let Err(error) = carried_out else { return };
        let now = self.clock.now();
        match &error {
            StoreError::Superseded { .. } => self.run.handle_superseded(now),
            _ => self.run.handle_store_failed(now),
        }
        self.store_error.get_or_insert(error);
    }

    fn of_process(&self, effect: &ProcessEffect) {
        let Some(process) = &self.process else { return };
        process.order(match effect {
            ProcessEffect::Send(message) => {
                let mut line = Vec::new();
                message.encode(&mut line);
                Frame::Input(line)
            }
            ProcessEffect::CloseInput => Frame::CloseInput,
            ProcessEffect::Stop => Frame::Stop,
            ProcessEffect::Kill => Frame::Kill,
        });
    }

    fn of_owner(&mut self, effect: &OwnerEffect) -> Result<(), StoreError> {
        match effect {
            OwnerEffect::Ask(question) => self.ask(question),
            OwnerEffect::Withdraw { request_id, is_over } => {
                self.observer.withdrawn(request_id);
                self.settle_question(if *is_over { Settled::Expired } else { Settled::Withdrawn });
                Ok(())
            }
        }
    }

    fn of_store(&mut self, effect: StoreEffect<T>) -> Result<(), StoreError> {
        let Some(session) = self.session.as_mut() else { return Ok(()) };
        let mut is_wait = false;
        if let StoreEffect::Trace(event) = &effect {
            self.observer.said(event);
            is_wait = matches!(event, TraceEvent::Progress(progress) if progress.waiting.valid().is_some());
        }
        let is_slice = matches!(effect, StoreEffect::WriteSlice(_));
        self.store.carry_out(session, &mut self.run, effect, self.clock.now())?;
        if is_slice {
            self.slices += 1;
            self.observer.saved(Saved { slices: self.slices, counts: self.run.counts() });
        }
        if is_wait {
            self.write_trace_soon();
        }
        Ok(())
    }

    /// The last effect. A store that failed before is tried once more for the run's end: if it cannot,
    /// the next run finds this one interrupted.
    fn finish(&mut self, mut outcome: gleaner_engine::RunOutcome) -> Result<(), StoreError> {
        if !outcome.reason.is_success() {
            // A store that can be written again keeps what was wrong with it.
            let error = self.store_error.as_ref().map(ToString::to_string);
            outcome.error = outcome.error.or_else(|| error.map(runtime_error));
            outcome.stderr = self.process.as_ref().map(|process| last_lines(&process.errors()));
        }
        let finished = match self.session.take() {
            Some(session) => {
                let finished = self.store.finish_run(session, &outcome, self.clock.now().wall);
                finished.map(|unproven| outcome.shortfalls.extend(unproven))
            }
            None => Ok(()),
        };
        self.outcome = Some(outcome);
        finished
    }

    fn ask(&mut self, question: &Interaction) -> Result<(), StoreError> {
        let Some(session) = self.session.as_ref() else { return Ok(()) };
        let now = self.clock.now().wall;
        let own = question.timeout_seconds.map(|seconds| now + std::time::Duration::from_secs(seconds));
        let expires_at = [own, self.request.grant_expires_at].into_iter().flatten().min();
        let id = self.store.ask(session, question, expires_at, now)?;
        self.question = Some(id);
        self.observer.asked(question, id);
        Ok(())
    }

    /// Writes down how a question ended. Who lost the lease writes nothing, here either.
    pub(super) fn settle_question(&mut self, how: Settled) {
        let Some(id) = self.question.take() else { return };
        if self.store_error.is_none() {
            let settled = self.store.settle_question(id, how, self.clock.now().wall).map(|_| ());
            self.check(settled);
        }
    }
}

/// So many lines of stderr are kept with a run, each cut to so many characters: enough for the end of a traceback.
const LINES_KEPT: usize = 8;
const LINE_CHARS: usize = 400;

fn last_lines(text: &str) -> String {
    let cut = |line: &str| line.chars().take(LINE_CHARS).collect::<String>();
    let lines = text.trim_end().lines().rev().take(LINES_KEPT).map(cut).collect::<Vec<_>>();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// What failed on this machine, kept where the words of a connector are kept.
pub(super) const fn runtime_error(message: String) -> DoneError {
    DoneError { message, retryable: true, code: None, recovery_hint: None }
}

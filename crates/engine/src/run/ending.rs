//! How a run ends: decided once, carried out in order, on record once.
//!
//! The order is drain, close or stop, wait for the exit, commit, finish. Why the exit comes before
//! the commit: an exit code that contradicts DONE is a violation, and then nothing may be committed.
//! Several things can end a run at the same time; the one that allows least wins (a lost store over
//! a cancellation, that over a failure, that over DONE), and among equals the first.

use super::{Effect, ProcessEffect, Run, RunOutcome, StoreEffect};
use crate::checkpoint::{Ending, Track};
use crate::coverage::{CoverageVerdict, missing_reports};
use crate::ids::CommitSeq;
use crate::incomplete::{Shortfall, Warning, WarningCode};
use crate::time::{Now, Time};
use gleaner_protocol::{
    Done, DoneError, DoneStatus, RecoveryAction, STREAM_COLLECTION_FAILED, TerminalReason, Violation, ViolationCode,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Where a run stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The connector speaks.
    Collecting,
    /// The end is decided; the store still works.
    Draining,
    /// Unaccounted keys become gaps.
    Accounting,
    /// Everything is durable; the process should end.
    AwaitingExit { deadline: Time, pressed: Pressed },
    /// The plan is with the store.
    Committing { cursors: Vec<(String, CommitSeq)> },
    /// It is over.
    Ended,
}

/// How hard the process was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    No,
    Stopped,
    Killed,
}

impl Phase {
    pub(super) const fn deadline(&self) -> Option<Time> {
        match self {
            Self::AwaitingExit { deadline, .. } => Some(*deadline),
            Self::Collecting | Self::Draining | Self::Accounting | Self::Committing { .. } | Self::Ended => None,
        }
    }
}

/// How the run will end.
#[derive(Clone, Debug)]
pub(super) struct Conclusion {
    reason: TerminalReason,
    ending: Ending,
    violation: Option<Violation>,
    error: Option<DoneError>,
    weight: Weight,
}

/// Which of two endings wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Done,
    Failure,
    Cancellation,
    StoreLost,
}

impl Conclusion {
    pub(super) const fn failed(reason: TerminalReason) -> Self {
        Self { reason, ending: Ending::Failed, violation: None, error: None, weight: Weight::Failure }
    }

    const fn store_lost(reason: TerminalReason) -> Self {
        Self { reason, ending: Ending::Failed, violation: None, error: None, weight: Weight::StoreLost }
    }

    const fn broken(violation: Violation) -> Self {
        let reason = TerminalReason::ProtocolViolation;
        Self { reason, ending: Ending::Failed, violation: Some(violation), error: None, weight: Weight::Failure }
    }

    /// The process died. What its output lacks is kept beside it: a check of connectors names it.
    fn crashed(violation: Violation) -> Self {
        Self { reason: TerminalReason::ConnectorCrashed, ..Self::broken(violation) }
    }

    const fn cancelled() -> Self {
        let (reason, ending) = (TerminalReason::Cancelled, Ending::Cancelled);
        Self { reason, ending, violation: None, error: None, weight: Weight::Cancellation }
    }

    /// Whether the output ended in the middle of a message.
    fn is_incomplete(&self) -> bool {
        let code = self.violation.as_ref().map(|violation| violation.code);
        self.reason == TerminalReason::ProtocolViolation && code == Some(ViolationCode::IncompleteLine)
    }

    pub(super) fn is_done(&self) -> bool {
        self.weight == Weight::Done
    }
}

/// How long a process may take to end after its input was closed. It has nothing left to do.
const EXIT_AFTER: Duration = Duration::from_secs(30);
/// How long it may take after it was asked to end, and again after it was made to.
const GRACE: Duration = Duration::from_secs(10);

/// With these we end a process, the same on every system.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

impl<T: Track> Run<T> {
    /// Somebody wants the run to stop. Comes too late once the commit is with the store.
    pub fn handle_cancel(&mut self, now: Now) {
        self.conclude(Conclusion::cancelled());
        self.advance(now);
    }

    /// The run's time is over, and the connector has not stopped by itself. What is saved stays, and no
    /// cursor is committed beyond it; the caller has written a gap for what was left.
    pub fn handle_budget_reached(&mut self, now: Now) {
        self.conclude(Conclusion::failed(TerminalReason::BudgetReached));
        self.advance(now);
    }

    /// The store could not carry an effect out, and carries out none after it.
    pub fn handle_store_failed(&mut self, now: Now) {
        self.lose_store(TerminalReason::RuntimeError, now);
    }

    /// Another process has the lease. Nothing more is written.
    pub fn handle_superseded(&mut self, now: Now) {
        self.lose_store(TerminalReason::Superseded, now);
    }

    /// The process has ended, and all that it wrote was handed over before.
    pub fn handle_exit(&mut self, exit: Exit, now: Now) {
        self.exit = Some(exit);
        let died = exit != Exit::Code(0) && !self.is_our_doing(exit);
        match &mut self.conclusion {
            None if died => self.conclude(Conclusion::crashed(Violation::new(ViolationCode::ExitWithoutDone))),
            None => self.break_off(Violation::new(ViolationCode::ExitWithoutDone)),
            // Who dies in the middle of a line did not speak wrongly.
            Some(broken) if died && broken.is_incomplete() => broken.reason = TerminalReason::ConnectorCrashed,
            // A process that we ended has no code of its own.
            Some(done) if done.is_done() && !self.stopped => {
                let succeeded = done.ending == Ending::Succeeded;
                let disagrees = Violation::new(ViolationCode::ExitDisagrees);
                match exit {
                    Exit::Signal(_) if succeeded => self.conclude(Conclusion::crashed(disagrees)),
                    exit if succeeded != (exit == Exit::Code(0)) => self.break_off(disagrees),
                    Exit::Code(_) | Exit::Signal(_) => {}
                }
            }
            Some(_) => {}
        }
        self.advance(now);
    }

    /// The plan is committed and durable.
    pub fn handle_committed(&mut self, now: Now) {
        if let Phase::Committing { cursors } = &mut self.phase {
            let committed = std::mem::take(cursors);
            self.finish(committed, false);
        }
        self.advance(now);
    }

    /// Whether a process ended because we made it.
    fn is_our_doing(&self, exit: Exit) -> bool {
        match exit {
            Exit::Signal(SIGTERM) => self.stopped,
            Exit::Signal(SIGKILL) => matches!(self.phase, Phase::AwaitingExit { pressed: Pressed::Killed, .. }),
            Exit::Code(_) | Exit::Signal(_) => false,
        }
    }

    pub(super) fn break_off(&mut self, violation: Violation) {
        self.conclude(Conclusion::broken(self.masked_violation(violation)));
    }

    pub(super) fn take_done(&mut self, done: &Done) -> Result<(), Violation> {
        if done.records_emitted != self.counts.seen {
            return Err(Violation::new(ViolationCode::CountMismatch).in_field("records_emitted"));
        }
        if let Some(error) = &done.error {
            self.pressure.terminal_error(error);
        }
        let (reason, ending) = match (done.status, &done.error) {
            (DoneStatus::Succeeded, _) => (TerminalReason::Succeeded, Ending::Succeeded),
            (DoneStatus::Cancelled, _) => (TerminalReason::Cancelled, Ending::Cancelled),
            (DoneStatus::Failed, error) => self.failure(error.as_ref()),
        };
        let error = done.error.clone().map(|error| self.masked_error(error));
        self.conclude(Conclusion { reason, ending, violation: None, error, weight: Weight::Done });
        Ok(())
    }

    /// What a failure is called, from its code and never from its prose.
    fn failure(&self, error: Option<&DoneError>) -> (TerminalReason, Ending) {
        let code = error.and_then(|error| error.code.as_deref());
        if code == Some(STREAM_COLLECTION_FAILED) && !self.failed_streams.is_empty() {
            let failed = self.failed_streams.clone();
            return (TerminalReason::StreamCollectionFailed, Ending::StreamScoped { failed });
        }
        // Connectors that have no codes write the error's name, one word, as its message.
        let name = code.or_else(|| error.map(|error| error.message.as_str())).unwrap_or_default();
        let reason = if error.and_then(DoneError::pressure).is_some() {
            TerminalReason::SourceCooldown
        } else if self.questions.has_expired() {
            TerminalReason::InteractionExpired
        } else if is_called(name, "missing_credentials") || is_called(name, "credentials_missing") {
            TerminalReason::CredentialsMissing
        } else if refuses_credentials(error, name) {
            TerminalReason::CredentialsRefused
        } else if is_called(name, "session_establish_timeout") {
            TerminalReason::SessionEstablishTimeout
        } else {
            TerminalReason::ConnectorFailed
        };
        (reason, Ending::Failed)
    }

    /// Decides the end, unless a weightier one is decided or it is too late.
    pub(super) fn conclude(&mut self, conclusion: Conclusion) {
        if self.conclusion.as_ref().is_some_and(|decided| decided.weight >= conclusion.weight) {
            return;
        }
        let too_late = match self.phase {
            Phase::Ended => true,
            Phase::Committing { .. } => conclusion.weight < Weight::StoreLost,
            Phase::Collecting | Phase::Draining | Phase::Accounting | Phase::AwaitingExit { .. } => false,
        };
        if too_late {
            return;
        }
        self.withdraw_question(false);
        if conclusion.weight > Weight::Done && !self.stopped && self.exit.is_none() {
            self.stopped = true;
            self.want(Effect::Process(ProcessEffect::Stop));
        }
        self.conclusion = Some(conclusion);
    }

    pub(super) fn lose_store(&mut self, reason: TerminalReason, now: Now) {
        self.conclude(Conclusion::store_lost(reason));
        if self.phase != Phase::Ended {
            self.drop_store_effects();
        }
        self.advance(now);
    }

    /// A store that failed or has another master is asked for nothing more.
    fn drop_store_effects(&mut self) {
        self.owed = 0;
        self.pages_owed.clear();
        self.effects.retain(|effect| matches!(effect, Effect::Process(_) | Effect::Owner(_)));
    }

    /// Goes on as far as nothing more has to be waited for.
    pub(super) fn advance(&mut self, now: Now) {
        while let Some(weight) = self.conclusion.as_ref().map(|conclusion| conclusion.weight) {
            let store_lost = weight == Weight::StoreLost;
            match &self.phase {
                Phase::Collecting => {
                    // What was accepted is kept, also when the run failed: it is true all the same.
                    if store_lost {
                        self.drop_store_effects();
                    } else {
                        self.flush();
                    }
                    self.phase = Phase::Draining;
                }
                Phase::Draining if self.owed == 0 => {
                    if !store_lost {
                        self.judge_early_reports();
                    }
                    if self.owed == 0 {
                        if !store_lost {
                            self.write_unaccounted();
                        }
                        self.phase = Phase::Accounting;
                    }
                }
                Phase::Accounting if self.owed == 0 => self.ask_for_exit(now),
                Phase::AwaitingExit { .. } if self.exit.is_some() => self.commit(),
                Phase::Committing { .. } if store_lost => self.finish(Vec::new(), true),
                Phase::Draining
                | Phase::Accounting
                | Phase::AwaitingExit { .. }
                | Phase::Committing { .. }
                | Phase::Ended => break,
            }
        }
    }

    /// A report that came before the last record or gap of its stream is judged again from what came after it.
    fn judge_early_reports(&mut self) {
        for report in &mut self.reports {
            let is_short = matches!(report.verdict, Some(CoverageVerdict::Short { .. }));
            if is_short && report.late > 0 && !report.judged_again {
                (report.verdict, report.judged_again) = (None, true);
                self.owed += 1;
                let tally = StoreEffect::TallyCoverage { report: report.id, pair: report.pair.clone() };
                self.effects.push_back(Effect::Store(tally));
            }
        }
    }

    /// A key that nobody accounts for, under a cursor that is committed, would be lost: a slice of this run committed it,
    /// or an earlier run that left a part of the list for this one.
    fn write_unaccounted(&mut self) {
        for report in &self.reports {
            let short = matches!(report.verdict, Some(CoverageVerdict::Short { unaccounted: 1.. }));
            let is_passed = report.tally.expands_list || self.ledger.has_committed(&report.pair.state_stream);
            if T::ACCOUNTS && short && is_passed {
                self.owed += 1;
                let pair = report.pair.clone();
                let effect = StoreEffect::WriteUnaccounted { report: report.id, pair };
                self.effects.push_back(Effect::Store(effect));
            }
        }
    }

    fn ask_for_exit(&mut self, now: Now) {
        let (pressed, wait) = if self.stopped {
            (Pressed::Stopped, GRACE)
        } else {
            self.want(Effect::Process(ProcessEffect::CloseInput));
            (Pressed::No, EXIT_AFTER)
        };
        self.phase = Phase::AwaitingExit { deadline: now.time + wait, pressed };
    }

    /// A process that does not end is asked, then made to, then no longer waited for.
    pub(super) fn press_for_exit(&mut self, now: Now) {
        let Phase::AwaitingExit { deadline, pressed } = &mut self.phase else { return };
        if now.time < *deadline {
            return;
        }
        let (effect, next) = match *pressed {
            Pressed::No if !self.stopped => (ProcessEffect::Stop, Pressed::Stopped),
            Pressed::No | Pressed::Stopped => (ProcessEffect::Kill, Pressed::Killed),
            Pressed::Killed => return self.commit(),
        };
        (*deadline, *pressed) = (now.time + GRACE, next);
        self.stopped = true;
        self.want(Effect::Process(effect));
    }

    fn commit(&mut self) {
        let Some(conclusion) = &self.conclusion else { return };
        let shortfalls = self.shortfalls();
        let plan = self.ledger.plan(&conclusion.ending, &self.found_by, &shortfalls);
        self.withheld = plan.withheld().to_vec();
        // Always so when the store is lost: that is a failure, and a failure commits nothing.
        if plan.cursors().is_empty() {
            self.finish(Vec::new(), false);
            return;
        }
        let cursors = plan.cursors().iter().map(|cursor| (cursor.stream().to_owned(), cursor.seq())).collect();
        self.phase = Phase::Committing { cursors };
        self.want_stored(StoreEffect::Commit(plan));
    }

    /// The checkpoints that wait for an account that falls short or is missing: that of the list, those by which the list
    /// itself is found, and that of the stream whose records are missing.
    fn shortfalls(&self) -> BTreeSet<String> {
        self.all_shortfalls().iter().flat_map(|short| self.waiting_for(short)).collect()
    }

    fn waiting_for(&self, short: &Shortfall) -> BTreeSet<String> {
        let mut waiting = self.found_by.with_lists([&short.state_stream]);
        waiting.insert(short.stream.clone());
        waiting
    }

    /// The streams whose cursors a slice of this run committed although they should have waited. No run may resume from
    /// them. Keys of a report that falls short are not lost: they are gaps by now.
    fn list_again(&self, Conclusion { ending, violation, .. }: &Conclusion) -> Vec<String> {
        let mut waiting = ending.failed_checkpoints(&self.found_by);
        if violation.as_ref().is_some_and(|violation| violation.code == ViolationCode::CountMismatch) {
            // A record was lost on its way, and no one knows before which cursor.
            waiting.extend(self.manifest.streams.iter().map(|stream| stream.name.clone()));
        }
        if matches!(ending, Ending::Succeeded | Ending::StreamScoped { .. }) {
            let unreported = self.all_shortfalls().into_iter().filter(|short| short.unaccounted.is_none());
            waiting.extend(unreported.flat_map(|short| self.waiting_for(&short)));
        }
        waiting.into_iter().filter(|stream| self.ledger.has_committed(stream)).collect()
    }

    fn all_shortfalls(&self) -> Vec<Shortfall> {
        let reported = |stream: &str, parent: &str| {
            self.reports.iter().any(|report| report.pair.stream == stream && report.pair.state_stream == parent)
        };
        let missing = missing_reports(&self.manifest, |stream| self.rules.contains(stream), reported);
        // A run that was not asked for the list owes no report about it.
        let owed = missing.filter(|(_, parent)| self.rules.contains(parent));
        let missing = owed.map(|(stream, parent)| Shortfall {
            stream: stream.to_owned(),
            state_stream: parent.to_owned(),
            unaccounted: None,
            unconfirmed: 0,
            keys: Vec::new(),
        });
        let short = self.reports.iter().filter(|report| report.verdict != Some(CoverageVerdict::Complete));
        let short = short.map(|report| Shortfall {
            stream: report.pair.stream.clone(),
            state_stream: report.pair.state_stream.clone(),
            unaccounted: Some(report.tally.unaccounted()),
            unconfirmed: report.tally.unconfirmed,
            keys: report.tally.waiting.clone(),
        });
        missing.chain(short).collect()
    }

    /// Those that an owner is told: of a checkpoint that no cursor was said for, a missing report withholds nothing.
    fn told_shortfalls(&self) -> Vec<Shortfall> {
        let may_commit = self.conclusion.as_ref().is_some_and(|conclusion| match conclusion.ending {
            Ending::Succeeded | Ending::StreamScoped { .. } => true,
            Ending::Failed | Ending::Cancelled => false,
        });
        let waits = |stream: &String| {
            self.withheld.iter().any(|withheld| withheld.stream == *stream) || self.ledger.has_committed(stream)
        };
        let told = |short: &Shortfall| short.unaccounted.is_some() || self.waiting_for(short).iter().any(waits);
        self.all_shortfalls().into_iter().filter(|short| may_commit && told(short)).collect()
    }

    fn warnings(&self) -> Vec<Warning> {
        let of_report = |report: &super::Report| {
            let (stream, tally) = (&report.pair.stream, &report.tally);
            let is_last =
                self.reports.iter().rfind(|last| last.pair.stream == *stream).is_some_and(|last| last.id == report.id);
            let late = if is_last { report.late } else { 0 };
            let skipped = if tally.skipped == tally.required { tally.skipped } else { 0 };
            let counts = [
                (WarningCode::CoverageEarly, late),
                (WarningCode::GapKeysIncomplete, tally.gaps_unlisted),
                (WarningCode::EverythingSkipped, skipped),
                (WarningCode::HydratedEmpty, tally.empty),
            ];
            let warning = |(code, count)| Warning { code, stream: stream.clone(), count };
            counts.into_iter().filter(|(_, count)| *count > 0).map(warning).collect::<Vec<_>>()
        };
        self.reports.iter().flat_map(of_report).collect()
    }

    fn finish(&mut self, committed: Vec<(String, CommitSeq)>, commit_is_unknown: bool) {
        let (shortfalls, warnings) = (self.told_shortfalls(), self.warnings());
        let Some(conclusion) = self.conclusion.take() else { return };
        let mut skips = std::mem::take(&mut self.skips);
        for report in self.reports.iter().filter(|report| report.uncovered > 0) {
            skips.add_uncovered(&report.pair.stream, report.uncovered);
        }
        let superseded = conclusion.reason == TerminalReason::Superseded;
        let outcome = RunOutcome {
            reason: conclusion.reason,
            violation: conclusion.violation.clone(),
            error: conclusion.error.clone(),
            counts: self.counts,
            // Who has lost the lease has no say about the connection any more.
            pressure: self.pressure.reason().filter(|_| !superseded),
            committed,
            withheld: std::mem::take(&mut self.withheld),
            commit_is_unknown,
            failed_streams: self.failed_streams.iter().cloned().collect(),
            list_again: self.list_again(&conclusion),
            exit: self.exit,
            stderr: None,
            shortfalls,
            skips,
            warnings,
        };
        self.conclusion = Some(conclusion);
        self.phase = Phase::Ended;
        self.outcome = Some(outcome.clone());
        self.want(Effect::Finish(Box::new(outcome)));
    }
}

/// Whether the connector says that its credentials were not accepted, by a hint or by a name.
fn refuses_credentials(error: Option<&DoneError>, name: &str) -> bool {
    let hint = error.and_then(|error| error.recovery_hint).map(|hint| hint.action);
    let names = ["auth_failed", "auth_failure", "credentials_refused", "invalid_credentials", "unauthorized"];
    hint == Some(RecoveryAction::RefreshCredentials) || names.iter().any(|known| is_called(name, known))
}

/// Whether an error has this name, alone or after its connector's: one word, never a sentence.
fn is_called(error: &str, name: &str) -> bool {
    let head = error.strip_suffix(name);
    head.is_some_and(|head| (head.is_empty() || head.ends_with('_')) && !head.contains(char::is_whitespace))
}

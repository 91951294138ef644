//! The run machine: what a connector says goes in, what a store and a process must do comes out.
//!
//! Why one machine and not callbacks: everything that can happen to a run is a `handle_*` of this
//! type, everything it wants is an [`Effect`], and every time it waits for is in
//! [`poll_timeout`](Run::poll_timeout). So a run can be replayed, and there is one place in which it
//! can end ([`Run::outcome`] is set once). It holds one slice, one cursor per stream and a bounded
//! number of effects, whatever a connector sends. It never asks what time it is, never retries, and
//! never looks into a body except for the fields and the time that a grant limits.

mod effect;
mod ending;
pub(crate) mod masking;
mod messages;
mod question;

pub use effect::{Counts, Effect, OwnerEffect, ProcessEffect, RunOutcome, StoreEffect, TraceEvent};
pub use ending::Exit;
pub use question::AnswerTaken;

use crate::checkpoint::{Cursor, FoundBy, Ledger, Receipt, Track, Withheld};
use crate::cooldown::PressureSeen;
use crate::coverage::{CoveragePair, CoverageTally, CoverageVerdict};
use crate::ids::{LeaseId, ReportId, RunId};
use crate::incomplete::Skips;
use crate::scope::{Refusal, ScopeRules, Validate};
use crate::slice::SliceBuilder;
use crate::time::{Now, Time, WallTime};
use ending::{Conclusion, Phase};
use gleaner_protocol::{
    Event, GapsPageResponse, Manifest, RuntimeMessage, Scope, ServedGap, TerminalReason, Violation, ViolationCode,
};
use question::Questions;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What one run is about.
#[derive(Debug)]
pub struct RunConfig<T: Track> {
    /// The run.
    pub run_id: RunId,
    /// Its right to work on gaps.
    pub lease: LeaseId,
    /// The connector.
    pub manifest: Arc<Manifest>,
    /// What to collect.
    pub scope: Scope,
    /// The committed cursors of this track.
    pub bookmarks: Vec<Cursor<T>>,
    /// The names of the bindings that are there. `interactive` among them if somebody can answer.
    pub bindings: Vec<String>,
    /// The end of the owner's permission.
    pub grant_expires_at: Option<WallTime>,
    /// Checks bodies.
    pub validator: Box<dyn Validate>,
    /// After so long without any news the connector is taken for stuck.
    pub silence_max: Option<Duration>,
    /// How many effects may wait before input is refused.
    pub effects_max: usize,
}

/// Enough to keep a store busy while the next slice is read, and some 8 MiB at most.
pub const EFFECTS_MAX: usize = 8;
/// How long records may wait in an unfinished slice: what is seen in a console is this old at most.
const FLUSH_AFTER: Duration = Duration::from_secs(5);
/// The binding that says that somebody can answer.
const INTERACTIVE: &str = "interactive";

/// Too many effects wait. Nothing was taken; offer the same event again after one was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many effects wait to be carried out")]
pub struct Full;

/// One run of one connection, moving the bookmarks of one track.
#[derive(Debug)]
pub struct Run<T: Track> {
    run_id: RunId,
    lease: LeaseId,
    manifest: Arc<Manifest>,
    rules: ScopeRules,
    validator: Box<dyn Validate>,
    ledger: Ledger<T>,
    slice: SliceBuilder<T>,
    reports: Vec<Report>,
    keys_of: Option<ReportId>,
    questions: Questions,
    pressure: PressureSeen,
    failed_streams: BTreeSet<String>,
    skips: Skips,
    found_by: FoundBy,
    withheld: Vec<Withheld>,
    counts: Counts,
    effects: VecDeque<Effect<T>>,
    effects_max: usize,
    /// Answers that the store owes us.
    owed: usize,
    /// Pages of gaps that were asked for and are not there yet.
    pages_owed: VecDeque<String>,
    flush_at: Option<Time>,
    silence_max: Option<Duration>,
    last_news: Time,
    phase: Phase,
    conclusion: Option<Conclusion>,
    stopped: bool,
    /// Whether it only recovers gaps: then it has walked over nothing, and no cursor of it counts.
    recovers_only: bool,
    exit: Option<Exit>,
    outcome: Option<RunOutcome>,
}

/// A coverage report of this run. There is at most one per declared pair of streams.
#[derive(Debug)]
struct Report {
    id: ReportId,
    pair: CoveragePair,
    verdict: Option<CoverageVerdict>,
    /// What the verdict is about, once there is one.
    tally: CoverageTally,
    /// Records and gaps of its stream that came after it.
    late: u64,
    judged_again: bool,
    /// Records that it considered, did not cover, and names in no list.
    uncovered: u64,
}

impl<T: Track> Run<T> {
    /// A run that is about to begin. Nothing is started if it is refused.
    ///
    /// # Errors
    ///
    /// When the scope does not fit the manifest, a required binding is missing, or the grant is over.
    pub fn new(config: RunConfig<T>, now: Now) -> Result<Self, Refusal> {
        let rules = ScopeRules::new(&config.manifest, &config.scope)?;
        let missing = |name: &String| !config.bindings.contains(name);
        let required = config.manifest.bindings.iter().filter(|binding| binding.required);
        if let Some(name) = required.map(|binding| &binding.name).find(|name| missing(name)) {
            return Err(Refusal::BindingUnavailable(name.clone()));
        }
        if config.grant_expires_at.is_some_and(|end| end <= now.wall) {
            return Err(Refusal::GrantExpired);
        }
        let can_ask = config.bindings.iter().any(|name| name == INTERACTIVE);
        Ok(Self {
            run_id: config.run_id,
            lease: config.lease,
            found_by: FoundBy::declared(&config.manifest),
            manifest: config.manifest,
            validator: config.validator,
            ledger: Ledger::new(&config.bookmarks),
            slice: SliceBuilder::new(rules.names()),
            rules,
            reports: Vec::new(),
            keys_of: None,
            questions: Questions::new(can_ask, config.grant_expires_at),
            pressure: PressureSeen::default(),
            failed_streams: BTreeSet::new(),
            skips: Skips::default(),
            withheld: Vec::new(),
            counts: Counts::default(),
            effects: VecDeque::new(),
            // A machine that takes nothing would never get anywhere.
            effects_max: config.effects_max.max(1),
            owed: 0,
            pages_owed: VecDeque::new(),
            flush_at: None,
            silence_max: config.silence_max,
            last_news: now.time,
            phase: Phase::Collecting,
            conclusion: None,
            stopped: false,
            recovers_only: false,
            exit: None,
            outcome: None,
        })
    }

    /// The same for a run that recovers gaps and does not walk forward. It moves no cursor, whatever its connector says.
    #[must_use]
    pub const fn recovering_only(mut self, recovers_only: bool) -> Self {
        self.recovers_only = recovers_only;
        self
    }

    /// The same for a store that knows more than the manifest about which stream is found by the list of which.
    #[must_use]
    pub fn found_by(mut self, found_by: FoundBy) -> Self {
        self.found_by = found_by;
        self
    }

    /// The run.
    #[must_use]
    pub const fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Whether its end is not decided yet.
    #[must_use]
    pub const fn is_collecting(&self) -> bool {
        self.conclusion.is_none()
    }

    /// What it has stored so far, and how many records came.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the connector's output should be read now. Not reading is what slows it down.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        // Once the end is decided nothing that comes makes an effect, and the pipe must run dry.
        self.conclusion.is_some() || self.effects.len() + self.owed + self.pages_owed.len() < self.effects_max
    }

    /// Takes what the decoder found.
    ///
    /// # Errors
    ///
    /// [`Full`] when [`wants_input`](Self::wants_input) said no. Nothing was taken.
    pub fn handle_event(&mut self, event: &Event<'_>, now: Now) -> Result<(), Full> {
        if !self.wants_input() {
            return Err(Full);
        }
        self.last_news = now.time;
        match &self.conclusion {
            None => {
                if let Err(violation) = self.take(event, now) {
                    self.break_off(placed(violation, event));
                }
            }
            // After DONE there is nothing; what a connector says while it is being stopped is not heard.
            Some(conclusion) if conclusion.is_done() => {
                self.break_off(placed(Violation::new(ViolationCode::AfterDone), event));
            }
            Some(_) => {}
        }
        self.advance(now);
        Ok(())
    }

    /// Takes a breach that the decoder found at the end of the output.
    pub fn handle_violation(&mut self, violation: Violation, now: Now) {
        self.break_off(violation);
        self.advance(now);
    }

    /// Takes the proof that a slice is durable.
    pub fn handle_receipt(&mut self, receipt: Receipt<T>, now: Now) {
        self.last_news = now.time;
        self.owed = self.owed.saturating_sub(1);
        let written = receipt.written();
        if self.ledger.accept(receipt).is_err() {
            // It wrote out of order or twice: what it says can no longer be relied upon.
            return self.lose_store(TerminalReason::RuntimeError, now);
        }
        self.counts.add(written);
        self.advance(now);
    }

    /// Takes what the store found among the keys of a report.
    pub fn handle_tally(&mut self, report: ReportId, tally: &CoverageTally, now: Now) {
        self.last_news = now.time;
        if let Some(report) = self.reports.iter_mut().find(|known| known.id == report && known.verdict.is_none()) {
            self.owed = self.owed.saturating_sub(1);
            report.tally = tally.clone();
            match tally.judge(&report.pair.stream) {
                Ok(verdict) => report.verdict = Some(verdict),
                Err(violation) => {
                    // Judged, and nothing to be relied upon.
                    report.verdict = Some(CoverageVerdict::Short { unaccounted: 0 });
                    self.break_off(violation);
                }
            }
        }
        self.advance(now);
    }

    /// The unaccounted keys of a report are durable gaps now, so many.
    pub fn handle_unaccounted_written(&mut self, gaps: u64, now: Now) {
        self.owed = self.owed.saturating_sub(1);
        self.counts.unaccounted = self.counts.unaccounted.saturating_add(gaps);
        self.advance(now);
    }

    /// The page of gaps that was asked for first. Empty means that none is left.
    pub fn handle_gaps_page(&mut self, detail_gaps: Vec<ServedGap>, now: Now) {
        self.last_news = now.time;
        if let Some(request_id) = self.pages_owed.pop_front()
            && self.conclusion.is_none()
        {
            self.send(RuntimeMessage::GapsPageResponse(GapsPageResponse { request_id, detail_gaps }));
        }
        self.advance(now);
    }

    /// What to do next. Effects are carried out in this order, and none of a store's after one that
    /// it could not carry out.
    pub fn poll_effect(&mut self) -> Option<Effect<T>> {
        self.effects.pop_front()
    }

    /// How the run ended, once it has. Set once; nothing is accepted after it.
    #[must_use]
    pub const fn outcome(&self) -> Option<&RunOutcome> {
        self.outcome.as_ref()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self, now: Now) -> Option<Time> {
        let collecting = self.phase == Phase::Collecting && self.conclusion.is_none();
        let flush = self.flush_at.filter(|_| collecting);
        let grant = self.questions.grant_deadline(now).filter(|_| self.conclusion.is_none());
        [flush, self.silence_deadline(), self.questions.deadline(), grant, self.phase.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes the news that time has passed.
    pub fn handle_timeout(&mut self, now: Now) {
        if self.flush_at.is_some_and(|time| time <= now.time) && self.conclusion.is_none() {
            self.flush();
        }
        if self.silence_deadline().is_some_and(|time| time <= now.time) {
            self.conclude(Conclusion::failed(TerminalReason::NoProgress));
        }
        self.expire_question(now);
        self.expire_grant(now);
        self.press_for_exit(now);
        self.advance(now);
    }

    /// Silence counts only while the connector is expected to speak.
    fn silence_deadline(&self) -> Option<Time> {
        let expected = self.conclusion.is_none() && !self.questions.is_open() && self.wants_input();
        self.silence_max.filter(|_| expected).map(|max| self.last_news + max)
    }

    /// Gives out what the slice holds.
    fn flush(&mut self) {
        self.flush_at = None;
        if let Some(slice) = self.slice.take() {
            self.owed += 1;
            self.want_stored(StoreEffect::WriteSlice(slice));
        }
    }

    /// Gives out the slice if it is full; otherwise sees to it that it does not wait for ever.
    fn flush_if_full(&mut self, now: Now) {
        if self.slice.is_full() {
            self.flush();
        } else if self.flush_at.is_none() && !self.slice.is_empty() {
            self.flush_at = Some(now.time + FLUSH_AFTER);
        }
    }

    /// Gives out an effect, after those that were given out before.
    fn want(&mut self, effect: Effect<T>) {
        self.effects.push_back(effect);
    }

    fn want_stored(&mut self, effect: StoreEffect<T>) {
        self.want(Effect::Store(effect));
    }

    fn send(&mut self, message: RuntimeMessage) {
        self.want(Effect::Process(ProcessEffect::Send(message)));
    }
}

/// The violation with the line that it is about.
fn placed(violation: Violation, event: &Event<'_>) -> Violation {
    match event {
        Event::Message { line, .. } | Event::CoverageKeys { line, .. } | Event::CoverageEnd { line, .. }
            if violation.position.is_none() =>
        {
            violation.at(*line, 0)
        }
        _ => violation,
    }
}

#[cfg(test)]
mod tests;

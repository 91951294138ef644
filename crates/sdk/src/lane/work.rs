//! State of one lane in one run, and the handling of a single item.
//!
//! An item is fetched while the run's budget allows it; a failed one becomes a gap. An item left by a cap becomes a
//! gap while the chunk allows it. Then the walk ends, and a backlog gap represents the rest. There is no other
//! outcome, and the position of a walk is never past an item without one.

use super::LaneConfig;
use super::backlog::{BACKLOG_KEY, Backlog};
use super::cursor::Cursor;
use super::ledger::{Ledger, Outcome};
use super::source::{Detail, ListAt, ListItem, ListPage, Source, Target};
use super::threads;
use crate::collect::Collect;
use crate::emit::Emitted;
use crate::fetch_error::{FetchError, FetchErrorKind, is_cap, run_cap};
use crate::pages::{CIRCUIT_WAIT, REST_OF_STREAM};
use crate::stop::Stop;
use gleaner_engine::Time;
use gleaner_protocol::{DeferReason, DetailGap, GapKey, GapReason, ServedGap, SkipResult};
use std::collections::VecDeque;
use std::thread::Builder;
use std::time::Duration;

/// Waits for an open circuit without a success in between. It opens for a minute at first; after three waits the
/// provider is down, and a later run will find out when it is back.
const CIRCUIT_CYCLES_MAX: u32 = 3;
/// Consecutive details with a rejected credential that end the run.
const REFUSED_IN_A_ROW_MAX: u32 = 3;

/// Why there is no page of the list.
#[derive(Debug)]
pub(super) enum NoPage {
    /// The run's own budget.
    Budget(DeferReason),
    /// Anything else.
    Failed(FetchError),
}

impl From<NoPage> for Stop {
    fn from(no_page: NoPage) -> Self {
        match no_page {
            NoPage::Budget(reason) => Self::Deferred(reason),
            NoPage::Failed(error) => error.into(),
        }
    }
}

/// Handles an answer; `false` when no more are wanted.
pub(super) type Take<'t, 'a, 'r> = dyn FnMut(&mut Work<'a, 'r>, Result<Detail, FetchError>) -> Result<bool, Stop> + 't;

/// A running lane.
pub(super) struct Work<'a, 'r> {
    pub(super) config: &'a LaneConfig,
    pub(super) run: &'a mut Collect<'r>,
    pub(super) source: &'a dyn Source,
    pub(super) cursor: Cursor,
    pub(super) ledger: Ledger,
    /// Ranges of a backlog gap that was not written again in this run, and this run's additions.
    pub(super) backlog: Backlog,
    /// Whether all ranges of an existing backlog gap are known.
    pub(super) knows_backlog: bool,
    /// Number of backlog gaps written.
    pub(super) backlogs_written: u32,
    /// False when the owner requested only the list.
    wants_details: bool,
    /// The gap of an earlier run for a list that it could not begin to read.
    pub(super) rest: Option<ServedGap>,
    /// Why no more details are fetched.
    exhausted: Option<DeferReason>,
    circuit_cycles: u32,
    refused_in_a_row: u32,
}

impl<'a, 'r> Work<'a, 'r> {
    pub(super) fn new(config: &'a LaneConfig, run: &'a mut Collect<'r>, source: &'a dyn Source) -> Self {
        let cursor = Cursor::read(run.cursor(&config.list_stream));
        let wants_details = run.emitter.wants_stream(&config.detail_stream);
        Self {
            config,
            run,
            source,
            cursor,
            wants_details,
            rest: None,
            ledger: Ledger::default(),
            backlog: Backlog::default(),
            knows_backlog: false,
            backlogs_written: 0,
            exhausted: None,
            circuit_cycles: 0,
            refused_in_a_row: 0,
        }
    }

    /// Sends the cursor of this lane, after everything that it covers.
    pub(super) fn commit(&mut self) -> Result<(), Stop> {
        self.run.slice(&self.config.list_stream, &self.cursor.to_map())
    }

    /// Items per batch. When all of them would become gaps that count, no more than the remaining chunk: listing
    /// others would be useless.
    pub(super) fn batch_len(&self) -> usize {
        let rows = self.run.budget.gap_rows_left.filter(|_| self.exhausted.is_some_and(is_cap));
        let rows = rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        self.config.batch.clamp(1, rows.max(1))
    }

    /// Settles these items, in order. Returns how many: fewer when budget and chunk are used up.
    pub(super) fn settle(&mut self, items: &[ListItem]) -> Result<usize, Stop> {
        let mut settled = 0;
        while let Some(item) = items.get(settled) {
            if is_unusable(&item.key) {
                self.report_unusable()?;
                settled += 1;
                continue;
            }
            if !self.wants_details {
                self.send_listed(item)?;
                settled += 1;
                continue;
            }
            if !self.wants(&item.key) {
                self.ledger.note(&item.key, Outcome::Skipped);
                settled += 1;
                continue;
            }
            let is_next = |item: &&ListItem| self.wants(&item.key) && !is_unusable(&item.key);
            let targets = items[settled..].iter().take_while(is_next);
            let targets = targets.take(self.config.concurrency).map(target).collect::<Vec<_>>();
            let admitted = self.admit(targets.len());
            if admitted == 0 {
                if !self.put_off(item, &self.deferral())? {
                    return Ok(settled);
                }
                settled += 1;
                continue;
            }
            let before = settled;
            self.fetch(&targets[..admitted], &mut |work, fetched| {
                let is_settled = work.settle_one(&items[settled], fetched)?;
                settled += usize::from(is_settled);
                Ok(is_settled)
            })?;
            if settled < before + admitted {
                return Ok(settled);
            }
        }
        Ok(settled)
    }

    /// Skips and reports an item with an empty or reserved key.
    fn report_unusable(&mut self) -> Result<(), Stop> {
        self.run.emitter.skip(SkipResult {
            stream: Some(self.config.list_stream.clone()),
            reason: Some("unusable_key".to_owned()),
            message: Some("an item of the list has no key, or one that is reserved".to_owned()),
            ..SkipResult::default()
        })
    }

    /// Whether an item is requested. The records of its detail have their own keys and are checked when they are
    /// sent.
    pub(super) fn wants(&self, key: &str) -> bool {
        self.run.emitter.wants(&self.config.list_stream, key)
    }

    /// How many of `wanted` details may be fetched now.
    pub(super) fn admit(&mut self, wanted: usize) -> usize {
        let mut admitted = 0;
        while admitted < wanted && self.exhausted.is_none() {
            match self.run.budget.take_detail(self.run.clock.now()) {
                Ok(()) => admitted += 1,
                Err(reason) => self.exhausted = Some(reason),
            }
        }
        admitted
    }

    pub(super) const fn is_exhausted(&self) -> bool {
        self.exhausted.is_some()
    }

    /// Fetches these concurrently, as far as there are threads, and passes on the answers in order, each as soon as
    /// it arrives, until `take` wants no more.
    pub(super) fn fetch(&mut self, targets: &[Target], take: &mut Take<'_, 'a, 'r>) -> Result<(), Stop> {
        if let [only] = targets {
            let fetched = self.source.detail(only);
            let fetched = self.wait_for_circuit(only, fetched, None);
            take(self, fetched)?;
            return self.run.report_rate_now_and_then();
        }
        let (source, clock) = (self.source, self.run.clock);
        let fetch = |target: &Target| {
            let fetched = source.detail(target);
            let found_open = is_open(&fetched).then(|| clock.now());
            (fetched, found_open)
        };
        std::thread::scope(|scope| {
            let begun = threads::begin(scope, targets, &fetch, &Builder::new);
            let (mut started, mut answers) = (begun.into_iter().map(|begun| begun.finish(&fetch)), VecDeque::new());
            for target in targets {
                let Some((fetched, found_open)) = answers.pop_front().or_else(|| started.next()) else { break };
                if found_open.is_some() {
                    // Answers of the same moment come before any pause.
                    answers.extend(started.by_ref());
                }
                let fetched = self.wait_for_circuit(target, fetched, found_open);
                if !take(self, fetched)? {
                    break;
                }
                self.run.report_rate_now_and_then()?;
            }
            Ok(())
        })
    }

    /// Waits for an open circuit to close and retries, while the budget allows it. It may have been found open a
    /// while ago.
    fn wait_for_circuit(
        &mut self,
        target: &Target,
        mut fetched: Result<Detail, FetchError>,
        mut found_open: Option<Time>,
    ) -> Result<Detail, FetchError> {
        while let Err(error) = &fetched
            && error.kind == FetchErrorKind::CircuitOpen
            && self.pause_for_circuit(error.retry_in, found_open.take())
        {
            if self.admit(1) == 0 {
                return Err(self.deferral());
            }
            fetched = self.source.detail(target);
        }
        match &fetched {
            Ok(_) => (self.circuit_cycles, self.refused_in_a_row) = (0, 0),
            Err(error) if error.kind == FetchErrorKind::RefusedCredentials => self.refused_in_a_row += 1,
            Err(error) => {
                self.note_end(error);
                self.exhausted = self.exhausted.or_else(|| ends_the_run(error));
            }
        }
        fetched
    }

    /// The client, which sees every attempt, may notice the end of the budget first.
    fn note_end(&mut self, error: &FetchError) {
        if let Some(reason) = error.exhausted() {
            self.run.budget.end(reason);
        }
    }

    /// Waits for an open circuit. Of several found open at the same time the first waits for all.
    fn pause_for_circuit(&mut self, wait: Option<Duration>, found_open: Option<Time>) -> bool {
        let now = self.run.clock.now();
        let since = |found: Time| Duration::from_millis(now.as_millis().saturating_sub(found.as_millis()));
        let passed = found_open.map_or(Duration::ZERO, since);
        let wait = wait.unwrap_or(CIRCUIT_WAIT);
        if !passed.is_zero() && passed >= wait {
            return true;
        }
        self.circuit_cycles += 1;
        // Sent before the pause: observers see why nothing happens. If nobody reads any more, the next message
        // notices.
        drop(self.run.report_rate());
        self.circuit_cycles <= CIRCUIT_CYCLES_MAX && self.run.pause(wait.saturating_sub(passed))
    }

    /// One page of the list.
    pub(super) fn list(&mut self, at: &ListAt) -> Result<ListPage, NoPage> {
        loop {
            self.run.budget.take_list(self.run.clock.now()).map_err(NoPage::Budget)?;
            match self.source.list(at) {
                Ok(page) => return Ok(page),
                Err(error) if error.kind == FetchErrorKind::CircuitOpen => {
                    if !self.pause_for_circuit(error.retry_in, None) {
                        return Err(NoPage::Failed(error));
                    }
                }
                Err(error) => {
                    self.note_end(&error);
                    return Err(ends_the_run(&error).map_or(NoPage::Failed(error), NoPage::Budget));
                }
            }
        }
    }

    /// Settles one item; `false` when budget and chunk are used up.
    fn settle_one(&mut self, item: &ListItem, fetched: Result<Detail, FetchError>) -> Result<bool, Stop> {
        let error = match fetched {
            Ok(records) => {
                self.send_listed(item)?;
                let is_empty = records.records.is_empty();
                let outcome = match self.send(records)? {
                    // Nothing was sent for it, so it is not hydrated.
                    Emitted::Sent if is_empty => Some(Outcome::Skipped),
                    Emitted::Sent => Some(Outcome::Hydrated),
                    Emitted::OutOfScope => Some(Outcome::Skipped),
                    Emitted::Rejected => None,
                };
                if let Some(outcome) = outcome {
                    self.ledger.note(&item.key, outcome);
                    return Ok(true);
                }
                invalid()
            }
            Err(error) => self.unless_refused(error)?,
        };
        self.put_off(item, &error)
    }

    /// Ends the run if the error is not this item's fault: a credential rejected repeatedly, a missing recording, a
    /// lost sender.
    pub(super) fn unless_refused(&self, error: FetchError) -> Result<FetchError, Stop> {
        let is_not_its_fault = self.refused_in_a_row >= REFUSED_IN_A_ROW_MAX
            || matches!(error.kind, FetchErrorKind::NotRecorded | FetchErrorKind::SenderGone);
        if is_not_its_fault { Err(error.into()) } else { Ok(error) }
    }

    /// Writes a gap for one item; `false` when a cap left it and the chunk is used up. An item that failed for
    /// another reason never counts: in the backlog gap a 404 would look like our own budget.
    fn put_off(&mut self, item: &ListItem, error: &FetchError) -> Result<bool, Stop> {
        if error.is_cap() && !self.run.budget.take_gap_row() {
            return Ok(false);
        }
        self.send_listed(item)?;
        let gap = DetailGap { detail_locator: item.locator.clone(), ..self.gap(&item.key, error) };
        self.say_gap(gap)?;
        Ok(true)
    }

    /// The gap of a key.
    pub(super) fn gap(&self, key: &str, error: &FetchError) -> DetailGap {
        DetailGap {
            stream: self.config.detail_stream.clone(),
            parent_stream: Some(self.config.list_stream.clone()),
            record_key: Some(GapKey::Text(key.to_owned())),
            reason: Some(error.gap_reason()),
            last_error: Some(error.last_error()),
            not_before: error.not_before(self.run.clock.wall()),
            ..DetailGap::default()
        }
    }

    pub(super) fn say_gap(&mut self, gap: DetailGap) -> Result<(), Stop> {
        if let Some(key) = &gap.record_key {
            self.ledger.note(key.as_str(), Outcome::Gap);
        }
        self.run.emitter.gap(gap)
    }

    /// Writes the backlog gap with all its current ranges.
    pub(super) fn say_backlog(&mut self) -> Result<(), Stop> {
        self.backlogs_written += 1;
        let id = format!("{}.{}", self.run.run_id(), self.backlogs_written);
        // Progress on an earlier writing is included in this one, or done.
        self.cursor.drain = None;
        let gap = DetailGap {
            detail_locator: Some(self.backlog.locator(&id)),
            reason: Some(GapReason::Absence(DeferReason::RequestCap.gap_reason())),
            last_error: Some(run_cap()),
            ..self.gap(BACKLOG_KEY, &self.deferral())
        };
        // It is no record, so the coverage report does not list it.
        self.run.emitter.gap(gap)
    }

    /// Sends the record of the list stream.
    fn send_listed(&mut self, item: &ListItem) -> Result<(), Stop> {
        if let Some(body) = &item.record {
            let _: Emitted = body.clone().send(&mut self.run.emitter, &self.config.list_stream, &item.key)?;
        }
        Ok(())
    }

    /// Sends the records of a detail. An invalid one decides for all.
    pub(super) fn send(&mut self, detail: Detail) -> Result<Emitted, Stop> {
        let mut all = if detail.records.is_empty() { Emitted::Sent } else { Emitted::OutOfScope };
        for record in detail.records {
            match (record.send(&mut self.run.emitter, &self.config.detail_stream)?, all) {
                (Emitted::Rejected, _) => all = Emitted::Rejected,
                (Emitted::Sent, Emitted::OutOfScope) => all = Emitted::Sent,
                (Emitted::Sent | Emitted::OutOfScope, _) => {}
            }
        }
        Ok(all)
    }

    /// Why this run stopped fetching.
    pub(super) fn reason(&self) -> DeferReason {
        self.exhausted.unwrap_or(DeferReason::RequestCap)
    }

    /// The error for the end of our own budget.
    fn deferral(&self) -> FetchError {
        let kind = match self.reason() {
            DeferReason::CircuitOpen => FetchErrorKind::CircuitOpen,
            reason => FetchErrorKind::Deferred(reason),
        };
        FetchError::new(kind, "this run's own budget is used up")
    }
}

fn is_open(fetched: &Result<Detail, FetchError>) -> bool {
    fetched.as_ref().is_err_and(|error| error.kind == FetchErrorKind::CircuitOpen)
}

/// Why nothing more is fetched in this run, if this error means that. The attempts of one request are its own.
pub(super) const fn ends_the_run(error: &FetchError) -> Option<DeferReason> {
    match error.kind {
        FetchErrorKind::Deferred(DeferReason::Attempts) => None,
        FetchErrorKind::Deferred(reason) => Some(reason),
        FetchErrorKind::CircuitOpen => Some(DeferReason::CircuitOpen),
        _ => None,
    }
}

/// A detail with invalid records. Later runs retry, because the parser may be fixed.
pub(super) fn invalid() -> FetchError {
    FetchError::unexpected("a record does not match its schema")
}

/// Whether a key is empty or reserved.
fn is_unusable(key: &str) -> bool {
    key.is_empty() || key == BACKLOG_KEY || key == REST_OF_STREAM
}

fn target(item: &ListItem) -> Target {
    Target { key: item.key.clone(), locator: item.locator.clone() }
}

//! One lane in one run: what it holds while it works, and what happens to a single item.
//!
//! An item is fetched while the run's budget allows it, and one that fails becomes a gap of its own. What a
//! cap left becomes a gap of its own while the chunk allows that. Then the walk ends, and a backlog gap
//! stands for the rest. Nothing else can happen to an item, and the place up to which a walk came is never
//! past one to which none of it did.

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

/// How often an open circuit is waited for without a success in between. It opens for a minute at first;
/// after three of them the provider is down, and a later run will find out when it is back.
const CIRCUIT_CYCLES_MAX: u32 = 3;
/// So many details in a row that are refused for the credential end the run: it is the credential.
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

/// What is done with an answer; `false` when no more are wanted.
pub(super) type Take<'t, 'a, 'r> = dyn FnMut(&mut Work<'a, 'r>, Result<Detail, FetchError>) -> Result<bool, Stop> + 't;

/// A lane while it works.
pub(super) struct Work<'a, 'r> {
    pub(super) config: &'a LaneConfig,
    pub(super) run: &'a mut Collect<'r>,
    pub(super) source: &'a dyn Source,
    pub(super) cursor: Cursor,
    pub(super) ledger: Ledger,
    /// What a backlog gap stands for that is not written again in this run, and what this run adds to it.
    pub(super) backlog: Backlog,
    /// Whether all that the backlog gap stands for is known, if there is one.
    pub(super) knows_backlog: bool,
    /// How often a backlog gap was written.
    pub(super) backlogs_written: u32,
    /// The owner asked for the list alone.
    wants_details: bool,
    /// The gap that an earlier run left for a list that it could not begin to read.
    pub(super) rest: Option<ServedGap>,
    /// Why no detail is fetched any more.
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

    /// Says how far this lane has come, together with everything before.
    pub(super) fn commit(&mut self) -> Result<(), Stop> {
        self.run.slice(&self.config.list_stream, &self.cursor.to_map())
    }

    /// How many items are settled together. When all that can happen to them is a gap that counts, no more
    /// than there may be of those: listing others would be in vain.
    pub(super) fn batch_len(&self) -> usize {
        let rows = self.run.budget.gap_rows_left.filter(|_| self.exhausted.is_some_and(is_cap));
        let rows = rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        self.config.batch.clamp(1, rows.max(1))
    }

    /// Says what becomes of these items, in their order. Answers how many that were: fewer when neither
    /// budget nor chunk allow more.
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

    /// An item that cannot be told from our own gaps, or from any other, is left out and said.
    fn report_unusable(&mut self) -> Result<(), Stop> {
        self.run.emitter.skip(SkipResult {
            stream: Some(self.config.list_stream.clone()),
            reason: Some("unusable_key".to_owned()),
            message: Some("an item of the list has no key, or one that is reserved".to_owned()),
            ..SkipResult::default()
        })
    }

    /// Whether the owner asked for an item. What its detail gives has keys of its own and is asked about when
    /// it is sent.
    pub(super) fn wants(&self, key: &str) -> bool {
        self.run.emitter.wants(&self.config.list_stream, key)
    }

    /// How many of so many details may be fetched now.
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

    /// Fetches these at the same time, as far as there are threads, and hands the answers over in their order, each as
    /// soon as it is there, until `take` wants no more.
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
                    // What the others find is about the same moment, and comes before any pause.
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

    /// An open circuit closes again: waits for it and tries once more, while the budget allows it. It may have
    /// been found open a while ago.
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

    /// The client, which sees every attempt, may find the end of the budget before we do.
    fn note_end(&mut self, error: &FetchError) {
        if let Some(reason) = error.exhausted() {
            self.run.budget.end(reason);
        }
    }

    /// Waits for an open circuit. Of several that were found open at the same time the first waits for all.
    fn pause_for_circuit(&mut self, wait: Option<Duration>, found_open: Option<Time>) -> bool {
        let now = self.run.clock.now();
        let since = |found: Time| Duration::from_millis(now.as_millis().saturating_sub(found.as_millis()));
        let passed = found_open.map_or(Duration::ZERO, since);
        let wait = wait.unwrap_or(CIRCUIT_WAIT);
        if !passed.is_zero() && passed >= wait {
            return true;
        }
        self.circuit_cycles += 1;
        // Said before the pause: whoever looks meanwhile sees why nothing happens. If nobody reads any more, the
        // next message finds out.
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

    /// What becomes of one item that was fetched, or was not; `false` when nothing can.
    fn settle_one(&mut self, item: &ListItem, fetched: Result<Detail, FetchError>) -> Result<bool, Stop> {
        let error = match fetched {
            Ok(records) => {
                self.send_listed(item)?;
                let is_empty = records.records.is_empty();
                let outcome = match self.send(records)? {
                    // Nothing was sent for it, so nothing can be called hydrated.
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

    /// A credential that is refused again and again is not this item's fault, and neither is a recording without it or
    /// a sender that is gone.
    pub(super) fn unless_refused(&self, error: FetchError) -> Result<FetchError, Stop> {
        let is_not_its_fault = self.refused_in_a_row >= REFUSED_IN_A_ROW_MAX
            || matches!(error.kind, FetchErrorKind::NotRecorded | FetchErrorKind::SenderGone);
        if is_not_its_fault { Err(error.into()) } else { Ok(error) }
    }

    /// Writes a gap for one item; `false` when a cap left it and the chunk is used up. An item that failed
    /// for any other reason never counts: folding it into the backlog gap would call a 404 our own budget.
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

    /// Writes the backlog gap, with everything that it stands for now.
    pub(super) fn say_backlog(&mut self) -> Result<(), Stop> {
        self.backlogs_written += 1;
        let id = format!("{}.{}", self.run.run_id(), self.backlogs_written);
        // What was drained of an earlier writing is in this one, or done.
        self.cursor.drain = None;
        let gap = DetailGap {
            detail_locator: Some(self.backlog.locator(&id)),
            reason: Some(GapReason::Absence(DeferReason::RequestCap.gap_reason())),
            last_error: Some(run_cap()),
            ..self.gap(BACKLOG_KEY, &self.deferral())
        };
        // It is no record, so it is in no list of the coverage report.
        self.run.emitter.gap(gap)
    }

    /// The record of the list's own stream.
    fn send_listed(&mut self, item: &ListItem) -> Result<(), Stop> {
        if let Some(body) = &item.record {
            let _: Emitted = body.clone().send(&mut self.run.emitter, &self.config.list_stream, &item.key)?;
        }
        Ok(())
    }

    /// Sends the records of a detail. One that does not fit counts for all.
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

    /// The error that stands for the end of our own budget.
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

/// Why nothing more is fetched in this run, if this error says so. The attempts of one request are its own.
pub(super) const fn ends_the_run(error: &FetchError) -> Option<DeferReason> {
    match error.kind {
        FetchErrorKind::Deferred(DeferReason::Attempts) => None,
        FetchErrorKind::Deferred(reason) => Some(reason),
        FetchErrorKind::CircuitOpen => Some(DeferReason::CircuitOpen),
        _ => None,
    }
}

/// A detail whose records do not fit their schema. Later runs try again, for the parser may be mended.
pub(super) fn invalid() -> FetchError {
    FetchError::unexpected("a record does not fit its schema")
}

/// Whether a key names nothing, or one of our own gaps.
fn is_unusable(key: &str) -> bool {
    key.is_empty() || key == BACKLOG_KEY || key == REST_OF_STREAM
}

fn target(item: &ListItem) -> Target {
    Target { key: item.key.clone(), locator: item.locator.clone() }
}

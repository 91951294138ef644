//! One gap: something we know of and do not have, and what may happen to it.
//!
//! Why the rules are on one type and not in queries: a gap that disappears in the wrong way is a
//! record lost without a trace. Here a gap is settled only by the run that holds it; one that the
//! same run deferred again is no longer held, so saying "recovered" afterwards does nothing; and one
//! for which the store has nothing stays open, whatever its connector says ([`Evidence`]). The
//! store keeps gaps and calls these; it never changes a state itself. Locators and list cursors are
//! kept byte for byte.

use crate::ids::LeaseId;
use crate::instant::Instant;
use crate::note::Note;
use crate::time::WallTime;
use gleaner_protocol::{
    AbsenceReason, DeferReason, DetailGap, GapKey, GapReason, LastError, RawJson, RefreshPolicy, coded_enum,
};
use std::time::Duration;

/// What makes two gaps the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GapIdentity {
    /// The connection.
    pub connection: String,
    /// The grant.
    pub grant: String,
    /// The stream.
    pub stream: String,
    /// The stream in whose list it was found.
    pub parent_stream: Option<String>,
    /// `key:` and the record's key, or `loc:` and the locator.
    pub subject: String,
}

impl GapIdentity {
    /// The identity of a gap that a connector names. A key that is a number is the same as its text.
    #[must_use]
    pub fn of(connection: &str, grant: &str, gap: &DetailGap) -> Self {
        let subject = match (&gap.record_key, &gap.detail_locator, &gap.list_cursor) {
            (Some(key), ..) => format!("key:{}", key.as_str()),
            (None, Some(locator), _) => format!("loc:{}", locator.as_str()),
            // Nothing else tells one part of a list from another.
            (None, None, Some(cursor)) => format!("list:{}", cursor.as_str()),
            // There is one gap of this kind per stream: it says that something is missing.
            (None, None, None) => "loc:null".to_owned(),
        };
        Self {
            connection: connection.to_owned(),
            grant: grant.to_owned(),
            stream: gap.stream.clone(),
            parent_stream: gap.parent_stream.clone(),
            subject,
        }
    }
}

/// The key of a gap that stands for whatever a run had left of a stream when its budget ended it. A
/// runtime writes it; no connector is served it, because the cursor leads there anyway.
pub const REST_OF_RUN: &str = "gleaner:rest-of-run";

/// The gap for what is left of a stream after its last durable cursor.
#[must_use]
pub fn rest_of_run(stream: &str, cursor: Option<RawJson<'static>>) -> DetailGap {
    DetailGap {
        stream: stream.to_owned(),
        record_key: Some(GapKey::Text(REST_OF_RUN.to_owned())),
        reason: Some(GapReason::Absence(DeferReason::WallClock.gap_reason())),
        list_cursor: cursor,
        last_error: DeferReason::WallClock.error_class().map(LastError::of_class),
        ..DetailGap::default()
    }
}

/// Where a gap stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapState {
    /// It waits for a run.
    Pending,
    /// A run works on it.
    InProgress {
        /// The right of that run.
        lease: LeaseId,
    },
    /// It is closed: what was missing is here.
    Recovered,
    /// It is kept on record and not tried again by itself.
    Terminal {
        /// Why.
        reason: AbsenceReason,
    },
    /// Its owner does without it. It is still missing, and nobody tries it, whatever its connector says, until it is
    /// taken back.
    Ignored {
        /// Why, in the owner's words.
        note: Note,
        /// Since when.
        at: WallTime,
        /// The right of a run that was at work on it: what that run brings all the same is here.
        held: Option<LeaseId>,
    },
}

/// A gap and its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it stands.
    pub state: GapState,
    /// How often it was tried, at most once per lease.
    pub attempts: u32,
    /// The lease under which the last attempt was counted.
    pub counted_under: Option<LeaseId>,
    /// The lease under which it was last deferred. That run is not served it again.
    pub deferred_under: Option<LeaseId>,
    /// Why it is missing.
    pub cause: GapCause,
    /// Not to be tried before.
    pub not_before: Option<WallTime>,
    /// Since when it is known.
    pub since: WallTime,
    /// How the connector finds it again.
    pub locator: Option<RawJson<'static>>,
    /// Where in the list it was.
    pub list_cursor: Option<RawJson<'static>>,
    /// What a closed gap was closed by. Stores from before it was asked for do not know.
    pub confirmed_by: Option<Confirmation>,
}

/// Why a gap is there, as far as it decides something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapCause {
    /// The reason on the wire.
    pub reason: Option<GapReason>,
    /// Whether it is a planned stop at a cap that the owner set.
    pub run_cap: bool,
    /// The status of the last answer.
    pub http_status: Option<u16>,
}

impl GapCause {
    /// The cause that a connector names.
    #[must_use]
    pub fn of(gap: &DetailGap) -> Self {
        Self {
            reason: gap.reason,
            run_cap: gap.is_run_cap_deferral(),
            http_status: gap.last_error.as_ref().and_then(|error| error.http_status),
        }
    }

    /// Whether trying again is expected to end the same way, so that a few tries are enough.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        self.permanent_reason().is_some()
    }

    /// What a gap is given up for, where trying again is expected to end the same way.
    const fn permanent_reason(self) -> Option<AbsenceReason> {
        use AbsenceReason::{AuthFailure, Gone, NotFound, PermanentForbidden};
        match (self.reason, self.http_status) {
            // Pressure is never permanent, whatever status came with it.
            (Some(GapReason::Pressure(_)), _) => None,
            (Some(GapReason::Absence(reason @ (AuthFailure | Gone | NotFound | PermanentForbidden))), _) => {
                Some(reason)
            }
            (_, Some(401)) => Some(AuthFailure),
            (_, Some(404)) => Some(NotFound),
            (_, Some(410)) => Some(Gone),
            _ => None,
        }
    }

    /// Whether it may pass by itself: an error of the provider or of the network, or one that nobody named. However often
    /// it is tried, it is not given up.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        !self.is_permanent() && !self.is_nobodys_fault()
    }

    /// Whether the record is not to blame: our own budget, the provider's pressure, or the owner.
    #[must_use]
    pub const fn is_nobodys_fault(self) -> bool {
        self.run_cap
            || matches!(
                self.reason,
                Some(
                    GapReason::Pressure(_)
                        | GapReason::Absence(AbsenceReason::OutOfScope | AbsenceReason::UserDisabled)
                )
            )
    }
}

/// How often a gap is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimits {
    /// A permanent cause becomes terminal after this many attempts. No other cause ever does.
    pub terminal_after: u32,
}

impl AttemptLimits {
    /// From the contract: a listed record may be missing for a while and come back.
    const TERMINAL_AFTER: u32 = 5;

    /// The limits of a connector.
    #[must_use]
    pub fn of(policy: Option<&RefreshPolicy>) -> Self {
        let recommended = policy.and_then(|policy| policy.max_recovery_attempts);
        let terminal_after = recommended.and_then(|max| u32::try_from(max).ok()).unwrap_or(Self::TERMINAL_AFTER);
        Self { terminal_after }
    }
}

/// What a store has for a gap that is called recovered: durable in this run, since the gap was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing.
    Nothing,
    /// A record or deletion of the gap's stream whose key, or a top-level field of which, is the gap's key.
    Record,
    /// Only a record of another stream with that key: what the gap stood for holds nothing.
    OtherStream,
    /// The gap names no record: it stands for a part of a list.
    List,
}

coded_enum! {
    /// What a closed gap was closed by.
    pub enum Confirmation {
        /// The record is here.
        Record = "record";
        /// There is nothing to collect: only another stream knows the key.
        Empty = "empty";
        /// It stood for a part of a list, and its connector says that it has been through it.
        List = "list";
    }
}

impl Evidence {
    const fn confirmation(self) -> Option<Confirmation> {
        match self {
            Self::Nothing => None,
            Self::Record => Some(Confirmation::Record),
            Self::OtherStream => Some(Confirmation::Empty),
            Self::List => Some(Confirmation::List),
        }
    }
}

/// What came of a "recovered".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The gap is closed.
    Settled(Confirmation),
    /// It was closed before, and stays so.
    SettledBefore,
    /// The store has nothing for it: it stays open, and was tried.
    Unconfirmed,
    /// The same run deferred it again: the rest is still missing, and the gap stays.
    DeferredAgain,
    /// This run does not hold the gap. It stays as it is.
    NotHeld,
}

/// How many gaps that were called recovered the store could confirm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapsConfirmed {
    /// Closed: their record is here.
    pub by_record: u64,
    /// Closed as empty.
    pub empty: u64,
    /// Not closed: the store has nothing for them, or the run does not hold them.
    pub unconfirmed: u64,
    /// Closed gaps that stood for a part of a list.
    pub lists: u64,
    /// Records of their streams that came since they were served.
    pub list_records: u64,
    /// Gaps of their streams that were written since.
    pub list_gaps: u64,
}

impl GapsConfirmed {
    /// How many gaps were closed.
    #[must_use]
    pub const fn closed(&self) -> u64 {
        self.by_record.saturating_add(self.empty).saturating_add(self.lists)
    }

    /// Counts what came of one "recovered".
    pub const fn count(&mut self, recovery: Recovery) {
        let counter = match recovery {
            Recovery::Settled(Confirmation::Record) => &mut self.by_record,
            Recovery::Settled(Confirmation::Empty) => &mut self.empty,
            Recovery::Settled(Confirmation::List) => &mut self.lists,
            Recovery::Unconfirmed | Recovery::DeferredAgain | Recovery::NotHeld => &mut self.unconfirmed,
            Recovery::SettledBefore => return,
        };
        *counter = counter.saturating_add(1);
    }

    /// Adds the counts of another slice.
    pub const fn add(&mut self, other: Self) {
        let Self { by_record, empty, unconfirmed, lists, list_records, list_gaps } = other;
        self.by_record = self.by_record.saturating_add(by_record);
        self.empty = self.empty.saturating_add(empty);
        self.unconfirmed = self.unconfirmed.saturating_add(unconfirmed);
        self.lists = self.lists.saturating_add(lists);
        self.list_records = self.list_records.saturating_add(list_records);
        self.list_gaps = self.list_gaps.saturating_add(list_gaps);
    }
}

impl Gap {
    /// A gap that was just found.
    #[must_use]
    pub fn open(gap: &DetailGap, lease: &LeaseId, now: WallTime) -> Self {
        Self {
            state: GapState::Pending,
            attempts: 0,
            counted_under: None,
            deferred_under: Some(lease.clone()),
            cause: GapCause::of(gap),
            not_before: not_before(gap, now),
            since: now,
            locator: gap.detail_locator.clone(),
            list_cursor: gap.list_cursor.clone(),
            confirmed_by: None,
        }
    }

    /// Whether it can be handed to this run now. A time further ahead than any wait comes from a calendar that was set back,
    /// and does not count. A run is not handed what it deferred itself:
    /// otherwise recovery of one hard gap would never end.
    #[must_use]
    pub fn is_due(&self, lease: &LeaseId, now: WallTime) -> bool {
        self.state == GapState::Pending
            && self.not_before.is_none_or(|time| time <= now || time > now + NOT_BEFORE_MAX)
            && self.deferred_under.as_ref() != Some(lease)
    }

    /// Hands it to a run. Nothing happens unless it is due.
    pub fn lease(&mut self, lease: &LeaseId, now: WallTime) -> bool {
        let due = self.is_due(lease, now);
        if due {
            self.state = GapState::InProgress { lease: lease.clone() };
        }
        due
    }

    /// It was tried: counts once per lease, and only for the run that holds it.
    pub fn attempt(&mut self, lease: &LeaseId) {
        if self.is_held_by(lease) {
            self.count_attempt(lease);
        }
    }

    /// A connector says that it is missing, or still missing. It waits again, with what is known now.
    pub fn defer(&mut self, again: &DetailGap, lease: &LeaseId, limits: AttemptLimits, now: WallTime) {
        let cause = GapCause::of(again);
        // What was recovered by an earlier run and is missing again has not been tried yet.
        if self.state == GapState::Recovered && self.counted_under.as_ref() != Some(lease) {
            (self.attempts, self.counted_under, self.since) = (0, None, now);
        }
        // Some connectors never say that they tried; one that failed did. A planned stop is no try.
        if self.is_held_by(lease) && !cause.run_cap {
            self.count_attempt(lease);
        }
        // Some connectors put a served gap back by its id alone: what they leave out stays as it was.
        if again.reason.is_some() || again.last_error.is_some() {
            self.cause = cause;
        }
        if again.detail_locator.is_some() {
            self.locator.clone_from(&again.detail_locator);
        }
        if again.list_cursor.is_some() {
            self.list_cursor.clone_from(&again.list_cursor);
        }
        self.not_before = not_before(again, now).max(self.next_try(lease, now));
        self.deferred_under = Some(lease.clone());
        self.confirmed_by = None;
        self.put_down(limits);
    }

    /// A connector says that what was missing has been sent. It counts as far as the store confirms it.
    pub fn recover(&mut self, lease: &LeaseId, evidence: Evidence) -> Recovery {
        if self.is_held_by(lease) {
            let Some(confirmation) = evidence.confirmation() else {
                self.count_attempt(lease);
                return Recovery::Unconfirmed;
            };
            (self.state, self.confirmed_by) = (GapState::Recovered, Some(confirmation));
            return Recovery::Settled(confirmation);
        }
        if self.state == GapState::Recovered {
            return Recovery::SettledBefore;
        }
        if self.deferred_under.as_ref() == Some(lease) { Recovery::DeferredAgain } else { Recovery::NotHeld }
    }

    /// What a run left when its own budget ended it has been collected: a later run went to its end.
    /// Only for the gaps that a runtime writes itself ([`REST_OF_RUN`]): nobody else can settle those.
    pub fn settle_rest(&mut self) {
        (self.state, self.confirmed_by) = (GapState::Recovered, Some(Confirmation::List));
    }

    /// A coverage report called its record hydrated, and there is nothing under its key. Only for the gaps that a store
    /// writes so that this stays on record.
    pub fn settle_empty(&mut self) {
        (self.state, self.confirmed_by) = (GapState::Recovered, Some(Confirmation::Empty));
    }

    /// The run is over, or its lease has expired: what it still held waits again.
    pub fn release(&mut self, lease: &LeaseId, limits: AttemptLimits, now: WallTime) {
        if self.is_held_by(lease) {
            // A try that its connector did not outlive is a try.
            self.not_before = self.not_before.max(self.next_try(lease, now));
            self.put_down(limits);
        }
    }

    /// When it may be tried again after a try that failed for a reason that may pass: twice as long after each, up to a
    /// day. What was not tried under this lease waits as long as it did before.
    fn next_try(&self, lease: &LeaseId, now: WallTime) -> Option<WallTime> {
        if !self.cause.is_transient() || self.attempts == 0 {
            return None;
        }
        if self.counted_under.as_ref() != Some(lease) {
            return self.not_before.map(|time| time.min(now + RETRY_MAX));
        }
        let wait = RETRY_BASE.saturating_mul(1 << (self.attempts - 1).min(RETRY_DOUBLINGS_MAX));
        Some(now + wait.min(RETRY_MAX))
    }

    /// The owner asks for another try of a gap that was given up.
    pub fn reopen(&mut self) {
        if matches!(self.state, GapState::Terminal { .. }) {
            self.begin_anew();
            self.not_before = None;
        }
    }

    /// The next run tries it, whenever it was to be tried and also if it was given up. What its owner does without stays so.
    pub fn retry(&mut self) {
        self.reopen();
        if self.state == GapState::Pending {
            self.not_before = None;
        }
    }

    /// An earlier version closed it on its connector's word alone, and the store has nothing for it: it waits again.
    /// Answers whether that is so.
    pub fn reopen_unconfirmed(&mut self) -> bool {
        let is_meant = self.state == GapState::Recovered && self.confirmed_by.is_none();
        if is_meant {
            self.begin_anew();
            self.not_before = None;
        }
        is_meant
    }

    /// The owner does without it, and says why. Of one that is ignored already, the note is another one then. Answers
    /// whether it is so: what is here cannot be done without.
    pub fn ignore(&mut self, note: Note, now: WallTime) -> bool {
        let (at, held) = match &self.state {
            GapState::Recovered => return false,
            GapState::Pending | GapState::Terminal { .. } => (now, None),
            GapState::InProgress { lease } => (now, Some(lease.clone())),
            GapState::Ignored { at, held, .. } => (*at, held.clone()),
        };
        self.state = GapState::Ignored { note, at, held };
        true
    }

    /// The owner wants it after all: it waits for the next run, however often it was tried before. Answers whether it
    /// was ignored.
    pub fn take_back(&mut self) -> bool {
        let GapState::Ignored { held, .. } = &self.state else { return false };
        let held = held.clone();
        self.begin_anew();
        // Whoever said when to come back said it about a try that nobody wanted.
        self.not_before = None;
        // The run that was handed it works on it still, and may settle it.
        if let Some(lease) = held {
            self.state = GapState::InProgress { lease };
        }
        true
    }

    fn begin_anew(&mut self) {
        (self.state, self.attempts, self.counted_under) = (GapState::Pending, 0, None);
    }

    /// A run no longer works on it. What its owner does without stays so.
    fn put_down(&mut self, limits: AttemptLimits) {
        match &mut self.state {
            GapState::Ignored { held, .. } => *held = None,
            GapState::Pending | GapState::InProgress { .. } | GapState::Recovered | GapState::Terminal { .. } => {
                self.state = self.resting_state(limits);
            }
        }
    }

    /// Whether something is still missing: everything but recovered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != GapState::Recovered
    }

    /// By what gaps are ordered, the smallest first: each attempt puts a gap one day further back. So
    /// few attempts come first, age makes up for attempts, and none waits for ever. It changes only
    /// with the gap and not with the clock, so a store can keep it in an index.
    #[must_use]
    pub fn order(&self) -> WallTime {
        self.since + AGE_STEP.saturating_mul(self.attempts)
    }

    fn is_held_by(&self, lease: &LeaseId) -> bool {
        match &self.state {
            GapState::InProgress { lease: holder } | GapState::Ignored { held: Some(holder), .. } => holder == lease,
            GapState::Pending
            | GapState::Recovered
            | GapState::Terminal { .. }
            | GapState::Ignored { held: None, .. } => false,
        }
    }

    fn count_attempt(&mut self, lease: &LeaseId) {
        if self.counted_under.as_ref() != Some(lease) {
            self.attempts = self.attempts.saturating_add(1);
            self.counted_under = Some(lease.clone());
        }
    }

    fn resting_state(&self, limits: AttemptLimits) -> GapState {
        match self.cause.permanent_reason() {
            Some(reason) if self.attempts >= limits.terminal_after => GapState::Terminal { reason },
            Some(_) | None => GapState::Pending,
        }
    }
}

/// When a gap may be tried again, where its connector says so: told by a provider, so not believed
/// without a bound.
fn not_before(gap: &DetailGap, now: WallTime) -> Option<WallTime> {
    let told = gap.not_before.as_deref().and_then(Instant::parse)?;
    Some(told.to_wall_time().min(now + NOT_BEFORE_MAX))
}

/// The longest wait of a gap that is believed: a month, after which trying once costs nothing.
pub const NOT_BEFORE_MAX: Duration = Duration::from_secs(30 * 86_400);

/// The wait after the first try that failed: a provider that restarts is back by then.
const RETRY_BASE: Duration = Duration::from_secs(60);
/// The longest wait between two tries. From the contract.
const RETRY_MAX: Duration = Duration::from_secs(86_400);
/// Doublings after which the wait is the longest: a minute becomes 34 hours.
const RETRY_DOUBLINGS_MAX: u32 = 11;

/// One day of waiting makes up for one attempt, and a gap that always fails is tried once a day: so it is never overtaken
/// for good, whatever new gaps come.
const AGE_STEP: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::{ErrorClass, PressureReason};

    const LIMITS: AttemptLimits = AttemptLimits { terminal_after: 5 };
    const DAY: u64 = 86_400_000;
    const SETTLED: Recovery = Recovery::Settled(Confirmation::Record);

    fn lease(n: u32) -> LeaseId {
        LeaseId::new(n.to_string())
    }

    fn at(millis: u64) -> WallTime {
        WallTime::from_unix_millis(millis)
    }

    fn gap(reason: GapReason) -> DetailGap {
        let record_key = Some(GapKey::Text("k".to_owned()));
        DetailGap { stream: "details".to_owned(), record_key, reason: Some(reason), ..DetailGap::default() }
    }

    fn absent(reason: AbsenceReason) -> DetailGap {
        gap(GapReason::Absence(reason))
    }

    fn run_cap() -> DetailGap {
        let last_error = Some(LastError::of_class(ErrorClass::RunCapDeferred));
        DetailGap { last_error, ..absent(AbsenceReason::RetryExhausted) }
    }

    /// A gap that run 0 found and run 1 holds.
    fn held() -> Gap {
        let mut gap = Gap::open(&absent(AbsenceReason::TemporaryUnavailable), &lease(0), at(0));
        assert!(gap.lease(&lease(1), at(0)));
        gap
    }

    /// Defers it again in one run after the other, and counts the runs until it is given up.
    fn runs_until_given_up(again: &DetailGap) -> Option<(u32, AbsenceReason)> {
        let mut gap = Gap::open(again, &lease(0), at(0));
        for run in 1..=30 {
            // Further apart than any wait between two tries.
            let now = at(u64::from(run) * 2 * DAY);
            assert!(gap.lease(&lease(run), now), "run {run}");
            gap.attempt(&lease(run));
            gap.defer(again, &lease(run), LIMITS, now);
            if let GapState::Terminal { reason } = gap.state {
                return Some((run, reason));
            }
        }
        None
    }

    #[test]
    fn a_recovered_for_a_gap_that_the_same_run_deferred_again_does_not_settle_it() {
        let mut gap = held();
        gap.defer(&run_cap(), &lease(1), LIMITS, at(0));
        assert_eq!(gap.recover(&lease(1), Evidence::Record), Recovery::DeferredAgain);
        assert_eq!(gap.state, GapState::Pending);
    }

    #[test]
    fn a_gap_that_comes_up_again_after_it_was_recovered_is_open_again() {
        let mut gap = held();
        assert_eq!(gap.recover(&lease(1), Evidence::Record), SETTLED);
        assert!(!gap.is_open());
        gap.defer(&run_cap(), &lease(1), LIMITS, at(0));
        assert_eq!(gap.state, GapState::Pending);
    }

    #[test]
    fn a_gap_that_is_missing_again_in_a_later_run_begins_anew() {
        let mut gap = held();
        gap.attempts = 4;
        gap.recover(&lease(1), Evidence::Record);
        gap.defer(&absent(AbsenceReason::NotFound), &lease(2), LIMITS, at(9));
        assert_eq!((gap.attempts, gap.since, gap.state), (0, at(9), GapState::Pending));
    }

    #[test]
    fn only_the_run_that_holds_a_gap_settles_it() {
        let mut gap = held();
        assert_eq!(gap.recover(&lease(2), Evidence::Record), Recovery::NotHeld);
        assert_eq!(gap.recover(&lease(1), Evidence::Record), SETTLED);
        assert_eq!(gap.recover(&lease(1), Evidence::Record), Recovery::SettledBefore, "once");
    }

    #[test]
    fn a_gap_put_back_by_its_id_alone_keeps_what_is_known_of_it() {
        let locator = Some(RawJson::new(r#"{"w":1.0}"#).unwrap());
        let found = DetailGap { detail_locator: locator.clone(), ..run_cap() };
        let mut gap = Gap::open(&found, &lease(0), at(0));
        gap.lease(&lease(1), at(0));
        gap.defer(&DetailGap::default(), &lease(1), LIMITS, at(0));
        assert_eq!((&gap.locator, gap.cause.run_cap), (&locator, true));
        let moved = Some(RawJson::new(r#"{"w":2.0}"#).unwrap());
        gap.defer(&DetailGap { detail_locator: moved.clone(), ..run_cap() }, &lease(1), LIMITS, at(0));
        assert_eq!(gap.locator, moved, "a backlog is rewritten with its new watermark");
    }

    #[test]
    fn attempts_count_once_per_lease() {
        let mut gap = held();
        gap.attempt(&lease(1));
        gap.attempt(&lease(1));
        gap.attempt(&lease(2));
        gap.defer(&absent(AbsenceReason::TemporaryUnavailable), &lease(1), LIMITS, at(0));
        assert_eq!(gap.attempts, 1);
    }

    #[test]
    fn a_planned_stop_without_a_try_counts_nothing() {
        let mut gap = held();
        gap.defer(&run_cap(), &lease(1), LIMITS, at(0));
        assert_eq!(gap.attempts, 0);
    }

    #[test]
    fn permanent_causes_are_given_up_after_the_policys_attempts() {
        use AbsenceReason::{AuthFailure, Gone, NotFound, PermanentForbidden};
        for reason in [AuthFailure, Gone, NotFound, PermanentForbidden] {
            assert_eq!(runs_until_given_up(&absent(reason)), Some((5, reason)));
        }
        let raw = RawJson::new("{}").unwrap();
        let status = Some(LastError { class: "http".to_owned(), http_status: Some(404), raw });
        let by_status = DetailGap { last_error: status, ..absent(AbsenceReason::RetryExhausted) };
        assert_eq!(runs_until_given_up(&by_status), Some((5, NotFound)));
    }

    /// Point 7 of issue 18: after eight tries such a gap was given up for good.
    #[test]
    fn a_cause_that_may_pass_is_never_given_up() {
        use AbsenceReason::{OutOfScope, RetryExhausted, TemporaryUnavailable, Unaccounted, UserDisabled};
        let status = |status| {
            let raw = RawJson::new("{}").unwrap();
            let last_error = Some(LastError { class: "http".to_owned(), http_status: Some(status), raw });
            DetailGap { last_error, ..absent(RetryExhausted) }
        };
        let unnamed = DetailGap { reason: None, ..absent(TemporaryUnavailable) };
        let pressure = gap(GapReason::Pressure(PressureReason::RateLimited));
        let absences = [TemporaryUnavailable, RetryExhausted, Unaccounted, OutOfScope, UserDisabled].map(absent);
        let all =
            absences.into_iter().chain([run_cap(), pressure, unnamed]).chain([500, 502, 503, 504, 408].map(status));
        for again in all {
            assert_eq!(runs_until_given_up(&again), None, "{again:?}");
        }
    }

    #[test]
    fn the_time_between_two_tries_doubles_up_to_a_day() {
        const MINUTE: u64 = 60_000;
        let again = absent(AbsenceReason::TemporaryUnavailable);
        let mut gap = Gap::open(&again, &lease(0), at(0));
        assert_eq!(gap.not_before, None, "the next run tries it for the first time");
        let mut now = 0;
        for run in 1..40_u32 {
            assert!(gap.lease(&lease(run), at(now)), "run {run}");
            // Half of them end without a word about it.
            if run % 2 == 0 {
                gap.attempt(&lease(run));
                gap.release(&lease(run), LIMITS, at(now));
            } else {
                gap.defer(&again, &lease(run), LIMITS, at(now));
            }
            let wait = MINUTE.saturating_mul(1 << (run - 1).min(20)).min(DAY);
            assert_eq!((gap.attempts, gap.not_before), (run, Some(at(now + wait))));
            // Being reported as missing once more, by a run that was not handed it, puts nothing off.
            gap.defer(&again, &lease(1000 + run), LIMITS, at(now + wait / 2));
            assert_eq!((gap.attempts, gap.not_before), (run, Some(at(now + wait))));
            assert!(!gap.is_due(&lease(run + 1), at(now + wait - 1)));
            now += wait;
        }
        gap.lease(&lease(50), at(now));
        gap.release(&lease(50), LIMITS, at(now));
        assert!(gap.is_due(&lease(51), at(now)), "one that was handed out and not tried waits for nothing");
        gap.lease(&lease(51), at(now));
        let told = DetailGap { not_before: Some("1971-01-01".to_owned()), ..again };
        gap.defer(&told, &lease(51), LIMITS, at(now));
        assert_eq!(gap.not_before, Some(at(now + 30 * DAY)), "the provider's word counts where it is later");
    }

    #[test]
    fn the_owner_can_ask_for_another_try() {
        let mut gap = held();
        gap.reopen();
        assert!(matches!(gap.state, GapState::InProgress { .. }), "not while a run holds it");
        gap.state = GapState::Terminal { reason: AbsenceReason::Quarantined };
        gap.attempts = 8;
        gap.reopen();
        assert_eq!((gap.state, gap.attempts), (GapState::Pending, 0));
    }

    #[test]
    fn a_gap_is_closed_only_with_something_in_the_store_and_a_false_word_counts_as_an_attempt() {
        let mut gap = held();
        assert_eq!(gap.recover(&lease(1), Evidence::Nothing), Recovery::Unconfirmed);
        assert_eq!(gap.recover(&lease(1), Evidence::Nothing), Recovery::Unconfirmed);
        assert!(gap.is_open() && gap.attempts == 1 && gap.confirmed_by.is_none(), "once per lease");
        let cases = [
            (Evidence::Record, Confirmation::Record),
            (Evidence::OtherStream, Confirmation::Empty),
            (Evidence::List, Confirmation::List),
        ];
        for (evidence, by) in cases {
            let mut gap = held();
            assert_eq!(gap.recover(&lease(2), evidence), Recovery::NotHeld);
            assert_eq!(gap.recover(&lease(1), evidence), Recovery::Settled(by));
            assert_eq!((gap.confirmed_by, Confirmation::from_code(by.code())), (Some(by), Some(by)));
            gap.defer(&run_cap(), &lease(3), LIMITS, at(0));
            assert!(gap.is_open() && gap.confirmed_by.is_none(), "it is missing again");
        }
    }

    #[test]
    fn only_a_gap_that_was_closed_without_any_proof_is_opened_again_by_a_repair() {
        let mut gap = held();
        assert!(!gap.reopen_unconfirmed(), "it is open");
        gap.recover(&lease(1), Evidence::Record);
        assert!(!gap.reopen_unconfirmed() && !gap.is_open(), "its record is here");
        gap.confirmed_by = None;
        assert!(gap.reopen_unconfirmed() && gap.lease(&lease(2), at(0)), "as an earlier version closed it");
        assert_eq!(gap.attempts, 0);
    }

    #[test]
    fn what_came_of_each_word_is_counted_once() {
        let mut counted = GapsConfirmed::default();
        let settled = [Confirmation::Record, Confirmation::Empty, Confirmation::List].map(Recovery::Settled);
        let open = [Recovery::Unconfirmed, Recovery::DeferredAgain, Recovery::NotHeld, Recovery::SettledBefore];
        settled.into_iter().chain(open).for_each(|recovery| counted.count(recovery));
        let expected =
            GapsConfirmed { by_record: 1, empty: 1, unconfirmed: 3, lists: 1, list_records: 0, list_gaps: 0 };
        assert_eq!((counted, counted.closed()), (expected, 3));
        counted.add(expected);
        assert_eq!(counted.closed(), 6);
    }

    fn note(text: &str) -> Note {
        Note::new(text).unwrap()
    }

    fn ignored(text: &str, at: WallTime, held: Option<LeaseId>) -> GapState {
        GapState::Ignored { note: note(text), at, held }
    }

    #[test]
    fn what_its_owner_ignores_stays_so_whatever_its_connector_says_and_is_served_to_nobody() {
        let mut gap = Gap::open(&absent(AbsenceReason::NotFound), &lease(0), at(0));
        assert!(gap.ignore(note("spam"), at(5)));
        for run in 1..=9 {
            assert!(!gap.lease(&lease(run), at(10)), "run {run}");
            gap.defer(&absent(AbsenceReason::TemporaryUnavailable), &lease(run), LIMITS, at(10));
            gap.release(&lease(run), LIMITS, at(0));
            assert_eq!(gap.recover(&lease(run), Evidence::Record), Recovery::DeferredAgain);
            assert_eq!(gap.state, ignored("spam", at(5), None));
        }
        assert_eq!(gap.attempts, 0);
        assert_eq!(
            gap.cause.reason,
            Some(GapReason::Absence(AbsenceReason::TemporaryUnavailable)),
            "what is known now"
        );
        assert!(gap.is_open(), "it is missing all the same");
        gap.reopen();
        assert_eq!(gap.state, ignored("spam", at(5), None), "a new version of the connector does not take it back");
    }

    #[test]
    fn what_a_run_was_at_work_on_when_it_was_ignored_is_closed_if_it_comes() {
        let mut gap = held();
        assert!(gap.ignore(note("spam"), at(5)));
        assert_eq!(gap.recover(&lease(2), Evidence::Record), Recovery::NotHeld);
        assert_eq!(gap.recover(&lease(1), Evidence::Record), SETTLED);
        assert!(!gap.is_open() && !gap.ignore(note("late"), at(6)), "what is here cannot be ignored");
        let mut gap = held();
        gap.ignore(note("spam"), at(5));
        gap.release(&lease(1), LIMITS, at(0));
        assert_eq!(gap.state, ignored("spam", at(5), None));
        assert_eq!(gap.recover(&lease(1), Evidence::Record), Recovery::NotHeld, "that run is over");
    }

    #[test]
    fn an_ignored_gap_can_be_taken_back_and_a_second_note_takes_the_place_of_the_first() {
        let mut gap = held();
        assert!(!gap.take_back(), "it was not ignored");
        gap.state = GapState::Terminal { reason: AbsenceReason::Quarantined };
        gap.attempts = 8;
        assert!(gap.ignore(note("first"), at(5)) && gap.ignore(note("second"), at(9)));
        assert_eq!(gap.state, ignored("second", at(5), None));
        gap.not_before = Some(at(100));
        assert!(gap.take_back());
        assert_eq!((&gap.state, gap.attempts), (&GapState::Pending, 0));
        assert!(gap.lease(&lease(2), at(9)), "the next run tries it, whatever was said about when");
        let mut gap = held();
        assert!(gap.ignore(note("spam"), at(5)) && gap.take_back());
        assert_eq!(gap.recover(&lease(1), Evidence::Record), SETTLED, "who works on it still may settle it");
    }

    #[test]
    fn leftovers_wait_again_at_the_end_of_the_run() {
        let mut gap = held();
        gap.release(&lease(2), LIMITS, at(0));
        assert_eq!(gap.state, GapState::InProgress { lease: lease(1) });
        gap.release(&lease(1), LIMITS, at(0));
        assert!(gap.is_due(&lease(1), at(0)), "it was not deferred, so the same run may take it up again");
    }

    #[test]
    fn a_gap_is_due_after_its_time_and_never_for_the_run_that_deferred_it() {
        let mut gap = Gap::open(&run_cap(), &lease(1), at(0));
        gap.not_before = Some(at(100));
        assert!(!gap.is_due(&lease(2), at(99)));
        assert!(gap.is_due(&lease(2), at(100)));
        assert!(!gap.is_due(&lease(1), at(100)));
        assert!(!gap.lease(&lease(1), at(100)));
    }

    #[test]
    fn what_a_budget_left_is_a_planned_stop_and_no_pressure() {
        let gap = rest_of_run("trips", Some(RawJson::new("{\"page\":3}").unwrap()));
        assert!(gap.is_run_cap_deferral());
        let cause = GapCause::of(&gap);
        assert_eq!((cause.reason.map(GapReason::code), cause.http_status), (Some("retry_exhausted"), None));
        let mut gap = Gap::open(&gap, &lease(1), at(0));
        assert!(gap.is_open());
        gap.settle_rest();
        assert!(!gap.is_open());
    }

    #[test]
    fn a_gap_is_not_tried_before_the_time_that_its_connector_names() {
        let told = |time: &str| DetailGap { not_before: Some(time.to_owned()), ..run_cap() };
        let mut gap = Gap::open(&told("1970-01-01T00:00:10Z"), &lease(1), at(0));
        assert_eq!(gap.not_before, Some(at(10_000)));
        for (time, expected) in [("soon", None), ("1969-01-01", Some(at(0))), ("2999-01-01", Some(at(30 * DAY)))] {
            gap.defer(&told(time), &lease(1), LIMITS, at(0));
            assert_eq!(gap.not_before, expected, "{time}");
        }
        gap.defer(&run_cap(), &lease(1), LIMITS, at(0));
        assert_eq!(gap.not_before, None, "what is not said again no longer holds");
    }

    #[test]
    fn few_attempts_go_first_and_age_makes_up_for_attempts() {
        let tried = |attempts, since| Gap { attempts, since: at(since), ..held() };
        assert!(tried(0, 2 * DAY).order() < tried(3, 0).order());
        assert!(tried(3, 0).order() < tried(0, 3 * DAY + 1).order(), "after three days it is first");
    }

    #[test]
    fn identity_is_key_or_locator_within_connection_grant_stream_and_parent() {
        let by_key = |key| DetailGap { record_key: Some(key), ..DetailGap::default() };
        let of = |gap: &DetailGap| GapIdentity::of("c", "g", gap);
        let seven = of(&by_key(GapKey::Text("7".to_owned())));
        assert_eq!(seven, of(&by_key(GapKey::Number("7".to_owned()))));
        assert_eq!(seven.subject, "key:7");
        let locator = Some(RawJson::new(r#"{ "w":1.0 }"#).unwrap());
        let located = DetailGap { detail_locator: locator.clone(), ..DetailGap::default() };
        assert_eq!(of(&located).subject, r#"loc:{ "w":1.0 }"#, "byte for byte");
        let both = DetailGap { detail_locator: locator, ..by_key(GapKey::Text("7".to_owned())) };
        assert_eq!(of(&both), seven, "a key says more than a place");
        assert_ne!(GapIdentity::of("c", "g2", &both), seven);
        let parent_stream = Some("trips".to_owned());
        assert_ne!(of(&DetailGap { parent_stream, ..both }), seven);
    }

    #[test]
    fn the_policy_sets_the_attempts_of_permanent_causes() {
        assert_eq!(AttemptLimits::of(None), LIMITS);
    }
}

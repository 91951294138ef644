//! What a gap may become, written a second time from the contract and not from the engine.

use super::lines::Cause;

/// Stream, parent and `key:` or `loc:` subject.
pub(crate) type GapName = (String, Option<String>, String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    Held(String),
    Recovered,
    Terminal(&'static str),
    /// By its owner, with a note; a run may still hold it.
    Ignored(String, Option<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct ModelGap {
    pub(crate) state: State,
    pub(crate) attempts: u32,
    pub(crate) cause: Cause,
    pub(crate) locator: Option<String>,
    pub(crate) confirmed_by: Option<&'static str>,
    counted_by: Option<String>,
    deferred_by: String,
    /// In milliseconds, like every time here.
    not_before: Option<u64>,
}

const MINUTE: u64 = 60_000;
const DAY: u64 = 1440 * MINUTE;

impl ModelGap {
    /// Whether it is no single record.
    pub(crate) fn stands_for_many(&self, name: &GapName) -> bool {
        let is_part = self.locator.as_deref().is_some_and(|locator| locator.contains("watermark"));
        is_part || !name.2.starts_with("key:") || name.2.starts_with("key:gleaner:")
    }

    pub(crate) fn open(cause: Cause, locator: Option<String>, run: &str) -> Self {
        let (confirmed_by, counted_by, deferred_by) = (None, None, run.to_owned());
        let not_before = None;
        Self { state: State::Pending, attempts: 0, cause, locator, confirmed_by, counted_by, deferred_by, not_before }
    }

    pub(crate) fn is_due_for(&self, run: &str, now: u64) -> bool {
        // A time that no wait leads to comes from a calendar that was set back.
        let is_time = self.not_before.is_none_or(|time| time <= now || time > now + 30 * DAY);
        self.state == State::Pending && self.deferred_by != run && is_time
    }

    /// After a try that failed it waits a minute, then twice as long each time, and at most a day.
    fn wait(&mut self, run: &str, now: u64) {
        self.not_before = if self.patience().is_some() || self.cause.is_nobodys_fault() || self.attempts == 0 {
            None
        } else if self.counted_by.as_deref() == Some(run) {
            let wait = (1..self.attempts).fold(MINUTE, |wait, _| (2 * wait).min(DAY));
            Some(now + wait)
        } else {
            self.not_before.map(|time| time.min(now + DAY))
        };
    }

    pub(crate) fn is_held_by(&self, run: &str) -> bool {
        matches!(&self.state, State::Held(by) | State::Ignored(_, Some(by)) if by == run)
    }

    pub(crate) fn attempt(&mut self, run: &str) {
        if self.is_held_by(run) && self.counted_by.as_deref() != Some(run) {
            self.attempts += 1;
            self.counted_by = Some(run.to_owned());
        }
    }

    pub(crate) fn defer(&mut self, cause: Cause, locator: Option<String>, run: &str, now: u64) {
        if self.state == State::Recovered && self.counted_by.as_deref() != Some(run) {
            (self.attempts, self.counted_by) = (0, None);
        }
        if !cause.run_cap {
            self.attempt(run);
        }
        self.cause = cause;
        if locator.is_some() {
            self.locator = locator;
        }
        run.clone_into(&mut self.deferred_by);
        self.confirmed_by = None;
        self.wait(run, now);
        self.lay_down();
    }

    /// The owner does without it. Answers whether that is possible.
    pub(crate) fn ignore(&mut self, note: &str) -> bool {
        let held = match &self.state {
            State::Recovered => return false,
            State::Held(by) => Some(by.clone()),
            State::Ignored(_, held) => held.clone(),
            State::Pending | State::Terminal(_) => None,
        };
        self.state = State::Ignored(note.to_owned(), held);
        true
    }

    /// The owner wants it after all. Answers whether they did without it.
    pub(crate) fn take_back(&mut self) -> bool {
        let State::Ignored(_, held) = &self.state else { return false };
        let state = held.clone().map_or(State::Pending, State::Held);
        (self.state, self.attempts, self.counted_by, self.not_before) = (state, 0, None, None);
        true
    }

    /// Answers whether that closed it: only with what came for it.
    pub(crate) fn recover(&mut self, run: &str, came: Option<&'static str>) -> bool {
        if !self.is_held_by(run) {
            return false;
        }
        self.confirmed_by = came;
        match came {
            Some(_) => self.state = State::Recovered,
            None => self.attempt(run),
        }
        came.is_some()
    }

    pub(crate) fn release(&mut self, now: u64) {
        let (State::Held(by) | State::Ignored(_, Some(by))) = self.state.clone() else { return };
        let before = self.not_before;
        self.wait(&by, now);
        self.not_before = self.not_before.max(before);
        self.lay_down();
    }

    fn lay_down(&mut self) {
        self.state = match &self.state {
            State::Ignored(note, _) => State::Ignored(note.clone(), None),
            _ => self.at_rest(),
        };
    }

    fn at_rest(&self) -> State {
        match self.patience() {
            Some((after, reason)) if self.attempts >= after => State::Terminal(reason),
            _ => State::Pending,
        }
    }

    /// After how many tries it is given up, and as what. What may pass never is.
    fn patience(&self) -> Option<(u32, &'static str)> {
        match (self.cause.reason, self.cause.status) {
            _ if self.cause.is_pressure() => None,
            (reason @ ("auth_failure" | "gone" | "not_found" | "permanent_forbidden"), _) => Some((2, reason)),
            (_, Some(401)) => Some((2, "auth_failure")),
            (_, Some(404)) => Some((2, "not_found")),
            (_, Some(410)) => Some((2, "gone")),
            _ => None,
        }
    }
}

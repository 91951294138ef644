//! Streams that go forward page by page: one slice per page.
//!
//! A page is fetched, its records are sent, then its cursor with the word that the slice is whole. The
//! budget is asked before each page and never inside of one. When it is used up, one gap stands for the
//! rest of the stream, with the last cursor that was sent; it is closed by the run that reaches the end.
//! An open circuit is waited for while the budget allows.

pub(crate) mod page;

use crate::collect::Collect;
use crate::emit::{Cursor, Emitter};
use crate::fetch_error::{FetchError, FetchErrorKind, last_error, run_cap};
use crate::pages::page::Page;
use crate::stop::Stop;
use gleaner_protocol::{DeferReason, DetailGap, ErrorClass, GapKey, GapReason, RawJson, ServedGap};
use serde_json::Value;
use std::time::Duration;

/// The key of the gap that stands for the rest of a stream. No record has it: names of records with this
/// prefix are ours.
pub const REST_OF_STREAM: &str = "gleaner:rest-of-stream";

/// Pages of one stream in one run. At one request per second this is eleven days; who gets there is in a ring.
const PAGES_MAX: u64 = 1_000_000;
/// How often an open circuit is waited for without any page in between: a provider that is down for
/// longer is left to the next run.
const CIRCUIT_WAITS_MAX: u32 = 5;
/// How long it is waited for where it is not told: as long as a circuit stays open.
pub(crate) const CIRCUIT_WAIT: Duration = Duration::from_secs(60);

/// How a stream was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stream that is not finished has more"]
pub enum Left {
    /// There is no more for now.
    Finished,
    /// The budget was used up before the end. A gap stands for the rest.
    Unfinished(DeferReason),
    /// Nothing was asked for of this stream in this run.
    NotAsked,
}

/// How a slice ended that its author sent.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a slice is returned to whoever asked for it"]
pub enum SliceEnd {
    /// There is more. Everything before this cursor was sent.
    Then(Cursor),
    /// There is no more for now. The next run begins at this cursor.
    Last(Cursor),
}

impl<'r> Collect<'r> {
    /// Collects a stream slice after slice, for authors who send what they find themselves: records of several streams,
    /// tombstones, gaps, skips. The budget is asked before each slice, and the cursor is sent after it.
    ///
    /// # Errors
    ///
    /// What the author's function ended with, unless it is the run's own budget.
    pub fn slices(
        &mut self,
        stream: &str,
        mut next: impl FnMut(&mut Emitter<'r>) -> Result<SliceEnd, Stop>,
    ) -> Result<Left, Stop> {
        let Some(rest) = self.begin(stream)? else { return Ok(Left::NotAsked) };
        for _ in 0..PAGES_MAX {
            let sent = self.budget.take_list(self.clock.now()).map_err(Stop::Deferred);
            match sent.and_then(|()| next(&mut self.emitter)) {
                Ok(SliceEnd::Then(cursor)) => self.send_cursor(stream, &cursor)?,
                Ok(SliceEnd::Last(cursor)) => {
                    if let Some(gap) = &rest {
                        self.emitter.recovered(gap)?;
                    }
                    self.send_cursor(stream, &cursor)?;
                    self.finished(stream);
                    return Ok(Left::Finished);
                }
                Err(Stop::Deferred(reason)) => {
                    let at = self.emitter.last_cursor(stream).cloned();
                    return self.leave_rest(stream, at.as_ref(), reason);
                }
                Err(other) => return Err(other),
            }
        }
        Err(Stop::failed(format!("stream {stream:?} does not end: {PAGES_MAX} slices")))
    }

    /// The emitter keeps the last cursor; ours is dropped, because it may be large.
    fn send_cursor(&mut self, stream: &str, cursor: &Cursor) -> Result<(), Stop> {
        self.cursors.remove(stream);
        self.emitter.slice(stream, cursor)?;
        self.report_rate_now_and_then()
    }

    /// The gaps that earlier runs left in a stream, but for the one that stands for its rest: for authors who write
    /// gaps of their own. Each is either written again or said to be recovered.
    ///
    /// # Errors
    ///
    /// When nobody reads any more, or the answer cannot be read.
    pub fn take_gaps(&mut self, stream: &str) -> Result<Vec<ServedGap>, Stop> {
        let mut gaps = Vec::new();
        loop {
            let page = self.gaps.next_page(&mut self.emitter, stream)?;
            if page.is_empty() {
                break;
            }
            gaps.extend(page);
        }
        let rest = gaps.extract_if(.., |gap| is_rest(gap)).collect();
        self.gaps.put_back(rest);
        Ok(gaps)
    }
}

impl Collect<'_> {
    /// Collects a stream page after page, from the cursor that the last run left.
    ///
    /// # Errors
    ///
    /// What the author's function failed with, unless it is the run's own budget.
    pub fn pages(
        &mut self,
        stream: &str,
        mut fetch: impl FnMut(Option<&Cursor>) -> Result<Page, FetchError>,
    ) -> Result<Left, Stop> {
        let Some(rest) = self.begin(stream)? else { return Ok(Left::NotAsked) };
        let mut at = self.cursor(stream).cloned();
        for _ in 0..PAGES_MAX {
            let page = match self.fetch_page(&mut || fetch(at.as_ref()))? {
                Ok(page) => page,
                Err(reason) => return self.leave_rest(stream, at.as_ref(), reason),
            };
            let (next, is_last) = (page.cursor.clone(), page.is_last);
            if !is_last && next == at {
                return Err(Stop::failed(format!(
                    "the list of stream {stream:?} does not go on: two pages have one cursor"
                )));
            }
            page.send(&mut self.emitter, stream)?;
            if is_last && let Some(gap) = &rest {
                self.emitter.recovered(gap)?;
            }
            if let Some(next) = next {
                self.slice(stream, &next)?;
                at = Some(next);
            }
            if is_last {
                self.finished(stream);
                return Ok(Left::Finished);
            }
        }
        Err(Stop::failed(format!("the list of stream {stream:?} does not end: {PAGES_MAX} pages")))
    }

    /// One page, or the planned stop that came before it.
    fn fetch_page(
        &mut self,
        fetch: &mut dyn FnMut() -> Result<Page, FetchError>,
    ) -> Result<Result<Page, DeferReason>, Stop> {
        for _ in 0..=CIRCUIT_WAITS_MAX {
            if let Err(reason) = self.budget.take_list(self.clock.now()) {
                return Ok(Err(reason));
            }
            let error = match fetch() {
                Ok(page) => return Ok(Ok(page)),
                Err(error) => error,
            };
            if let Some(reason) = error.exhausted() {
                self.budget.end(reason);
                return Ok(Err(reason));
            }
            if error.kind != FetchErrorKind::CircuitOpen {
                return Err(error.into());
            }
            let wait = error.retry_in.unwrap_or(CIRCUIT_WAIT);
            self.report_rate()?;
            if !self.pause(wait) {
                return Ok(Err(DeferReason::WallClock));
            }
        }
        Ok(Err(DeferReason::CircuitOpen))
    }

    /// The gap that an earlier run left for the rest of a stream; `None` when this run collects nothing of the stream.
    fn begin(&mut self, stream: &str) -> Result<Option<Option<ServedGap>>, Stop> {
        if !self.emitter.wants_stream(stream) {
            return Ok(None);
        }
        let rest = self.rest_of_stream(stream)?;
        Ok((!self.recovery_only || rest.is_some()).then_some(rest))
    }

    /// The gap that an earlier run left for the rest of this stream, if there is one.
    pub(crate) fn rest_of_stream(&mut self, stream: &str) -> Result<Option<ServedGap>, Stop> {
        // A stream may also be that of a lane's details, whose gaps are not ours to keep.
        let mut others = Vec::new();
        let mut rest = None;
        while rest.is_none() {
            let mut page = self.gaps.next_page(&mut self.emitter, stream)?;
            if page.is_empty() {
                break;
            }
            rest = page.extract_if(.., |gap| is_rest(gap)).next();
            others.extend(page);
        }
        self.gaps.put_back(others);
        Ok(rest)
    }

    pub(crate) fn leave_rest(&mut self, stream: &str, at: Option<&Cursor>, reason: DeferReason) -> Result<Left, Stop> {
        self.emitter.gap(rest_gap(stream, at, reason))?;
        self.finished(stream);
        Ok(Left::Unfinished(reason))
    }

    /// Writes down that nothing more of these streams was collected. Those that are accounted for are left alone.
    pub(crate) fn leave_all(&mut self, reason: DeferReason) -> Result<(), Stop> {
        let streams = self.scope.iter().map(|asked| asked.name.clone()).collect::<Vec<_>>();
        for stream in streams {
            if !self.is_accounted_for(&stream) {
                let at = self.emitter.last_cursor(&stream).cloned();
                let _: Left = self.leave_rest(&stream, at.as_ref(), reason)?;
            }
        }
        Ok(())
    }
}

fn is_rest(gap: &ServedGap) -> bool {
    gap.record_key.as_ref().map(GapKey::as_str) == Some(REST_OF_STREAM)
}

/// The gap for everything of a stream after a cursor. Nothing failed, so there is no status.
fn rest_gap(stream: &str, at: Option<&Cursor>, reason: DeferReason) -> DetailGap {
    let cursor = at.map(|cursor| Value::Object(cursor.clone()).to_string());
    let error = match reason.error_class() {
        Some(ErrorClass::RunCapDeferred) => run_cap(),
        None => last_error(reason.code(), None),
    };
    DetailGap {
        stream: stream.to_owned(),
        record_key: Some(GapKey::Text(REST_OF_STREAM.to_owned())),
        reason: Some(GapReason::Absence(reason.gap_reason())),
        list_cursor: cursor.and_then(|text| RawJson::new(text).ok()),
        last_error: Some(error),
        ..DetailGap::default()
    }
}

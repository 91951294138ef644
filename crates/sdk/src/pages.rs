//! Streams that go forward page by page: one slice per page.
//!
//! A page is fetched, its records are sent, then its cursor, which completes the slice. The budget is checked before
//! each page and never within one. When it is used up, one gap represents the rest of the stream, with the last sent
//! cursor; the run that reaches the end closes it. An open circuit is waited for while the budget allows.

pub(crate) mod page;

use crate::collect::Collect;
use crate::emit::{Cursor, Emitter};
use crate::fetch_error::{FetchError, FetchErrorKind, last_error, run_cap};
use crate::pages::page::Page;
use crate::stop::Stop;
use gleaner_protocol::{DeferReason, DetailGap, ErrorClass, GapKey, GapReason, RawJson, ServedGap};
use serde_json::Value;
use std::time::Duration;

/// Record key of the gap for the rest of a stream. No record has it: keys with this prefix are reserved.
pub const REST_OF_STREAM: &str = "gleaner:rest-of-stream";

/// Maximum of pages of one stream in one run. At one request per second this is eleven days; more are a loop.
const PAGES_MAX: u64 = 1_000_000;
/// Waits for an open circuit without a page in between: a longer outage is left to the next run.
const CIRCUIT_WAITS_MAX: u32 = 5;
/// Length of that wait if unknown: a circuit stays open this long.
pub(crate) const CIRCUIT_WAIT: Duration = Duration::from_secs(60);

/// State in which a stream was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stream that is not finished has more"]
pub enum Left {
    /// There is no more for now.
    Finished,
    /// The budget was used up before the end. A gap represents the rest.
    Unfinished(DeferReason),
    /// Nothing of this stream is requested in this run.
    NotAsked,
}

/// End of a slice sent by its author.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a slice is returned to whoever asked for it"]
pub enum SliceEnd {
    /// More follows. Everything before this cursor was sent.
    Then(Cursor),
    /// No more for now. The next run starts at this cursor.
    Last(Cursor),
}

impl<'r> Collect<'r> {
    /// Collects a stream slice by slice, for authors who send records of several streams, tombstones, gaps and skips
    /// themselves. The budget is checked before each slice, and the cursor is sent after it.
    ///
    /// # Errors
    ///
    /// The error of the author's function, unless it is the run's own budget.
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

    /// The gaps of earlier runs in a stream, except the one for its rest: for authors who write their own gaps. Write
    /// each again or report it as recovered.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads, or its answer is invalid.
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
    /// Collects a stream page by page, from the cursor of the last run.
    ///
    /// # Errors
    ///
    /// The error of the author's function, unless it is the run's own budget.
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
                    "the list of stream {stream:?} makes no progress: two pages have the same cursor"
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

    /// One page, or the planned stop before it.
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

    /// The gap of an earlier run for the rest of a stream; `None` when this run collects nothing of the stream.
    fn begin(&mut self, stream: &str) -> Result<Option<Option<ServedGap>>, Stop> {
        if !self.emitter.wants_stream(stream) {
            return Ok(None);
        }
        let rest = self.rest_of_stream(stream)?;
        Ok((!self.recovery_only || rest.is_some()).then_some(rest))
    }

    /// The gap of an earlier run for the rest of this stream, if any.
    pub(crate) fn rest_of_stream(&mut self, stream: &str) -> Result<Option<ServedGap>, Stop> {
        // The stream may also have a lane's detail gaps, which belong to the lane.
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

    /// Writes gaps for streams that were not completed. Completed ones are skipped.
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

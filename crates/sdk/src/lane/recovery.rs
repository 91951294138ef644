//! Recovery of gaps from earlier runs, before anything new.
//!
//! Gaps come page by page until there are none (a page is transport and no cap, D11). Single records first, then the
//! backlog gap: it must be known before anything is added to it, because writing it without its old ranges would lose
//! them. When the budget is used up, single gaps stay as they are; the backlog still writes its next chunk.

use super::backlog::{BACKLOG_KEY, Backlog};
use super::ledger::Outcome;
use super::source::{Detail, Target};
use super::walk::{End, Walked};
use super::work::{NoPage, Work, ends_the_run, invalid};
use crate::emit::Emitted;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::pages::REST_OF_STREAM;
use crate::stop::Stop;
use gleaner_protocol::{DetailGap, ServedGap};

impl Work<'_, '_> {
    /// Recovers gaps. Returns why the list could not be read, if the backlog needed it.
    pub(super) fn recover(&mut self) -> Result<Option<NoPage>, Stop> {
        let config = self.config;
        if config.list_stream != config.detail_stream {
            self.rest = self.run.rest_of_stream(&config.list_stream)?;
        }
        let (mut backlog, mut others) = (None, Vec::new());
        loop {
            let page = self.run.gaps.next_page(&mut self.run.emitter, &config.detail_stream)?;
            if page.is_empty() {
                break;
            }
            let mut singles = Vec::new();
            for gap in page {
                match key_of(&gap) {
                    _ if !self.is_ours(&gap) => others.push(gap),
                    BACKLOG_KEY => backlog = Some(gap),
                    REST_OF_STREAM => self.rest = Some(gap),
                    _ => singles.push(gap),
                }
            }
            self.recover_singles(&singles)?;
            // Nothing more can be recovered, and the backlog is known.
            if self.is_exhausted() && backlog.is_some() {
                break;
            }
        }
        self.run.gaps.put_back(others);
        self.knows_backlog = backlog.is_some() || !self.run.gaps.is_cut_off;
        match backlog {
            Some(gap) => self.expand(&gap),
            None => {
                // Progress on a drained backlog is settled, unless the backlog is unknown.
                self.cursor.drain = self.cursor.drain.take().filter(|_| !self.knows_backlog);
                Ok(None)
            }
        }
    }

    /// A gap of another lane belongs to that lane.
    fn is_ours(&self, gap: &ServedGap) -> bool {
        let parent = gap.parent_stream.as_ref();
        gap.stream == self.config.detail_stream && parent.is_none_or(|parent| *parent == self.config.list_stream)
    }

    fn recover_singles(&mut self, gaps: &[ServedGap]) -> Result<(), Stop> {
        // A gap without a key cannot be requested; an unrequested one waits.
        let wanted = |gap: &&ServedGap| gap.record_key.as_ref().is_some_and(|key| self.wants(key.as_str()));
        let gaps = gaps.iter().filter(wanted).collect::<Vec<_>>();
        for window in gaps.chunks(self.config.concurrency) {
            let window = &window[..self.admit(window.len())];
            for gap in window {
                // Sent before the attempt: a record that kills the run each time is given up eventually.
                self.run.emitter.attempted(gap)?;
            }
            let target = |gap: &&ServedGap| Target { key: key_of(gap).to_owned(), locator: gap.detail_locator.clone() };
            let targets = window.iter().map(target).collect::<Vec<_>>();
            let mut gaps = window.iter();
            self.fetch(&targets, &mut |work, fetched| match gaps.next() {
                Some(gap) => work.recover_one(gap, fetched).map(|()| true),
                None => Ok(false),
            })?;
            if self.is_exhausted() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn recover_one(&mut self, gap: &ServedGap, fetched: Result<Detail, FetchError>) -> Result<(), Stop> {
        let error = match fetched {
            // The runtime closes a gap only with a record.
            Ok(detail) if detail.records.is_empty() => {
                FetchError::new(FetchErrorKind::NotFound, "the provider has nothing for it")
            }
            Ok(detail) => match self.send(detail)? {
                Emitted::Sent => {
                    self.ledger.note(key_of(gap), Outcome::Hydrated);
                    return self.run.emitter.recovered(gap);
                }
                // The owner does not request it now. Nothing was recovered.
                Emitted::OutOfScope => {
                    self.ledger.note(key_of(gap), Outcome::Skipped);
                    return Ok(());
                }
                Emitted::Rejected => invalid(),
            },
            // Our own budget ended before the request: it waits unchanged.
            Err(error) if ends_the_run(&error).is_some() => return Ok(()),
            Err(error) => self.unless_refused(error)?,
        };
        let again = DetailGap {
            parent_stream: gap.parent_stream.clone(),
            record_key: gap.record_key.clone(),
            gap_id: Some(gap.gap_id.clone()),
            lease_id: Some(gap.lease_id.clone()),
            ..self.gap(key_of(gap), &error)
        };
        self.say_gap(again)
    }

    /// Processes a backlog gap, newest first. The cursor stores the progress after each batch, so that a kill repeats
    /// one batch; the gap is written again only when something remains, because a rewritten gap cannot be closed in
    /// the same run.
    fn expand(&mut self, gap: &ServedGap) -> Result<Option<NoPage>, Stop> {
        let (id, written) = Backlog::read(gap.detail_locator.as_ref());
        let mut todo = self.cursor.left_of(&id, written);
        // Ranges outside the current request are kept for later.
        let mut kept = Backlog::default();
        let mut stopped = None;
        let (mut is_tail, mut is_worked_on) = (false, false);
        let until = self.config.until.clone();
        while let Some(range) = todo.take_newest() {
            let (inside, outside) = range.within(self.config.since.as_ref(), until.as_ref());
            outside.into_iter().for_each(|range| kept.add(range, None));
            let Some(range) = inside else { continue };
            is_worked_on = true;
            let rest = joined(&todo, &kept);
            let Walked { end, .. } = self.walk(range, until.as_ref(), &mut |work, left, _| {
                work.cursor.drained_to(&id, &rest, Some(left.clone()));
                work.commit()
            })?;
            match end {
                End::Floor => {}
                End::Tail(left, remaining) => {
                    todo.add(left, remaining);
                    is_tail = true;
                    break;
                }
                End::NoPage(left, no_page) => {
                    todo.add(left, None);
                    stopped = Some(no_page);
                    break;
                }
            }
        }
        self.backlog = joined(&todo, &kept);
        if self.backlog.is_empty() {
            self.cursor.drain = None;
            self.run.emitter.recovered(gap)?;
        } else if is_tail || (is_worked_on && !kept.is_empty()) {
            // Ranges outside belong to the other track, which does not see the progress on our cursor.
            self.say_backlog()?;
        } else if is_worked_on {
            let left = self.backlog.clone();
            self.cursor.drained_to(&id, &left, None);
        }
        self.commit()?;
        Ok(stopped)
    }
}

/// Merges two backlogs.
fn joined(a: &Backlog, b: &Backlog) -> Backlog {
    let mut both = a.clone();
    b.ranges.iter().for_each(|range| both.add(range.clone(), None));
    both
}

fn key_of(gap: &ServedGap) -> &str {
    gap.record_key.as_ref().map_or("", |key| key.as_str())
}

//! The forward pass: first an earlier run's unfinished walk, then new items.

use super::place::{Floor, Range};
use super::walk::{End, Walked};
use super::work::{NoPage, Work};
use crate::fetch_error::is_cap;
use crate::stop::Stop;

impl Work<'_, '_> {
    pub(super) fn forward(&mut self) -> Result<(), Stop> {
        if let Some(rest) = self.cursor.unfinished() {
            self.forward_range(rest, false)?;
        }
        // Items older than the requested range count as accounted for.
        let since = self.config.since.as_ref().map(Floor::under);
        let floor = self.cursor.floor().filter(|floor| since.as_ref().is_none_or(|since| since.at <= floor.at));
        self.forward_range(Range { from: None, to: floor.or(since) }, true)
    }

    /// A list that an earlier run could not begin to read has been read.
    fn settle_rest(&mut self) -> Result<(), Stop> {
        self.rest.take().map_or(Ok(()), |rest| self.run.emitter.recovered(&rest))
    }

    /// Walks down a range. A walk from the top of the list raises the cursor to it: the walk accounts for the range
    /// between, and the cursor names it until it is over.
    fn forward_range(&mut self, range: Range, from_top: bool) -> Result<(), Stop> {
        let floor = range.to.clone();
        let until = self.config.until.clone();
        let Walked { end, top } = self.walk(range, until.as_ref(), &mut |work, left, top| {
            work.walked(left, floor.clone(), top.filter(|_| from_top));
            work.commit()
        })?;
        let top = top.filter(|_| from_top);
        match end {
            End::Floor => {
                self.raise(top.as_ref());
                self.cursor.finish_walk();
                if from_top {
                    self.settle_rest()?;
                }
                self.commit_if_known()
            }
            End::Tail(left, remaining) if self.knows_backlog => self.fold(left, remaining, top.as_ref(), from_top),
            // Overwriting a backlog gap that was not served to us would lose its ranges. The cursor keeps the rest of
            // the walk instead.
            End::Tail(left, _) => {
                self.walked(&left, floor, top.as_ref());
                self.commit()?;
                Err(Stop::Deferred(self.reason()))
            }
            // A cap, and a part of the list is known: then the rest is known too.
            End::NoPage(left, NoPage::Budget(reason)) if left.from.is_some() && is_cap(reason) && self.may_fold() => {
                self.fold(left, None, top.as_ref(), from_top)
            }
            End::NoPage(left, no_page) => {
                self.walked(&left, floor, top.as_ref());
                self.commit_if_known()?;
                Err(no_page.into())
            }
        }
    }

    /// Whether a backlog gap may be written: not without a chunk, and not over an unknown one.
    fn may_fold(&self) -> bool {
        self.knows_backlog && self.run.budget.gap_rows_left.is_some()
    }

    fn raise(&mut self, top: Option<&Floor>) {
        if let Some(top) = top {
            self.cursor.raise(top);
        }
    }

    /// A walk reached this rest.
    fn walked(&mut self, left: &Range, floor: Option<Floor>, top: Option<&Floor>) {
        // Before its first item is settled a walk from the top has not begun.
        if let Some(low) = &left.from {
            self.raise(top);
            self.cursor.walked_to(low.clone(), floor);
        }
    }

    /// Moves the rest of a walk into the backlog gap, so that the cursor may advance. The gap first: otherwise the
    /// cursor would pass unaccounted items.
    fn fold(&mut self, left: Range, remaining: Option<u64>, top: Option<&Floor>, from_top: bool) -> Result<(), Stop> {
        self.backlog.add(left, remaining);
        self.say_backlog()?;
        self.raise(top);
        self.cursor.finish_walk();
        if from_top {
            self.settle_rest()?;
        }
        self.commit()
    }

    /// A list that was always empty has no cursor.
    fn commit_if_known(&mut self) -> Result<(), Stop> {
        if self.cursor.is_blank() { Ok(()) } else { self.commit() }
    }
}

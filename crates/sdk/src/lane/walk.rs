//! A walk down a range of the list, in batches; used by the forward pass and by the processing of a backlog.

use super::in_order::{InOrder, Step};
use super::place::{Floor, Position, Range, Timestamp};
use super::work::{NoPage, Work};
use crate::stop::Stop;

/// Result of a walk.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) end: End,
    /// The newest time of the range and its ties, if it had items.
    pub(super) top: Option<Floor>,
}

/// How a walk ended.
#[derive(Debug)]
pub(super) enum End {
    /// Every item down to the floor has an outcome.
    Floor,
    /// Budget and chunk are used up: the rest, and its approximate number of items.
    Tail(Range, Option<u64>),
    /// The list could not be read further: the rest.
    NoPage(Range, NoPage),
}

/// Called after each batch with the rest and the top of the range.
pub(super) type Checkpoint<'c, 'a, 'r> = dyn FnMut(&mut Work<'a, 'r>, &Range, Option<&Floor>) -> Result<(), Stop> + 'c;

impl<'a, 'r> Work<'a, 'r> {
    pub(super) fn walk(
        &mut self,
        range: Range,
        until: Option<&Timestamp>,
        checkpoint: &mut Checkpoint<'_, 'a, 'r>,
    ) -> Result<Walked, Stop> {
        let mut reader = InOrder::new(&range, until);
        let (mut left, mut batch, mut uncommitted) = (range, Vec::new(), 0);
        loop {
            let mut last = None;
            match reader.step().map_err(|fault| Stop::of_author(fault.to_string()))? {
                Step::Item(item) => {
                    batch.push(item);
                    if batch.len() < self.batch_len() {
                        continue;
                    }
                }
                Step::Fetch(at) if batch.is_empty() => match self.list(&at) {
                    Ok(page) => {
                        reader.feed(page).map_err(|fault| Stop::of_author(fault.to_string()))?;
                        continue;
                    }
                    Err(no_page) => last = Some(Last::NoPage(no_page)),
                },
                // The items of a page are processed before the next page is requested.
                Step::Fetch(_) => {}
                Step::End => last = Some(Last::Floor),
            }
            let settled = self.settle(&batch)?;
            uncommitted += settled;
            if let Some(item) = settled.checked_sub(1).and_then(|number| batch.get(number)) {
                left.from = Some(Position::new(&item.timestamp, &item.key));
            }
            let top = reader.top().cloned();
            if settled < batch.len() {
                // A range from the top of the list would grow with it; the seen part does not.
                left.from = left.from.or_else(|| top.as_ref().map(|top| Position::before(&top.at)));
                let remaining = reader.left().map(|left| left + (batch.len() - settled) as u64);
                return Ok(Walked { end: End::Tail(left, remaining), top });
            }
            batch.clear();
            match last {
                None if uncommitted >= self.config.batch => {
                    checkpoint(self, &left, top.as_ref())?;
                    uncommitted = 0;
                }
                None => {}
                Some(Last::Floor) => return Ok(Walked { end: End::Floor, top }),
                Some(Last::NoPage(no_page)) => return Ok(Walked { end: End::NoPage(left, no_page), top }),
            }
        }
    }
}

/// Why a batch is the last one.
enum Last {
    Floor,
    NoPage(NoPage),
}

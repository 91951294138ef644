//! Queue of one key: callers in order of arrival.
//!
//! Why not let every caller ask the governor: a thousand sleepers would wake at the same moment for one slot, and
//! some would starve. Here only the head asks and sleeps; all others are parked without a timer. A retry keeps its
//! number, so it stays before later callers. Holds no permit and knows no time.

use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// Position in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// Waiting callers. Limited by `Settings::max_waiting`, which is checked before a number is drawn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: BTreeMap<Number, Arc<Notify>>,
    drawn: u64,
}

impl Queue {
    /// A new number at the end.
    pub(crate) fn draw(&mut self) -> Number {
        self.drawn += 1;
        Number(self.drawn)
    }

    /// Joins the queue. The returned `Notify` fires when the caller should ask again.
    pub(crate) fn enter(&mut self, number: Number) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        self.waiting.insert(number, Arc::clone(&bell));
        bell
    }

    /// Leaves the queue and wakes the new head.
    pub(crate) fn leave(&mut self, number: Number) {
        let was_head = self.is_head(number);
        self.waiting.remove(&number);
        if was_head {
            self.ring();
        }
    }

    pub(crate) fn is_head(&self, number: Number) -> bool {
        self.waiting.first_key_value().is_some_and(|(&head, _)| head == number)
    }

    /// Wakes the head: something has changed.
    pub(crate) fn ring(&self) {
        if let Some((_, bell)) = self.waiting.first_key_value() {
            bell.notify_one();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_before_those_who_came_after_it() {
        let mut queue = Queue::default();
        let [first, second] = [queue.draw(), queue.draw()];
        queue.enter(first);
        queue.leave(first);
        queue.enter(second);
        assert!(queue.is_head(second));
        queue.enter(first);
        assert!(queue.is_head(first));
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn who_leaves_from_the_middle_wakes_nobody() {
        let mut queue = Queue::default();
        let [first, second] = [queue.draw(), queue.draw()];
        let (_bell, _other) = (queue.enter(first), queue.enter(second));
        queue.leave(second);
        assert!(queue.is_head(first));
    }
}

//! Who is next: callers of one key in the order in which they came.
//!
//! Why not let every caller ask the governor: a thousand sleepers would wake at the same moment for one
//! place, and whoever is scheduled first would win, so some would never. Here only the head asks and
//! sleeps; everyone else is parked without a timer. A retry comes back with its old number, so it is
//! before those who came after it. Holds no permit and knows no time.

use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// A place in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// The callers that wait. Bounded by `Settings::max_waiting`, which is checked before a number is drawn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: BTreeMap<Number, Arc<Notify>>,
    drawn: u64,
}

impl Queue {
    /// A number after all others.
    pub(crate) fn draw(&mut self) -> Number {
        self.drawn += 1;
        Number(self.drawn)
    }

    /// Takes a place. The returned bell rings when it is worth asking again.
    pub(crate) fn enter(&mut self, number: Number) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        self.waiting.insert(number, Arc::clone(&bell));
        bell
    }

    /// Gives the place up; whoever is head now is woken.
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

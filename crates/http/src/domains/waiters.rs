//! Queue of one host, in order of arrival; takes no memory while empty.

use crate::queue::{Number, Queue};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Waiting callers of one host. Two words while there are none: a registry has a million of them.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    queue: Mutex<Option<Box<Queue>>>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Option<Box<Queue>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_none()
    }

    /// Joins the end of the queue; returns the queue's length when it is full.
    pub(super) fn enter(&self, max: usize) -> Result<WaiterSlot<'_>, usize> {
        let mut queue = self.lock();
        let waiting = queue.as_ref().map_or(0, |queue| queue.len());
        if waiting >= max {
            return Err(waiting);
        }
        let queue = queue.get_or_insert_default();
        let number = queue.draw();
        Ok(WaiterSlot { waiters: self, number, bell: queue.enter(number) })
    }

    /// Wakes the first caller: something has changed.
    pub(super) fn ring(&self) {
        if let Some(queue) = &*self.lock() {
            queue.ring();
        }
    }
}

/// A place in the queue, given up on drop.
pub(super) struct WaiterSlot<'a> {
    waiters: &'a Waiters,
    number: Number,
    pub(super) bell: Arc<Notify>,
}

impl WaiterSlot<'_> {
    pub(super) fn is_first(&self) -> bool {
        self.waiters.lock().as_ref().is_some_and(|queue| queue.is_head(self.number))
    }
}

impl Drop for WaiterSlot<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        let Some(queue) = &mut *waiters else { return };
        queue.leave(self.number);
        if queue.len() == 0 {
            *waiters = None;
        }
    }
}

//! Handle: a looked-up key that its caller keeps.

use super::config::RegistryRules;
use super::fast_path::FastPath;
use super::key::Key;
use crate::time::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One key of a registry.
#[derive(Debug)]
pub(crate) struct Entry<W> {
    key: Mutex<Key>,
    pub(crate) express: FastPath,
    name: Box<str>,
    pub(crate) slot: u32,
    /// Whether some statuses of this key have overrides.
    pub(crate) has_statuses: bool,
    pub(crate) attached: W,
}

impl<W> Entry<W> {
    pub(crate) fn new(name: Box<str>, slot: u32, key: Key, has_statuses: bool, attached: W) -> Self {
        Self { key: Mutex::new(key), express: FastPath::new(), name, slot, has_statuses, attached }
    }

    /// Locks the key: closes the fast path and applies its batch.
    #[inline]
    pub(crate) fn lock(&self, rules: &RegistryRules, now: Time) -> MutexGuard<'_, Key> {
        // Nothing panics half-way through a change; a poisoned lock is still a consistent state.
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(batch), Key::Active(active)) = (self.express.close(), &mut *key) {
            active.on_batch(rules, &batch, now);
        }
        key
    }

    /// Opens the fast path if the key allows it, and releases the lock.
    #[inline]
    pub(crate) fn unlock(&self, key: MutexGuard<'_, Key>, rules: &RegistryRules, now: Time) {
        if let Key::Active(active) = &*key
            && !self.has_statuses
            && let Some(terms) = active.terms(rules, now)
        {
            self.express.open(&terms, now);
        }
        drop(key);
    }

    #[inline]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A looked-up key. Callers that send to it often keep the handle; the key is not dropped while a handle exists.
/// Cheap to clone.
#[derive(Debug)]
pub struct Handle<W = ()> {
    pub(crate) entry: Arc<Entry<W>>,
}

impl<W> Handle<W> {
    /// The domain of the key, or the group that it belongs to.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.entry.name()
    }

    /// The value that the owner of the registry attached to the key.
    #[must_use]
    pub fn attached(&self) -> &W {
        &self.entry.attached
    }
}

impl<W> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Self { entry: Arc::clone(&self.entry) }
    }
}

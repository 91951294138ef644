//! All send governors of a process, by key: the same key gives the same governor.
//!
//! Why a registry and not a governor per client: the provider counts per account, not per object in a program.
//! Clients use [`Governors::global`] unless they are given another. Never shared across processes; a sidecar does
//! that.

use crate::key::{Key, Secret};
use crate::memory::{Memory, MemoryError};
use crate::send_governor::SendGovernor;
use gleaner_governor::{BreakerConfig, Config};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum of keys in one registry: a person's or a company's accounts, not the web. A key takes about two kilobytes,
/// so this is 20 MB.
pub const KEYS_MAX: usize = 10_000;

/// Settings of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The governor's settings; the owner's number is `ceiling_interval`.
    pub config: Config,
    /// Maximum of waiting callers; one more is refused at once.
    pub max_waiting: usize,
    /// Random delay against synchronized clients: a request leaves up to this long after it was requested. The delay
    /// is one of the times of which the latest counts, so it is never added to the pace and never slows it down.
    /// Zero: none.
    pub launch_jitter: Duration,
}

/// Default maximum of requests in flight: enough to hide a latency of 300 ms at the default ceiling of 50 per second.
/// The lane finds lower limits of a provider.
const MAX_CONCURRENCY: u16 = 16;
/// Default maximum of waiting callers: at the default ceiling the last one waits 200 s.
const MAX_WAITING: usize = 10_000;

/// Default minimum of answers before the circuit may open. One key has many routes: with five, the four attempts of
/// one request to a broken route would close all others.
const THROUGHPUT_MIN: u16 = 10;

impl Default for Settings {
    fn default() -> Self {
        let breaker = BreakerConfig { throughput_min: THROUGHPUT_MIN, ..BreakerConfig::default() };
        let config = Config { max_concurrency: MAX_CONCURRENCY, breaker, ..Config::default() };
        Self { config, max_waiting: MAX_WAITING, launch_jitter: Duration::ZERO }
    }
}

/// Why there is no governor for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is already governed with other settings in this process. Holds the key.
    #[error("{0} is already governed with other settings; give all its clients the same, or another name")]
    OtherSettings(Key),
    /// Key limit reached, and all keys are in use. Holds the key.
    #[error("key limit reached: all {KEYS_MAX} keys are in use; no room for {0}")]
    TooMany(Key),
}

/// Send governors by key. Cheap to clone: all clones share the registry.
#[derive(Clone, Debug)]
pub struct Governors {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    secret: Secret,
    memory: Option<Memory>,
    keys: Mutex<HashMap<Key, SendGovernor>>,
}

impl Default for Governors {
    fn default() -> Self {
        Self::new()
    }
}

impl Governors {
    /// An empty registry whose learned state is dropped when the process ends.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Secret::random(), None)
    }

    /// A registry that keeps its learned state in `folder`, also when the process is killed.
    ///
    /// # Errors
    /// The folder cannot be created, read or written.
    pub fn remembering(folder: &Path) -> Result<Self, MemoryError> {
        let (memory, secret) = Memory::open(folder)?;
        Ok(Self::with(secret, Some(memory)))
    }

    fn with(secret: Secret, memory: Option<Memory>) -> Self {
        Self { inner: Arc::new(Inner { secret, memory, keys: Mutex::default() }) }
    }

    /// The registry of this process.
    #[must_use]
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<Governors> = LazyLock::new(Governors::new);
        &GLOBAL
    }

    /// The key of `provider` and a credential, which is hashed and not stored.
    #[must_use]
    pub fn key(&self, provider: &str, credential: Option<&[u8]>) -> Key {
        match credential {
            Some(credential) => Key::with_credential(provider, credential, &self.inner.secret),
            None => Key::new(provider),
        }
    }

    /// The send governor of `key`; created if it is new.
    ///
    /// # Errors
    /// The key is governed with other settings, or the key limit is reached.
    pub fn governor(&self, key: &Key, settings: &Settings) -> Result<SendGovernor, KeyError> {
        let mut keys = self.lock();
        if let Some(known) = keys.get(key) {
            if known.shared.settings != *settings {
                return Err(KeyError::OtherSettings(key.clone()));
            }
            return Ok(known.clone());
        }
        if keys.len() >= KEYS_MAX {
            // Rare and linear: only idle keys without a gate or an open circuit may go.
            keys.retain(|_, governor| {
                let is_idle = governor.is_idle();
                if is_idle {
                    governor.save();
                }
                !is_idle
            });
        }
        if keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany(key.clone()));
        }
        let slot = self.inner.memory.as_ref().map(|memory| memory.slot(key));
        let governor = SendGovernor::new(key.clone(), *settings, slot);
        keys.insert(key.clone(), governor.clone());
        Ok(governor)
    }

    /// The send governor of `key` with its existing settings; created with `settings` if it is new.
    ///
    /// # Errors
    /// The key limit is reached.
    pub fn known_or(&self, key: &Key, settings: &Settings) -> Result<SendGovernor, KeyError> {
        let known = self.lock().get(key).cloned();
        known.map_or_else(|| self.governor(key, settings), Ok)
    }

    /// All governors, sorted by key.
    #[must_use]
    pub fn all(&self) -> Vec<SendGovernor> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|a, b| a.key().cmp(b.key()));
        all
    }

    /// Saves the learned state of every key, on this thread. A registry with a folder saves while it is used; this is
    /// for the end of a program.
    pub fn save(&self) {
        self.all().iter().for_each(SendGovernor::save);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, SendGovernor>> {
        self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

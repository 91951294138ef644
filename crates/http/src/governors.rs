//! All send governors of a process, by key: whoever asks for the same key gets the same one.
//!
//! Why a registry and not a governor per client: the provider counts by account, not by the object that
//! a program happens to have made. [`Governors::global`] is what clients use unless they are given
//! another. Never shares across processes; a sidecar does that.

use crate::key::{Key, Secret};
use crate::memory::{Memory, MemoryError};
use crate::send_governor::SendGovernor;
use gleaner_governor::{BreakerConfig, Config};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most keys of one registry: a person's or a company's accounts, not the web. A key takes some two
/// kilobytes, so this is 20 MB.
pub const KEYS_MAX: usize = 10_000;

/// How one key is governed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The governor's own settings; the owner's number is its `ceiling_interval`.
    pub config: Config,
    /// Most callers that may wait; one more is refused at once.
    pub max_waiting: usize,
    /// Noise against marching in step: a request goes out up to so much after it was asked for. It is one of the
    /// times of which the latest counts, so it is never added to the pace and never slows it down. Zero: none.
    pub launch_jitter: Duration,
}

/// In flight at most, unless set: what hides a latency of 300 ms at the default ceiling of 50 per
/// second. A provider that allows fewer at a time is found out by the lane.
const MAX_CONCURRENCY: u16 = 16;
/// Callers that may wait, unless set: at the default ceiling the last of them waits 200 s.
const MAX_WAITING: usize = 10_000;

/// Answers before the circuit may open, unless set. Behind one key there are many routes: with five, the
/// four attempts of one request to a broken route would close all others.
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
    /// Somebody else in this process governs it otherwise, and one of the two would be ignored. Holds which key.
    #[error("{0} is already governed with other settings; give all its clients the same, or another name")]
    OtherSettings(Key),
    /// There are too many, and all are in use. Holds which key.
    #[error("{KEYS_MAX} keys are in use; {0} would be one more")]
    TooMany(Key),
}

/// Send governors by key. Cheap to clone: all clones are the same registry.
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
    /// An empty registry that forgets everything when the process ends.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Secret::random(), None)
    }

    /// A registry that remembers in `folder` what it learned, also when the process is killed.
    ///
    /// # Errors
    /// When the folder cannot be made, read or written.
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

    /// The key of `provider` and a credential, which is hashed and not kept.
    #[must_use]
    pub fn key(&self, provider: &str, credential: Option<&[u8]>) -> Key {
        match credential {
            Some(credential) => Key::with_credential(provider, credential, &self.inner.secret),
            None => Key::new(provider),
        }
    }

    /// The send governor of `key`, which is made if nobody has asked for it before.
    ///
    /// # Errors
    /// When it is governed with other settings already, or when there are too many keys.
    pub fn governor(&self, key: &Key, settings: &Settings) -> Result<SendGovernor, KeyError> {
        let mut keys = self.lock();
        if let Some(known) = keys.get(key) {
            if known.shared.settings != *settings {
                return Err(KeyError::OtherSettings(key.clone()));
            }
            return Ok(known.clone());
        }
        if keys.len() >= KEYS_MAX {
            // Rare and linear: only idle keys that owe nothing to their provider may go.
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

    /// The send governor of `key` as it is, whatever its settings; made with `settings` if nobody has asked for it before.
    ///
    /// # Errors
    /// When there are too many keys.
    pub fn known_or(&self, key: &Key, settings: &Settings) -> Result<SendGovernor, KeyError> {
        let known = self.lock().get(key).cloned();
        known.map_or_else(|| self.governor(key, settings), Ok)
    }

    /// All of them, in the order of their keys.
    #[must_use]
    pub fn all(&self) -> Vec<SendGovernor> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|a, b| a.key().cmp(b.key()));
        all
    }

    /// Writes down what was learned about every key, on this thread. A registry that remembers does so
    /// by itself while it is used; this is for the end of a program.
    pub fn save(&self) {
        self.all().iter().for_each(SendGovernor::save);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, SendGovernor>> {
        self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

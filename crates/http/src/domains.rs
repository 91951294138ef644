//! Very many hosts at once: each with its own pace, circuit and retry budget, in bounded memory.
//!
//! [`Domains`] drives a [`Registry`](gleaner_governor::keyed::Registry) with a clock: it waits until the time that
//! the registry returns, queues the callers of one host in order of arrival, and saves what was learned. A slow,
//! closed or dead host delays only its own callers. The registry makes all decisions.

mod permit;
#[cfg(feature = "metrics")]
mod prometheus;
mod remembered;
mod status;
mod upkeep;
mod waiters;

pub use permit::{DomainHandle, DomainPermit, NotYet};
#[cfg(feature = "metrics")]
pub use prometheus::domains_prometheus_text;

use crate::call_limits::CallLimits;
use crate::clock::{Clock, wall_now};
use crate::memory::MemoryError;
use crate::refusal::Refused;
use gleaner_governor::keyed::{Domain, DomainError, Full, Registry, RegistryConfig, Snapshot};
use gleaner_governor::{ConfigError, Time};
use remembered::Remembered;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use waiters::Waiters;

/// Settings of [`Domains`].
#[derive(Clone, Debug, PartialEq)]
pub struct DomainSettings {
    /// The registry's own settings.
    pub config: RegistryConfig,
    /// Maximum of waiting callers per host; one more is refused at once. 10,000.
    pub max_waiting: usize,
    /// Interval of snapshots to the log and to [`Domains::snapshots`]; `None`: never.
    pub snapshot_every: Option<Duration>,
}

/// At the default ceiling the last one waits 200 s.
const MAX_WAITING: usize = 10_000;

impl Default for DomainSettings {
    fn default() -> Self {
        Self { config: RegistryConfig::default(), max_waiting: MAX_WAITING, snapshot_every: None }
    }
}

/// Why there is no permit for a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// The text is not a host.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Host limit reached.
    #[error(transparent)]
    Full(#[from] Full),
    /// The host may not be asked now, or not soon enough.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Why [`Domains`] cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum DomainsError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `snapshot_every` is zero.
    #[error("snapshot_every is zero; leave it out to disable snapshots")]
    SnapshotEvery,
    /// The file of learned state cannot be read or written.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Hosts, each with its own governor. Cheap to clone: all clones share the hosts.
#[derive(Clone)]
pub struct Domains {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry<Waiters>,
    clock: Clock,
    max_waiting: usize,
    snapshot_every: Option<Duration>,
    remembered: Option<Remembered>,
    shown: watch::Sender<Arc<Snapshot>>,
}

impl Domains {
    /// Hosts whose learned state is dropped when the process ends.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(settings: DomainSettings) -> Result<Self, DomainsError> {
        Self::with(settings, None)
    }

    /// Hosts whose learned state is kept in `file`, also when the process is killed.
    ///
    /// # Errors
    /// A setting is invalid, or the file cannot be read or written.
    pub fn remembering(settings: DomainSettings, file: &Path) -> Result<Self, DomainsError> {
        let (remembered, learned) = Remembered::open(file, settings.config.keys_max)?;
        let domains = Self::with(settings, Some(remembered))?;
        let (now, wall_now) = (domains.inner.clock.now(), wall_now());
        for (domain, learned) in learned {
            domains.inner.registry.restore(&domain, &learned, now, wall_now);
        }
        Ok(domains)
    }

    fn with(settings: DomainSettings, remembered: Option<Remembered>) -> Result<Self, DomainsError> {
        let DomainSettings { config, max_waiting, snapshot_every } = settings;
        if snapshot_every.is_some_and(|every| every.is_zero()) {
            return Err(DomainsError::SnapshotEvery);
        }
        let registry = Registry::new(config, fastrand::u64(..))?;
        let (shown, _) = watch::channel(Arc::default());
        let clock = Clock::new();
        Ok(Self { inner: Arc::new(Inner { registry, clock, max_waiting, snapshot_every, remembered, shown }) })
    }

    /// The handle of a host, given as a host, a host with a port, or a URL. Callers that use a host often keep it;
    /// the host is not dropped while a handle exists.
    ///
    /// # Errors
    /// The text is not a host, or the host limit is reached.
    pub fn handle(&self, text: &str) -> Result<DomainHandle, AcquireError> {
        Ok(self.handle_of(&domain_of(text)?)?)
    }

    /// The same for a parsed host.
    ///
    /// # Errors
    /// The host limit is reached.
    pub fn handle_of(&self, domain: &Domain) -> Result<DomainHandle, Full> {
        let handle = self.inner.registry.handle(domain, self.inner.clock.now())?;
        Ok(DomainHandle::new(Arc::clone(&self.inner), handle))
    }

    /// The clock, for a scheduler that waits by itself ([`DomainHandle::try_acquire`]).
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Waits until a request may be sent to a host.
    ///
    /// # Errors
    /// The host may not be asked at all, or not within the caller's limits.
    pub async fn acquire(&self, text: &str, call_limits: &CallLimits) -> Result<DomainPermit, AcquireError> {
        self.handle(text)?.acquire(call_limits).await
    }

    /// When to retry a request whose body was cut off after its answer; `attempt` counts from 0. `None` when its
    /// attempts are used up. It costs no retry budget, because the host has answered.
    #[must_use]
    pub fn retry_lost_body(&self, attempt: u32) -> Option<Time> {
        let backoff = self.inner.registry.config().key.backoff;
        let longest = backoff.base.saturating_mul(1 << attempt.min(16)).min(backoff.cap);
        (attempt + 1 < backoff.attempts).then(|| self.inner.clock.now() + longest.mul_f64(fastrand::f64()))
    }

    /// State of all hosts, with the `top` most used ones, up to the limit in the settings.
    #[must_use]
    pub fn snapshot(&self, top: usize) -> Snapshot {
        self.inner.registry.snapshot(top, self.inner.clock.now())
    }

    /// The snapshots taken every `snapshot_every`; a slow reader gets only the last one.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.inner.shown.subscribe()
    }

    /// Number of hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.registry.len()
    }

    /// Whether there are no hosts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.registry.is_empty()
    }

    /// Saves the learned state of every host, on this thread. For the end of a program.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self) -> io::Result<()> {
        self.inner.save()
    }
}

/// The normalized host of `text`, a URL or a host. Non-ASCII names are translated (IDNA).
///
/// # Errors
/// The text is not a host.
pub fn domain_of(text: &str) -> Result<Domain, DomainError> {
    Domain::parse_with(text, |host| idna::domain_to_ascii(host).ok())
}

gleaner_base::debug_only!(Domains, |it| len = it.len());

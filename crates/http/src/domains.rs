//! Very many hosts at once: each its own pace, circuit and retry credit, in bounded memory.
//!
//! [`Domains`] drives a [`Registry`](gleaner_governor::keyed::Registry) with a clock: it waits where the registry
//! only says until when, keeps callers of one host in the order in which they came, and remembers what was learned.
//! A host that is slow, closed or dead delays nobody but its own callers. Never decides: that is the registry's.

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

/// How hosts are governed.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainSettings {
    /// The registry's own settings.
    pub config: RegistryConfig,
    /// Most callers of one host that may wait; one more is refused at once. 10,000.
    pub max_waiting: usize,
    /// How often a snapshot goes to the log and to [`Domains::snapshots`]; `None`: never.
    pub snapshot_every: Option<Duration>,
}

/// At the default ceiling the last of them waits 200 s.
const MAX_WAITING: usize = 10_000;

impl Default for DomainSettings {
    fn default() -> Self {
        Self { config: RegistryConfig::default(), max_waiting: MAX_WAITING, snapshot_every: None }
    }
}

/// Why there is no permit for a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// The text names no host.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// There is no room for another host.
    #[error(transparent)]
    Full(#[from] Full),
    /// The host may not be asked now, or not soon enough.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Why hosts cannot be governed.
#[derive(Debug, thiserror::Error)]
pub enum DomainsError {
    /// A setting makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `snapshot_every` is zero.
    #[error("snapshot_every is zero; leave it out for never")]
    SnapshotEvery,
    /// What was learned cannot be read or written.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Hosts, each with its own governor. Cheap to clone: all clones are the same hosts.
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
    /// Hosts that are forgotten when the process ends.
    ///
    /// # Errors
    /// When a setting makes no sense.
    pub fn new(settings: DomainSettings) -> Result<Self, DomainsError> {
        Self::with(settings, None)
    }

    /// Hosts of which `file` remembers what was learned, also when the process is killed.
    ///
    /// # Errors
    /// When a setting makes no sense, or the file cannot be read or written.
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

    /// The handle of a host, given as a host, a host with a port, or a URL. Whoever asks it often keeps it; as long as
    /// it is kept, the host is not forgotten.
    ///
    /// # Errors
    /// When the text names no host, or there is no room for another.
    pub fn handle(&self, text: &str) -> Result<DomainHandle, AcquireError> {
        Ok(self.handle_of(&domain_of(text)?)?)
    }

    /// The same for a host that was read before.
    ///
    /// # Errors
    /// When there is no room for another.
    pub fn handle_of(&self, domain: &Domain) -> Result<DomainHandle, Full> {
        let handle = self.inner.registry.handle(domain, self.inner.clock.now())?;
        Ok(DomainHandle::new(Arc::clone(&self.inner), handle))
    }

    /// The clock of these hosts, for a scheduler that waits in its own way ([`DomainHandle::try_acquire`]).
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Waits until a request may be sent to a host.
    ///
    /// # Errors
    /// When the host may not be asked at all, or not within the caller's limits.
    pub async fn acquire(&self, text: &str, call_limits: &CallLimits) -> Result<DomainPermit, AcquireError> {
        self.handle(text)?.acquire(call_limits).await
    }

    /// When a request may be sent again whose answer came and whose body broke off; `attempt` is counted from 0. `None`
    /// when its attempts are used up. No retry budget pays for it: the host has answered.
    #[must_use]
    pub fn retry_lost_body(&self, attempt: u32) -> Option<Time> {
        let backoff = self.inner.registry.config().key.backoff;
        let longest = backoff.base.saturating_mul(1 << attempt.min(16)).min(backoff.cap);
        (attempt + 1 < backoff.attempts).then(|| self.inner.clock.now() + longest.mul_f64(fastrand::f64()))
    }

    /// How all hosts are, with the `top` ones that are used most; no more than the settings allow.
    #[must_use]
    pub fn snapshot(&self, top: usize) -> Snapshot {
        self.inner.registry.snapshot(top, self.inner.clock.now())
    }

    /// The snapshots that are made every `snapshot_every`; only the last one is kept for a reader who is late.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.inner.shown.subscribe()
    }

    /// Hosts that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.registry.len()
    }

    /// Whether no host is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.registry.is_empty()
    }

    /// Writes down what was learned about every host, on this thread. For the end of a program.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self) -> io::Result<()> {
        self.inner.save()
    }
}

/// The one spelling of the host that `text` names, a URL or a host. Names that are not ASCII are translated (IDNA).
///
/// # Errors
/// When it names no host.
pub fn domain_of(text: &str) -> Result<Domain, DomainError> {
    Domain::parse_with(text, |host| idna::domain_to_ascii(host).ok())
}

gleaner_base::debug_only!(Domains, |it| len = it.len());

//! Periodic work: drops hosts, publishes snapshots, saves learned state.
//!
//! A separate future, to be spawned by the caller. Without it hosts are still governed; they only take more memory,
//! and only refusals are saved.

use super::status::millis;
use super::waiters::Waiters;
use super::{Domains, Inner};
use crate::clock::wall_now;
use crate::send_governor::pause;
use gleaner_governor::keyed::{Handle, Snapshot};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longest time between two checks for due work, so that the end of all `Domains` is noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Hosts of a snapshot in the log: as many as a person reads.
const LOGGED_MAX: usize = 10;

impl Domains {
    /// Drops hosts, publishes snapshots and saves, each when due, until the last of these `Domains` is dropped:
    /// `tokio::spawn(domains.upkeep())`.
    pub fn upkeep(&self) -> impl Future<Output = ()> + Send + 'static {
        keep_up(Arc::downgrade(&self.inner))
    }
}

async fn keep_up(domains: Weak<Inner>) {
    let (mut tended_at, mut shown_at) = (Instant::now(), Instant::now());
    let nobody_rings = Notify::new();
    loop {
        let Some(inner) = domains.upgrade() else { return };
        let every = inner.tend_every();
        if tended_at.elapsed() >= every {
            tended_at = Instant::now();
            inner.tend().await;
        }
        if inner.snapshot_every.is_some_and(|every| shown_at.elapsed() >= every) {
            shown_at = Instant::now();
            inner.show();
        }
        inner.save_if_due().await;
        let look_in = inner.snapshot_every.unwrap_or(POLL_INTERVAL).min(every).min(POLL_INTERVAL);
        drop(inner);
        pause(Instant::now() + look_in, &nobody_rings).await;
    }
}

impl Inner {
    /// Half of the time after which a host becomes idle or is dropped.
    fn tend_every(&self) -> Duration {
        let config = self.registry.config();
        config.key.breaker.window.min(config.forget_after) / 2
    }

    async fn tend(&self) {
        for shard in 0..self.registry.config().shards {
            self.registry.tend_shard(shard, self.clock.now());
            // Lets other tasks send meanwhile.
            tokio::task::yield_now().await;
        }
    }

    fn show(&self) {
        let snapshot = self.registry.snapshot(usize::MAX, self.clock.now());
        log(&snapshot);
        self.shown.send_replace(Arc::new(snapshot));
    }

    async fn save_if_due(self: &Arc<Self>) {
        let hosts = self.registry.len();
        if self.remembered.as_ref().is_some_and(|remembered| remembered.is_due(hosts)) {
            let inner = Arc::clone(self);
            self.in_background(move || {
                if let Err(error) = inner.save() {
                    tracing::warn!(%error, "the learned rates could not be saved");
                }
            })
            .await;
        }
    }

    /// Saves the learned state of all hosts, on this thread.
    pub(super) fn save(&self) -> io::Result<()> {
        let Some(remembered) = &self.remembered else { return Ok(()) };
        remembered.save(|keep| {
            let mut result = Ok(());
            self.registry.learned(self.clock.now(), wall_now(), |domain, learned| {
                if result.is_ok() {
                    result = keep(domain, learned);
                }
            });
            result
        })
    }

    /// Saves the learned state of one host before the caller sees the answer.
    pub(super) async fn remember(self: &Arc<Self>, handle: &Handle<Waiters>) {
        if self.remembered.is_none() {
            return;
        }
        let (inner, handle) = (Arc::clone(self), handle.clone());
        self.in_background(move || {
            let Some(remembered) = &inner.remembered else { return };
            let learned = || inner.registry.learned_about(&handle, inner.clock.now(), wall_now());
            if let Err(error) = remembered.add(handle.domain(), learned) {
                tracing::warn!(%error, domain = handle.domain(), "the learned rates could not be saved");
            }
        })
        .await;
    }

    async fn in_background(&self, work: impl FnOnce() + Send + 'static) {
        if tokio::task::spawn_blocking(work).await.is_err() {
            tracing::warn!("the thread that saves learned rates is gone");
        }
    }
}

fn log(snapshot: &Snapshot) {
    let totals = &snapshot.totals;
    tracing::info!(
        keys = snapshot.keys_known,
        active = snapshot.keys_active,
        granted = totals.granted,
        throttled = totals.throttled,
        denied = totals.denied,
        retries = totals.retries,
        open = snapshot.circuits_open,
        half_open = snapshot.circuits_half_open,
        "domains"
    );
    for key in snapshot.keys.iter().take(LOGGED_MAX) {
        tracing::info!(
            domain = &*key.domain,
            rate_per_s = key.rate_per_s,
            tokens = key.tokens,
            latency_mean_ms = key.latency_mean.map(millis),
            latency_p95_ms = key.latency_p95.map(millis),
            error_rate = key.error_rate,
            circuit = key.circuit.as_str(),
            failures_in_row = key.failures_in_row,
            opens_in_ms = millis(key.opens_in),
            "domain"
        );
    }
}

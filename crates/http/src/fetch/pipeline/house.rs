//! What is done from time to time: somebody is told how it goes, the registry is tidied up, and what was learned is
//! written down.

use super::super::FetchError;
use super::super::frontier::SiteId;
use super::super::progress::Told;
use super::super::wire::Wire;
use super::Pipeline;
use super::rules::Rules;
use crate::clock::wall_now;
use gleaner_governor::Time;
use std::sync::Arc;
use std::time::Duration;

/// Memory for the rules of hosts that have nothing to do; a host beyond it is asked again.
const RULES_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// How often somebody is told how it goes.
const TICK: Duration = Duration::from_secs(1);
/// How often the registry is tidied up: half of its window.
const TEND_EVERY: Duration = Duration::from_secs(15);

/// When each is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) tick: Time,
    tend: Time,
}

impl Due {
    pub(super) fn from(now: Time) -> Self {
        Self { tick: now + TICK, tend: now + TEND_EVERY }
    }
}

impl<W: Wire> Pipeline<W> {
    /// Lets go of what a site without work does not need.
    pub(super) fn tidy(&mut self, id: SiteId) {
        if !self.frontier.is_idle(id) {
            return;
        }
        let site = &mut self.sites[id as usize];
        site.handle = None;
        if self.rules_bytes > RULES_KEPT_BYTES
            && let Rules::Known { robots, .. } = &site.rules
        {
            self.rules_bytes = self.rules_bytes.saturating_sub(robots.size());
            site.rules = Rules::Unknown;
        }
    }

    /// What is done from time to time.
    pub(super) async fn keep_house(&mut self) -> Result<(), FetchError> {
        let now = self.now();
        if now < self.due.tick {
            return Ok(());
        }
        self.due.tick = now + TICK;
        let registry = &self.parts.means.registry;
        if now >= self.due.tend {
            registry.tend(now);
            self.due.tend = now + TEND_EVERY;
        }
        let snapshot = registry.snapshot(0, now);
        self.progress.circuits_open = snapshot.circuits_open + snapshot.circuits_half_open;
        self.progress.hosts = self.keys.len();
        self.progress.under_way = self.tasks.len();
        self.progress.all_found = self.all_found;
        // Somebody is slow: then the next one will do.
        let _nobody = self.parts.told.try_send(Told::Progress(self.progress));
        if self.parts.means.remembered.is_due(self.parts.means.registry.len()) {
            self.save_hosts().await?;
        }
        Ok(())
    }

    pub(super) async fn save_hosts(&self) -> Result<(), FetchError> {
        let (means, now) = (Arc::clone(&self.parts.means), self.now());
        let saving = tokio::task::spawn_blocking(move || {
            means.remembered.save(|keep| {
                let mut result = Ok(());
                means.registry.learned(now, wall_now(), |domain, learned| {
                    if result.is_ok() {
                        result = keep(domain, learned);
                    }
                });
                result
            })
        });
        saving.await.map_err(|error| FetchError::Bug(error.to_string()))?.map_err(FetchError::Folder)
    }
}

//! Work beside requests: publishes progress, frees memory of idle sites, and saves learned rates at the end.

use super::Pipeline;
use super::rules::Rules;
use crate::FetchError;
use crate::frontier::SiteId;
use crate::progress::PipelineEvent;
use crate::wire::Wire;
use std::time::Duration;

/// Memory for robots.txt rules of idle hosts; beyond it they are fetched again.
const RULES_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Interval of progress events.
pub(super) const TICK: Duration = Duration::from_secs(1);

impl<W: Wire> Pipeline<W> {
    /// Frees what a site without work does not need.
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

    /// Publishes the progress, if it is due.
    pub(super) fn tell_progress(&mut self) {
        let now = self.now();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        let snapshot = self.parts.shared.domains.snapshot(0);
        self.progress.circuits_open = snapshot.circuits_open + snapshot.circuits_half_open;
        self.progress.hosts = self.keys.len();
        self.progress.under_way = self.tasks.len();
        self.progress.all_found = self.all_found;
        // The receiver is slow: the next event will do.
        let _nobody = self.parts.told.try_send(PipelineEvent::Progress(self.progress));
    }

    /// Saves the learned rates of all hosts.
    pub(super) async fn save_hosts(&self) -> Result<(), FetchError> {
        let domains = self.parts.shared.domains.clone();
        let saving = tokio::task::spawn_blocking(move || domains.save());
        saving.await.map_err(|error| FetchError::Bug(error.to_string()))?.map_err(FetchError::Folder)
    }
}

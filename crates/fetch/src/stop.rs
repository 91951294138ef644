//! Stop signal of a fetch.

use std::sync::Arc;
use tokio::sync::watch;

/// Stops a fetch in order: nothing new is sent, requests in flight are dropped, finished URLs are saved.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Requests the stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the stop.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as this does, so there is no error.
        drop(self.0.subscribe().wait_for(|&is_set| is_set).await);
    }
}

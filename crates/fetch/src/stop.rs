//! A wish to end, that anybody may have and everybody hears.

use std::sync::Arc;
use tokio::sync::watch;

/// Ends a fetch in order: nothing new is sent, what is under way is dropped, what is finished is written down.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Asks for the end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody asked for it.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody does.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as this does, so there is no error.
        drop(self.0.subscribe().wait_for(|&is_set| is_set).await);
    }
}

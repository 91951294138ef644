//! A website on loopback for tests: what a service without an API looks like to a browser.
//!
//! It has a sign-in in two steps, a one-time code, a challenge that only a person can pass, sessions that can be
//! ended, a list and a detail API behind a limit that it does not tell, and pages that wedge their renderer or flood
//! the browser. It writes down who asked what and when, so that a test believes the server and not the client.
//! Never listens on anything but loopback, and is in no program.

mod bucket;
mod history;
mod pages;
mod route;
mod world;

pub use bucket::Limit;
pub use history::{Conversation, History};
pub use world::{Asked, Books, Owner, World};

use crate::http::Server;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A site that runs until it is dropped.
#[derive(Debug)]
pub struct Site {
    server: Server,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    started: Instant,
}

impl Site {
    /// Starts it on a port of its own.
    ///
    /// # Panics
    ///
    /// When loopback cannot be listened on: without it there is nothing to test.
    #[must_use]
    pub fn start(world: World) -> Self {
        let shared = Arc::new(Shared { world: Mutex::new(world), started: Instant::now() });
        let answering = Arc::clone(&shared);
        Self { server: Server::start(move |request| route::answer(&answering, request)), shared }
    }

    /// Where it is, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Its state and requests. Nothing is answered while this is locked.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    /// Requests for paths with this prefix, in order of arrival.
    #[must_use]
    pub fn asked(&self, path: &str) -> Vec<Asked> {
        self.world().asked.iter().filter(|asked| asked.path.starts_with(path)).cloned().collect()
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

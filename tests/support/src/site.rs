//! A website on loopback for tests: what a service without an API looks like to a browser.
//!
//! It has a sign-in in two steps, a one-time code, a challenge that only a person can pass, sessions that can be
//! ended, a list and a detail API behind a limit that it does not tell, and pages that wedge their renderer or flood
//! the browser. It writes down who asked what and when, so that a test believes the server and not the client.
//! Never listens on anything but loopback, and is in no program.

mod bucket;
mod history;
mod http;
mod pages;
mod route;
mod world;

pub use bucket::Limit;
pub use history::{Conversation, History};
pub use world::{Asked, Books, Owner, World};

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A site that runs until it is dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    started: Instant,
    is_over: AtomicBool,
}

impl Site {
    /// Starts it on a port of its own.
    ///
    /// # Panics
    ///
    /// When loopback cannot be listened on: without it there is nothing to test.
    #[must_use]
    pub fn start(world: World) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let shared =
            Arc::new(Shared { world: Mutex::new(world), started: Instant::now(), is_over: AtomicBool::new(false) });
        let listening = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || listen(&listener, &shared))
        };
        Self { address, shared, listening: Some(listening) }
    }

    /// Where it is, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it is like now, and what was asked. Nothing is answered while this is held.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    /// What was asked of paths that begin with this, in the order in which it came.
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

impl Drop for Site {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // A last caller wakes it up.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.is_over.load(Ordering::SeqCst) {
        let Ok((stream, _)) = listener.accept() else { return };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || http::serve(&stream, |request| route::answer(&shared, request)));
    }
}

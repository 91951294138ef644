//! Starting and stopping: a thread with a small runtime of its own, so that collection does not notice.
//!
//! | file | |
//! |---|---|
//! | `listener.rs` | accepts connections; `slow_clients.rs` lets go of those that do not read, `tls.rs` |
//! | `handler.rs` | one request: the guard, then `routes.rs`, then `security_headers.rs` |
//! | `extract.rs`, `respond.rs` | from a request to values, from values to an answer |
//! | `app_state.rs` | what the handlers share; `reading.rs` asks the store, `job_queue.rs` bounds long jobs |
//! | `bind_policy.rs`, `base_path.rs` | where it may listen, and below which path it lives |
//! | `events.rs`, `metrics.rs` | the stream of changes, and figures for Prometheus |

pub(crate) mod app_state;
pub(crate) mod base_path;
pub(crate) mod bind_policy;
pub(crate) mod events;
pub(crate) mod extract;
mod handler;
pub(crate) mod job_queue;
mod listener;
pub(crate) mod metrics;
pub(crate) mod reading;
pub(crate) mod respond;
pub(crate) mod routes;
mod security_headers;
mod slow_clients;
pub(crate) mod tls;

use crate::auth::auth_attempts::AuthAttempts;
use crate::auth::guard::{Names, OtherName};
use crate::auth::keys::Keys;
use crate::error::ConsoleError;
use app_state::{ACTIONS_MAX, AppState};
use bind_policy::BindPolicy;
use events::Events;
use gleaner_app::{App, dates};
use handler::RequestHandler;
use job_queue::{JobQueue, THREADS_MAX};
use metrics::Figures;
use reading::{READERS_MAX, Reading};
use respond::Responder;
use routes::Routes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Where the console listens if nobody says otherwise.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8716);
/// How long a thread of the pool stays without work.
const THREAD_KEEP: Duration = Duration::from_secs(5);
/// How long the end waits for a thread that reads or acts.
const END_MAX: Duration = Duration::from_secs(2);

/// What the console is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens. Port 0 is any that is free.
    pub listen: SocketAddr,
    /// Names under which it may be asked besides the loopback ones, for a proxy or a container of the owner's.
    pub names: Vec<OtherName>,
    /// How it is reached other than directly, over loopback.
    pub policy: BindPolicy,
}

/// A console that is there. It ends when it is dropped.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
    state: Arc<AppState>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Console {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When the address cannot be had or needs more than was given, when certificate and key cannot be used, or when the
    /// token is not private.
    pub fn start(settings: Settings, app: App) -> Result<Self, ConsoleError> {
        let Settings { listen, names, policy } = settings;
        policy.allows(listen, &names)?;
        let tls = policy.tls.as_ref().map(|files| tls::acceptor(files, dates::now())).transpose()?;
        let cannot = |error| ConsoleError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        // Whoever may not listen leaves no token behind.
        let keys = Arc::new(Keys::open(app.root(), dates::now())?);
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let reading = Reading::new(app.store_path());
        let (events, events_thread) = Events::start(reading.clone()).map_err(ConsoleError::Thread)?;
        let (attempts, figures) = (Arc::new(AuthAttempts::new(Instant::now())), Figures::default());
        let state = Arc::new(AppState {
            reading,
            responder: Responder::new(),
            events,
            figures: figures.clone(),
            keys: Arc::clone(&keys),
            attempts: Arc::clone(&attempts),
            app,
            acting: Arc::new(Semaphore::new(ACTIONS_MAX)),
            jobs: JobQueue::new(),
            address: policy.address(address, &names),
            base: policy.base.clone(),
            is_secure: policy.is_secure(),
            started_at: dates::now(),
        });
        let router = Routes::router(Arc::clone(&state));
        let names = Names::of(address, &names, tls.is_some());
        let answering = Arc::new(RequestHandler { keys, figures, attempts, names, base: policy.base, router });
        let (stop, stopped) = watch::channel(false);
        let mut console = Self { address, state, stop, threads: vec![events_thread] };
        console.threads.push(serve_on_a_thread(listener, tls, answering, stopped)?);
        Ok(console)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A link that signs a browser in: once, within a quarter of an hour.
    ///
    /// # Errors
    ///
    /// When the system has no random numbers.
    pub fn new_link(&self) -> Result<String, ConsoleError> {
        self.state.new_link()
    }

    /// Ends it: answers that were begun have a moment, streams end at once.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.state.events.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ended = thread.join();
        }
    }
}

fn serve_on_a_thread(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answering: Arc<RequestHandler>,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>, ConsoleError> {
    let mut runtime = Builder::new_current_thread();
    // One more than can be at work, for files of the sign-in.
    runtime
        .enable_all()
        .max_blocking_threads(READERS_MAX + ACTIONS_MAX + THREADS_MAX + 1)
        .thread_keep_alive(THREAD_KEEP);
    let runtime = runtime.thread_name("console-work").build().map_err(ConsoleError::Thread)?;
    let listener = {
        let _in_runtime = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(ConsoleError::Thread)?
    };
    let serve = move || {
        runtime.block_on(listener::serve(listener, tls, answering, stopped));
        runtime.shutdown_timeout(END_MAX);
    };
    thread::Builder::new().name("console".to_owned()).spawn(serve).map_err(ConsoleError::Thread)
}

//! Starting and stopping: a thread with a small runtime of its own, so that collection does not notice.

use crate::answering::Answering;
use crate::date;
use crate::door;
use crate::error::ConsoleError;
use crate::events::Events;
use crate::figures::Figures;
use crate::giving::Giving;
use crate::guard::{Names, OtherName};
use crate::guesses::Guesses;
use crate::inside::{ACTIONS_MAX, Inside};
use crate::keys::Keys;
use crate::reach::Reach;
use crate::reading::{READERS_MAX, Reading};
use crate::routes::Routes;
use crate::tls;
use crate::turns::{THREADS_MAX, Turns};
use gleaner_app::Actions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
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
    /// The data root, which only its owner can look into. The token lies there.
    pub root: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// How it is reached other than directly, over loopback.
    pub reach: Reach,
}

/// A console that is there. It ends when it is dropped.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
    inside: Arc<Inside>,
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
    pub fn start(settings: Settings, actions: Arc<dyn Actions>) -> Result<Self, ConsoleError> {
        let Settings { listen, names, root, store, reach } = settings;
        reach.allows(listen, &names)?;
        let tls = reach.tls.as_ref().map(|files| tls::acceptor(files, date::now())).transpose()?;
        let cannot = |error| ConsoleError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        // Whoever may not listen leaves no token behind.
        let keys = Arc::new(Keys::open(&root, date::now())?);
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let reading = Reading::new(store);
        let (events, events_thread) = Events::start(reading.clone()).map_err(ConsoleError::Thread)?;
        let (guesses, figures) = (Arc::new(Guesses::new(Instant::now())), Figures::default());
        let inside = Arc::new(Inside {
            reading,
            giving: Giving::new(),
            events,
            figures: figures.clone(),
            keys: Arc::clone(&keys),
            guesses: Arc::clone(&guesses),
            actions,
            acting: Arc::new(Semaphore::new(ACTIONS_MAX)),
            turns: Turns::new(),
            address: reach.address(address, &names),
            base: reach.base.clone(),
            is_secure: reach.is_secure(),
            root,
            started_at: date::now(),
        });
        let router = Routes::all().router(Arc::clone(&inside));
        let names = Names::of(address, &names, tls.is_some());
        let answering = Arc::new(Answering { keys, figures, guesses, names, base: reach.base, router });
        let (stop, stopped) = watch::channel(false);
        let mut console = Self { address, inside, stop, threads: vec![events_thread] };
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
        self.inside.new_link()
    }

    /// Ends it: answers that were begun have a moment, streams end at once.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.inside.events.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ended = thread.join();
        }
    }
}

fn serve_on_a_thread(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answering: Arc<Answering>,
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
        let _inside_runtime = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(ConsoleError::Thread)?
    };
    let serve = move || {
        runtime.block_on(door::serve(listener, tls, answering, stopped));
        runtime.shutdown_timeout(END_MAX);
    };
    thread::Builder::new().name("console".to_owned()).spawn(serve).map_err(ConsoleError::Thread)
}

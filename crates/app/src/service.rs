//! The loop: what is due is started, what ended is accounted for, what changed is looked at, and otherwise it sleeps.
//!
//! It wakes when a run ends, when somebody says so, when the schedule has something to do, and every two seconds to ask
//! the store for one number: whether another process has changed something. Only then is anything read. It holds a lease,
//! so that there is one service per store; every run holds leases of its own, so that nothing depends on there being one.
//! Nothing here waits for a run, a connector, a password manager or a web server.

mod shutdown;

use crate::actions::now;
use crate::child::Run;
use crate::gather::{Asking, Gathered, Manifests, gather, waits_for_credential};
use crate::notices::notices;
use crate::notify::{Channels, Teller};
use crate::outlook::kind_code;
use crate::sd_notify::Supervisor;
use gleaner_engine::WallTime;
use gleaner_schedule::{Detained, Launch, Limits, Scheduler};
use gleaner_store::{Acquired, ConnectionState, HEARTBEAT, HeldBy, Holder, Lease, LeaseOn, Reader, Store, StoreError};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often it is asked whether somebody has changed the store: soon enough for people, and next to nothing.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// While runs go on the store changes all the time; everything is read again no more often than this.
const READ_EVERY: Duration = Duration::from_secs(5);
/// And no less often, while runs go on: one that hangs changes nothing in the store.
const READ_AT_LEAST: Duration = Duration::from_secs(60);
/// While none does, this is for what nobody thought of.
const READ_IDLE: Duration = Duration::from_secs(600);
/// How soon what could not be started is tried again, the first time. Twice as long each further time.
const START_AGAIN: Duration = Duration::from_secs(15);
/// The longest of those pauses.
const START_AGAIN_MAX: Duration = Duration::from_secs(3600);
/// A run that is nobody's for so many looks in a row hangs: its lease has long ended.
const STRIKES_MAX: u32 = 4;
/// A run may take so long to begin: a password manager may have to be unlocked.
const BEGIN_MAX: Duration = Duration::from_secs(90);
/// How often a credential is looked for that a connection waits for, when nothing says that it is there.
const CREDENTIAL_EVERY: Duration = Duration::from_secs(3600);
/// What waits for the loop. Whoever ends waits for its place, whoever nudges does not.
const EVENTS_MAX: usize = 256;

/// What wakes the loop.
#[derive(Debug)]
enum Event {
    /// A run has ended.
    Ended(String),
    /// Something was changed.
    Changed,
    /// A credential was looked for.
    Credential(String, Option<String>),
    /// The service is to stop; twice: at once.
    Stop,
}

/// The way to a service that goes on.
#[derive(Clone, Debug)]
pub struct Handle(SyncSender<Event>);

impl Handle {
    /// Something was changed, and should be looked at now.
    pub fn nudge(&self) {
        // A full queue wakes it as well.
        let _woken = self.0.try_send(Event::Changed);
    }

    /// Stop launching, let slices finish, hand over. The second time: stop at once.
    pub fn stop(&self) {
        let _heard = self.0.send(Event::Stop);
    }
}

/// Finds a keyed hash of the credential of a connection, which may take a while.
pub type FindCredential = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a service needs.
pub struct ServiceConfig {
    /// The store.
    pub store: PathBuf,
    /// The folder whose change means that a credential may have changed.
    pub secrets: PathBuf,
    /// How a run is started; its kind and its connection come after these words.
    pub run: Vec<OsString>,
    /// How much may happen at once.
    pub limits: Limits,
    /// How the owner is told.
    pub channels: Channels,
    /// Who wants to hear that it lives.
    pub supervisor: Supervisor,
    /// How a credential is found.
    pub find_credential: FindCredential,
}

impl std::fmt::Debug for ServiceConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceConfig")
            .field("store", &self.store)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why there is no service, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is one already.
    #[error("process {} serves this data root", .0.pid)]
    Held(HeldBy),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// A service that has its lease.
pub struct Service {
    config: ServiceConfig,
    store: Store,
    reader: Reader,
    lease: Lease,
    ourselves: Holder,
    scheduler: Scheduler,
    manifests: Manifests,
    runs: BTreeMap<String, Run>,
    /// What could not be started: how often in a row, and when to try again.
    could_not: BTreeMap<String, (u32, WallTime)>,
    credentials: BTreeMap<String, Looked>,
    teller: Teller,
    events: Receiver<Event>,
    handle: Handle,
    due: Due,
    seen_change: i64,
    seen_secrets: Option<SystemTime>,
    last_fault: String,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("config", &self.config).field("runs", &self.runs).finish_non_exhaustive()
    }
}

/// A credential that somebody looked for.
#[derive(Debug)]
struct Looked {
    at: Instant,
    found: Option<String>,
}

/// When the loop has something to do of its own.
#[derive(Debug)]
struct Due {
    beat: Instant,
    sign: Instant,
    /// When everything was last read.
    read: Instant,
    /// Whether something is known to have changed since.
    changed: bool,
}

impl Service {
    /// Takes the lease.
    ///
    /// # Errors
    ///
    /// When somebody else serves this store, or it cannot be used.
    pub fn begin(config: ServiceConfig) -> Result<Self, ServeError> {
        let mut store = Store::open(&config.store)?;
        let ourselves = Holder::current().map_err(StoreError::Holder)?;
        let lease = match store.acquire(&[LeaseOn::Serve], &ourselves, now())? {
            Acquired::Yes { mut leases, .. } => leases.remove(0),
            Acquired::Held(by) => return Err(ServeError::Held(by)),
        };
        let reader = Reader::open(&config.store)?;
        let teller = Teller::start(config.channels.clone()).map_err(ServeError::Thread)?;
        let (sender, events) = sync_channel(EVENTS_MAX);
        let at = Instant::now();
        Ok(Self {
            scheduler: Scheduler::new(config.limits),
            due: Due { beat: at + HEARTBEAT, sign: at, read: at, changed: true },
            seen_change: store.changes_of_others()?,
            seen_secrets: None,
            handle: Handle(sender),
            manifests: Manifests::default(),
            runs: BTreeMap::new(),
            could_not: BTreeMap::new(),
            credentials: BTreeMap::new(),
            last_fault: String::new(),
            config,
            store,
            reader,
            lease,
            ourselves,
            teller,
            events,
        })
    }

    /// The way to it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until it is told to stop. To be called by a thread that lives as long as the process: runs are tied to it.
    ///
    /// # Errors
    ///
    /// When the store cannot be used any more, or somebody took over. Runs are stopped then, too.
    pub fn serve(mut self) -> Result<(), ServeError> {
        self.read_all();
        self.config.supervisor.ready();
        tracing::info!("serving {} connections", self.scheduler.connections().count());
        let ended = loop {
            self.start_what_is_due();
            match self.events.recv_timeout(self.wait()) {
                Ok(Event::Stop) => break Ok(()),
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Err(error) = self.look_around() {
                tracing::error!("the store cannot be used any more: {error}");
                break Err(error.into());
            }
        };
        self.shut_down();
        ended
    }

    fn wait(&self) -> Duration {
        let date = now();
        let wake = self.scheduler.wake_at(date).map_or(LOOK_EVERY, |at| at.since(date));
        let sign = self.due.sign.saturating_duration_since(Instant::now());
        let sign = self.config.supervisor.sign_every().map_or(LOOK_EVERY, |_| sign);
        wake.min(LOOK_EVERY).min(sign).max(Duration::from_millis(10))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended(name) => self.ended(&name),
            Event::Changed => self.due.changed = true,
            Event::Credential(name, found) => {
                self.credentials.insert(name.clone(), Looked { at: Instant::now(), found });
                self.read_one(&name);
            }
            Event::Stop => {}
        }
    }

    /// Gives signs of life, and looks whether anything has changed.
    fn look_around(&mut self) -> Result<(), StoreError> {
        let instant = Instant::now();
        if let Some(every) = self.config.supervisor.sign_every().filter(|_| instant >= self.due.sign) {
            self.due.sign = instant + every;
            self.config.supervisor.alive();
        }
        if instant >= self.due.beat {
            self.due.beat = instant + HEARTBEAT;
            match self.store.heartbeat(std::slice::from_ref(&self.lease)) {
                // Somebody writes for long; the next beat is soon.
                Err(StoreError::Busy { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        let change = self.store.changes_of_others()?;
        let secrets = std::fs::metadata(&self.config.secrets).and_then(|about| about.modified()).ok();
        let is_nudged = std::mem::take(&mut self.due.changed);
        let since = self.due.read.elapsed();
        let at_least = if self.runs.is_empty() { READ_IDLE } else { READ_AT_LEAST };
        let has_changed = (change, secrets) != (self.seen_change, self.seen_secrets);
        if is_nudged || since >= at_least || has_changed && since >= READ_EVERY {
            if secrets != self.seen_secrets {
                self.credentials.clear();
            }
            (self.seen_change, self.seen_secrets) = (change, secrets);
            self.read_all();
            self.look_for_the_stuck();
        }
        Ok(())
    }

    /// Reads everything that is known about every connection.
    fn read_all(&mut self) {
        self.due.read = Instant::now();
        let connections = match self.reader.connections() {
            Ok(connections) => connections,
            Err(error) => return self.fault(&error.to_string()),
        };
        let is_there = |state| matches!(state, ConnectionState::Active | ConnectionState::Paused);
        let names = connections.into_iter().filter(|known| is_there(known.state)).map(|known| known.name);
        let names = names.collect::<Vec<_>>();
        let gone = self.scheduler.connections().filter(|known| !names.iter().any(|name| name == known));
        for name in gone.map(str::to_owned).collect::<Vec<_>>() {
            self.scheduler.forget(&name);
        }
        self.manifests.keep(|known| names.iter().any(|name| name == known));
        self.could_not.retain(|known, _| names.contains(known));
        for name in &names {
            self.read_one(name);
        }
    }

    /// Reads what is known about one connection, and tells schedule and owner.
    fn read_one(&mut self, name: &str) -> Option<Gathered> {
        let date = now();
        let credential = self.credentials.get(name).and_then(|looked| looked.found.as_deref());
        let asking = Asking { now: date, ourselves: &self.ourselves, credential };
        let mut gathered = match gather(&self.reader, name, &mut self.manifests, asking) {
            Ok(gathered) => gathered,
            Err(StoreError::UnknownConnection(_) | StoreError::Purging(_)) => {
                self.scheduler.forget(name);
                return None;
            }
            Err(error) => {
                self.fault(&error.to_string());
                return None;
            }
        };
        if let Some((times, until)) = self.could_not.get(name).copied() {
            gathered.facts.detained = Some(Detained::CouldNotStart { until, times });
        }
        if waits_for_credential(&gathered) {
            self.look_for_credential(name);
        }
        self.scheduler.learn(gathered.facts.clone(), date);
        if self.runs.contains_key(name) {
            self.scheduler.set_parked(name, gathered.facts.question_open, date);
        }
        self.tell(&gathered, date);
        Some(gathered)
    }

    /// Tells the owner what is new, once.
    fn tell(&mut self, gathered: &Gathered, date: WallTime) {
        let name = &gathered.facts.connection;
        let questions = if gathered.facts.question_open { self.reader.open_questions() } else { Ok(Vec::new()) };
        let questions = questions.unwrap_or_default();
        let ids = questions.iter().filter(|question| question.connection == *name).map(|question| question.id);
        let all = notices(gathered, &ids.collect::<Vec<_>>(), date);
        let events = all.iter().map(|notice| notice.event.clone()).collect::<Vec<_>>();
        match self.store.note_events(name, &events, date) {
            Ok(new) => {
                for notice in all.into_iter().filter(|notice| new.contains(&notice.event)) {
                    self.teller.tell(notice);
                }
            }
            // It is tried again with the next look.
            Err(error) => self.fault(&error.to_string()),
        }
    }

    /// Looks for a credential that may be another one now, unless somebody has just looked.
    fn look_for_credential(&mut self, name: &str) {
        if self.credentials.get(name).is_some_and(|looked| looked.at.elapsed() < CREDENTIAL_EVERY) {
            return;
        }
        self.credentials.insert(name.to_owned(), Looked { at: Instant::now(), found: None });
        let (find, sender, name) = (Arc::clone(&self.config.find_credential), self.handle.0.clone(), name.to_owned());
        let looking = thread::Builder::new().name("credential".to_owned()).spawn(move || {
            let found = find(&name);
            let _heard = sender.send(Event::Credential(name, found));
        });
        if let Err(error) = looking {
            self.fault(&format!("cannot start a thread: {error}"));
        }
    }

    fn start_what_is_due(&mut self) {
        while let Some(launch) = self.scheduler.poll(now()) {
            self.start(&launch);
        }
    }

    fn start(&mut self, launch: &Launch) {
        let name = &launch.connection;
        let mut command = self.config.run.clone();
        command.push(format!("--kind={}", kind_code(launch.kind)).into());
        command.push(format!("--connection={name}").into());
        let sender = self.handle.0.clone();
        let of = name.clone();
        let ended = move || {
            let _heard = sender.send(Event::Ended(of));
        };
        match Run::start(&command, name, self.newest_run(name), ended) {
            Ok(run) => {
                tracing::info!("{name:?}: process {} runs it ({})", run.id(), kind_code(launch.kind));
                self.runs.insert(name.clone(), run);
            }
            Err(error) => {
                tracing::error!("{name:?} could not be started: {error}");
                self.scheduler.ended(name, now());
                self.note_not_started(name);
                self.read_one(name);
            }
        }
    }

    /// A run has ended: by itself, or because it was told to.
    fn ended(&mut self, name: &str) {
        let Some(run) = self.runs.remove(name) else { return };
        let (before, pid) = (run.before.clone(), run.id());
        let is_handed_over = run.was_asked_to_stop;
        let status = run.reap().map_or_else(|error| error.to_string(), |status| status.to_string());
        self.scheduler.ended(name, now());
        if self.newest_run(name) == before {
            tracing::warn!("{name:?}: process {pid} ended ({status}), and no run came of it");
            self.note_not_started(name);
        } else {
            self.could_not.remove(name);
        }
        let gathered = self.read_one(name);
        let reason = gathered.and_then(|gathered| gathered.facts.last).map(|last| last.reason);
        tracing::info!("{name:?}: {} ({status})", reason.map_or("no run", |reason| reason.code()));
        if is_handed_over {
            self.hand_over(name, reason);
        }
    }

    fn newest_run(&self, name: &str) -> Option<String> {
        Some(self.reader.runs(name, 1).ok()?.pop()?.run_id)
    }

    fn note_not_started(&mut self, name: &str) {
        let (times, until) = self.could_not.entry(name.to_owned()).or_default();
        *times = times.saturating_add(1);
        let pause = START_AGAIN.saturating_mul(1 << times.saturating_sub(1).min(16)).min(START_AGAIN_MAX);
        *until = now() + pause;
    }

    /// A run whose lease has ended although its process lives does nothing any more, and is ended.
    fn look_for_the_stuck(&mut self) {
        for (name, run) in self.runs.iter_mut().filter(|(_, run)| run.since.elapsed() > BEGIN_MAX) {
            let held = self.reader.held_by(LeaseOn::Connection(name), &self.ourselves, now());
            let is_at_work = held.map_or(true, |held| held.is_some_and(|held| held.pid == run.id()));
            run.strikes = if is_at_work { 0 } else { run.strikes + 1 };
            if run.strikes >= STRIKES_MAX {
                tracing::error!("{name:?}: process {} hangs, and is ended", run.id());
                run.kill();
            }
        }
    }

    /// Says what is wrong, and not again and again.
    fn fault(&mut self, text: &str) {
        if self.last_fault != text {
            tracing::error!("{text}");
            text.clone_into(&mut self.last_fault);
        }
    }
}

//! The loop: what is due is started, what ended is accounted for, what changed is looked at, and otherwise it sleeps.
//!
//! It wakes when a run ends, when somebody says so, when the schedule has something to do, and every two seconds to ask
//! the store for one number: whether another process has changed something. Only then is anything read. It holds a lease,
//! so that there is one service per store; every run holds leases of its own, so that nothing depends on there being one.
//! Nothing here waits for a run, a connector, a password manager or a web server.

mod child;
pub(crate) mod log_file;
mod notices;
pub(crate) mod notify;
pub(crate) mod sd_notify;
mod shutdown;

use crate::app::{App, ourselves};
use crate::connection::credentials::Credentials;
use crate::dates::{self, now};
use crate::error::{AppError, ErrorKind};
use crate::run::spec::RunSpec;
use crate::view::connection_view::{ConnectionView, Look, is_collected};
use crate::view::facts::waits_for_credential;
use crate::view::outlook::kind_code;
use child::Run;
use gleaner_engine::WallTime;
use gleaner_schedule::{Detained, Launch, Limits, Scheduler};
use gleaner_store::{Acquired, HEARTBEAT, HeldBy, Lease, LeaseOn, Reader, Store, StoreError};
use notices::notices;
use notify::{Channels, Teller};
use sd_notify::Supervisor;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often it is asked whether somebody has changed the store: soon enough for people, and next to nothing.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
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

/// What a service needs.
#[derive(Debug)]
pub struct ServiceConfig {
    /// How much may happen at once.
    pub limits: Limits,
    /// How the owner is told.
    pub channels: Channels,
    /// Who wants to hear that it lives.
    pub supervisor: Supervisor,
}

/// Another process serves this data root.
fn held(by: &HeldBy) -> AppError {
    let (pid, since, until) = (by.pid, dates::rfc3339(by.since), dates::rfc3339(by.until));
    let message = format!("process {pid} serves this data root since {since}, and until {until} if it gives no sign");
    let hint = format!("one service is enough; to end that one: kill {pid}, or gleaner service uninstall");
    AppError::new(ErrorKind::Held, message, hint)
}

impl App {
    /// Begins a service on this data root.
    ///
    /// # Errors
    ///
    /// When another process serves it, or the store cannot be used.
    pub fn begin_service(&self, config: ServiceConfig) -> Result<Service, AppError> {
        Service::begin(self.clone(), config)
    }

    /// A keyed hash of the credential of a connection as it is now. May ask a password manager.
    fn credential_now(&self, name: &str) -> Option<String> {
        let connection = self.connection(name).ok()?;
        let credentials = Credentials::find(&connection.manifest, self, name).ok()?;
        Some(credentials.account(&connection.manifest, self).ok()??.1)
    }
}

/// A service that has its lease.
pub struct Service {
    app: App,
    config: ServiceConfig,
    store: Store,
    reader: Reader,
    lease: Lease,
    scheduler: Scheduler,
    look: Look,
    runs: BTreeMap<String, Run>,
    /// What could not be started: how often in a row, and when to try again.
    could_not: BTreeMap<String, (u32, WallTime)>,
    /// When somebody last looked for a credential.
    credentials: BTreeMap<String, Instant>,
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
    fn begin(app: App, config: ServiceConfig) -> Result<Self, AppError> {
        let mut store = Store::open(&app.store_path())?;
        let lease = match store.acquire(&[LeaseOn::Serve], &ourselves()?, now())? {
            Acquired::Yes { mut leases, .. } => leases.remove(0),
            Acquired::Held(by) => return Err(held(&by)),
        };
        let reader = Reader::open(&app.store_path())?;
        let teller = Teller::start(config.channels.clone()).map_err(|error| {
            let hint = "the system has too many threads or too little memory";
            AppError::failed(format!("cannot start a thread: {error}"), hint)
        })?;
        let (sender, events) = sync_channel(EVENTS_MAX);
        let at = Instant::now();
        Ok(Self {
            scheduler: Scheduler::new(config.limits),
            due: Due { beat: at + HEARTBEAT, sign: at, read: at, changed: true },
            seen_change: store.changes_of_others()?,
            seen_secrets: None,
            handle: Handle(sender),
            look: Look::new(&reader)?,
            runs: BTreeMap::new(),
            could_not: BTreeMap::new(),
            credentials: BTreeMap::new(),
            last_fault: String::new(),
            app,
            config,
            store,
            reader,
            lease,
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
    pub fn serve(mut self) -> Result<(), AppError> {
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
        let wake = self.scheduler.wake_at(date).map_or(POLL_INTERVAL, |at| at.since(date));
        let sign = self.due.sign.saturating_duration_since(Instant::now());
        let sign = self.config.supervisor.sign_every().map_or(POLL_INTERVAL, |_| sign);
        wake.min(POLL_INTERVAL).min(sign).max(Duration::from_millis(10))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended(name) => self.ended(&name),
            Event::Changed => self.due.changed = true,
            Event::Credential(name, found) => {
                self.credentials.insert(name.clone(), Instant::now());
                self.look.credentials.extend(found.map(|found| (name.clone(), found)));
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
        let secrets = std::fs::metadata(self.app.root().join("secrets")).and_then(|about| about.modified()).ok();
        let is_nudged = std::mem::take(&mut self.due.changed);
        let since = self.due.read.elapsed();
        let at_least = if self.runs.is_empty() { READ_IDLE } else { READ_AT_LEAST };
        let has_changed = (change, secrets) != (self.seen_change, self.seen_secrets);
        if is_nudged || since >= at_least || has_changed && since >= READ_EVERY {
            if secrets != self.seen_secrets {
                self.credentials.clear();
                self.look.credentials.clear();
            }
            (self.seen_change, self.seen_secrets) = (change, secrets);
            self.read_all();
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
        let names = connections.into_iter().filter(|known| is_collected(known.state)).map(|known| known.name);
        let names = names.collect::<Vec<_>>();
        let gone = self.scheduler.connections().filter(|known| !names.iter().any(|name| name == known));
        for name in gone.map(str::to_owned).collect::<Vec<_>>() {
            self.scheduler.forget(&name);
        }
        self.look.keep(|known| names.iter().any(|name| name == known));
        self.could_not.retain(|known, _| names.contains(known));
        if let Err(error) = self.look.again(&self.reader, now()) {
            return self.fault(&error.to_string());
        }
        for name in &names {
            if let Some(view) = self.load(name) {
                self.look_whether_stuck(name, view.holder.as_ref());
            }
        }
        let gone = self.runs.keys().filter(|&name| !names.contains(name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.look_whether_stuck(&name, None);
        }
    }

    /// Reads what is known about one connection now.
    fn read_one(&mut self, name: &str) -> Option<ConnectionView> {
        match self.look.again(&self.reader, now()) {
            Ok(()) => self.load(name),
            Err(error) => {
                self.fault(&error.to_string());
                None
            }
        }
    }

    /// Reads what is known about one connection, and tells schedule and owner.
    fn load(&mut self, name: &str) -> Option<ConnectionView> {
        let date = self.look.now;
        let mut view = match ConnectionView::load(&self.reader, &mut self.look, name) {
            Ok(view) => view,
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
            view.facts.detained = Some(Detained::CouldNotStart { until, times });
        }
        if waits_for_credential(&view.evidence) {
            self.look_for_credential(name);
        }
        self.scheduler.learn(view.facts.clone(), date);
        if self.runs.contains_key(name) {
            self.scheduler.set_parked(name, view.facts.question_open, date);
        }
        self.tell(&view, date);
        Some(view)
    }

    /// Tells the owner what is new, once.
    fn tell(&mut self, view: &ConnectionView, date: WallTime) {
        let (name, all) = (view.name(), notices(view));
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
        if self.credentials.get(name).is_some_and(|looked| looked.elapsed() < CREDENTIAL_EVERY) {
            return;
        }
        self.credentials.insert(name.to_owned(), Instant::now());
        self.look.credentials.remove(name);
        let (app, sender, name) = (self.app.clone(), self.handle.0.clone(), name.to_owned());
        let looking = thread::Builder::new().name("credential".to_owned()).spawn(move || {
            let found = app.credential_now(&name);
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
        let sender = self.handle.0.clone();
        let of = name.clone();
        let ended = move || {
            let _heard = sender.send(Event::Ended(of));
        };
        match self.start_process(launch, ended) {
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

    fn start_process(&self, launch: &Launch, ended: impl FnOnce() + Send + 'static) -> std::io::Result<Run> {
        let spec = RunSpec::scheduled(&launch.connection, launch.kind);
        let spec = serde_json::to_string(&spec)?;
        let mut command = Command::new(self.app.executable().map_err(std::io::Error::other)?);
        command.arg("scheduled-run").arg(format!("--parent={}", std::process::id()));
        command.arg("--home").arg(self.app.root());
        Run::start(&mut command, &spec, &launch.connection, self.newest_run(&launch.connection), ended)
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
        let reason = self.read_one(name).and_then(|view| view.facts.last).map(|last| last.reason);
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
    fn look_whether_stuck(&mut self, name: &str, holder: Option<&HeldBy>) {
        let Some(run) = self.runs.get_mut(name).filter(|run| run.since.elapsed() > BEGIN_MAX) else { return };
        let is_at_work = holder.is_some_and(|holder| holder.pid == run.id());
        run.strikes = if is_at_work { 0 } else { run.strikes + 1 };
        if run.strikes >= STRIKES_MAX {
            tracing::error!("{name:?}: process {} hangs, and is ended", run.id());
            run.kill();
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

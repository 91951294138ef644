//! One run from its lease to its end: a loop between engine, store and process.
//!
//! The engine decides; this carries out. Effects are carried out in their order and one at a time, so
//! a store that is slow keeps the connector's output waiting in its pipe and nothing piles up here.
//! Nothing of the store is carried out after something that it could not do. The loop always ends:
//! when the process has ended, or when the engine no longer waits for it.

mod effects;

use crate::control_socket::ControlSocket;
use crate::frames::Frame;
use crate::observer::Observer;
use crate::process::{LaunchError, Process, ProcessEvent, start_thread};
use crate::request::{Control, RunError, RunReport, RunRequest};
use crate::start;
use crate::stderr_tail::StderrTail;
use gleaner_engine::{
    AnswerTaken, AttemptLimits, CatchUp, CooldownPolicy, EFFECTS_MAX, Exit, LeaseId, Now, Reach, RecordChecks, Run,
    RunConfig, RunId, RunOutcome, RunPurpose, Schemas, Scoped, Steady, Time, Track, TrackChoice, WallTime, check_scope,
};
use gleaner_protocol::{CollectionMode, Decoder, Event, InteractionStatus, Limits, RawJson, TerminalReason};
use gleaner_store::{
    Acquired, HEARTBEAT, Holder, Lease, LeaseOn, RunAbout, RunStart, Session, Settled, Store, StoreError,
};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Pieces of output that wait: some 256 KB, so that reading and storing overlap.
const WAITING_MAX: usize = 4;
/// How long output may go on after the process has ended. From the contract.
const DRAIN_MAX: Duration = Duration::from_secs(3);
/// How long a connector that was asked to stop may take for the slice that it is in.
const STOP_MAX: Duration = Duration::from_secs(7);
/// How long events of the trace may wait for a slice that takes them along.
const TRACE_MAX: Duration = Duration::from_secs(5);
/// How often the trace is written for the sake of a wait, at most: whoever looks meanwhile should see it, and a
/// connector that reports one wait after the other must not cost a sync each.
const WAIT_EVERY: Duration = Duration::from_secs(1);

/// What wakes the loop.
#[derive(Debug)]
enum Input {
    Process(ProcessEvent),
    /// With who wants to know what became of it.
    Control(Control, Option<Sender<AnswerTaken>>),
}

/// Runs a connector to its end, on the track that its scope allows ([`Reach::decide`]); no caller can choose another.
/// Blocks; `control` may be used from other threads meanwhile.
///
/// # Errors
///
/// When nothing was started. What happens to a run that was is in the report.
pub fn run(
    store: &mut Store,
    request: RunRequest,
    control: Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<RunReport, RunError> {
    check_scope(&request.manifest, &request.scope.asked)?;
    let clock = Clock::start();
    let leases = acquire(store, &request, clock.now().wall)?;
    // Under the lease of the connection: no other run can change what is known of its streams.
    let seen = match store.seen_streams(&request.connection) {
        Ok(seen) => seen,
        Err(error) => return Err(give_back(store, &leases, error)),
    };
    let ground = Ground { clock, leases, reach: Arc::new(Reach::decide(&request.manifest, &request.scope, &seen)) };
    match ground.reach.track() {
        TrackChoice::Steady => run_on::<Steady>(store, request, ground, control, observer),
        TrackChoice::CatchUp => run_on::<CatchUp>(store, request, ground, control, observer),
        TrackChoice::Scoped => run_on::<Scoped>(store, request, ground, control, observer),
    }
}

/// What a run stands on.
struct Ground {
    clock: Clock,
    leases: Vec<Lease>,
    reach: Arc<Reach>,
}

fn run_on<T: Track>(
    store: &mut Store,
    request: RunRequest,
    ground: Ground,
    control: Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<RunReport, RunError> {
    let mut supervisor = Supervisor::<T>::begin(store, request, ground, observer)?;
    let (events, inputs) = sync_channel(WAITING_MAX);
    supervisor.forward(control, events.clone())?;
    let socket = supervisor.listen(&events)?;
    supervisor.launch(&events)?;
    supervisor.drive(&inputs);
    drop(socket);
    Ok(supervisor.report())
}

/// The two clocks of a run.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> Now {
        let wall = WallTime::from_unix_millis(gleaner_base::clock::unix_millis());
        Now { time: Time::default() + self.0.elapsed(), wall }
    }
}

struct Supervisor<'a, T: Track> {
    store: &'a mut Store,
    observer: &'a mut dyn Observer,
    clock: Clock,
    request: RunRequest,
    run: Run<T>,
    session: Option<Session<T>>,
    process: Option<Process>,
    decoder: Decoder,
    /// The open question.
    question: Option<i64>,
    slices: u64,
    exit: Option<Exit>,
    output_closed: bool,
    /// When its time is over for good.
    over_at: Option<Instant>,
    /// Whether the connector was asked to stop.
    is_stopping: bool,
    /// When it has had its time for that.
    stop_by: Option<Instant>,
    was_told_to_stop: bool,
    /// When the process ended, while its output has not.
    draining_since: Option<Instant>,
    next_heartbeat: Instant,
    next_trace: Instant,
    /// When the trace was written last.
    traced_at: Option<Instant>,
    store_error: Option<StoreError>,
    interrupted_before: u64,
    left_quarantine: u64,
    track: TrackChoice,
    outcome: Option<RunOutcome>,
}

impl<'a, T: Track> Supervisor<'a, T> {
    fn begin(
        store: &'a mut Store,
        request: RunRequest,
        ground: Ground,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RunError> {
        let Ground { clock, leases, reach } = ground;
        let found_by = reach.found_by().clone();
        let (now, track) = (clock.now(), reach.track());
        let schemas = match Schemas::new(&request.manifest) {
            Ok(schemas) => schemas,
            Err(fault) => return Err(give_back(store, &leases, fault)),
        };
        let checks = RecordChecks { schemas, redactor: request.redactor.clone() };
        let mut session = open_session::<T>(store, &request, &leases, reach, now.wall)?;
        let left_quarantine = store.retry_quarantine(&mut session, &checks, now.wall)?;
        if request.mode == CollectionMode::FullRefresh && T::NAME != CatchUp::NAME {
            session.begin_anew();
        }
        let interrupted_before = session.interrupted_before();
        let config = RunConfig {
            run_id: session.run_id().clone(),
            lease: session.lease().clone(),
            manifest: request.manifest.clone(),
            scope: request.scope.asked.clone(),
            bookmarks: session.bookmarks(),
            bindings: request.bindings.iter().map(|(name, _)| name.clone()).collect(),
            grant_expires_at: request.grant_expires_at,
            validator: Box::new(checks),
            silence_max: request.silence_max,
            effects_max: EFFECTS_MAX,
        };
        let run = match Run::new(config, now) {
            Ok(run) => run.found_by(found_by).recovering_only(request.purpose == RunPurpose::RecoveryOnly),
            Err(refusal) => {
                // On record, so that the owner sees why nothing came.
                store.finish_run(session, &RunOutcome::refused(refusal.reason()), now.wall)?;
                return Err(refusal.into());
            }
        };
        let allowed = request.budget.and_then(|budget| budget.max_duration_ms).map(Duration::from_millis);
        let over_at = allowed.map(|allowed| clock.0 + allowed + request.overrun);
        Ok(Self {
            store,
            observer,
            clock,
            request,
            run,
            session: Some(session),
            process: None,
            decoder: Decoder::new(Limits::default()),
            question: None,
            slices: 0,
            exit: None,
            output_closed: false,
            over_at,
            is_stopping: false,
            stop_by: None,
            was_told_to_stop: false,
            draining_since: None,
            next_heartbeat: clock.0 + HEARTBEAT,
            next_trace: clock.0 + TRACE_MAX,
            traced_at: None,
            store_error: None,
            interrupted_before,
            left_quarantine,
            track,
            outcome: None,
        })
    }
}

/// Takes the leases.
fn acquire(store: &mut Store, request: &RunRequest, now: WallTime) -> Result<Vec<Lease>, RunError> {
    let holder = Holder::current().map_err(StoreError::Holder)?;
    let mut on = vec![LeaseOn::Connection(&request.connection)];
    if let Some((provider, hash)) = &request.credential {
        on.push(LeaseOn::Credential { provider, hash });
    }
    match store.acquire(&on, &holder, now)? {
        Acquired::Yes { leases, .. } => Ok(leases),
        Acquired::Held(by) => Err(RunError::Held(by)),
    }
}

/// Gives the leases back, so that whoever comes next does not have to wait for us.
fn give_back(store: &mut Store, leases: &[Lease], error: impl Into<RunError>) -> RunError {
    drop(store.release(leases));
    error.into()
}

/// Opens the run. The names of a run are made of what is unique: its connection and the epoch.
fn open_session<T: Track>(
    store: &mut Store,
    request: &RunRequest,
    leases: &[Lease],
    reach: Arc<Reach>,
    now: WallTime,
) -> Result<Session<T>, RunError> {
    let epoch = leases.first().map_or(0, |lease| lease.epoch().get());
    let name = format!("{}-{epoch}", request.connection);
    let policy = request.manifest.refresh_policy.as_ref();
    let start = RunStart {
        connection: request.connection.clone(),
        run_id: RunId::new(&name),
        lease: LeaseId::new(&name),
        grant: request.grant.clone(),
        limits: AttemptLimits::of(policy),
        cooldown: CooldownPolicy::of(request.interval, policy),
        about: RunAbout {
            purpose: request.purpose,
            connector_version: Some(request.manifest.version.clone()),
            credential: request.credential.as_ref().map(|(_, hash)| hash.clone()),
            reach: Some(reach),
        },
    };
    match store.begin_run(start, leases.to_vec(), now) {
        Ok(session) => Ok(session),
        Err(error) => Err(give_back(store, leases, error)),
    }
}

impl<T: Track> Supervisor<'_, T> {
    /// Makes the run reachable for other processes.
    fn listen(&mut self, events: &SyncSender<Input>) -> Result<Option<ControlSocket>, RunError> {
        let (Some(folder), Some(session)) = (self.request.control.clone(), &self.session) else { return Ok(None) };
        let events = events.clone();
        let deliver = move |order: Control, reply: Sender<_>| events.send(Input::Control(order, Some(reply))).is_ok();
        let bound = ControlSocket::bind(&folder, session.epoch(), Arc::new(deliver));
        bound.map(Some).map_err(|error| self.give_up(RunError::Control { folder, error }))
    }

    /// Orders come from anywhere; here they join the output, so that there is one queue and one order.
    fn forward(&mut self, control: Receiver<Control>, events: SyncSender<Input>) -> Result<(), RunError> {
        let started = start_thread("control", move || {
            while let Ok(order) = control.recv() {
                if events.send(Input::Control(order, None)).is_err() {
                    return;
                }
            }
        });
        started.map(drop).map_err(|error| self.give_up(LaunchError::Thread(error)))
    }

    /// A wait is worth a write of its own: no slice comes while it lasts.
    fn write_trace_soon(&mut self) {
        let now = Instant::now();
        let at = self.traced_at.map_or(now, |at| (at + WAIT_EVERY).max(now));
        self.next_trace = self.next_trace.min(at);
    }

    /// Ends a run that could not begin, and keeps why.
    fn give_up(&mut self, error: impl Into<RunError>) -> RunError {
        let error = error.into();
        let Some(session) = self.session.take() else { return error };
        let told = Some(effects::runtime_error(error.to_string()));
        let outcome = RunOutcome { error: told, ..RunOutcome::refused(TerminalReason::RuntimeError) };
        let ended = self.store.finish_run(session, &outcome, self.clock.now().wall);
        ended.map_or_else(Into::into, |_| error)
    }

    /// Starts the process and tells it what to do.
    fn launch(&mut self, events: &SyncSender<Input>) -> Result<(), RunError> {
        let tail = StderrTail::new(self.request.redactor.clone());
        let now = self.clock.now();
        let Some(session) = &self.session else { return Ok(()) };
        let start = start::message(self.store, session, &self.request, now.wall)?;
        let process = Process::start(&self.request.launch, tail, events, Input::Process);
        let process = process.map_err(|error| self.give_up(error))?;
        process.order(Frame::Input(start));
        self.process = Some(process);
        Ok(())
    }

    /// Goes round until the run has ended and nothing of it is left.
    fn drive(&mut self, inputs: &Receiver<Input>) {
        loop {
            self.settle();
            // Letting go of a process that has not ended tells its guard to end it.
            if self.outcome.is_some() {
                return;
            }
            match inputs.recv_timeout(self.wait()) {
                Ok(Input::Process(event)) => self.take(event),
                Ok(Input::Control(order, reply)) => {
                    let taken = self.obey(order);
                    // Who asked may be gone.
                    let _heard = reply.map(|reply| reply.send(taken));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Every thread is gone, and the one that waits for the exit has said so before.
                Err(RecvTimeoutError::Disconnected) => self.close_output(),
            }
            self.look_at_the_clock();
        }
    }

    /// Until something is due.
    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let due = self
            .run
            .poll_timeout(now)
            .map(|time| Duration::from_millis(time.as_millis().saturating_sub(now.time.as_millis())));
        let own = self.next_heartbeat.min(self.next_trace);
        let own = self.draining_since.map_or(own, |since| own.min(since + DRAIN_MAX));
        let own = self.stop_by.map_or(own, |at| own.min(at));
        let own = self.over_at.map_or(own, |at| own.min(at));
        let own = own.saturating_duration_since(Instant::now());
        due.map_or(own, |due| due.min(own)).max(Duration::from_millis(1))
    }

    fn look_at_the_clock(&mut self) {
        let now = self.clock.now();
        if self.run.poll_timeout(now).is_some_and(|time| time <= now.time) {
            self.run.handle_timeout(now);
        }
        let instant = Instant::now();
        if self.draining_since.is_some_and(|since| instant >= since + DRAIN_MAX) {
            self.close_output();
        }
        if self.over_at.is_some_and(|at| instant >= at) {
            self.over_at = None;
            self.end_over_time();
        }
        if self.stop_by.is_some_and(|at| instant >= at) {
            self.stop_by = None;
            self.end_at_once();
        }
        if instant >= self.next_heartbeat {
            self.next_heartbeat = instant + HEARTBEAT;
            let leases = self.session.as_ref().map(|session| session.leases().to_vec()).unwrap_or_default();
            let beat = self.store.heartbeat(&leases);
            self.check(beat);
        }
        if instant >= self.next_trace {
            (self.next_trace, self.traced_at) = (instant + TRACE_MAX, Some(instant));
            if let Some(session) = self.session.as_mut().filter(|_| self.store_error.is_none()) {
                let flushed = self.store.flush_trace(session);
                self.check(flushed);
            }
        }
    }

    fn take(&mut self, event: ProcessEvent) {
        match event {
            ProcessEvent::Output(bytes) => self.feed(&bytes),
            ProcessEvent::OutputClosed => self.close_output(),
            ProcessEvent::Exited(exit) => {
                self.exit = Some(exit);
                if self.output_closed {
                    self.hand_over_exit();
                } else {
                    self.draining_since = Some(Instant::now());
                }
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        if self.output_closed {
            return;
        }
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut feed = decoder.feed(bytes);
        while let Some(event) = feed.next() {
            if let Event::Message { message, .. } = &event {
                self.observer.message(message);
            }
            while self.run.handle_event(&event, self.clock.now()).is_err() {
                if !self.step() {
                    // Full, with nothing to carry out: an event must not be lost, so nothing of this run counts.
                    self.run.handle_store_failed(self.clock.now());
                }
            }
        }
        self.decoder = decoder;
        self.observer.heard(self.run.counts());
    }

    /// Nothing more comes: what was said last is judged, and the exit counts.
    fn close_output(&mut self) {
        self.draining_since = None;
        if std::mem::replace(&mut self.output_closed, true) {
            return;
        }
        let now = self.clock.now();
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, now);
        }
        self.hand_over_exit();
    }

    /// The exit, once all that came before it was handed over. A process that was asked to stop ends
    /// without DONE, and that is no breach.
    fn hand_over_exit(&mut self) {
        let Some(exit) = self.exit else { return };
        let now = self.clock.now();
        if self.is_stopping {
            self.run.handle_cancel(now);
        }
        self.run.handle_exit(exit, now);
    }

    fn obey(&mut self, order: Control) -> AnswerTaken {
        let now = self.clock.now();
        match order {
            Control::Cancel => self.begin_to_stop(),
            Control::CancelNow => self.end_at_once(),
            Control::Answer(response) => {
                let declined = response.status == InteractionStatus::Cancelled;
                let values = response.data.as_ref().map(|data| values_of("", data.expose())).unwrap_or_default();
                let request_id = response.request_id.clone();
                let taken = self.run.handle_answer(response, now);
                if taken == AnswerTaken::Yes {
                    self.observer.withdrawn(&request_id);
                    // Before the connector hears it, which may repeat it.
                    self.request.redactor.learn_named(values);
                    self.settle_question(if declined { Settled::Cancelled } else { Settled::Answered });
                }
                return taken;
            }
        }
        AnswerTaken::Yes
    }

    /// Its time is over and it has not stopped: what is left of its streams is written down, then it is
    /// ended. A planned stop, so nothing of it arms a cooldown.
    fn end_over_time(&mut self) {
        // Not while its end is under way already.
        let Some(session) = self.session.as_ref().filter(|_| self.run.is_collecting()) else { return };
        let now = self.clock.now();
        let streams = self.request.scope.asked.streams().iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
        let written = self.store.write_rest_of_run(session, &streams, now.wall);
        self.check(written);
        self.run.handle_budget_reached(now);
    }

    /// Asks the connector to stop and goes on listening: the slice that it is in is finished and saved.
    fn begin_to_stop(&mut self) {
        self.was_told_to_stop = true;
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.stop_by = Some(Instant::now() + STOP_MAX);
            if let Some(process) = &self.process {
                process.order(Frame::Stop);
            }
        }
    }

    /// Whatever the connector is doing. It was asked before, or the owner does not want to wait for that.
    fn end_at_once(&mut self) {
        self.was_told_to_stop = true;
        self.run.handle_cancel(self.clock.now());
        if let Some(process) = &self.process {
            process.order(Frame::Kill);
        }
    }

    fn report(mut self) -> RunReport {
        let errors = self.process.as_ref().map(Process::errors).unwrap_or_default();
        RunReport {
            run_id: self.run.run_id().as_str().to_owned(),
            outcome: self.outcome.take().unwrap_or_else(|| RunOutcome::refused(TerminalReason::Interrupted)),
            store_error: self.store_error,
            errors,
            interrupted_before: self.interrupted_before,
            left_quarantine: self.left_quarantine,
            was_told_to_stop: self.was_told_to_stop,
            track: self.track,
        }
    }
}

/// What the owner typed: every text and number of an answer, wherever it is in it, with the name of its field.
fn values_of(name: &str, answer: &RawJson<'_>) -> Vec<(String, String)> {
    if let Some(members) = answer.members() {
        return members.iter().flat_map(|(name, value)| values_of(name, value)).collect();
    }
    if let Some(elements) = answer.elements() {
        return elements.iter().flat_map(|element| values_of(name, element)).collect();
    }
    let text = answer.text().map_or_else(|| answer.as_str().trim().to_owned(), std::borrow::Cow::into_owned);
    if matches!(text.as_str(), "true" | "false" | "null") { Vec::new() } else { vec![(name.to_owned(), text)] }
}

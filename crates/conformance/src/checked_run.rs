//! Engine and store behind a run that is checked: the same judgement, and the same durable state, as in
//! a run for an owner.
//!
//! Why not the runtime's own loop: a check must see the raw lines and cut a run after an exact one, so
//! that a point of kill can be chosen again. The loop here carries out the same effects. It never
//! touches a store that is not scratch.

use crate::ask::Ask;
use gleaner_engine::{
    AttemptLimits, CatchUp, CooldownPolicy, EFFECTS_MAX, Effect, Exit, GrantPart, LeaseId, Now, ProcessEffect, Reach,
    RecordChecks, Run, RunConfig, RunId, RunOutcome, RunPurpose, RunScope, Schemas, Scoped, Steady, StoreEffect, Time,
    Track, TrackChoice, WallTime,
};
use gleaner_protocol::{
    CollectionMode, Decoder, Limits, Manifest, RawJson, RuntimeMessage, Scope, ServedGap, Start, StreamScope, Violation,
};
use gleaner_runtime::Redactor;
use gleaner_store::{Acquired, Holder, LeaseOn, RunAbout, RunStart, Session, Store, StoreError};
use std::sync::Arc;
use std::time::Instant;

/// The connection in the scratch store.
pub(crate) const CONNECTION: &str = "subject";
/// One gap per page, so that few gaps are enough to see whether a connector asks for more.
const PAGE_BYTES: u64 = 1;
/// What a runtime of another year might say.
const UNKNOWN_KEYS: &str = r#"{"conformance_future_flag":true,"conformance_future":{"nested":[1,null]},"#;

/// What is to be done with the process.
pub(crate) enum Order {
    Send(Vec<u8>),
    CloseInput,
    /// The run is broken off.
    End,
}

/// What every run of a subject shares.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) redactor: Redactor,
    pub(crate) bindings: Vec<(String, RawJson<'static>)>,
    /// What an ordinary run collects.
    pub(crate) streams: Vec<String>,
}

/// Engine and store behind a run, whichever track it moves.
pub(crate) trait JudgedRun {
    /// Takes output and says what to do.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Order>;
    /// The process has ended and its output is all there. A run that was cancelled, or cut by us, is not
    /// judged by how it ended.
    fn end(&mut self, exit: Exit, cancelled: bool);
    /// The breach that was found so far.
    fn violation(&self) -> Option<&Violation>;
    /// How it ended; an error is the store's.
    fn outcome(self: Box<Self>) -> Result<(RunOutcome, Kept), String>;
}

/// What a connector was given.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Every gap that was served, in order.
    pub(crate) served: Vec<ServedGap>,
    /// Whether the connector was told that there are no more.
    pub(crate) drained: bool,
    /// The streams whose cursor it was given.
    pub(crate) gone_on_from: Vec<String>,
}

/// One run, as engine and store see it.
struct CheckedRun<'s, T: Track> {
    store: &'s mut Store,
    session: Option<Session<T>>,
    run: Run<T>,
    decoder: Decoder,
    began: Instant,
    kept: Kept,
    outcome: Option<RunOutcome>,
    store_error: Option<String>,
}

/// Opens a run on the track that the runtime would choose, and says what the connector is told first.
pub(crate) fn begin<'s>(
    store: &'s mut Store,
    ground: &Ground,
    ask: &Ask,
) -> Result<(Box<dyn JudgedRun + 's>, Vec<u8>), String> {
    let asked = Scope::new(ask.streams.clone()).map_err(|fault| fault.to_string())?;
    let grant = ground.streams.iter().map(StreamScope::all_of).collect();
    let grant = Scope::new(grant).map_err(|fault| fault.to_string())?;
    let seen = store.seen_streams(CONNECTION).map_err(|error| error.to_string())?;
    let scope = RunScope { grant, asked: asked.clone(), part: GrantPart::All };
    let reach = Reach::decide(&ground.manifest, &scope, &seen);
    match reach.track() {
        TrackChoice::Steady => CheckedRun::<Steady>::begin(store, ground, ask, asked, reach),
        TrackChoice::CatchUp => CheckedRun::<CatchUp>::begin(store, ground, ask, asked, reach),
        TrackChoice::Scoped => CheckedRun::<Scoped>::begin(store, ground, ask, asked, reach),
    }
}

impl<'s, T: Track> CheckedRun<'s, T> {
    fn begin(
        store: &'s mut Store,
        ground: &Ground,
        ask: &Ask,
        scope: Scope,
        reach: Reach,
    ) -> Result<(Box<dyn JudgedRun + 's>, Vec<u8>), String> {
        let began = Instant::now();
        let now = now(began);
        let purpose = if ask.recovery_only { RunPurpose::RecoveryOnly } else { RunPurpose::Full };
        let about = RunAbout { purpose, reach: Some(Arc::new(reach)), ..RunAbout::default() };
        let session = open::<T>(store, &ground.manifest, about, now.wall).map_err(|error| error.to_string())?;
        let schemas = Schemas::new(&ground.manifest).map_err(|fault| fault.to_string())?;
        let config = RunConfig {
            run_id: session.run_id().clone(),
            lease: session.lease().clone(),
            manifest: Arc::clone(&ground.manifest),
            scope: scope.clone(),
            bookmarks: session.bookmarks(),
            bindings: ground.bindings.iter().map(|(name, _)| name.clone()).collect(),
            grant_expires_at: None,
            validator: Box::new(RecordChecks { schemas, redactor: ground.redactor.clone() }),
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        let run = Run::new(config, now).map_err(|refusal| refusal.to_string())?.recovering_only(ask.recovery_only);
        let mut keeper = Self {
            store,
            session: Some(session),
            run,
            decoder: Decoder::new(Limits::default()),
            began,
            kept: Kept::default(),
            outcome: None,
            store_error: None,
        };
        let start = keeper.start(ground, ask, scope).map_err(|error| error.to_string())?;
        Ok((Box::new(keeper), start))
    }

    fn start(&mut self, ground: &Ground, ask: &Ask, scope: Scope) -> Result<Vec<u8>, StoreError> {
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let streams = scope.streams().iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
        let cursors = session.state().filter(|cursor| scope.stream(cursor.stream()).is_some());
        let state = cursors.map(|cursor| (cursor.stream().to_owned(), cursor.token().clone())).collect::<Vec<_>>();
        let from_cursor = ask.mode == CollectionMode::Incremental && !state.is_empty();
        self.kept.gone_on_from = state.iter().filter(|_| from_cursor).map(|(stream, _)| stream.clone()).collect();
        let detail_gaps = self.store.lease_gaps_page(session, &streams, PAGE_BYTES, now(self.began).wall)?;
        self.kept.served.extend(detail_gaps.iter().cloned());
        let start = Start {
            run_id: session.run_id().as_str().to_owned(),
            collection_mode: ask.mode,
            scope,
            state: from_cursor.then_some(state),
            bindings: ground.bindings.clone(),
            detail_gaps,
            recovery_only: ask.recovery_only,
            run_budget: ask.budget,
        };
        let mut line = Vec::new();
        RuntimeMessage::Start(Box::new(start)).encode(&mut line);
        if ask.unknown_keys {
            line.splice(..1, UNKNOWN_KEYS.bytes());
        }
        Ok(line)
    }
}

impl<T: Track> JudgedRun for CheckedRun<'_, T> {
    fn feed(&mut self, bytes: &[u8]) -> Vec<Order> {
        let mut orders = Vec::new();
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut feed = decoder.feed(bytes);
        while let Some(event) = feed.next() {
            while self.run.handle_event(&event, now(self.began)).is_err() {
                if !self.step(&mut orders) {
                    self.run.handle_store_failed(now(self.began));
                }
            }
        }
        self.decoder = decoder;
        self.settle(&mut orders);
        orders
    }

    fn end(&mut self, exit: Exit, cancelled: bool) {
        if cancelled {
            self.run.handle_cancel(now(self.began));
        } else if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, now(self.began));
        }
        self.run.handle_exit(exit, now(self.began));
        self.settle(&mut Vec::new());
    }

    fn outcome(self: Box<Self>) -> Result<(RunOutcome, Kept), String> {
        match (self.outcome, self.store_error) {
            (_, Some(error)) => Err(format!("the scratch store failed: {error}")),
            (Some(outcome), None) => Ok((outcome, self.kept)),
            (None, None) => Err("the run has no outcome".to_owned()),
        }
    }

    fn violation(&self) -> Option<&Violation> {
        self.outcome.as_ref().and_then(|outcome| outcome.violation.as_ref())
    }
}

impl<T: Track> CheckedRun<'_, T> {
    fn settle(&mut self, orders: &mut Vec<Order>) {
        while self.step(orders) {}
    }

    fn step(&mut self, orders: &mut Vec<Order>) -> bool {
        let Some(effect) = self.run.poll_effect() else { return false };
        let carried_out = match effect {
            Effect::Store(effect) => self.of_store(effect),
            Effect::Process(effect) => {
                orders.push(order_of(&effect));
                Ok(())
            }
            // Nobody answers here.
            Effect::Owner(_) => Ok(()),
            Effect::Finish(outcome) => self.finish(*outcome),
        };
        if let Err(error) = carried_out {
            self.run.handle_store_failed(now(self.began));
            self.store_error.get_or_insert_with(|| error.to_string());
        }
        true
    }

    fn finish(&mut self, mut outcome: RunOutcome) -> Result<(), StoreError> {
        let finished = match self.session.take() {
            Some(session) => {
                let finished = self.store.finish_run(session, &outcome, now(self.began).wall);
                finished.map(|unproven| outcome.shortfalls.extend(unproven))
            }
            None => Ok(()),
        };
        self.outcome = Some(outcome);
        finished
    }

    fn of_store(&mut self, effect: StoreEffect<T>) -> Result<(), StoreError> {
        let Some(session) = self.session.as_mut() else { return Ok(()) };
        let now = now(self.began);
        match effect {
            StoreEffect::LeaseGapsPage { streams, .. } => {
                let page = self.store.lease_gaps_page(session, &streams, PAGE_BYTES, now.wall)?;
                self.kept.drained |= page.is_empty();
                self.kept.served.extend(page.iter().cloned());
                self.run.handle_gaps_page(page, now);
            }
            other => self.store.carry_out(session, &mut self.run, other, now)?,
        }
        Ok(())
    }
}

fn order_of(effect: &ProcessEffect) -> Order {
    match effect {
        ProcessEffect::Send(message) => {
            let mut line = Vec::new();
            message.encode(&mut line);
            Order::Send(line)
        }
        ProcessEffect::CloseInput => Order::CloseInput,
        ProcessEffect::Stop | ProcessEffect::Kill => Order::End,
    }
}

fn now(began: Instant) -> Now {
    let wall = WallTime::from_unix_millis(gleaner_base::clock::unix_millis());
    Now { time: Time::default() + began.elapsed(), wall }
}

fn open<T: Track>(
    store: &mut Store,
    manifest: &Manifest,
    about: RunAbout,
    now: WallTime,
) -> Result<Session<T>, StoreError> {
    let holder = Holder::current().map_err(StoreError::Holder)?;
    let leases = match store.acquire(&[LeaseOn::Connection(CONNECTION)], &holder, now)? {
        Acquired::Yes { leases, .. } => leases,
        // Nobody else knows of a scratch store; begin_run says what is wrong.
        Acquired::Held(_) => Vec::new(),
    };
    let epoch = leases.first().map_or(0, |lease| lease.epoch().get());
    let name = format!("{CONNECTION}-{epoch}");
    let policy = manifest.refresh_policy.as_ref();
    let start = RunStart {
        connection: CONNECTION.to_owned(),
        run_id: RunId::new(&name),
        lease: LeaseId::new(&name),
        grant: "conformance".to_owned(),
        limits: AttemptLimits::of(policy),
        cooldown: CooldownPolicy::of(None, policy),
        about,
    };
    store.begin_run(start, leases, now)
}

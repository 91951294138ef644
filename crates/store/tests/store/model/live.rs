//! One run of the real engine over the real store, carried out one effect at a time.
//!
//! Why not the driver of `store-driver`: it carries out everything at once and stops at the first
//! error. Here each effect is a step that can be left out, refused or come late, and the test sees what
//! came of it. It never decides anything and never asks the model.

use gleaner_engine::{
    AttemptLimits, CooldownPolicy, Effect, Exit, LeaseId, Misfit, Now, ProcessEffect, Run, RunConfig, RunId,
    RunOutcome, StoreEffect, Track, Validate,
};
use gleaner_protocol::{Decoder, Event, Limits, Manifest, ManifestOrigin, RawJson, Scope, ServedGap, StreamScope};
use gleaner_store::{Lease, RunStart, Session, Store, StoreError};
use std::sync::Arc;

/// `trips` change, `details` are accounted for by trips, `photos` only grow.
pub(crate) const MANIFEST: &str = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
    {"name":"trips","semantics":"mutable_state"},
    {"name":"details","semantics":"mutable_state","parent_streams":["trips"],
     "coverage_strategy":"parent_detail_accounting"},
    {"name":"photos","semantics":"append_only"}]}"#;
/// Small, so that sixty steps reach them.
pub(crate) const LIMITS: AttemptLimits = AttemptLimits { terminal_after: 2 };
/// Few, so that a slow store is noticed.
const EFFECTS_MAX: usize = 4;

pub(crate) fn manifest() -> Manifest {
    Manifest::parse(MANIFEST.as_bytes(), ManifestOrigin::FirstParty).unwrap()
}

pub(crate) fn policy() -> CooldownPolicy {
    CooldownPolicy::of(None, None)
}

/// Bodies with a member `bad` do not fit.
#[derive(Debug)]
struct NoBad;

impl Validate for NoBad {
    fn check(&self, _: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/bad".to_owned(), ..Misfit::default() })
        } else {
            Ok(())
        }
    }
}

/// What came of one effect.
#[derive(Debug)]
pub(crate) enum Step {
    /// A slice is durable: so many records, rejected records and changes of gaps.
    Wrote([usize; 3]),
    Tallied,
    Unaccounted(u64),
    Page(Vec<ServedGap>),
    /// Streams, numbers and tokens of the plan.
    Committed(Vec<(String, u64, String)>),
    Finished(Box<RunOutcome>),
    /// The store refused: another process has the lease.
    Refused,
    /// The same, for the last effect.
    FinishRefused,
    /// For the process, the owner or the trace.
    Other,
}

/// A run of either track.
pub(crate) trait Live {
    /// A line of the connector. What had to be carried out before it could be taken comes back.
    fn say(&mut self, line: &str, now: Now) -> Vec<Step>;
    /// Carries out one effect.
    fn step(&mut self, now: Now) -> Option<Step>;
    /// Whether a line can be taken now.
    fn wants_input(&self) -> bool;
    /// Whether effects wait.
    fn has_effects(&mut self) -> bool;
    /// Whether nothing waits but the end of the run.
    fn is_at_its_end(&mut self) -> bool;
    fn cancel(&mut self, now: Now);
    fn pass_time(&mut self, now: Now);
    /// With what the process will exit.
    fn set_exit(&mut self, code: i32);
    fn leases(&self) -> Vec<Lease>;
    fn into_store(self: Box<Self>) -> Store;
}

pub(crate) struct LiveRun<T: Track> {
    store: Store,
    session: Option<Session<T>>,
    run: Run<T>,
    /// An effect that was looked at and not carried out.
    next: Option<Effect<T>>,
    decoder: Decoder,
    exit: i32,
    exited: bool,
}

impl<T: Track> LiveRun<T> {
    pub(crate) fn begin(
        mut store: Store,
        (connection, id): (&str, &str),
        streams: &[&str],
        leases: Vec<Lease>,
        now: Now,
    ) -> Self {
        let start = RunStart {
            connection: connection.to_owned(),
            run_id: RunId::new(id),
            lease: LeaseId::new(id),
            grant: "all".to_owned(),
            limits: LIMITS,
            cooldown: policy(),
            about: gleaner_store::RunAbout::default(),
        };
        let session = store.begin_run::<T>(start, leases, now.wall).unwrap();
        let config = RunConfig {
            run_id: RunId::new(id),
            lease: LeaseId::new(id),
            manifest: Arc::new(manifest()),
            scope: Scope::new(streams.iter().map(|&name| StreamScope::all_of(name)).collect()).unwrap(),
            bookmarks: session.bookmarks(),
            bindings: Vec::new(),
            grant_expires_at: None,
            validator: Box::new(NoBad),
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        let run = Run::new(config, now).unwrap();
        let decoder = Decoder::new(Limits::default());
        Self { store, session: Some(session), run, next: None, decoder, exit: 1, exited: false }
    }

    fn offer(&mut self, event: &Event<'_>, now: Now, steps: &mut Vec<Step>) {
        while self.run.handle_event(event, now).is_err() {
            steps.push(self.step(now).expect("full, and nothing to carry out"));
        }
    }

    /// Anything but a lost lease is a fault of the store.
    fn refused<R>(&mut self, done: Result<R, StoreError>, now: Now) -> Option<R> {
        match done {
            Ok(done) => Some(done),
            Err(StoreError::Superseded { .. }) => {
                self.run.handle_superseded(now);
                None
            }
            Err(error) => panic!("the store failed: {error}"),
        }
    }

    fn exit(&mut self, now: Now) -> Step {
        if !std::mem::replace(&mut self.exited, true) {
            self.run.handle_exit(Exit::Code(self.exit), now);
        }
        Step::Other
    }

    fn finish(&mut self, outcome: RunOutcome, now: Now) -> Step {
        let session = self.session.take().expect("a run ends once");
        match self.store.finish_run(session, &outcome, now.wall) {
            Ok(_) => Step::Finished(Box::new(outcome)),
            Err(StoreError::Superseded { .. }) => Step::FinishRefused,
            Err(error) => panic!("the store failed: {error}"),
        }
    }

    fn carry_out(&mut self, effect: Effect<T>, now: Now) -> Option<Step> {
        let session = self.session.as_mut().expect("nothing after the end");
        Some(match effect {
            Effect::Store(StoreEffect::WriteSlice(slice)) => {
                let shape = [slice.records().len(), slice.rejected().len(), slice.gap_changes().len()];
                let written = self.store.write_slice(session, slice, now.wall);
                let receipt = self.refused(written, now)?;
                self.run.handle_receipt(receipt, now);
                Step::Wrote(shape)
            }
            Effect::Store(StoreEffect::KeepCoverageKeys { report, field, keys }) => {
                self.store.keep_coverage_keys(session, report, field, &keys).unwrap();
                Step::Other
            }
            Effect::Store(StoreEffect::TallyCoverage { report, pair }) => {
                let tally = self.store.tally_coverage(session, report, &pair).unwrap();
                self.run.handle_tally(report, &tally, now);
                Step::Tallied
            }
            Effect::Store(StoreEffect::WriteUnaccounted { report, pair }) => {
                let written = self.store.write_unaccounted(session, report, &pair, now.wall);
                let gaps = self.refused(written, now)?;
                self.run.handle_unaccounted_written(gaps, now);
                Step::Unaccounted(gaps)
            }
            Effect::Store(StoreEffect::LeaseGapsPage { streams, bytes_max }) => {
                let page = self.store.lease_gaps_page(session, &streams, bytes_max, now.wall);
                let page = self.refused(page, now)?;
                self.run.handle_gaps_page(page.clone(), now);
                Step::Page(page)
            }
            Effect::Store(StoreEffect::Commit(plan)) => {
                let done = self.store.commit(session, &plan, now.wall);
                self.refused(done, now)?;
                self.run.handle_committed(now);
                let cursors = plan.cursors().iter();
                let name = |c: &gleaner_engine::Cursor<T>| {
                    (c.stream().to_owned(), c.seq().get(), c.token().as_str().to_owned())
                };
                Step::Committed(cursors.map(name).collect())
            }
            Effect::Finish(outcome) => self.finish(*outcome, now),
            Effect::Store(StoreEffect::Trace(event)) => {
                self.store.trace(session, event, now.wall).unwrap();
                Step::Other
            }
            Effect::Process(ProcessEffect::CloseInput | ProcessEffect::Stop | ProcessEffect::Kill) => self.exit(now),
            Effect::Process(ProcessEffect::Send(_)) | Effect::Owner(_) => Step::Other,
        })
    }
}

impl<T: Track> Live for LiveRun<T> {
    fn say(&mut self, line: &str, now: Now) -> Vec<Step> {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut steps = Vec::new();
        let bytes = format!("{line}\n");
        let mut feed = decoder.feed(bytes.as_bytes());
        while let Some(event) = feed.next() {
            self.offer(&event, now, &mut steps);
        }
        self.decoder = decoder;
        steps
    }

    fn step(&mut self, now: Now) -> Option<Step> {
        let effect = self.next.take().or_else(|| self.run.poll_effect())?;
        Some(self.carry_out(effect, now).unwrap_or(Step::Refused))
    }

    fn wants_input(&self) -> bool {
        self.run.wants_input()
    }

    fn has_effects(&mut self) -> bool {
        self.next = self.next.take().or_else(|| self.run.poll_effect());
        self.next.is_some()
    }

    fn is_at_its_end(&mut self) -> bool {
        self.has_effects() && matches!(self.next, Some(Effect::Finish(_)))
    }

    fn cancel(&mut self, now: Now) {
        self.run.handle_cancel(now);
    }

    fn pass_time(&mut self, now: Now) {
        self.run.handle_timeout(now);
    }

    fn set_exit(&mut self, code: i32) {
        self.exit = code;
    }

    fn leases(&self) -> Vec<Lease> {
        self.session.as_ref().map(|session| session.leases().to_vec()).unwrap_or_default()
    }

    fn into_store(self: Box<Self>) -> Store {
        self.store
    }
}

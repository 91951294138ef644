//! Between engine and store: every effect in its order, every answer back.

use crate::Fallible;
use gleaner_engine::{
    AttemptLimits, CooldownPolicy, EFFECTS_MAX, Effect, Exit, LeaseId, Now, Run, RunConfig, RunId, RunOutcome, Schemas,
    Steady, StoreEffect, Time, WallTime,
};
use gleaner_protocol::{Decoder, Event, Limits, Manifest, ManifestOrigin, Scope, StreamScope};
use gleaner_store::{Acquired, Holder, LeaseOn, RunStart, Session, Store};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// How much is read from a pipe at a time: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// A run and its store.
pub(crate) struct Driven {
    pub(crate) store: Store,
    session: Option<Session<Steady>>,
    run: Run<Steady>,
    decoder: Decoder,
    saved: u64,
    pub(crate) outcome: Option<RunOutcome>,
}

pub(crate) fn now() -> Now {
    let millis = gleaner_base::clock::unix_millis();
    Now { time: Time::from_millis(millis), wall: WallTime::from_unix_millis(millis) }
}

impl Driven {
    pub(crate) fn begin(store: &Path, manifest: &str) -> Fallible<Self> {
        let parsed =
            Manifest::parse(manifest.as_bytes(), ManifestOrigin::Foreign).map_err(|error| format!("{error:?}"))?;
        let validator = Box::new(Schemas::new(&parsed)?);
        let mut store = Store::open(store)?;
        let wall = now().wall;
        let (connection, holder) = ("c", Holder::current()?);
        let leases = match store.acquire(&[LeaseOn::Connection(connection)], &holder, wall)? {
            Acquired::Yes { leases, .. } => leases,
            Acquired::Held(by) => return Err(format!("held by {}", by.pid).into()),
        };
        store.register(connection, manifest, &parsed, wall)?;
        let name = format!("{connection}-{}", leases[0].epoch().get());
        let start = RunStart {
            connection: connection.to_owned(),
            run_id: RunId::new(&name),
            lease: LeaseId::new(&name),
            grant: "all".to_owned(),
            limits: AttemptLimits::of(parsed.refresh_policy.as_ref()),
            cooldown: CooldownPolicy::of(None, parsed.refresh_policy.as_ref()),
            about: gleaner_store::RunAbout::default(),
        };
        let session = store.begin_run::<Steady>(start.clone(), leases, wall)?;
        let streams = parsed.streams.iter().map(|stream| StreamScope::all_of(&stream.name)).collect();
        let config = RunConfig {
            run_id: start.run_id,
            lease: start.lease,
            manifest: Arc::new(parsed),
            scope: Scope::new(streams)?,
            bookmarks: session.bookmarks(),
            bindings: Vec::new(),
            grant_expires_at: None,
            validator,
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        Ok(Self {
            store,
            session: Some(session),
            run: Run::new(config, now())?,
            decoder: Decoder::new(Limits::default()),
            saved: 0,
            outcome: None,
        })
    }

    /// The committed cursor of a stream.
    pub(crate) fn cursor(&self, stream: &str) -> Option<String> {
        let mut bookmarks = self.session.as_ref()?.state();
        bookmarks.find(|cursor| cursor.stream() == stream).map(|cursor| cursor.token().as_str().to_owned())
    }

    /// Takes a piece of a connector's output.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Fallible<()> {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut feed = decoder.feed(bytes);
        while let Some(event) = feed.next() {
            self.offer(&event)?;
        }
        self.decoder = decoder;
        Ok(())
    }

    fn offer(&mut self, event: &Event<'_>) -> Fallible<()> {
        let now = now();
        while self.run.handle_event(event, now).is_err() {
            self.step()?;
        }
        while self.step()? {}
        Ok(())
    }

    /// The connector has ended.
    pub(crate) fn end(&mut self, exit: Exit) -> Fallible<()> {
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, now());
        }
        self.run.handle_exit(exit, now());
        while self.step()? {}
        Ok(())
    }

    /// Carries out one effect.
    fn step(&mut self) -> Fallible<bool> {
        let Some(effect) = self.run.poll_effect() else { return Ok(false) };
        let now = now();
        let effect = match effect {
            Effect::Finish(outcome) => {
                let session = self.session.take().ok_or("a second end")?;
                self.store.finish_run(session, &outcome, now.wall)?;
                self.outcome = Some(*outcome);
                return Ok(true);
            }
            Effect::Store(effect) => effect,
            // There is no process and no owner.
            Effect::Process(_) | Effect::Owner(_) => return Ok(true),
        };
        let records = match &effect {
            StoreEffect::WriteSlice(slice) => Some(slice.records().len() + slice.rejected().len()),
            _ => None,
        };
        let session = self.session.as_mut().ok_or("an effect after the end")?;
        self.store.carry_out(session, &mut self.run, effect, now)?;
        if let Some(records) = records {
            self.saved += records as u64;
            writeln!(std::io::stdout(), "saved {}", self.saved)?;
        }
        Ok(true)
    }
}

/// Stores what comes in, with the schemas of the manifest checked.
pub(crate) fn ingest(store: &Path, manifest: &Path) -> Fallible<()> {
    let manifest = std::fs::read_to_string(manifest)?;
    let mut driven = Driven::begin(store, &manifest)?;
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        driven.feed(&buffer[..read])?;
    }
    let code = i32::from(driven.run.outcome().is_some_and(|outcome| outcome.violation.is_some()));
    driven.end(Exit::Code(code))?;
    let outcome = driven.outcome.ok_or("the run did not end")?;
    let counts = outcome.counts;
    println!("{} collected {} rejected {}", outcome.reason, counts.collected(), counts.rejected);
    if let Some(violation) = outcome.violation {
        return Err(violation.to_string().into());
    }
    Ok(())
}

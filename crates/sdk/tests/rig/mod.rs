//! A connector with one lane, run in this process against the real engine and the real store, and ended
//! at any message.
//!
//! It decides nothing: what the connector writes goes through the decoder into the engine, and what the
//! engine wants is carried out by the store, as a runtime would. Faults can be put in on purpose.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_engine::{
    AttemptLimits, CatchUp, CooldownPolicy, EFFECTS_MAX, Effect, Exit, LeaseId, NoSchema, Now, ProcessEffect, Reach,
    Run, RunConfig, RunId, RunOutcome, RunScope, Scoped, Steady, Time, Track, TrackChoice, WallTime,
};
use gleaner_protocol::{
    CollectionMode, ConnectorMessage, Decoder, DetailGapRecovered, Event, Limits, Manifest, ManifestOrigin, Op,
    RawJson, RuntimeMessage, Scope, ServedGap, Start, StreamScope,
};
use gleaner_sdk::lane::{BACKLOG_KEY, Collected, Source};
use gleaner_sdk::{Clock, Collect, Connector, Stop, Surroundings, Wire, WireFault, run_on};
use gleaner_store::{
    Acquired, GapFilter, GapSummary, Holder, LeaseOn, PAGE_ROWS_MAX, Reader, RunAbout, RunStart, Session, Store,
};
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const LIST: &str = "items";
pub(crate) const OTHER: &str = "others";
pub(crate) const DETAIL: &str = "details";
const MANIFEST: &str = r#"{"connector_id":"model","connector_key":"model","version":"1","streams":[
    {"name":"items","semantics":"mutable_state","primary_key":"id"},
    {"name":"others","semantics":"mutable_state","primary_key":"id"},
    {"name":"details","semantics":"mutable_state","primary_key":"id","parent_streams":["items","others"],
     "coverage_strategy":"parent_detail_accounting",
     "schema":{"type":"object","properties":{"v":{"type":"integer"}}}}]}"#;
/// Runs are this far apart: further than a gap waits for its next try.
const BETWEEN_RUNS: u64 = 25 * 3_600_000;
/// The first page of gaps, in bytes. Small, so that there are several.
const FIRST_PAGE: u64 = 16 * 1024;

/// The bodies of a stream's records by key, `None` for tombstones.
pub(crate) type Records = BTreeMap<String, Option<String>>;

/// A store that outlives its runs.
pub(crate) struct Home {
    /// Gone at the end.
    folder: tempfile::TempDir,
    store: Option<Store>,
    manifest: Arc<Manifest>,
    runs: u64,
    reader: Reader,
    /// The part of the change feed that was read: it only grows.
    read: RefCell<(u64, BTreeMap<String, Records>)>,
    /// Whatever the connector says goes through this first.
    pub(crate) fault: Option<Fault>,
}

/// A fault in the output, to test its detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A backlog gap that is written again is settled all the same.
    SettleRewrittenBacklog,
    /// The backlog gap is said to be recovered after it was written again. The engine must not believe it.
    RecoveredAfterRewrite,
    /// The cursor does not name the walk that is under way.
    ForgetTheWalk,
    /// The backlog gap has its newest range only.
    ForgetOldRanges,
    /// The ties of floors are forgotten in a way that takes all of them for known.
    ForgetNewTies,
    /// The backlog gap is not written.
    ForgetTheBacklogGap,
}

/// How a run is limited and ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) details: Option<u64>,
    pub(crate) requests: Option<u64>,
    pub(crate) wall_clock_ms: Option<u64>,
    pub(crate) chunk: Option<u64>,
    /// The run ends at this message, of which half is said.
    pub(crate) kill_at: Option<u64>,
    /// Whether the runtime dies with it.
    pub(crate) runtime_dies: bool,
    pub(crate) resources: Vec<String>,
    pub(crate) recovery_only: bool,
    pub(crate) batch: Option<usize>,
    pub(crate) concurrency: Option<usize>,
    /// So much time passes with each request for the time.
    pub(crate) tick_ms: u64,
    pub(crate) since: Option<u64>,
    pub(crate) until: Option<u64>,
    /// The same details have a second list, which is collected first.
    pub(crate) second_list: bool,
    /// The runtime closes the connector's input after START.
    pub(crate) no_answers: bool,
    /// The requested scope, if not the streams of the lane.
    pub(crate) scope: Vec<StreamScope>,
    /// The requested scope under a grant: then the run has the track that a runtime would give it.
    pub(crate) asks: Option<RunScope>,
}

/// Events of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ended: Result<Collected, Stop>,
    /// `None` when the runtime died.
    pub(crate) outcome: Option<RunOutcome>,
    pub(crate) said: Vec<Said>,
    pub(crate) pauses: Duration,
    pub(crate) messages: u64,
    pub(crate) killed: bool,
}

/// A message that matters to tests, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Record { stream: String, key: String, deleted: bool },
    Gap(Gap),
    Recovered { key: String },
    PageRequest,
    Cursor(String),
    Coverage(String),
    Skip { reason: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) stream: String,
    pub(crate) key: String,
    pub(crate) reason: String,
    pub(crate) class: String,
    pub(crate) status: Option<u16>,
    pub(crate) was_served: bool,
    pub(crate) locator: Option<String>,
}

impl Ran {
    pub(crate) fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.said.iter().filter_map(|said| if let Said::Gap(gap) = said { Some(gap) } else { None })
    }

    /// The gaps of single records that were not served to this run.
    pub(crate) fn new_rows(&self) -> impl Iterator<Item = &Gap> {
        self.gaps().filter(|gap| !gap.was_served && !gap.key.starts_with("gleaner:"))
    }

    pub(crate) fn backlogs(&self) -> Vec<serde_json::Value> {
        let backlogs = self.gaps().filter(|gap| gap.key == BACKLOG_KEY);
        backlogs.map(|gap| serde_json::from_str(gap.locator.as_ref().unwrap()).unwrap()).collect()
    }

    pub(crate) fn recovered(&self) -> Vec<&str> {
        let key = |said: &'_ Said| matches!(said, Said::Recovered { .. });
        let recovered = self.said.iter().filter(|said| key(said));
        recovered
            .filter_map(|said| if let Said::Recovered { key } = said { Some(key.as_str()) } else { None })
            .collect()
    }

    pub(crate) fn details(&self) -> Vec<&str> {
        let details = self.said.iter().filter_map(|said| match said {
            Said::Record { stream, key, .. } if stream == DETAIL => Some(key.as_str()),
            _ => None,
        });
        details.collect()
    }

    /// One list of the one report of the run.
    pub(crate) fn coverage(&self, list: &str) -> Vec<String> {
        let reports =
            self.said.iter().filter_map(|said| if let Said::Coverage(text) = said { Some(text) } else { None });
        let reports = reports.collect::<Vec<_>>();
        assert_eq!(reports.len(), 1, "one report per run");
        let report = serde_json::from_str::<serde_json::Value>(reports[0]).unwrap();
        let mut keys = serde_json::from_value::<Vec<String>>(report[list].clone()).unwrap_or_default();
        keys.sort_unstable();
        keys
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with_manifest(MANIFEST)
    }

    pub(crate) fn with_manifest(text: &str) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        let manifest = Arc::new(Manifest::parse(text.as_bytes(), ManifestOrigin::FirstParty).unwrap());
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        store.register("c", text, &manifest, WallTime::default()).unwrap();
        let reader = Reader::open(&folder.path().join("store.db")).unwrap();
        let read = RefCell::new((0, BTreeMap::new()));
        Self { folder, store: Some(store), manifest, runs: 0, reader, read, fault: None }
    }

    pub(crate) const fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn cursor(&self) -> Option<String> {
        self.cursor_of::<Steady>()
    }

    pub(crate) fn cursor_of<T: Track>(&self) -> Option<String> {
        let bookmarks = self.reader.bookmarks::<T>("c").unwrap();
        bookmarks.iter().find(|cursor| cursor.stream() == LIST).map(|cursor| cursor.token().as_str().to_owned())
    }

    /// The committed cursors by stream.
    pub(crate) fn cursors(&self) -> BTreeMap<String, String> {
        let bookmarks = self.reader.bookmarks::<Steady>("c").unwrap();
        bookmarks.iter().map(|cursor| (cursor.stream().to_owned(), cursor.token().as_str().to_owned())).collect()
    }

    /// All records of a stream.
    pub(crate) fn records(&self, stream: &str) -> Ref<'_, Records> {
        let mut read = self.read.borrow_mut();
        loop {
            let page = self.reader.changes(read.0, PAGE_ROWS_MAX).unwrap();
            let Some(last) = page.last() else { break };
            read.0 = last.record.seq;
            for change in page {
                let body = change.record.body.filter(|_| !change.record.deleted);
                read.1.entry(change.stream).or_default().insert(change.record.key, body);
            }
        }
        read.1.entry(stream.to_owned()).or_default();
        drop(read);
        Ref::map(self.read.borrow(), |read| &read.1[stream])
    }

    /// Every gap there ever was, in the order of their rows.
    pub(crate) fn gaps(&self) -> Vec<GapSummary> {
        self.gaps_after(0)
    }

    /// Those with a later row than this.
    pub(crate) fn gaps_after(&self, row: i64) -> Vec<GapSummary> {
        self.gaps_of(GapFilter { stream: None, closed_too: true }, row)
    }

    /// Those that were not recovered.
    pub(crate) fn open_gaps(&self) -> Vec<GapSummary> {
        self.gaps_of(GapFilter::default(), 0)
    }

    fn gaps_of(&self, filter: GapFilter<'_>, mut after: i64) -> Vec<GapSummary> {
        let mut all = Vec::<GapSummary>::new();
        loop {
            let page = self.reader.gaps("c", filter, after, PAGE_ROWS_MAX).unwrap();
            let Some(last) = page.last() else { return all };
            after = last.id;
            all.extend(page);
        }
    }

    pub(crate) fn gaps_in(&self, state: &str) -> Vec<String> {
        let gaps = self.gaps().into_iter().filter(|gap| gap.state == state);
        gaps.filter_map(|gap| gap.record_key).collect()
    }

    pub(crate) fn run(&mut self, source: &dyn Source, terms: &Terms) -> Ran {
        let reach = terms.asks.as_ref().map(|scope| reach(self.store.as_ref().unwrap(), &self.manifest, scope));
        match reach.map_or(TrackChoice::Steady, |reach| reach.track()) {
            TrackChoice::Steady => self.run_on_track::<Steady>(source, terms),
            TrackChoice::CatchUp => self.run_on_track::<CatchUp>(source, terms),
            TrackChoice::Scoped => self.run_on_track::<Scoped>(source, terms),
        }
    }

    /// The locator of the open backlog gap of ordinary runs.
    pub(crate) fn backlog(&self) -> Option<String> {
        let connection = rusqlite::Connection::open(self.folder.path().join("store.db")).unwrap();
        let sql = "SELECT locator FROM gaps WHERE record_key = ?1 AND grant_id = 'all' AND state != 'recovered'";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([BACKLOG_KEY], |row| row.get(0)).unwrap().next().transpose().unwrap()
    }

    pub(crate) fn run_on_track<T: Track + Send>(&mut self, source: &dyn Source, terms: &Terms) -> Ran {
        let (mut rig, millis) = self.begin::<T>(terms);
        let connector = OneLane { source, terms: terms.clone(), ended: Mutex::new(Err(Stop::Disconnected)) };
        let clock = TestClock { now: AtomicU64::new(millis), tick: terms.tick_ms, paused: AtomicU64::new(0) };
        let variable = |name: &str| terms.variable(name);
        let code = run_on(&mut rig, MANIFEST, &connector, &Surroundings { variable: &variable, clock: &clock });
        let pauses = Duration::from_millis(clock.paused.into_inner());
        let code = i32::from(code != std::process::ExitCode::SUCCESS);
        let ran = self.end(rig, code);
        Ran { ended: connector.ended.into_inner().unwrap(), pauses, ..ran }
    }

    /// A run of any connector: `connect` lets it speak, and answers with its exit code.
    pub(crate) fn run_by(&mut self, terms: &Terms, connect: impl FnOnce(&mut dyn Wire) -> i32) -> Ran {
        let (mut rig, _) = self.begin::<Steady>(terms);
        let code = connect(&mut rig);
        self.end(rig, code)
    }

    fn begin<T: Track>(&mut self, terms: &Terms) -> (Rig<T>, u64) {
        self.runs += 1;
        let millis = 1_900_000_000_000 + self.runs * BETWEEN_RUNS;
        let now = Now { time: Time::from_millis(millis), wall: WallTime::from_unix_millis(millis) };
        let name = format!("run-{}", self.runs);
        let mut rig = Rig::<T>::begin(self.store.take().unwrap(), &self.manifest, name, now, terms);
        rig.fault = self.fault;
        (rig, millis)
    }

    fn end<T: Track>(&mut self, mut rig: Rig<T>, code: i32) -> Ran {
        rig.end(code);
        let Rig { store, said, outcome, messages, killed, .. } = rig;
        self.store = Some(store);
        Ran { ended: Err(Stop::Disconnected), outcome, said, pauses: Duration::ZERO, messages, killed }
    }
}

impl Terms {
    fn scope(&self) -> Scope {
        if let Some(asks) = &self.asks {
            return asks.asked.clone();
        }
        let of = |name: &str| StreamScope { resources: self.resources.clone(), ..StreamScope::all_of(name) };
        let streams = [LIST, DETAIL].into_iter().chain(self.second_list.then_some(OTHER)).map(of).collect();
        Scope::new(if self.scope.is_empty() { streams } else { self.scope.clone() }).unwrap()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = match name {
            "PDPP_MODEL_MAX_DETAIL_FETCHES_PER_RUN" => self.details,
            "PDPP_MODEL_MAX_RUN_WALL_CLOCK_MS" => self.wall_clock_ms,
            "PDPP_MODEL_MAX_TAIL_DEFERRAL_GAPS_PER_RUN" => self.chunk,
            "GLEANER_MAX_REQUESTS" => self.requests,
            _ => None,
        };
        value.map(|value| value.to_string())
    }
}

struct OneLane<'s> {
    source: &'s dyn Source,
    terms: Terms,
    ended: Mutex<Result<Collected, Stop>>,
}

impl Connector for OneLane<'_> {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        if self.terms.second_list {
            // The same provider, seen through another list.
            let _: Collected = run.lane(OTHER, DETAIL).collect_from(self.source)?;
        }
        let mut lane = run.lane(LIST, DETAIL);
        if let Some(since) = self.terms.since {
            lane = lane.since(since.into());
        }
        if let Some(until) = self.terms.until {
            lane = lane.until(until.into());
        }
        if let Some(batch) = self.terms.batch {
            lane = lane.slice_of(batch);
        }
        if let Some(concurrency) = self.terms.concurrency {
            lane = lane.concurrency(concurrency);
        }
        let ended = lane.collect_from(self.source);
        self.ended.lock().unwrap().clone_from(&ended);
        ended.map(|_| ())
    }
}

/// Time passes when it is asked for, and in pauses.
#[derive(Debug)]
struct TestClock {
    now: AtomicU64,
    tick: u64,
    paused: AtomicU64,
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(self.now.fetch_add(self.tick, Ordering::Relaxed))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix_millis(self.now.load(Ordering::Relaxed))
    }

    fn pause(&self, wait: Duration) {
        let millis = u64::try_from(wait.as_millis()).unwrap();
        self.now.fetch_add(millis, Ordering::Relaxed);
        self.paused.fetch_add(millis, Ordering::Relaxed);
    }
}

fn reach(store: &Store, manifest: &Manifest, scope: &RunScope) -> Reach {
    Reach::decide(manifest, scope, &store.seen_streams("c").unwrap())
}

struct Rig<T: Track> {
    now: Now,
    store: Store,
    session: Option<Session<T>>,
    run: Run<T>,
    decoder: Decoder,
    to_connector: VecDeque<RuntimeMessage>,
    outcome: Option<RunOutcome>,
    kill_at: Option<u64>,
    runtime_dies: bool,
    killed: bool,
    no_answers: bool,
    fault: Option<Fault>,
    served_backlog: Option<ServedGap>,
    /// The written part of a line.
    line: Vec<u8>,
    said: Vec<Said>,
    messages: u64,
}

impl<T: Track> Rig<T> {
    fn begin(mut store: Store, manifest: &Arc<Manifest>, name: String, now: Now, terms: &Terms) -> Self {
        let holder = Holder::current().unwrap();
        let Acquired::Yes { leases, .. } = store.acquire(&[LeaseOn::Connection("c")], &holder, now.wall).unwrap()
        else {
            panic!("held")
        };
        let start = RunStart {
            connection: "c".to_owned(),
            run_id: RunId::new(&name),
            lease: LeaseId::new(&name),
            grant: "all".to_owned(),
            limits: AttemptLimits::of(None),
            cooldown: CooldownPolicy::of(None, None),
            about: RunAbout {
                reach: terms.asks.as_ref().map(|scope| Arc::new(reach(&store, manifest, scope))),
                ..RunAbout::default()
            },
        };
        let session = store.begin_run::<T>(start.clone(), leases, now.wall).unwrap();
        let scope = terms.scope();
        let state = session.state().map(|cursor| (cursor.stream().to_owned(), cursor.token().clone()));
        let state = state.collect::<Vec<_>>();
        let config = RunConfig {
            run_id: start.run_id,
            lease: start.lease,
            manifest: Arc::clone(manifest),
            scope: scope.clone(),
            bookmarks: session.bookmarks(),
            bindings: Vec::new(),
            grant_expires_at: None,
            validator: Box::new(NoSchema),
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        let streams = scope.streams().iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
        let detail_gaps = store.lease_gaps_page(&session, &streams, FIRST_PAGE, now.wall).unwrap();
        let mut rig = Self {
            now,
            store,
            session: Some(session),
            run: Run::new(config, now).unwrap(),
            decoder: Decoder::new(Limits::default()),
            to_connector: VecDeque::new(),
            outcome: None,
            kill_at: terms.kill_at,
            runtime_dies: terms.runtime_dies,
            killed: false,
            no_answers: terms.no_answers,
            fault: None,
            served_backlog: None,
            line: Vec::new(),
            said: Vec::new(),
            messages: 0,
        };
        rig.note_served(&detail_gaps);
        rig.to_connector.push_back(RuntimeMessage::Start(Box::new(Start {
            run_id: name,
            collection_mode: CollectionMode::Incremental,
            scope,
            state: (!state.is_empty()).then_some(state),
            bindings: Vec::new(),
            detail_gaps,
            recovery_only: terms.recovery_only,
            run_budget: None,
        })));
        rig
    }

    fn note_served(&mut self, gaps: &[ServedGap]) {
        let backlog = gaps.iter().find(|gap| gap.record_key.as_ref().is_some_and(|key| key.as_str() == BACKLOG_KEY));
        if let Some(gap) = backlog {
            self.served_backlog = Some(gap.clone());
        }
    }

    /// Takes one whole line, unless it is the one at which the run ends.
    fn take(&mut self, line: &[u8]) -> Result<(), WireFault> {
        for line in self.spoil(line) {
            self.messages += 1;
            if self.kill_at == Some(self.messages) {
                // Half of a line is in the pipe.
                self.feed(&line[..line.len() / 2]);
                self.killed = true;
                return Err(WireFault::Disconnected);
            }
            self.note(&line);
            self.feed(&line);
        }
        // A runtime that ends a run reads on; what comes is not heard.
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(Limits::default()));
        let mut feed = decoder.feed(bytes);
        while let Some(event) = feed.next() {
            self.offer(&event);
        }
        self.decoder = decoder;
    }

    fn offer(&mut self, event: &Event<'_>) {
        while self.run.handle_event(event, self.now).is_err() {
            self.step();
        }
        while self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some(effect) = self.run.poll_effect() else { return false };
        let session = self.session.as_mut().unwrap();
        match effect {
            Effect::Store(effect) => self.store.carry_out(session, &mut self.run, effect, self.now).unwrap(),
            Effect::Process(ProcessEffect::Send(message)) => {
                if let RuntimeMessage::GapsPageResponse(page) = &message {
                    let gaps = page.detail_gaps.clone();
                    self.note_served(&gaps);
                }
                self.to_connector.push_back(message);
            }
            Effect::Finish(outcome) => {
                self.store.finish_run(self.session.take().unwrap(), &outcome, self.now.wall).unwrap();
                self.outcome = Some(*outcome);
            }
            // The connector is a function that ends by itself, and nobody answers it.
            Effect::Process(ProcessEffect::CloseInput | ProcessEffect::Stop | ProcessEffect::Kill)
            | Effect::Owner(_) => {}
        }
        true
    }

    fn end(&mut self, code: i32) {
        if self.killed && self.runtime_dies {
            // Nothing more is written but that the next may begin.
            let session = self.session.take().unwrap();
            return self.store.release(session.leases()).unwrap();
        }
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, self.now);
        }
        let exit = if self.killed { Exit::Signal(9) } else { Exit::Code(code) };
        self.run.handle_exit(exit, self.now);
        while self.step() {}
    }

    fn note(&mut self, line: &[u8]) {
        let text = || String::from_utf8(line.to_vec()).unwrap();
        let Ok(message) = ConnectorMessage::decode(line.trim_ascii_end()) else {
            // The one message that is not read at once.
            self.said.push(Said::Coverage(text()));
            return;
        };
        let said = match message {
            ConnectorMessage::DetailGap(gap) => {
                let error = gap.last_error.as_ref();
                Said::Gap(Gap {
                    stream: gap.stream.clone(),
                    key: gap.record_key.as_ref().unwrap().as_str().to_owned(),
                    reason: gap.reason.unwrap().code().to_owned(),
                    class: error.map(|error| error.class.clone()).unwrap_or_default(),
                    status: error.and_then(|error| error.http_status),
                    was_served: gap.gap_id.is_some(),
                    locator: gap.detail_locator.as_ref().map(|locator| locator.as_str().to_owned()),
                })
            }
            ConnectorMessage::DetailGapRecovered(gap) => {
                Said::Recovered { key: gap.record_key.as_ref().unwrap().as_str().to_owned() }
            }
            ConnectorMessage::State(state) => Said::Cursor(state.cursor.as_str().to_owned()),
            ConnectorMessage::GapsPageRequest(_) => Said::PageRequest,
            ConnectorMessage::SkipResult(skip) => Said::Skip { reason: skip.reason.clone().unwrap_or_default() },
            ConnectorMessage::Record(record) => Said::Record {
                stream: record.stream.to_string(),
                key: record.key.canonical().into_owned(),
                deleted: record.op == Op::Delete,
            },
            _ => return,
        };
        self.said.push(said);
    }

    /// A line after a fault.
    fn spoil(&self, line: &[u8]) -> Vec<Vec<u8>> {
        let own = vec![line.to_vec()];
        let Some(fault) = self.fault else { return own };
        let Ok(message) = ConnectorMessage::decode(line.trim_ascii_end()) else { return own };
        match message {
            ConnectorMessage::State(mut state) => {
                state.cursor = spoil_json(state.cursor.as_str(), |cursor| spoil_cursor(fault, cursor));
                vec![encoded(&ConnectorMessage::State(state))]
            }
            ConnectorMessage::DetailGap(mut gap) if gap.record_key.as_ref().unwrap().as_str() == BACKLOG_KEY => {
                let recovered = self.served_backlog.as_ref().map(|gap| encoded(&recovered(gap)));
                match (fault, recovered) {
                    (Fault::ForgetTheBacklogGap, _) => Vec::new(),
                    (Fault::SettleRewrittenBacklog, Some(recovered)) => vec![recovered],
                    (Fault::RecoveredAfterRewrite, Some(recovered)) => vec![line.to_vec(), recovered],
                    (Fault::ForgetOldRanges, _) => {
                        gap.detail_locator = gap.detail_locator.as_ref().map(|locator| {
                            spoil_json(locator.as_str(), |locator| {
                                locator["ranges"].as_array_mut().unwrap().truncate(1);
                            })
                        });
                        vec![encoded(&ConnectorMessage::DetailGap(gap))]
                    }
                    _ => own,
                }
            }
            _ => own,
        }
    }
}

fn spoil_cursor(fault: Fault, cursor: &mut serde_json::Value) {
    let members = cursor.as_object_mut().unwrap();
    match fault {
        Fault::ForgetTheWalk => drop(members.remove("walk")),
        // One more than its time: everything of the time is below it.
        Fault::ForgetNewTies if members.remove("ties").is_some() => {
            let high = members["high"].as_str().unwrap().parse::<u64>().unwrap();
            members.insert("high".to_owned(), format!("{:020}", high + 1).into());
        }
        _ => {}
    }
}

fn spoil_json(text: &str, spoil: impl FnOnce(&mut serde_json::Value)) -> RawJson<'static> {
    let mut value = serde_json::from_str(text).unwrap();
    spoil(&mut value);
    RawJson::new(value.to_string()).unwrap()
}

fn recovered(gap: &ServedGap) -> ConnectorMessage<'static> {
    ConnectorMessage::DetailGapRecovered(DetailGapRecovered {
        gap_id: gap.gap_id.clone(),
        stream: gap.stream.clone(),
        record_key: gap.record_key.clone(),
        lease_id: Some(gap.lease_id.clone()),
    })
}

fn encoded(message: &ConnectorMessage<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    message.encode(&mut line);
    line
}

impl<T: Track + Send> Wire for Rig<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        if self.killed {
            return Err(WireFault::Disconnected);
        }
        self.line.extend_from_slice(bytes);
        if self.line.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            return self.take(&line);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        let message = self.to_connector.pop_front();
        let is_start = matches!(message, Some(RuntimeMessage::Start(_)));
        Ok(message.filter(|_| is_start || !self.no_answers))
    }

    fn drain(&mut self, _patience: Duration) -> Result<(), WireFault> {
        if self.killed { Err(WireFault::Disconnected) } else { Ok(()) }
    }

    fn wait_for_end(&mut self, _patience: Duration) -> bool {
        true
    }
}

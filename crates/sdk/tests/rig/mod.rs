//! A run of a lane against the real engine and the real store, one message at a time, so that it can be
//! ended at any of them.
//!
//! It decides nothing: what the lane says goes through the decoder into the engine, and what the engine
//! wants is carried out by the store, as a runtime would.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_engine::{
    AttemptLimits, CooldownPolicy, EFFECTS_MAX, Effect, Exit, LeaseId, NoSchema, Now, Run, RunConfig, RunId,
    RunOutcome, Steady, Time, WallTime,
};
use gleaner_protocol::{
    ConnectorMessage, Decoder, DeferReason, Done, DoneError, DoneStatus, Event, GapsPageRequest, Limits, Manifest,
    ManifestOrigin, Op, RawJson, Record, RecordKey, RuntimeMessage, Scope, ServedGap, State, StreamScope,
};
use gleaner_sdk::lane::{BACKLOG_KEY, Host, LaneConfig, LaneCounts, Sent, Source, run_lane};
use gleaner_sdk::stop::Stop;
use gleaner_store::{Acquired, GapFilter, GapSummary, Holder, LeaseOn, PAGE_ROWS_MAX, Reader, RunStart, Session, Store};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LIST: &str = "items";
pub(crate) const DETAIL: &str = "details";
const MANIFEST: &str = r#"{"connector_id":"model","connector_key":"model","version":"1","streams":[
    {"name":"items","semantics":"mutable_state","primary_key":"id"},
    {"name":"details","semantics":"mutable_state","primary_key":"id","parent_streams":["items"],
     "coverage_strategy":"parent_detail_accounting"}]}"#;
/// Runs are this far apart.
const BETWEEN_RUNS: u64 = 60_000;

/// A store that outlives its runs.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    store: Option<Store>,
    manifest: Arc<Manifest>,
    runs: u64,
    /// Whatever the lane says goes through this first: a fault on purpose.
    pub(crate) fault: Option<Fault>,
}

/// What is changed on its way out, to see whether it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A backlog gap that is written again is settled all the same.
    SettleRewrittenBacklog,
    /// The backlog gap is said to be recovered after it was written again. The engine must not believe it.
    RecoveredAfterRewrite,
    /// The cursor does not name the walk that is under way.
    ForgetTheWalk,
    /// The backlog gap that a forward pass writes has its own ranges only.
    ForgetOldRanges,
    /// The cursor goes out before the gaps that it relies on: they are lost in a kill.
    ForgetTheBacklogGap,
}

/// How a run is limited and ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) details: Option<u64>,
    pub(crate) lists: Option<u64>,
    pub(crate) chunk: Option<u64>,
    /// The run ends at this message, which is not said.
    pub(crate) kill_at: Option<u64>,
    /// Whether the runtime dies with it.
    pub(crate) runtime_dies: bool,
    pub(crate) resources: Vec<String>,
}

/// What happened in a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ended: Result<LaneCounts, Stop>,
    /// `None` when the runtime died.
    pub(crate) outcome: Option<RunOutcome>,
    pub(crate) lines: Vec<Said>,
    pub(crate) pages: u64,
    pub(crate) pauses: u64,
    pub(crate) messages: u64,
}

/// A message that matters to tests, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Record { stream: String, key: String, deleted: bool },
    Gap { key: String, reason: String, class: String, status: Option<u16>, held: bool, locator: Option<String> },
    Recovered { key: String },
    Cursor { text: String },
    Coverage { text: String },
}

impl Ran {
    pub(crate) fn gaps(&self) -> Vec<&str> {
        let key = |said: &Said| if let Said::Gap { .. } = said { true } else { false };
        self.lines.iter().filter(|said| key(said)).filter_map(|said| match said {
            Said::Gap { key, .. } => Some(key.as_str()),
            _ => None,
        }).collect()
    }

    pub(crate) fn coverage(&self) -> serde_json::Value {
        let texts = self.lines.iter().filter_map(|said| match said {
            Said::Coverage { text } => Some(text),
            _ => None,
        });
        let texts = texts.collect::<Vec<_>>();
        assert_eq!(texts.len(), 1, "one report per run");
        serde_json::from_str(texts[0]).unwrap()
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        let manifest = Arc::new(Manifest::parse(MANIFEST.as_bytes(), ManifestOrigin::FirstParty).unwrap());
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        store.register("c", MANIFEST, &manifest, WallTime::default()).unwrap();
        Self { folder, store: Some(store), manifest, runs: 0, fault: None }
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.folder.path().join("store.db")).unwrap()
    }

    pub(crate) fn cursor(&self) -> Option<String> {
        let bookmarks = self.reader().bookmarks::<Steady>("c").unwrap();
        bookmarks.iter().find(|cursor| cursor.stream() == LIST).map(|cursor| cursor.token().as_str().to_owned())
    }

    /// All records of a stream that are there, and tombstones as `None`.
    pub(crate) fn records(&self, stream: &str) -> BTreeMap<String, Option<String>> {
        let reader = self.reader();
        let (mut all, mut since) = (BTreeMap::new(), 0);
        loop {
            let page = reader.changes(since, PAGE_ROWS_MAX).unwrap();
            let Some(last) = page.last() else { return all };
            since = last.record.seq;
            for change in page {
                if change.stream == stream {
                    let body = change.record.body.filter(|_| !change.record.deleted);
                    all.insert(change.record.key, body);
                }
            }
        }
    }

    pub(crate) fn gaps(&self) -> Vec<GapSummary> {
        let reader = self.reader();
        let mut all = Vec::<GapSummary>::new();
        loop {
            let after = all.last().map_or(0, |gap| gap.id);
            let filter = GapFilter { stream: None, closed_too: true };
            let page = reader.gaps("c", filter, after, PAGE_ROWS_MAX).unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    pub(crate) fn run(&mut self, config: &LaneConfig, source: &dyn Source, terms: Terms) -> Ran {
        self.runs += 1;
        let millis = 1_900_000_000_000 + self.runs * BETWEEN_RUNS;
        let now = Now { time: Time::from_millis(millis), wall: WallTime::from_unix_millis(millis) };
        let mut store = self.store.take().unwrap();
        let holder = Holder::current().unwrap();
        let Acquired::Yes { leases, .. } = store.acquire(&[LeaseOn::Connection("c")], &holder, now.wall).unwrap() else {
            panic!("held")
        };
        let name = format!("run-{}", self.runs);
        let start = RunStart {
            connection: "c".to_owned(),
            run_id: RunId::new(&name),
            lease: LeaseId::new(&name),
            grant: "all".to_owned(),
            limits: AttemptLimits::of(None),
            cooldown: CooldownPolicy::of(None, None),
        };
        let session = store.begin_run::<Steady>(start.clone(), leases, now.wall).unwrap();
        let of = |name: &str| StreamScope { resources: terms.resources.clone(), ..StreamScope::all_of(name) };
        let run = Run::new(
            RunConfig {
                run_id: start.run_id,
                lease: start.lease,
                manifest: Arc::clone(&self.manifest),
                scope: Scope::new(vec![of(LIST), of(DETAIL)]).unwrap(),
                bookmarks: session.bookmarks().to_vec(),
                bindings: Vec::new(),
                grant_expires_at: None,
                validator: Box::new(NoSchema),
                silence_max: None,
                effects_max: EFFECTS_MAX,
            },
            now,
        );
        let cursor = session.bookmarks().iter().find(|cursor| cursor.stream() == LIST).map(|c| c.token().clone());
        let mut rig = Rig {
            name,
            now,
            store,
            session: Some(session),
            run: run.unwrap(),
            decoder: Decoder::new(Limits::default()),
            to_connector: VecDeque::new(),
            outcome: None,
            terms,
            fault: self.fault,
            held_backlog: None,
            first_page: true,
            records: 0,
            ran: Ran {
                ended: Err(Stop::Disconnected),
                outcome: None,
                lines: Vec::new(),
                pages: 0,
                pauses: 0,
                messages: 0,
            },
        };
        let ended = run_lane(config, &mut rig, source, cursor.as_ref());
        rig.end(&ended);
        let Rig { store, mut ran, outcome, .. } = rig;
        (ran.ended, ran.outcome) = (ended, outcome);
        self.store = Some(store);
        ran
    }
}

struct Rig {
    name: String,
    now: Now,
    store: Store,
    session: Option<Session<Steady>>,
    run: Run<Steady>,
    decoder: Decoder,
    to_connector: VecDeque<RuntimeMessage>,
    outcome: Option<RunOutcome>,
    terms: Terms,
    fault: Option<Fault>,
    held_backlog: Option<ServedGap>,
    first_page: bool,
    records: u64,
    ran: Ran,
}

impl Rig {
    /// Says one message, unless it is the one at which the run ends.
    fn line(&mut self, line: &[u8]) -> Result<(), Stop> {
        self.ran.messages += 1;
        if self.terms.kill_at == Some(self.ran.messages) {
            // Half of a line is in the pipe.
            self.feed(&line[..line.len() / 2]);
            return Err(Stop::Disconnected);
        }
        self.feed(line);
        if self.run.is_collecting() { Ok(()) } else { Err(Stop::Disconnected) }
    }

    fn message(&mut self, message: &ConnectorMessage<'_>) -> Result<(), Stop> {
        let mut line = Vec::new();
        message.encode(&mut line);
        self.line(&line)
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
        match self.store.carry_out(session, &mut self.run, effect, self.now).unwrap() {
            Some(Effect::Send(message)) => self.to_connector.push_back(message),
            Some(Effect::Finish(outcome)) => {
                self.store.finish_run(self.session.take().unwrap(), &outcome, self.now.wall).unwrap();
                self.outcome = Some(outcome);
            }
            Some(_) | None => {}
        }
        true
    }

    fn end(&mut self, ended: &Result<LaneCounts, Stop>) {
        let error = match ended {
            Ok(_) | Err(Stop::Deferred(_)) => None,
            Err(Stop::Failed(failure)) => Some(DoneError {
                message: failure.message.clone(),
                retryable: failure.retryable,
                code: failure.code.clone(),
                recovery_hint: None,
            }),
            Err(Stop::Cancelled) => panic!("nobody cancels"),
            Err(Stop::Disconnected) => return self.killed(),
        };
        let status = if error.is_some() { DoneStatus::Failed } else { DoneStatus::Succeeded };
        let code = i32::from(error.is_some());
        let done = Done { status, records_emitted: self.records, error };
        if self.message(&ConnectorMessage::Done(done)).is_err() && self.terms.kill_at == Some(self.ran.messages) {
            return self.killed();
        }
        self.run.handle_exit(Exit::Code(code), self.now);
        while self.step() {}
    }

    fn killed(&mut self) {
        if self.terms.runtime_dies {
            // Nothing more is written but that the next may begin.
            let session = self.session.take().unwrap();
            self.store.release(session.leases()).unwrap();
            return;
        }
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, self.now);
        }
        self.run.handle_exit(Exit::Signal(9), self.now);
        while self.step() {}
    }

    fn note(&mut self, message: &ConnectorMessage<'_>) {
        let said = match message {
            ConnectorMessage::DetailGap(gap) => {
                let error = gap.last_error.as_ref();
                Said::Gap {
                    key: gap.record_key.as_ref().unwrap().as_str().to_owned(),
                    reason: gap.reason.unwrap().code().to_owned(),
                    class: error.map(|error| error.class.clone()).unwrap_or_default(),
                    status: error.and_then(|error| error.http_status),
                    held: gap.gap_id.is_some(),
                    locator: gap.detail_locator.as_ref().map(|locator| locator.as_str().to_owned()),
                }
            }
            ConnectorMessage::DetailGapRecovered(gap) => {
                Said::Recovered { key: gap.record_key.as_ref().unwrap().as_str().to_owned() }
            }
            ConnectorMessage::State(state) => Said::Cursor { text: state.cursor.as_str().to_owned() },
            ConnectorMessage::Record(record) => Said::Record {
                stream: record.stream.to_string(),
                key: record.key.canonical().into_owned(),
                deleted: record.op == Op::Delete,
            },
            _ => return,
        };
        self.ran.lines.push(said);
    }

    /// What a fault makes of a message about the backlog gap.
    fn spoil(&self, message: &ConnectorMessage<'_>) -> Vec<ConnectorMessage<'static>> {
        use gleaner_protocol::DetailGapRecovered;
        let own = message.clone().into_owned();
        let ConnectorMessage::DetailGap(gap) = message else { return vec![own] };
        let is_backlog = gap.record_key.as_ref().is_some_and(|key| key.as_str() == BACKLOG_KEY);
        let recovered = self.held_backlog.as_ref().map(|held| {
            ConnectorMessage::DetailGapRecovered(DetailGapRecovered {
                gap_id: held.gap_id.clone(),
                stream: held.stream.clone(),
                record_key: held.record_key.clone(),
                lease_id: Some(held.lease_id.clone()),
            })
        });
        match (self.fault, recovered) {
            (Some(Fault::SettleRewrittenBacklog), Some(recovered)) if is_backlog => vec![recovered],
            (Some(Fault::RecoveredAfterRewrite), Some(recovered)) if is_backlog => vec![own, recovered],
            (Some(Fault::ForgetTheBacklogGap), _) if is_backlog => Vec::new(),
            (Some(Fault::ForgetOldRanges), _) if is_backlog => {
                let mut gap = gap.as_ref().clone();
                let text = gap.detail_locator.as_ref().unwrap().as_str();
                let mut locator = serde_json::from_str::<serde_json::Value>(text).unwrap();
                locator["ranges"].as_array_mut().unwrap().truncate(1);
                gap.detail_locator = Some(RawJson::new(locator.to_string()).unwrap());
                vec![ConnectorMessage::DetailGap(Box::new(gap))]
            }
            _ => vec![own],
        }
    }
}

impl Host for Rig {
    fn run_id(&self) -> &str {
        &self.name
    }

    fn wants(&self, _stream: &str, key: &str) -> bool {
        self.terms.resources.is_empty() || self.terms.resources.iter().any(|wanted| wanted == key)
    }

    fn record(&mut self, stream: &str, key: &str, data: Option<&RawJson<'static>>) -> Result<Sent, Stop> {
        let message = ConnectorMessage::Record(Record {
            stream: stream.into(),
            key: RecordKey::Single(key.into()),
            op: if data.is_some() { Op::Upsert } else { Op::Delete },
            data: data.cloned(),
            emitted_at: Some("2031-01-01T00:00:00Z".into()),
        });
        self.note(&message);
        self.message(&message)?;
        self.records += 1;
        Ok(Sent::Yes)
    }

    fn say(&mut self, message: &ConnectorMessage<'_>) -> Result<(), Stop> {
        for message in self.spoil(message) {
            self.note(&message);
            self.message(&message)?;
        }
        Ok(())
    }

    fn commit(&mut self, stream: &str, cursor: RawJson<'static>) -> Result<(), Stop> {
        let cursor = if self.fault == Some(Fault::ForgetTheWalk) {
            let mut value = serde_json::from_str::<serde_json::Value>(cursor.as_str()).unwrap();
            value.as_object_mut().unwrap().remove("walk");
            RawJson::new(value.to_string()).unwrap()
        } else {
            cursor
        };
        let message = ConnectorMessage::State(State { stream: stream.into(), cursor, slice: true });
        self.note(&message);
        self.message(&message)
    }

    fn gaps_page(&mut self, stream: &str) -> Result<Vec<ServedGap>, Stop> {
        self.ran.pages += 1;
        let streams = vec![stream.to_owned()];
        let page = if std::mem::take(&mut self.first_page) {
            // The page of START.
            self.store.lease_gaps_page(self.session.as_ref().unwrap(), &streams, 16 * 1024, self.now.wall).unwrap()
        } else {
            let request = GapsPageRequest { request_id: self.ran.pages.to_string(), streams, max_bytes: Some(1) };
            self.message(&ConnectorMessage::GapsPageRequest(request))?;
            match self.to_connector.pop_front() {
                Some(RuntimeMessage::GapsPageResponse(page)) => page.detail_gaps,
                other => panic!("{other:?}"),
            }
        };
        let backlog = page.iter().find(|gap| gap.record_key.as_ref().is_some_and(|key| key.as_str() == BACKLOG_KEY));
        self.held_backlog = backlog.cloned().or(self.held_backlog.take());
        Ok(page)
    }

    fn long_line(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
        let mut line = Vec::new();
        write(&mut line).unwrap();
        let text = String::from_utf8(line.clone()).unwrap();
        self.ran.lines.push(Said::Coverage { text });
        self.line(&line)
    }

    fn take_list(&mut self) -> Result<(), DeferReason> {
        take(&mut self.terms.lists).ok_or(DeferReason::WallClock)
    }

    fn take_detail(&mut self) -> Result<(), DeferReason> {
        take(&mut self.terms.details).ok_or(DeferReason::RequestCap)
    }

    fn gap_rows_left(&self) -> Option<u64> {
        self.terms.chunk
    }

    fn take_gap_row(&mut self) -> bool {
        take(&mut self.terms.chunk).is_some()
    }

    fn pause(&mut self, _wait: Duration) -> bool {
        self.ran.pauses += 1;
        true
    }
}

fn take(left: &mut Option<u64>) -> Option<()> {
    match left {
        None => Some(()),
        Some(0) => None,
        Some(left) => {
            *left -= 1;
            Some(())
        }
    }
}

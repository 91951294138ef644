//! The real engine and the real store on one side, the model on the other, and what happens to both.
//!
//! Each operation is done to the real side and told to the model; [`World::compare`] then looks
//! whether the two agree. The connector in here keeps its own promises (it sends a record before it
//! calls its gap recovered, and lists what a cursor covers), so that a broken promise is the
//! store's or the engine's. It never looks into the model to decide what the real side does, except
//! for whether a run goes on.

mod connector;
mod faults;

use super::expected::{Ending, Expected, Said};
use super::gaps::{GapName, ModelGap, State};
use super::lines::{CAUSES, RUN_CAP};
use super::live::{Live, LiveRun, MANIFEST, Step, manifest};
use super::ops::Op;
use super::trace::{CONNECTION, Trace};
use crate::promise;
use gleaner_engine::testing::backlog::Listed;
use gleaner_engine::testing::promises::Fact;
use gleaner_engine::{CatchUp, GapId, LeaseId, Note, Now, RunId, Steady, Time, Track, WallTime};
use gleaner_store::{Acquired, Holder, Lease, LeaseOn, Reader, Store, StoreError};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(crate) const STREAMS: [&str; 3] = ["trips", "details", "photos"];
const WITHOUT_DETAILS: [&str; 2] = ["trips", "photos"];
/// Records of a folded tail that get a gap of their own per run.
pub(crate) const CHUNK: usize = 2;
/// The tail that is listed when a backlog is expanded.
const TAIL: i64 = 8;
/// Ordinary keys stand before every tail, where no backlog covers them.
const NEW: i64 = 1000;

/// A gap that a page served.
#[derive(Clone, Debug)]
struct Served {
    id: String,
    name: GapName,
    lease: String,
    watermark: Option<i64>,
}

pub(crate) struct World {
    path: PathBuf,
    pub(crate) watcher: Connection,
    pub(crate) reader: Reader,
    store: Option<Store>,
    live: Option<Box<dyn Live>>,
    stale: Option<(String, Box<dyn Live>)>,
    pub(crate) expected: Expected,
    pub(crate) trace: Trace,
    now: Now,
    lazy: bool,
    served: Vec<Served>,
    /// What was listed and waits for a cursor, by stream.
    listed: BTreeMap<String, Vec<(String, i64)>>,
    crashed: Vec<String>,
    runs: u64,
    tokens: u64,
    steady_before: Option<BTreeMap<String, String>>,
    pub(crate) other: Option<super::check::Dump>,
    /// Whether the model was told of something since the last comparison, and what the file was then.
    stepped: bool,
    compared: i64,
    /// What kinds of things happened: a property that never meets them proves nothing about them.
    pub(crate) met: BTreeSet<&'static str>,
    _folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = new_folder();
        let path = folder.path().join("store.db");
        let now = Now { time: Time::from_millis(0), wall: WallTime::from_unix_millis(2_000_000_000_000) };
        let mut store = Store::open(&path).unwrap();
        store.register(CONNECTION, MANIFEST, &manifest(), now.wall).unwrap();
        Self {
            watcher: Connection::open(&path).unwrap(),
            reader: Reader::open(&path).unwrap(),
            path,
            store: Some(store),
            live: None,
            stale: None,
            expected: Expected { now: now.wall.as_unix_millis(), ..Expected::default() },
            trace: Trace::default(),
            now,
            lazy: false,
            served: Vec::new(),
            listed: BTreeMap::new(),
            crashed: Vec::new(),
            runs: 0,
            tokens: 0,
            steady_before: None,
            other: None,
            stepped: true,
            compared: 0,
            met: BTreeSet::new(),
            _folder: folder,
        }
    }

    /// Does one thing. Store and model are compared if either may have changed.
    pub(crate) fn act(&mut self, op: Op) {
        match op {
            Op::Begin { catch_up, details } => self.begin(catch_up, details),
            Op::Cancel | Op::Pass | Op::Jump { .. } | Op::Lazy(_) => self.meddle(op),
            Op::Crash { carried_out } => self.crash(carried_out),
            Op::Takeover { death, catch_up, at_its_end } => self.take_over(death, catch_up, at_its_end),
            Op::StaleActs => self.stale_acts(),
            Op::OtherConnection => self.other_connection(),
            Op::Ignore { .. } | Op::TakeBack { .. } => self.owner_says(op),
            said => {
                if self.is_speaking() {
                    self.hear(said);
                }
            }
        }
        self.settle_unless_lazy();
        let version = super::check::data_version(&self.watcher);
        if std::mem::take(&mut self.stepped) || version != self.compared {
            self.compare();
            self.compared = version;
        }
    }

    /// Something that a connector says.
    fn hear(&mut self, op: Op) {
        match op {
            Op::Record { stream, key, body } => self.record(self.stream(stream), &key_name(key), body),
            Op::Bad { stream, key } => self.bad(self.stream(stream), &key_name(key), r#"{"bad":1}"#),
            // Photos only grow; a deletion there is nonsense and has its own operation.
            Op::Delete { stream, key } => self.delete(self.stream(stream.min(1)), &key_name(key)),
            Op::State { stream, slice } => self.state(self.stream(stream), slice),
            Op::Gap { stream, key, cause } => self.gap(self.stream(stream), &key_name(key), NEW, CAUSES[cause]),
            Op::CapTrip { tail, chunk } => self.cap_trip(i64::from(tail), usize::from(chunk)),
            Op::Page => self.page(),
            Op::Attempt { nth } => self.with_served(nth, Self::attempt),
            Op::Recover { nth } => self.with_served(nth, Self::recover),
            Op::PutBack { nth, cause } => self.with_served(nth, |world, served| world.put_back(served, CAUSES[cause])),
            Op::PutBackAndRecover { nth } => self.with_served(nth, |world, served| {
                world.put_back(served, RUN_CAP);
                world.say_recovered(served);
            }),
            Op::Lie { nth, how } => self.with_served(nth, |world, served| world.lie(served, how)),
            Op::Coverage { outcomes } => self.coverage(outcomes),
            Op::Sweep { cause } => self.sweep(CAUSES[cause]),
            Op::StreamFailed { stream } => self.stream_failed(STREAMS[stream]),
            Op::StreamsFailed { stream } => {
                self.stream_failed(STREAMS[stream]);
                self.done(6);
            }
            Op::Done { how } => self.done(how),
            Op::Nonsense { deletion } => self.nonsense(deletion),
            Op::Repeat => self.repeat(),
            _ => {}
        }
    }

    /// What happens around a run.
    fn meddle(&mut self, op: Op) {
        match op {
            Op::Cancel => {
                let going = self.expected.going.as_mut().filter(|going| going.ending.is_none());
                if let (Some(live), Some(going)) = (&mut self.live, going) {
                    live.cancel(self.now);
                    going.conclude(Ending::Cancelled);
                }
            }
            Op::Pass => self.pass(),
            Op::Jump { hours } => self.jump(hours),
            Op::Lazy(lazy) => self.lazy = lazy,
            _ => {}
        }
    }

    pub(crate) fn begin(&mut self, catch_up: bool, details: bool) {
        if self.live.is_some() {
            return;
        }
        let mut store = self.store.take().unwrap_or_else(|| Store::open(&self.path).unwrap());
        let leases = acquire(&mut store, CONNECTION, self.now);
        self.trace.facts.push(Fact::Acquired { epoch: leases[0].epoch() });
        self.runs += 1;
        let id = format!("r{}", self.runs);
        let streams: &'static [&'static str] = if details { &STREAMS } else { &WITHOUT_DETAILS };
        let track = if catch_up { CatchUp::NAME } else { Steady::NAME };
        let of = (CONNECTION, id.as_str());
        self.live = Some(if catch_up {
            Box::new(LiveRun::<CatchUp>::begin(store, of, streams, leases, self.now))
        } else {
            Box::new(LiveRun::<Steady>::begin(store, of, streams, leases, self.now))
        });
        self.expected.begin(&id, track, streams);
        self.stepped = true;
        for run in std::mem::take(&mut self.crashed) {
            self.trace.ended(&run, false);
        }
        self.forget_uncovered();
        self.steady_before = catch_up.then(|| self.steady_cursors());
    }

    /// Numbers of cursors that were never committed are given out again, for other records.
    fn forget_uncovered(&mut self) {
        self.listed.clear();
        self.trace.of_run.clear();
        let cursors = &self.expected.cursors;
        let committed = |stream: &String| cursors.get(&(Steady::NAME, stream.clone())).map_or(0, |(seq, _)| *seq);
        self.trace.facts.retain(|fact| match fact {
            Fact::Listed { stream, covered_by, .. } => covered_by.get() <= committed(stream),
            _ => true,
        });
    }

    fn steady_cursors(&self) -> BTreeMap<String, String> {
        let cursors = self.reader.bookmarks::<Steady>(CONNECTION).unwrap();
        cursors.iter().map(|cursor| (cursor.stream().to_owned(), cursor.token().as_str().to_owned())).collect()
    }

    /// Whether a connector speaks; begins a run if there is none, every third one without details.
    fn is_speaking(&mut self) -> bool {
        self.begin(false, self.runs % 3 != 2);
        self.expected.going.as_ref().is_some_and(|going| going.ending.is_none())
    }

    fn settle_unless_lazy(&mut self) {
        if !self.lazy {
            self.settle();
        }
    }

    /// Carries out everything that waits.
    pub(crate) fn settle(&mut self) {
        while let Some(step) = self.live.as_mut().and_then(|live| live.step(self.now)) {
            self.observe(step);
        }
    }

    /// Tells the model what was carried out, and takes note of it.
    fn observe(&mut self, step: Step) {
        let run = self.expected.going.as_ref().map(|going| going.id.clone()).unwrap_or_default();
        match step {
            Step::Wrote(shape) => {
                let slice = self.expected.wrote(shape);
                self.trace.slice_written(&self.reader, &run, &slice);
                self.meet_gaps(&run, &slice);
            }
            Step::Tallied => self.tallied(),
            Step::Unaccounted(count) => {
                self.met.insert("keys that nothing accounts for became gaps");
                let names = self.expected.write_unaccounted();
                assert_eq!(count, names.len() as u64, "keys that nothing accounts for");
                self.trace.gaps_written(&self.reader, &run, &names);
            }
            Step::Page(page) => self.paged(&run, page),
            Step::Committed(cursors) => {
                self.met.insert("cursors committed at the end of a run");
                self.expected.committed(&cursors);
            }
            Step::Finished(_) => self.finished(&run),
            Step::Refused | Step::FinishRefused => panic!("{run} holds the lease and was refused"),
            Step::Other => return,
        }
        self.stepped = true;
        self.trace.read_commits(&self.watcher);
    }

    fn meet_gaps(&mut self, run: &str, slice: &[Said]) {
        for said in slice {
            let ignored = |name| matches!(self.expected.gaps[name].state, State::Ignored(..));
            if matches!(said, Said::Gap { name, .. } if ignored(name)) {
                self.met.insert("an ignored gap reported again");
            }
            let Said::Recover { name, lease, .. } = said else { continue };
            let gap = &self.expected.gaps[name];
            self.met.insert(match &gap.state {
                State::Recovered if gap.confirmed_by == Some("empty") => "a gap closed as empty",
                State::Recovered => "a gap recovered",
                _ if gap.is_held_by(lease) => "a gap called recovered for which nothing came",
                _ if lease == run => "a gap called recovered by the run that deferred it again",
                _ => "a gap called recovered by a run that does not hold it",
            });
        }
        let is_given_up = |gap: &ModelGap| matches!(gap.state, State::Terminal(_));
        if self.expected.gaps.values().any(is_given_up) {
            self.met.insert("a gap given up");
        }
    }

    /// The owner says something about a gap that the store has, from a process of their own.
    fn owner_says(&mut self, op: Op) {
        let (Op::Ignore { nth, .. } | Op::TakeBack { nth }) = op else { return };
        let rows = super::trace::read_gaps(&self.reader);
        let Some(row) = rows.get(nth % rows.len().max(1)) else { return };
        let name = self.trace.name(&self.reader, &row.gap_id);
        let gap = self.expected.gaps.get_mut(&name).unwrap();
        let was_held = matches!(gap.state, State::Held(_));
        let mut store = Store::open(&self.path).unwrap();
        match op {
            Op::Ignore { note, .. } => {
                let note = format!("note {note}");
                let said = store.ignore_gap(CONNECTION, &row.gap_id, &Note::new(&note).unwrap(), self.now.wall);
                if row.record_key.is_none() || gap.locator.is_some() {
                    assert!(matches!(said, Err(StoreError::StandsForMany(_))), "{name:?}: {said:?}");
                    self.met.insert("a part of a list that cannot be ignored");
                    return;
                }
                let done = said.unwrap();
                assert_eq!(done, gap.ignore(&note), "{name:?}");
                self.met.extend(done.then_some("a gap ignored"));
                self.met.extend((done && was_held).then_some("a gap ignored while a run held it"));
            }
            _ => {
                let done = store.take_back_gap(CONNECTION, &row.gap_id).unwrap();
                assert_eq!(done, gap.take_back(), "{name:?}");
                self.met.extend(done.then_some("an ignored gap taken back"));
            }
        }
        self.stepped = true;
    }

    fn tallied(&mut self) {
        self.expected.tally();
        let report = self.expected.going.as_ref().and_then(|going| going.report.as_ref()).unwrap();
        let [_, hydrated, ..] = &report.lists;
        if hydrated.iter().any(|key| !self.expected.has_detail(key)) {
            self.met.insert("a key called hydrated of which there is nothing");
        }
        if report.unaccounted == Some(0) {
            self.met.insert("a complete report");
            let (stream, state_stream) = ("details".to_owned(), "trips".to_owned());
            // What is in no list and not missing either has a durable gap.
            let [required, hydrated, mut gaps, skips] = report.lists.clone();
            let in_none = |key: &&String| ![&hydrated, &gaps, &skips].into_iter().any(|list| list.contains(key));
            let by_gap = required.iter().filter(in_none).cloned().collect::<Vec<_>>();
            gaps.extend(by_gap);
            let lists = [required, hydrated, gaps, skips];
            self.trace.of_run.push(Fact::Covered { stream, state_stream, lists });
        }
    }

    fn paged(&mut self, run: &str, page: Vec<gleaner_protocol::ServedGap>) {
        let mut names = BTreeSet::new();
        for gap in page {
            let name = self.trace.name(&self.reader, &gap.gap_id);
            names.insert(name.clone());
            let (id, lease, key) = (GapId::new(&gap.gap_id), LeaseId::new(run), name.2.strip_prefix("key:"));
            let (stream, key) = (name.0.clone(), key.map(str::to_owned));
            self.trace.facts.push(Fact::GapLeased { gap: id, lease, stream, key });
            let watermark = gap.detail_locator.as_ref().map(|raw| {
                let digits = raw.as_str().trim_matches(|c: char| !c.is_ascii_digit());
                digits.parse().unwrap()
            });
            self.served.push(Served { id: gap.gap_id, name, lease: gap.lease_id, watermark });
        }
        assert_eq!(names, self.expected.lease_page(), "a page of gaps");
    }

    fn finished(&mut self, run: &str) {
        let empty = self.expected.keep_empty();
        if !empty.is_empty() {
            self.met.insert("a key called hydrated that is empty");
            // Only their names: nobody told a gap.
            self.trace.gaps_written(&self.reader, run, &[]);
        }
        if self.expected.finished(self.now.wall.as_unix_millis()) {
            self.trace.facts.push(Fact::CooldownArmed { run: RunId::new(run) });
        }
        self.trace.ended(run, false);
        self.met.extend(self.expected.runs.last().and_then(|run| run.reason));
        self.store = self.live.take().map(Live::into_store);
        if let Some(before) = self.steady_before.take() {
            self.met.insert("a catch-up run to its end");
            promise::a8_catch_up_leaves_steady_alone(&before, &self.steady_cursors()).unwrap();
        }
        self.check_run_promises();
    }

    /// Faults stop: what goes on ends, and what is stale finds out.
    pub(crate) fn calm_down(&mut self) {
        self.lazy = false;
        self.settle();
        if self.live.is_some() {
            self.done(0);
            self.settle();
        }
        self.stale_acts();
        self.begin(false, true);
        self.done(0);
        self.settle();
        self.compare();
    }

    /// A2 and A6: recovery runs until nothing waits, within the bound.
    pub(crate) fn converge(&mut self) {
        let tail = usize::try_from(TAIL).unwrap();
        let bound = (self.waiting() + tail).div_ceil(CHUNK) + 2;
        for _ in 0..bound {
            if self.waiting() == 0 {
                return;
            }
            self.pass_a_day();
            self.begin(false, true);
            loop {
                let before = self.served.len();
                self.page();
                self.settle();
                if self.served.len() == before {
                    break;
                }
                let page = self.served[before..].to_vec();
                page.iter().for_each(|served| self.recover(served));
            }
            self.done(0);
            self.settle();
            self.compare();
        }
        assert_eq!(self.waiting(), 0, "A2: gaps wait after {bound} runs without faults");
    }

    /// The longest that a gap waits for its next try.
    fn pass_a_day(&mut self) {
        self.now.wall = self.now.wall + std::time::Duration::from_secs(86_400);
        self.expected.now = self.now.wall.as_unix_millis();
    }

    /// How many gaps still wait, as the store says.
    fn waiting(&self) -> usize {
        let streams = self.reader.streams(CONNECTION).unwrap();
        let waiting = streams.iter().map(|stream| stream.gaps_pending + stream.gaps_in_progress).sum::<u64>();
        usize::try_from(waiting).unwrap()
    }
}

fn new_folder() -> tempfile::TempDir {
    // In memory where there is such a place: these tests are about order, not about disks.
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn holder() -> Holder {
    Holder::current().unwrap()
}

fn leases_on(connection: &str) -> [LeaseOn<'_>; 2] {
    [LeaseOn::Connection(connection), LeaseOn::Credential { provider: "p", hash: connection }]
}

fn acquire(store: &mut Store, connection: &str, now: Now) -> Vec<Lease> {
    match store.acquire(&leases_on(connection), &holder(), now.wall).unwrap() {
        Acquired::Yes { leases, .. } => leases,
        Acquired::Held(by) => panic!("{connection} is held by {by:?}"),
    }
}

fn key_name(key: u8) -> String {
    format!("k{key}")
}

fn place(stream: &str, key: &str) -> super::expected::Place {
    (stream.to_owned(), key.to_owned())
}

/// A tail, newest first.
fn tail_list(tail: i64) -> Vec<Listed<i64>> {
    (0..tail).rev().map(|position| Listed { key: format!("t{position}"), position }).collect()
}

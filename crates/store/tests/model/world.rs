//! The real engine and the real store on one side, the model on the other, and what happens to both.
//!
//! Each operation is done to the real side and told to the model; [`World::compare`] then looks
//! whether the two agree. The connector in here keeps its own promises (it sends a record before it
//! calls its gap recovered, and lists what a cursor covers), so that a broken promise is the
//! store's or the engine's. It never looks into the model to decide what the real side does, except
//! for whether a run goes on.

use super::expected::{Ending, Expected, Report, Said};
use super::gaps::{GapName, ModelGap, State};
use super::lines::{self, CAUSES, Cause, RUN_CAP};
use super::live::{Live, LiveRun, MANIFEST, Step, manifest};
use super::ops::Op;
use super::trace::{CONNECTION, Trace};
use gleaner_engine::invariants::{self, Fact};
use gleaner_engine::{
    Backlog, CatchUp, CommitSeq, GapId, LeaseId, Listed, Now, RunId, Steady, Time, Track, WallTime, expand, fold,
};
use gleaner_store::{Acquired, Holder, Lease, LeaseOn, Reader, Store, StoreError};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

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
            expected: Expected::default(),
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

    // Runs.

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
            let Said::Recover { name, lease } = said else { continue };
            self.met.insert(match &self.expected.gaps[name].state {
                State::Recovered => "a gap recovered",
                _ if lease == run => "a gap called recovered by the run that deferred it again",
                _ => "a gap called recovered by a run that does not hold it",
            });
        }
        let is_given_up = |gap: &ModelGap| matches!(gap.state, State::Terminal(_));
        if self.expected.gaps.values().any(is_given_up) {
            self.met.insert("a gap given up");
        }
    }

    fn tallied(&mut self) {
        self.expected.tally();
        let report = self.expected.going.as_ref().and_then(|going| going.report.as_ref()).unwrap();
        if report.unaccounted == Some(0) {
            self.met.insert("a complete report");
            let (stream, state_stream) = ("details".to_owned(), "trips".to_owned());
            self.trace.of_run.push(Fact::Covered { stream, state_stream, lists: report.lists.clone() });
        }
    }

    fn paged(&mut self, run: &str, page: Vec<gleaner_protocol::ServedGap>) {
        let mut names = BTreeSet::new();
        for gap in page {
            let name = self.trace.name(&self.reader, &gap.gap_id);
            names.insert(name.clone());
            self.trace.facts.push(Fact::GapLeased { gap: GapId::new(&gap.gap_id), lease: LeaseId::new(run) });
            let watermark = gap.detail_locator.as_ref().map(|raw| {
                let digits = raw.as_str().trim_matches(|c: char| !c.is_ascii_digit());
                digits.parse().unwrap()
            });
            self.served.push(Served { id: gap.gap_id, name, lease: gap.lease_id, watermark });
        }
        assert_eq!(names, self.expected.lease_page(), "a page of gaps");
    }

    fn finished(&mut self, run: &str) {
        if self.expected.finished(self.now.wall.as_unix_millis()) {
            self.trace.facts.push(Fact::CooldownArmed { run: RunId::new(run) });
        }
        self.trace.ended(run, false);
        self.met.extend(self.expected.runs.last().and_then(|run| run.reason));
        self.store = self.live.take().map(Live::into_store);
        if let Some(before) = self.steady_before.take() {
            self.met.insert("a catch-up run to its end");
            invariants::a8_catch_up_leaves_steady_alone(&before, &self.steady_cursors()).unwrap();
        }
        self.check_run_promises();
    }

    // What a connector says.

    fn say(&mut self, line: &str) {
        let steps = self.live.as_mut().map(|live| live.say(line, self.now)).unwrap_or_default();
        for step in steps {
            self.met.insert("a connector that waits for the store");
            self.observe(step);
        }
    }

    fn tell(&mut self, said: Said) {
        self.expected.going.as_mut().unwrap().say(said);
    }

    /// Details are left alone when they are not asked for, and after their report.
    fn stream(&self, nth: usize) -> &'static str {
        let going = self.expected.going.as_ref().unwrap();
        let closed = STREAMS[nth] == "details" && (going.report.is_some() || !going.streams.contains(&"details"));
        if closed { "trips" } else { STREAMS[nth] }
    }

    /// The provider listed it, so the next cursor of the stream covers it.
    fn list(&mut self, stream: &str, key: &str, position: i64) {
        if self.expected.going.as_ref().unwrap().track == Steady::NAME {
            self.listed.entry(stream.to_owned()).or_default().push((key.to_owned(), position));
        }
        if stream == "details" {
            self.trace.of_run.push(Fact::Detail { stream: stream.to_owned() });
        }
    }

    fn accept(&mut self, stream: &str, key: &str) {
        let run = RunId::new(&self.expected.going.as_ref().unwrap().id);
        self.trace.facts.push(Fact::Accepted { run, stream: stream.to_owned(), key: key.to_owned() });
        self.list(stream, key, NEW);
    }

    fn record(&mut self, stream: &str, key: &str, body: u8) {
        let body = format!(r#"{{"v":{body}}}"#);
        self.say(&lines::record(stream, key, &body));
        self.accept(stream, key);
        self.tell(Said::Record { place: place(stream, key), body: Some(body) });
    }

    fn bad(&mut self, stream: &str, key: &str, body: &str) {
        self.say(&lines::record(stream, key, body));
        self.accept(stream, key);
        self.tell(Said::Bad { place: place(stream, key), body: body.to_owned() });
    }

    fn delete(&mut self, stream: &str, key: &str) {
        self.say(&lines::delete(stream, key));
        self.accept(stream, key);
        self.trace.facts.push(Fact::Deleted { stream: stream.to_owned(), key: key.to_owned() });
        self.tell(Said::Record { place: place(stream, key), body: None });
    }

    fn state(&mut self, stream: &str, slice: bool) {
        self.tokens += 1;
        let token = format!(r#"{{"page":{}}}"#, self.tokens);
        self.say(&lines::state(stream, &token, slice));
        let going = self.expected.going.as_mut().unwrap();
        let seq = going.seqs.get(stream).copied().unwrap_or_default() + 1;
        going.seqs.insert(stream.to_owned(), seq);
        going.say(Said::Cursor { stream: stream.to_owned(), seq, token, slice });
        for (key, position) in self.listed.remove(stream).unwrap_or_default() {
            let (stream, covered_by) = (stream.to_owned(), CommitSeq::new(seq));
            self.trace.facts.push(Fact::Listed { stream, key, covered_by, position });
        }
    }

    fn gap(&mut self, stream: &str, key: &str, position: i64, cause: Cause) {
        let parent = (stream == "details").then_some("trips");
        self.say(&lines::gap(stream, parent, key, cause));
        self.list(stream, key, position);
        let name = (stream.to_owned(), parent.map(str::to_owned), format!("key:{key}"));
        self.tell(Said::Gap { name, cause, locator: None });
    }

    fn cap_trip(&mut self, tail: i64, chunk: usize) {
        let folded = fold(tail_list(tail), Some(chunk));
        for record in tail_list(tail) {
            self.list("trips", &record.key, record.position);
        }
        for record in &folded.gaps {
            self.gap("trips", &record.key, record.position, RUN_CAP);
        }
        if let Some(Backlog { watermark, .. }) = folded.backlog {
            self.say(&lines::backlog("trips", watermark));
            let locator = lines::locator(watermark);
            let name = ("trips".to_owned(), None, format!("loc:{locator}"));
            self.tell(Said::Gap { name, cause: RUN_CAP, locator: Some(locator) });
        }
    }

    fn page(&mut self) {
        self.say(lines::PAGE);
        self.expected.going.as_mut().unwrap().flush();
    }

    /// Does something with a gap that was served, if its stream can be spoken of now.
    fn with_served(&mut self, nth: usize, act: impl FnOnce(&mut Self, &Served)) {
        let Some(served) = self.served.iter().rev().nth(nth).cloned() else { return };
        let going = self.expected.going.as_ref().unwrap();
        let closed = served.name.0 == "details" && going.report.is_some();
        // What an earlier run was told about a backlog is out of date; a connector has forgotten it.
        let forgotten = served.watermark.is_some() && served.lease != going.id;
        if going.streams.contains(&served.name.0.as_str()) && !closed && !forgotten {
            act(self, &served);
        }
    }

    fn attempt(&mut self, served: &Served) {
        self.say(&lines::attempted(&served.name.0, &served.id, &served.lease));
        self.tell(Said::Attempt { name: served.name.clone(), lease: served.lease.clone() });
    }

    fn say_recovered(&mut self, served: &Served) {
        self.say(&lines::recovered(&served.name.0, &served.id, &served.lease));
        self.tell(Said::Recover { name: served.name.clone(), lease: served.lease.clone() });
    }

    /// The record comes first, then the news that its gap is closed.
    fn recover(&mut self, served: &Served) {
        if let Some(watermark) = served.watermark {
            return self.expand(served, watermark);
        }
        let key = served.name.2.trim_start_matches("key:").to_owned();
        self.record(&served.name.0, &key, 0);
        self.say_recovered(served);
    }

    /// The next chunk of a backlog gets gaps of its own; what is left goes back with a new watermark.
    fn expand(&mut self, served: &Served, watermark: i64) {
        let backlog = Backlog { watermark, remaining: 0 };
        let account = self.reader.account(CONNECTION).unwrap();
        let is_there = |key: &str| invariants::Durable::accounts_for(&account, "trips", key);
        let folded = expand(&backlog, tail_list(TAIL), is_there, Some(CHUNK));
        for record in &folded.gaps {
            self.gap("trips", &record.key, record.position, RUN_CAP);
        }
        match folded.backlog {
            None => self.say_recovered(served),
            Some(rest) => {
                self.met.insert("a backlog expanded in part");
                self.say(&lines::put_back("trips", &served.id, Some(rest.watermark), RUN_CAP));
                let locator = Some(lines::locator(rest.watermark));
                self.tell(Said::Gap { name: served.name.clone(), cause: RUN_CAP, locator });
            }
        }
    }

    fn put_back(&mut self, served: &Served, cause: Cause) {
        self.say(&lines::put_back(&served.name.0, &served.id, None, cause));
        self.tell(Said::Gap { name: served.name.clone(), cause, locator: None });
    }

    /// A run in which every gap fails again.
    fn sweep(&mut self, cause: Cause) {
        let before = self.served.len();
        self.page();
        self.settle();
        let page = self.served[before..].to_vec();
        for served in page {
            if served.name.0 != "details" || self.expected.going.as_ref().unwrap().report.is_none() {
                self.attempt(&served);
                self.put_back(&served, cause);
            }
        }
        self.done(0);
    }

    fn coverage(&mut self, outcomes: [u8; 4]) {
        let going = self.expected.going.as_ref().unwrap();
        if going.report.is_some() || !going.streams.contains(&"details") {
            return;
        }
        let keys = |wanted: &[u8]| {
            let wanted = outcomes.iter().zip(0_u8..).filter(|(outcome, _)| wanted.contains(outcome));
            wanted.map(|(_, key)| key_name(key)).collect::<Vec<_>>()
        };
        let lists = [keys(&[0, 1, 2, 3, 4]), keys(&[0]), keys(&[1, 4]), keys(&[2])];
        for key in keys(&[1]) {
            self.gap("details", &key, NEW, CAUSES[8]);
        }
        self.say(&lines::coverage(&lists));
        let going = self.expected.going.as_mut().unwrap();
        going.flush();
        going.report = Some(Report { lists, unaccounted: None });
    }

    fn stream_failed(&mut self, stream: &str) {
        self.say(&lines::stream_failed(stream));
        let going = self.expected.going.as_mut().unwrap();
        if going.streams.contains(&stream) {
            going.fail_stream(stream);
        }
    }

    fn done(&mut self, how: u8) {
        let going = self.expected.going.as_ref().unwrap();
        let scoped =
            if going.has_failed_streams() { Ending::StreamsFailed } else { Ending::Failed("connector_failed") };
        let (status, code, ending) = match how {
            0..=3 => ("succeeded", None, Ending::Succeeded),
            4 => ("failed", Some("boom"), Ending::Failed("connector_failed")),
            5 => ("cancelled", None, Ending::Cancelled),
            6 => ("failed", Some("stream_collection_failed"), scoped),
            7 => ("failed", Some("x_rate_limited"), Ending::Failed("source_cooldown")),
            _ => ("failed", Some("missing_credentials"), Ending::Failed("credentials_missing")),
        };
        let line = lines::done(status, going.counts[0], code);
        if let Some(live) = &mut self.live {
            live.set_exit(i32::from(status != "succeeded"));
        }
        self.say(&line);
        let going = self.expected.going.as_mut().unwrap();
        if ending == Ending::Failed("source_cooldown") {
            going.throttle();
        }
        going.conclude(ending);
    }

    fn nonsense(&mut self, deletion: bool) {
        let line = if deletion { lines::delete("photos", "k0") } else { "nonsense".to_owned() };
        self.say(&line);
        self.expected.going.as_mut().unwrap().conclude(Ending::Broken);
    }

    /// A7: what was written is written once more, as after a receipt that was lost.
    fn repeat(&mut self) {
        // After its report nothing more is said about a detail.
        if self.expected.going.as_ref().unwrap().report.is_some() {
            return;
        }
        self.pass();
        self.settle();
        let slice = self.expected.going.as_ref().unwrap().last_slice.clone();
        if !slice.is_empty() {
            self.met.insert("a slice written twice");
        }
        let once = super::check::digest(&self.watcher);
        for (nth, said) in slice.iter().enumerate() {
            self.repeat_one(said, &slice[nth + 1..]);
        }
        self.pass();
        self.settle();
        invariants::a7_writing_twice_is_writing_once(once, super::check::digest(&self.watcher)).unwrap();
    }

    /// Of one key, the last word only.
    fn repeat_one(&mut self, said: &Said, later: &[Said]) {
        let is_last = |place: &super::expected::Place| {
            let about = |said: &Said| matches!(said, Said::Record { place: of, .. } | Said::Bad { place: of, .. } if of == place);
            !later.iter().any(about)
        };
        match said {
            Said::Record { place, body: Some(body) } if is_last(place) => {
                self.say(&lines::record(&place.0, &place.1, body));
                self.tell(said.clone());
            }
            Said::Record { place, body: None } if is_last(place) => self.delete(&place.0, &place.1),
            Said::Bad { place, body } if is_last(place) => self.bad(&place.0, &place.1, body),
            Said::Gap { name, cause, .. } => {
                let parent = name.1.as_deref();
                let Some(key) = name.2.strip_prefix("key:") else { return };
                self.say(&lines::gap(&name.0, parent, key, *cause));
                self.tell(said.clone());
            }
            _ => {}
        }
    }

    // What happens to machines and clocks.

    fn pass(&mut self) {
        let wait = Duration::from_secs(6);
        self.now = Now { time: self.now.time + wait, wall: self.now.wall + wait };
        let going = self.expected.going.as_mut().filter(|going| going.ending.is_none());
        if let (Some(live), Some(going)) = (&mut self.live, going) {
            live.pass_time(self.now);
            going.flush();
        }
    }

    /// Leases do not care, and a rest neither grows nor is forgotten.
    fn jump(&mut self, hours: i64) {
        let millis = self.now.wall.as_unix_millis().saturating_add_signed(hours * 3_600_000);
        self.now.wall = WallTime::from_unix_millis(millis.clamp(1_000_000_000_000, 4_000_000_000_000));
        let store = Store::open(&self.path).unwrap();
        let held = store.held_by(LeaseOn::Connection(CONNECTION), &holder(), self.now.wall).unwrap();
        assert_eq!(held.is_some(), self.live.is_some(), "a lease moved with the calendar");
        drop(store);
        super::check::rest_ends(&self.path, self.now.wall);
        self.stepped = true;
        if self.expected.rest_after_jump(self.now.wall.as_unix_millis()) {
            self.met.insert("a rest cut after the calendar was set back");
        }
    }

    fn crash(&mut self, carried_out: usize) {
        for _ in 0..carried_out {
            if let Some(step) = self.live.as_mut().and_then(|live| live.step(self.now)) {
                self.observe(step);
            }
        }
        if let (Some(mut live), Some(going)) = (self.live.take(), self.expected.going.take()) {
            if live.has_effects() {
                self.met.insert("a crash between two effects");
            }
            self.crashed.push(going.id);
        }
        if let Some((id, _)) = self.stale.take() {
            self.trace.ended(&id, true);
        }
        self.lazy = false;
        self.store = None;
        self.watcher.execute("UPDATE leases SET boot = 'before'", []).unwrap();
    }

    /// A run under pressure whose last effect alone is still to be carried out.
    fn go_on_to_the_end(&mut self) {
        if self.is_speaking() {
            self.done(7);
        }
        while self.live.as_mut().is_some_and(|live| live.has_effects() && !live.is_at_its_end()) {
            if let Some(step) = self.live.as_mut().and_then(|live| live.step(self.now)) {
                self.observe(step);
            }
        }
    }

    /// While the holder lives nobody takes over; once it is dead somebody does.
    fn take_over(&mut self, death: u8, catch_up: bool, at_its_end: bool) {
        if self.live.is_none() {
            return;
        }
        self.stale_acts();
        if at_its_end {
            self.go_on_to_the_end();
        }
        let mut second = Store::open(&self.path).unwrap();
        let asked = second.acquire(&leases_on(CONNECTION), &holder(), self.now.wall).unwrap();
        assert!(matches!(asked, Acquired::Held(_)), "two holders");
        let sql = match death {
            0 => "UPDATE leases SET pid = 4194305",
            1 => "UPDATE leases SET boot = 'before'",
            _ => "UPDATE leases SET expires_boot_ms = 0",
        };
        self.watcher.execute(sql, []).unwrap();
        self.store = Some(second);
        let id = self.expected.going.take().unwrap().id;
        self.stale = self.live.take().map(|live| (id, live));
        self.begin(catch_up, true);
    }

    /// L3: whoever lost the lease changes nothing, says so, and cannot take it back.
    fn stale_acts(&mut self) {
        let Some((id, mut live)) = self.stale.take() else { return };
        let before = super::check::data_version(&self.watcher);
        let leases = live.leases();
        let mut steps = live.say(&lines::record("trips", "stale", "{}"), self.now);
        steps.extend(live.say(&lines::state("trips", "{\"stale\":1}", true), self.now));
        while let Some(step) = live.step(self.now) {
            steps.push(step);
        }
        let refused = steps.iter().any(|step| matches!(step, Step::Refused | Step::FinishRefused));
        assert!(refused, "{id} lost its lease and was not refused: {steps:?}");
        self.met.insert(if matches!(steps.last(), Some(Step::FinishRefused)) {
            "a stale run refused at its end"
        } else {
            "a stale run refused in the middle"
        });
        let superseded = match steps.last() {
            Some(Step::Finished(outcome)) => outcome.reason.code() == "superseded" && outcome.pressure.is_none(),
            last => matches!(last, Some(Step::FinishRefused)),
        };
        let mut store = live.into_store();
        assert!(matches!(store.heartbeat(&leases), Err(StoreError::Superseded { .. })), "a dead lease lives on");
        let rows_changed = u64::from(super::check::data_version(&self.watcher) != before);
        // What is not ours is not given back.
        store.release(&leases).unwrap();
        self.trace.facts.push(Fact::StaleCommit { run: RunId::new(&id), rows_changed });
        self.trace.ended(&id, superseded);
    }

    /// Another connection comes, with a run of its own, and goes; ours does not notice.
    fn other_connection(&mut self) {
        let mut store = Store::open(&self.path).unwrap();
        if self.other.take().is_some() {
            let leases = acquire(&mut store, "other", self.now);
            store.purge("other", &leases).unwrap();
            store.release(&leases).unwrap();
            super::check::nothing_is_left_of_other(&self.watcher);
            self.met.insert("a connection forgotten beside ours");
            return;
        }
        self.runs += 1;
        store.register("other", MANIFEST, &manifest(), self.now.wall).unwrap();
        let leases = acquire(&mut store, "other", self.now);
        let id = format!("o{}", self.runs);
        let mut live = LiveRun::<Steady>::begin(store, ("other", &id), &STREAMS, leases, self.now);
        live.set_exit(0);
        let said = [
            lines::record("trips", "k0", r#"{"v":7}"#),
            lines::record("trips", "k1", r#"{"bad":7}"#),
            lines::delete("trips", "k2"),
            lines::gap("details", Some("trips"), "k0", CAUSES[0]),
            lines::state("trips", r#"{"page":7}"#, true),
            lines::done("succeeded", 3, None),
        ];
        for line in said {
            live.say(&line, self.now);
        }
        while live.step(self.now).is_some() {}
        self.other = Some(super::check::dump(&self.watcher, "other"));
    }

    // The end.

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

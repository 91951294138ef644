//! Whatever runs came before, ordinary runs end where ordinary runs alone would have ended (issue 18, point 1).
//!
//! A foreign connector that moves its cursor past everything it walks over is run in any order of scoped, catch-up,
//! recovery-only, full-refresh, capped, killed and ordinary runs, under grants that are widened, while its provider
//! changes. After a few ordinary runs the stored bodies, tombstones, quarantined records and open gaps must equal those
//! of a home that saw ordinary runs only. With any one of the rules removed this fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod foreign;

use foreign::{Lies, Nature, Provider, time};
use gleaner_engine::{
    AttemptLimits, CatchUp, CooldownPolicy, CoverageTally, EFFECTS_MAX, Effect, Exit, GrantPart, LeaseId, Misfit, Now,
    Reach, Run, RunConfig, RunId, RunOutcome, RunPurpose, RunScope, Schemas, Scoped, Steady, StoreEffect, Time, Track,
    TrackChoice, Validate, WallTime,
};
use gleaner_protocol::{
    CollectionMode, ConnectorMessage, Decoder, Event, Limits, Manifest, ManifestOrigin, RawJson, RuntimeMessage, Scope,
    Start, StreamScope, TimeRange,
};
use gleaner_sdk::{Wire, WireFault};
use gleaner_store::{Acquired, GapFilter, Holder, LeaseOn, PAGE_ROWS_MAX, Reader, RunAbout, RunStart, Session, Store};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a manifest may speak of details.
const DETAILS: [&str; 3] = [
    "",
    r#","coverage_strategy":"parent_detail_accounting""#,
    r#","coverage_strategy":"parent_detail_accounting","parent_streams":["items"]"#,
];

/// The third stream is there to be left out: nothing is ever in it.
fn manifest(kind: usize) -> String {
    let stream = |name: &str, more: &str| {
        format!(
            r#"{{"name":"{name}","semantics":"mutable_state","primary_key":"id","consent_time_field":"at",
                "schema":{{"type":"object","required":["id"],"properties":{{"v":{{"type":"integer"}}}}}}{more}}}"#
        )
    };
    let extra = stream("extra", r#","coverage_strategy":"parent_detail_accounting""#);
    let (items, details) = (stream("items", ""), stream("details", DETAILS[kind]));
    format!(r#"{{"connector_id":"f","connector_key":"f","version":"1","streams":[{items},{details},{extra}]}}"#)
}

/// A rule that is removed on purpose, to see whether that is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    /// A scoped run moves the steady track, as if it had asked for everything.
    OwnTrack,
    /// A cursor is gone on from whatever was looked at on the way to it.
    Basis,
    /// A scoped run counts as one that leaves out a stream and nothing else: it is served every gap, deletes what it
    /// likes, and its bodies count as whole.
    Limits,
    /// A run that only recovers commits cursors.
    RecoveryMovesNothing,
    /// A cursor of a slice counts for good although its report never came.
    SliceWaits,
    /// A key is hydrated if its connector says so.
    Hydrated,
    /// A gap is closed if its connector says so.
    Recovered,
}

/// The requested part of each stream.
#[derive(Clone, Debug, Default)]
struct Narrow {
    without_details: bool,
    resources: Vec<u64>,
    since: Option<u64>,
    until: Option<u64>,
    fields: bool,
}

impl Narrow {
    fn scope(&self) -> Scope {
        let mut names = vec!["items", "details", "extra"];
        names.retain(|name| !self.without_details || *name != "details");
        let stream = |name: &&str| {
            let range = TimeRange { since: self.since.map(time), until: self.until.map(time) };
            StreamScope {
                resources: self.resources.iter().map(|number| format!("k{number}")).collect(),
                time_range: (range != TimeRange::default()).then_some(range),
                fields: if self.fields { vec!["v".to_owned()] } else { Vec::new() },
                ..StreamScope::all_of(*name)
            }
        };
        Scope::new(names.iter().map(stream).collect()).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Run { kind: Kind, cap: Option<usize>, kill_at: Option<u64>, runtime_dies: bool },
    Add(u64),
    Change(u64, bool),
    Widen,
}

#[derive(Clone, Debug)]
enum Kind {
    Ordinary,
    FullRefresh,
    RecoveryOnly,
    CatchUp,
    Scoped(Narrow, bool),
}

#[derive(Clone, Debug)]
struct Case {
    manifest: usize,
    lies: Lies,
    slice: usize,
    reports: bool,
    grant: Narrow,
    items: u64,
    steps: Vec<Step>,
}

fn narrow() -> impl Strategy<Value = Narrow> {
    let resources = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(0_u64..12, 1..4)];
    let time = || prop_oneof![2 => Just(None), 1 => (0_u64..20).prop_map(Some)];
    (any::<bool>(), resources, time(), time(), any::<bool>()).prop_map(
        |(without_details, resources, since, until, fields)| Narrow {
            without_details,
            resources,
            since,
            until,
            fields,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        3 => Just(Kind::Ordinary),
        1 => Just(Kind::FullRefresh),
        1 => Just(Kind::RecoveryOnly),
        1 => Just(Kind::CatchUp),
        4 => (narrow(), any::<bool>()).prop_map(|(narrow, catch_up)| Kind::Scoped(narrow, catch_up)),
    ];
    let cap = prop_oneof![2 => Just(None), 1 => (0_usize..6).prop_map(Some)];
    let kill_at = prop_oneof![3 => Just(None), 1 => (1_u64..40).prop_map(Some)];
    let run = (kind, cap, kill_at, any::<bool>()).prop_map(|(kind, cap, kill_at, runtime_dies)| Step::Run {
        kind,
        cap,
        kill_at,
        runtime_dies,
    });
    prop_oneof![
        6 => run,
        1 => (1_u64..5).prop_map(Step::Add),
        2 => (any::<u64>(), proptest::bool::weighted(0.3)).prop_map(|(number, deletes)| Step::Change(number, deletes)),
        1 => Just(Step::Widen),
    ]
}

fn lies() -> impl Strategy<Value = Lies> {
    let lie = || proptest::bool::weighted(0.5);
    (lie(), lie(), lie()).prop_map(|(moves_when_recovering, recovers_nothing, hydrates_nothing)| Lies {
        moves_when_recovering,
        recovers_nothing,
        hydrates_nothing,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let grant = prop_oneof![1 => Just(Narrow::default()), 1 => narrow()];
    let steps = proptest::collection::vec(step(), 1..10);
    (0..DETAILS.len(), lies(), 1_usize..6, any::<bool>(), grant, 0_u64..15, steps).prop_map(
        |(manifest, lies, slice, reports, grant, items, steps)| Case {
            manifest,
            // Without a report nothing is called hydrated.
            lies: Lies { hydrates_nothing: lies.hydrates_nothing && reports, ..lies },
            slice,
            reports,
            grant,
            items,
            steps,
        },
    )
}

/// The owner's data at the end.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    records: BTreeMap<(String, String), Option<String>>,
    quarantined: BTreeSet<(String, String)>,
    /// Open gaps, and the keys that a withheld checkpoint waits for.
    missing: BTreeSet<(String, Option<String>)>,
}

struct Home {
    folder: tempfile::TempDir,
    store: Option<Store>,
    manifest: Arc<Manifest>,
    runs: u64,
    removed: Option<Removed>,
}

impl Home {
    fn new(kind: usize, removed: Option<Removed>) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let (folder, text) = (folder.unwrap(), manifest(kind));
        let manifest = Arc::new(Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap());
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        store.register("c", &text, &manifest, WallTime::default()).unwrap();
        Self { folder, store: Some(store), manifest, runs: 0, removed }
    }

    fn reach(&self, scope: &RunScope) -> Reach {
        let seen = self.store.as_ref().unwrap().seen_streams("c").unwrap();
        let is_ordinary = Reach::decide(&self.manifest, scope, &seen).track() == TrackChoice::Steady;
        let doctored = match self.removed {
            Some(Removed::OwnTrack) => RunScope::ordinary(scope.grant.clone()),
            Some(Removed::Limits) if !is_ordinary => {
                let streams = ["items", "details"].map(StreamScope::all_of).to_vec();
                RunScope { asked: Scope::new(streams).unwrap(), ..scope.clone() }
            }
            _ => scope.clone(),
        };
        Reach::decide(&self.manifest, &doctored, &seen)
    }

    fn run(&mut self, provider: &Provider, scope: &RunScope, terms: &Terms) {
        let reach = self.reach(scope);
        match reach.track() {
            TrackChoice::Steady => self.run_on::<Steady>(provider, scope, terms, reach),
            TrackChoice::CatchUp => self.run_on::<CatchUp>(provider, scope, terms, reach),
            TrackChoice::Scoped => self.run_on::<Scoped>(provider, scope, terms, reach),
        }
    }

    fn run_on<T: Track + Send>(&mut self, provider: &Provider, scope: &RunScope, terms: &Terms, reach: Reach) {
        self.runs += 1;
        // A day apart: what is put off for a while is due again.
        let millis = 1_900_000_000_000 + self.runs * 86_400_000;
        let now = Now { time: Time::from_millis(millis), wall: WallTime::from_unix_millis(millis) };
        let mut rig = Rig::<T>::begin(self, scope, terms, reach, now);
        // A pipe that was cut is noticed by its end.
        let code = foreign::run(&mut rig, provider, terms.nature).unwrap_or(1);
        let recovered = std::mem::take(&mut rig.recovered);
        self.store = Some(rig.end(code));
        if self.removed == Some(Removed::Recovered) {
            let sql = "UPDATE gaps SET state = 'recovered' WHERE stream IN (SELECT id FROM streams WHERE name = ?1)
                       AND record_key = ?2";
            for gap in recovered {
                self.database().execute(sql, gap).unwrap();
            }
        }
        if self.removed == Some(Removed::SliceWaits) {
            self.database().execute("UPDATE cursors SET proven = token", []).unwrap();
        }
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("store.db")).unwrap()
    }

    fn account(&self) -> Account {
        let reader = Reader::open(&self.folder.path().join("store.db")).unwrap();
        let mut records = BTreeMap::new();
        for change in reader.changes(0, PAGE_ROWS_MAX).unwrap() {
            let body = change.record.body.filter(|_| !change.record.deleted);
            records.insert((change.stream, change.record.key), body);
        }
        let gaps = reader.gaps("c", GapFilter::default(), 0, PAGE_ROWS_MAX).unwrap();
        let mut missing = gaps.into_iter().map(|gap| (gap.stream, gap.record_key)).collect::<BTreeSet<_>>();
        let waiting =
            "SELECT s.name, w.value FROM listings l, json_each(l.waiting) w JOIN streams s ON s.id = l.stream";
        missing.extend(self.pairs(waiting).into_iter().map(|(stream, key)| (stream, Some(key))));
        let sql =
            "SELECT s.name, q.key || ' ' || ifnull(q.body, '') FROM quarantine q JOIN streams s ON s.id = q.stream";
        Account { records, quarantined: self.pairs(sql), missing }
    }

    fn pairs(&self, sql: &str) -> BTreeSet<(String, String)> {
        let connection = self.database();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}

/// How a run is limited and ended.
struct Terms {
    mode: CollectionMode,
    recovery_only: bool,
    nature: Nature,
    kill_at: Option<u64>,
    runtime_dies: bool,
}

struct Rig<T: Track> {
    store: Store,
    session: Option<Session<T>>,
    run: Run<T>,
    decoder: Decoder,
    to_connector: VecDeque<RuntimeMessage>,
    outcome: Option<RunOutcome>,
    messages: u64,
    kill_at: Option<u64>,
    runtime_dies: bool,
    killed: bool,
    removed: Option<Removed>,
    /// Stream and key of each gap that was called recovered.
    recovered: Vec<(String, String)>,
    now: Now,
}

#[derive(Debug)]
struct Checks(Schemas);

impl Validate for Checks {
    fn check(&self, stream: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        self.0.check(stream, body)
    }
}

impl<T: Track> Rig<T> {
    fn begin(home: &mut Home, scope: &RunScope, terms: &Terms, reach: Reach, now: Now) -> Self {
        let mut store = home.store.take().unwrap();
        let holder = Holder::current().unwrap();
        let Acquired::Yes { leases, .. } = store.acquire(&[LeaseOn::Connection("c")], &holder, now.wall).unwrap()
        else {
            panic!("held")
        };
        let name = format!("run-{}", home.runs);
        let purpose = if terms.recovery_only { RunPurpose::RecoveryOnly } else { RunPurpose::Full };
        let start = RunStart {
            connection: "c".to_owned(),
            run_id: RunId::new(&name),
            lease: LeaseId::new(&name),
            grant: "all".to_owned(),
            limits: AttemptLimits::of(None),
            cooldown: CooldownPolicy::of(None, None),
            about: RunAbout { purpose, reach: Some(Arc::new(reach)), ..RunAbout::default() },
        };
        let session = store.begin_run::<T>(start.clone(), leases, now.wall).unwrap();
        let asked = &scope.asked;
        let streams = asked.streams().iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
        let detail_gaps = store.lease_gaps_page(&session, &streams, 1 << 20, now.wall).unwrap();
        let bookmarks = session.bookmarks();
        let all = home.removed == Some(Removed::Basis);
        let good = if all { bookmarks.iter().collect::<Vec<_>>() } else { session.state().collect() };
        let good = good.into_iter().filter(|cursor| asked.stream(cursor.stream()).is_some());
        let state = good.map(|cursor| (cursor.stream().to_owned(), cursor.token().clone())).collect::<Vec<_>>();
        let from_cursor = terms.mode == CollectionMode::Incremental || T::NAME == CatchUp::NAME;
        let config = RunConfig {
            run_id: start.run_id,
            lease: start.lease,
            manifest: Arc::clone(&home.manifest),
            scope: asked.clone(),
            bookmarks: bookmarks.clone(),
            bindings: Vec::new(),
            grant_expires_at: None,
            validator: Box::new(Checks(Schemas::new(&home.manifest).unwrap())),
            silence_max: None,
            effects_max: EFFECTS_MAX,
        };
        let moves_nothing = terms.recovery_only && home.removed != Some(Removed::RecoveryMovesNothing);
        let first = RuntimeMessage::Start(Box::new(Start {
            run_id: name,
            collection_mode: terms.mode,
            scope: asked.clone(),
            state: (from_cursor && !state.is_empty()).then_some(state),
            bindings: Vec::new(),
            detail_gaps,
            recovery_only: terms.recovery_only,
            run_budget: None,
        }));
        Self {
            store,
            session: Some(session),
            run: Run::new(config, now).unwrap().recovering_only(moves_nothing),
            decoder: Decoder::new(Limits::default()),
            to_connector: VecDeque::from([first]),
            outcome: None,
            messages: 0,
            kill_at: terms.kill_at,
            runtime_dies: terms.runtime_dies,
            killed: false,
            removed: home.removed,
            recovered: Vec::new(),
            now,
        }
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
        if let Event::Message { message: ConnectorMessage::DetailGapRecovered(gap), .. } = event {
            let key = gap.record_key.as_ref().map(|key| key.as_str().to_owned());
            self.recovered.push((gap.stream.clone(), key.unwrap_or_default()));
        }
        while self.run.handle_event(event, self.now).is_err() {
            self.step();
        }
        while self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some(effect) = self.run.poll_effect() else { return false };
        if let Effect::Store(StoreEffect::TallyCoverage { report, .. }) = &effect
            && self.removed == Some(Removed::Hydrated)
        {
            self.run.handle_tally(*report, &CoverageTally::default(), self.now);
            return true;
        }
        let session = self.session.as_mut().unwrap();
        match effect {
            Effect::Store(effect) => self.store.carry_out(session, &mut self.run, effect, self.now).unwrap(),
            Effect::Finish(outcome) => {
                self.store.finish_run(self.session.take().unwrap(), &outcome, self.now.wall).unwrap();
                self.outcome = Some(*outcome);
            }
            // There is neither a process nor an owner.
            Effect::Process(_) | Effect::Owner(_) => {}
        }
        true
    }

    fn end(mut self, code: i32) -> Store {
        if self.killed && self.runtime_dies {
            let session = self.session.take().unwrap();
            self.store.release(session.leases()).unwrap();
            return self.store;
        }
        if let Err(violation) = self.decoder.finish() {
            self.run.handle_violation(violation, self.now);
        }
        let exit = if self.killed { Exit::Signal(9) } else { Exit::Code(code) };
        self.run.handle_exit(exit, self.now);
        while self.step() {}
        self.store
    }
}

impl<T: Track + Send> Wire for Rig<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault> {
        if self.killed {
            return Err(WireFault::Disconnected);
        }
        self.messages += 1;
        if self.kill_at == Some(self.messages) {
            self.feed(&bytes[..bytes.len() / 2]);
            self.killed = true;
            return Err(WireFault::Disconnected);
        }
        self.feed(bytes);
        Ok(())
    }

    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault> {
        Ok(self.to_connector.pop_front())
    }

    fn drain(&mut self, _patience: Duration) -> Result<(), WireFault> {
        Ok(())
    }

    fn wait_for_end(&mut self, _patience: Duration) -> bool {
        true
    }
}

/// Ordinary runs that are enough, whatever came before: the rest of a list, and gaps that fail now and then.
const CALM_RUNS: usize = 4;

/// Lives through a case and compares. The error says what is wrong.
fn live(case: &Case, removed: Option<Removed>) -> Result<(), String> {
    let mut provider = Provider::default();
    provider.add(case.items);
    let everything = Narrow::default().scope();
    let mut grant = case.grant.scope();
    let mut home = Home::new(case.manifest, removed);
    let nature = Nature { lies: case.lies, cap: None, slice: case.slice, reports: case.reports };
    let (mut baseline, mut caught_up) = (None, false);
    for step in &case.steps {
        match step {
            Step::Add(count) => provider.add(*count),
            Step::Change(number, deletes) => provider.change(*number, *deletes),
            Step::Widen => grant.clone_from(&everything),
            Step::Run { kind, cap, kill_at, runtime_dies } => {
                let until = baseline.map(time);
                let scope = scope_of(kind, &grant, until.as_deref());
                let mode = if matches!(kind, Kind::FullRefresh) {
                    CollectionMode::FullRefresh
                } else {
                    CollectionMode::Incremental
                };
                let recovery_only = matches!(kind, Kind::RecoveryOnly);
                if matches!(kind, Kind::Ordinary) {
                    baseline = baseline.or(Some(provider.now));
                }
                caught_up |= scope.part != GrantPart::All;
                let nature = Nature { cap: *cap, ..nature };
                let terms = Terms { mode, recovery_only, nature, kill_at: *kill_at, runtime_dies: *runtime_dies };
                home.run(&provider, &scope, &terms);
            }
        }
    }
    provider.is_well = true;
    let calm =
        Terms { mode: CollectionMode::Incremental, recovery_only: false, nature, kill_at: None, runtime_dies: false };
    // The remainder of catching up waits for the next catch-up.
    for _ in 0..if caught_up { 2 } else { 0 } {
        let until = baseline.map(time);
        home.run(&provider, &scope_of(&Kind::CatchUp, &everything, until.as_deref()), &calm);
    }
    let ordinary = RunScope::ordinary(everything);
    let mut alone = Home::new(case.manifest, None);
    for _ in 0..CALM_RUNS {
        home.run(&provider, &ordinary, &calm);
        alone.run(&provider, &ordinary, &calm);
    }
    let (came_to, expected) = (home.account(), alone.account());
    if came_to == expected { Ok(()) } else { Err(format!("came to {came_to:#?}\nordinary runs alone {expected:#?}")) }
}

/// The scope of a run of this kind. A scope that goes beyond the grant is no scope of it.
fn scope_of(kind: &Kind, grant: &Scope, until: Option<&str>) -> RunScope {
    let history = || GrantPart::History { until: until.map(str::to_owned) };
    match kind {
        Kind::Ordinary | Kind::FullRefresh | Kind::RecoveryOnly => RunScope::ordinary(grant.clone()),
        Kind::CatchUp => RunScope { part: history(), asked: within(grant, &before(until)), grant: grant.clone() },
        Kind::Scoped(narrow, catch_up) => {
            let asked = within(grant, &narrow.scope());
            if *catch_up {
                RunScope { part: history(), asked: within(&asked, &before(until)), grant: grant.clone() }
            } else {
                RunScope { part: GrantPart::All, asked, grant: grant.clone() }
            }
        }
    }
}

fn before(until: Option<&str>) -> Scope {
    let mut scope = Narrow::default().scope().streams().to_vec();
    for stream in &mut scope {
        stream.time_range = until.map(|until| TimeRange { since: None, until: Some(until.to_owned()) });
    }
    Scope::new(scope).unwrap()
}

/// The common scope of both.
fn within(grant: &Scope, narrow: &Scope) -> Scope {
    let both = |stream: &StreamScope| {
        let other = narrow.stream(&stream.name)?;
        let (own, more) = (stream.time_range.clone().unwrap_or_default(), other.time_range.clone().unwrap_or_default());
        let until = [own.until, more.until].into_iter().flatten().min();
        let range = TimeRange { since: own.since.max(more.since), until };
        let either = |own: &Vec<String>, more: &Vec<String>| if own.is_empty() { more.clone() } else { own.clone() };
        Some(StreamScope {
            name: stream.name.clone(),
            resources: either(&stream.resources, &other.resources),
            time_range: (range != TimeRange::default()).then_some(range),
            fields: either(&stream.fields, &other.fields),
        })
    };
    Scope::new(grant.streams().iter().filter_map(both).collect()).unwrap()
}

/// 200 cases, 10,000 with `GLEANER_TEST_ALL`, or as many as the library's variable says.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    asked.unwrap_or_else(|| if std::env::var_os("GLEANER_TEST_ALL").is_some() { 10_000 } else { 200 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_runs_ordinary_ones_end_where_ordinary_ones_alone_would(case in case()) {
        live(&case, None).map_err(TestCaseError::fail)?;
    }
}

/// A list whose details nobody declared: the pair is unknown until a report comes, and the run before it was killed.
#[test]
fn a_list_whose_first_report_comes_after_a_kill_is_accounted_for() {
    let ordinary = |cap, kill_at| Step::Run { kind: Kind::Ordinary, cap, kill_at, runtime_dies: false };
    let lies = Lies { hydrates_nothing: true, ..Lies::default() };
    for kill_at in 1..40 {
        let steps = vec![ordinary(Some(0), None), ordinary(None, Some(kill_at))];
        let case = Case { manifest: 0, lies, slice: 1, reports: true, grant: Narrow::default(), items: 7, steps };
        assert_eq!(live(&case, None), Ok(()), "killed at {kill_at}");
    }
}

/// The number of the first of 200 cases that fails without this rule.
fn caught(removed: Removed) -> Option<usize> {
    let mut runner = TestRunner::deterministic();
    (0..200).find(|_| live(&case().new_tree(&mut runner).unwrap().current(), Some(removed)).is_err())
}

#[test]
fn a_scoped_run_that_moves_the_steady_cursor_is_caught() {
    assert!(caught(Removed::OwnTrack).is_some());
}

#[test]
fn a_cursor_that_outlives_a_widened_grant_is_caught() {
    assert!(caught(Removed::Basis).is_some());
}

#[test]
fn a_scoped_run_that_may_do_what_an_ordinary_one_may_is_caught() {
    assert!(caught(Removed::Limits).is_some());
}

#[test]
fn a_run_that_only_recovers_and_moves_a_cursor_is_caught() {
    assert!(caught(Removed::RecoveryMovesNothing).is_some());
}

#[test]
fn a_cursor_of_a_slice_whose_report_never_came_is_caught() {
    assert!(caught(Removed::SliceWaits).is_some());
}

#[test]
fn a_key_that_counts_as_hydrated_because_its_connector_says_so_is_caught() {
    assert!(caught(Removed::Hydrated).is_some());
}

#[test]
fn a_gap_that_closes_because_its_connector_says_so_is_caught() {
    assert!(caught(Removed::Recovered).is_some());
}

//! The default connector of `gleaner new connector` loses no record: the Python template as a program of its own,
//! against
//! the real engine and store and a model provider on this machine.
//!
//! The property of `convergence.rs`, with fewer cases, because each run is a process: the lists change while they are
//! read, requests are refused, details do not fit their schema, runs are capped, narrowed and killed at any message. After
//! each run what the cursor has passed must be stored or an open gap; in the end everything must be stored. Faults that
//! the template once had are put back, and must be noticed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod provider;
mod python_model;
mod rig;

use gleaner_protocol::StreamScope;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use provider::{Entry, Mood, Nature, Provider};
use python_model::{Feed, MANIFEST, STREAMS, Server, Template};
use rig::{Home, Ran, Terms};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The reserved key of the gap that stands for the rest of a list.
const REST: &str = "gleaner:rest-of-stream";
/// Each run is a process.
const CALM_RUNS_MAX: u32 = 40;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    history: usize,
    page: usize,
    tombstones: bool,
    cap: Option<u64>,
    changes: u64,
    refusals: u64,
    /// Details of a thousand that do not fit their schema.
    odd: u64,
    /// Runs of a thousand that are killed, and that are narrowed.
    kills: u64,
    narrowed: u64,
    stormy: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (any::<u64>(), 1_usize..30, prop_oneof![1_usize..4, 4_usize..20], any::<bool>());
    let cap = prop_oneof![2 => Just(None), 3 => (3_u64..15).prop_map(Some)];
    let storm = (0_u64..200, 0_u64..300, prop_oneof![Just(0_u64), 0_u64..300], 0_u64..600, 0_u64..500, 1_u64..6);
    (shape, cap, storm).prop_map(|((seed, history, page, tombstones), cap, storm)| {
        let (changes, refusals, odd, kills, narrowed, stormy) = storm;
        Case { seed, history, page, tombstones, cap, changes, refusals, odd, kills, narrowed, stormy }
    })
}

struct World<'c> {
    case: &'c Case,
    server: Server,
    home: Home,
    template: &'c Template,
    messages: u64,
}

impl<'c> World<'c> {
    fn new(case: &'c Case, template: &'c Template) -> Self {
        let feed = |seed: u64| {
            let nature = Nature {
                seed,
                history: case.history,
                times: 1_000,
                page: 1,
                filters: false,
                versions: true,
                tombstones: case.tombstones,
                cursed_one_of: 0,
            };
            Feed::new(Provider::new(nature), case.page)
        };
        let server = Server::start([feed(case.seed), feed(case.seed.wrapping_add(1))]);
        Self { case, server, home: Home::with_manifest(MANIFEST), template, messages: 10 }
    }

    fn random(&self, below: u64) -> u64 {
        self.server.feeds[0].provider.random(below)
    }

    /// Changes, refusals, odd answers, kills and narrowed runs.
    fn storm(&mut self) -> Result<(), String> {
        let Case { changes, refusals, odd, kills, narrowed, .. } = *self.case;
        for feed in self.server.feeds.iter() {
            feed.provider.set_mood(Mood { changes, refusals });
            feed.provider.change(changes / 20);
            feed.odd.store(odd, Ordering::Relaxed);
        }
        // Without a list to go on with, for what a narrowed walk says about it is the runtime's to judge.
        let is_rest = self.home.open_gaps().iter().any(|gap| gap.record_key.as_deref() == Some(REST));
        let recovery_only = !is_rest && self.random(1000) < narrowed;
        let scope = if recovery_only { self.narrow_scope() } else { Vec::new() };
        let kill = self.random(1000) < kills;
        let kill_at = kill.then(|| 1 + self.random(self.messages));
        let runtime_dies = self.random(2) == 0;
        let requests = (self.random(4) == 0).then(|| 1 + self.random(20));
        self.run(&Terms { kill_at, runtime_dies, requests, recovery_only, ..terms(scope) }).map(drop)
    }

    /// One record of a stream, and perhaps nothing of the other.
    fn narrow_scope(&self) -> Vec<StreamScope> {
        let number = usize::try_from(self.random(2)).unwrap();
        let keys = self.server.feeds[number].provider.items().into_keys().collect::<Vec<_>>();
        let resources = keys.get(usize::try_from(self.random(30)).unwrap()).cloned().into_iter().collect();
        let one = StreamScope { resources, ..StreamScope::all_of(STREAMS[number]) };
        let other = StreamScope::all_of(STREAMS[1 - number]);
        if self.random(2) == 0 { vec![one] } else { vec![one, other] }
    }

    fn run(&mut self, terms: &Terms) -> Result<Ran, String> {
        let mut caps = Vec::new();
        caps.extend(self.case.cap.map(|cap| ("PDPP_MODEL_MAX_DETAIL_FETCHES_PER_RUN", cap)));
        caps.extend(terms.requests.map(|requests| ("GLEANER_MAX_REQUESTS", requests)));
        let mut lines = Vec::new();
        let (template, url) = (self.template, &self.server.url);
        let ran = self.home.run_by(terms, |wire| template.run(wire, url, &caps, &mut lines));
        self.messages = self.messages.max(ran.messages);
        check_messages(&lines)?;
        if !ran.killed {
            let outcome = ran.outcome.as_ref().ok_or("the run did not end")?;
            if outcome.violation.is_some() || !outcome.withheld.is_empty() || outcome.counts.unaccounted > 0 {
                return Err(format!("the engine says: {outcome:?}"));
            }
        }
        self.check_account()?;
        Ok(ran)
    }

    /// A record that a cursor has passed is stored in its current version, or an open gap.
    fn check_account(&self) -> Result<(), String> {
        let cursors = self.home.cursors();
        let gaps = self.home.open_gaps();
        for (stream, feed) in STREAMS.into_iter().zip(self.server.feeds.iter()) {
            let Some(cursor) = cursors.get(stream) else { continue };
            let cursor = serde_json::from_str::<Value>(cursor).unwrap()["after"].as_u64().unwrap();
            let is_gap =
                |key: &str| gaps.iter().any(|gap| gap.stream == stream && gap.record_key.as_deref() == Some(key));
            for (key, (entry, place)) in feed.places() {
                if place <= cursor && !self.is_stored(stream, &key, entry) && !is_gap(&key) {
                    return Err(format!("{stream} {key} {entry:?} at {place} is behind {cursor} and nowhere"));
                }
            }
        }
        Ok(())
    }

    fn is_stored(&self, stream: &str, key: &str, entry: Entry) -> bool {
        let records = self.home.records(stream);
        let body = records.get(key).and_then(Option::as_deref);
        body.is_some_and(|body| serde_json::from_str::<Value>(body).unwrap() == provider::body(key, entry))
    }

    /// Records that are not stored, and expected ones.
    fn unsettled(&self) -> BTreeSet<(String, String)> {
        let gaps = self.home.open_gaps();
        let pending = gaps.iter().filter(|gap| gap.state == "pending");
        let mut unsettled = pending
            .map(|gap| (gap.stream.clone(), gap.record_key.clone().unwrap_or_default()))
            .collect::<BTreeSet<_>>();
        let is_terminal = |stream: &str, key: &str| {
            gaps.iter()
                .any(|gap| gap.state == "terminal" && gap.stream == stream && gap.record_key.as_deref() == Some(key))
        };
        for (stream, feed) in STREAMS.into_iter().zip(self.server.feeds.iter()) {
            for (key, (entry, _)) in feed.places() {
                if !self.is_stored(stream, &key, entry) && !is_terminal(stream, &key) {
                    unsettled.insert((stream.to_owned(), key));
                }
            }
        }
        unsettled
    }
}

fn terms(scope: Vec<StreamScope>) -> Terms {
    let all = || STREAMS.into_iter().map(StreamScope::all_of).collect();
    Terms { scope: if scope.is_empty() { all() } else { scope }, ..Terms::default() }
}

/// Messages that it may send: a gap is recovered and a key is hydrated only if its record was said before, and a gap
/// is
/// answered as one of its own stream.
fn check_messages(lines: &[Value]) -> Result<(), String> {
    let (mut sent, mut served) = (BTreeSet::new(), BTreeMap::new());
    for line in lines {
        for gap in line["detail_gaps"].as_array().into_iter().flatten() {
            served.insert(gap["gap_id"].to_string(), &gap["stream"]);
        }
        let key = |name: &str| (line["stream"].to_string(), line[name].to_string());
        if served.get(&line["gap_id"].to_string()).is_some_and(|stream| **stream != line["stream"]) {
            return Err(format!("it answers a gap of another stream: {line}"));
        }
        match line["type"].as_str().unwrap() {
            "RECORD" => drop(sent.insert(key("key"))),
            "DETAIL_GAP_RECOVERED" if line["record_key"] != REST && !sent.contains(&key("record_key")) => {
                return Err(format!("it says that it recovered what it did not send: {line}"));
            }
            "DETAIL_COVERAGE" => {
                let hydrated = line["hydrated_keys"].as_array().unwrap();
                let never = hydrated.iter().find(|key| !sent.contains(&(line["stream"].to_string(), key.to_string())));
                if let Some(key) = never {
                    return Err(format!("it says that it sent {key}, and did not"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Runs a case to its end; how many calm runs that took. The error says what is wrong.
fn live(case: &Case, template: &Template) -> Result<u32, String> {
    let mut world = World::new(case, template);
    for _ in 0..case.stormy {
        world.storm()?;
    }
    for feed in world.server.feeds.iter() {
        feed.provider.set_mood(Mood::default());
        feed.odd.store(0, Ordering::Relaxed);
    }
    for calm in 0..CALM_RUNS_MAX {
        world.run(&terms(Vec::new()))?;
        if world.unsettled().is_empty() {
            return Ok(calm);
        }
    }
    Err(format!("not all is in after {CALM_RUNS_MAX} calm runs: {:?}", world.unsettled()))
}

/// 20 cases, 500 with `GLEANER_TEST_ALL`.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("GLEANER_TEST_ALL").is_some() { 500 } else { 20 };
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_python_template_loses_no_record(case in case()) {
        live(&case, &Template::new(|text| text)).map_err(TestCaseError::fail)?;
    }
}

/// Cases in which much goes wrong in a short time: what a fault needs to show.
fn tight_cases(count: usize) -> Vec<Case> {
    let mut runner = TestRunner::deterministic();
    let tight = case().prop_map(|case| Case {
        history: case.history.clamp(4, 12),
        cap: None,
        refusals: case.refusals.max(100),
        odd: 150,
        kills: 0,
        narrowed: 400,
        stormy: 4,
        ..case
    });
    (0..count).map(|_| tight.new_tree(&mut runner).unwrap().current()).collect()
}

/// How the first case fails that a change of the template spoils.
fn caught(from: &str, to: &str) -> String {
    let template = Template::new(|text| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replace(from, to)
    });
    let why = tight_cases(10).iter().find_map(|case| live(case, &template).err());
    why.expect("nobody noticed")
}

#[test]
fn a_gap_that_is_fetched_with_the_function_of_another_stream_is_caught() {
    let why = caught(r#"if gap["stream"] == stream)"#, ")");
    assert!(why.contains("a gap of another stream"), "{why}");
}

#[test]
fn a_gap_that_is_closed_because_the_owner_did_not_ask_for_it_is_caught() {
    let closes = r#"elif key is not None and not self.wants(stream, key):
                self.say("DETAIL_GAP_RECOVERED", stream=stream, record_key=key, reference_only=True, **ids)
            elif key is not None and self.take(is_detail=True):"#;
    let why = caught("elif key is not None and self.wants(stream, key) and self.take(is_detail=True):", closes);
    assert!(why.contains("recovered what it did not send"), "{why}");
}

#[test]
fn a_record_that_is_left_out_because_of_its_schema_is_caught() {
    let why = caught("            raise Unexpected()\n", "            return \"optional_skip_keys\"\n");
    assert!(why.contains("nowhere"), "{why}");
}

#[test]
fn a_key_that_is_called_hydrated_although_its_record_was_left_out_is_caught() {
    let why = caught("            raise Unexpected()\n", "            return \"hydrated_keys\"\n");
    assert!(why.contains("it says that it") || why.contains("nowhere"), "{why}");
}

#[test]
fn the_provider_says_when_to_come_back_and_is_not_asked_before() {
    let case = Case { cap: None, stormy: 0, ..tight_cases(1).remove(0) };
    let template = Template::new(|text| text);
    let mut world = World::new(&case, &template);
    let feed = &world.server.feeds[0];
    *feed.refused.lock().unwrap() = 0..1;
    feed.retry_after.store(1, Ordering::Relaxed);
    world.run(&terms(Vec::new())).unwrap();
    assert_eq!(world.unsettled(), BTreeSet::new(), "it asks again after a short wait");
    let came = world.server.feeds[0].came.lock().unwrap().clone();
    assert!(came[1] - came[0] >= Duration::from_secs(1), "{:?}", came[1] - came[0]);
}

#[test]
fn a_long_retry_after_ends_the_requests_of_a_run_and_loses_nothing() {
    let case = Case { cap: None, stormy: 0, history: 12, page: 6, ..tight_cases(1).remove(0) };
    let template = Template::new(|text| text);
    let mut world = World::new(&case, &template);
    let feed = &world.server.feeds[0];
    // The list, two details, and then it is told to come back in an hour.
    feed.retry_after.store(3600, Ordering::Relaxed);
    *feed.refused.lock().unwrap() = 3..100;
    world.run(&terms(Vec::new())).unwrap();
    let asked = |world: &World<'_>, number: usize| world.server.feeds[number].came.lock().unwrap().len();
    assert_eq!((asked(&world, 0), asked(&world, 1)), (4, 0), "nothing is asked after the refusal");
    let gaps = world.home.open_gaps();
    let reasons = gaps.iter().filter_map(|gap| gap.reason.as_deref()).collect::<BTreeSet<_>>();
    assert_eq!(reasons, BTreeSet::from(["rate_limited"]), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap.record_key.as_deref() == Some(REST)), "{gaps:?}");
}

/// The same as `Instant` of the engine reads: a record that one of the two leaves out and the other wants is lost.
#[test]
fn times_are_read_in_every_form_that_the_runtime_reads_and_others_are_not_guessed() {
    let said = Template::new(|text| text).evaluate(
        "import gleaner, json; \
         print(json.dumps([str(gleaner.instant(value)) for value in [\
         '2031-01-01T08:00:00.5Z', '2031-01-01T08:00:00', '2031-01-01', '2031-01-01 08:00:00+02:00', 1924992000, \
         1924992000000, '1924992000', None, 0, True, '', 'soon', '20310101', '2031', 1e20, [], {}]]))",
    );
    let times = serde_json::from_str::<Vec<String>>(&said).unwrap();
    let read = times.iter().take_while(|time| *time != "None").map(String::as_str).collect::<Vec<_>>();
    let morning = "2031-01-01 08:00:00+00:00";
    let midnight = "2031-01-01 00:00:00+00:00";
    let expected = ["2031-01-01 08:00:00.500000+00:00", morning, midnight, "2031-01-01 08:00:00+02:00"];
    assert_eq!(read, [expected.as_slice(), &[midnight; 3]].concat());
    assert!(times[read.len()..].iter().all(|time| time == "None"), "{times:?}");
}

//! A history of any size fills in over bounded runs, whatever happens to the list and to the runs.
//!
//! A model provider changes between pages and between runs, refuses requests, and runs are killed at any
//! message, alone or with their runtime. After each run the account is checked from the outside: the
//! committed cursor, the gaps and the records of the real store against what the provider lists. Some runs ask for
//! less, and some catch up. After the changes have stopped, everything must come in. Faults that are put in on purpose
//! must be noticed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod listed;
mod provider;
mod rig;

use gleaner_engine::{GrantPart, RunScope};
use gleaner_protocol::{Scope, StreamScope};
use gleaner_sdk::lane::BACKLOG_KEY;
use listed::Listed;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use provider::{Entry, Mood, Nature, Provider};
use rig::{DETAIL, Fault, Home, LIST, Ran, Records, Said, Terms};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Clone, Debug)]
struct Case {
    nature: Nature,
    cap: Option<u64>,
    chunk: Option<u64>,
    batch: usize,
    concurrency: usize,
    changes: u64,
    refusals: u64,
    kills: u64,
    /// How many runs meet changes, refusals and kills.
    stormy: u64,
}

fn nature(history: Range<usize>) -> impl Strategy<Value = Nature> {
    // Half of them in the first tenth: what is small goes wrong in more ways in the same time.
    let small = history.start..history.start + history.len().div_ceil(10);
    let history = prop_oneof![small, history];
    let times = prop_oneof![Just(1_u64), 2_u64..6, 6_u64..200, Just(100_000)];
    let page = prop_oneof![1_usize..4, 4_usize..60];
    let seed = any::<u64>();
    let cursed = prop_oneof![2 => Just(0_u64), 1 => 2_u64..30];
    (seed, history, times, page, any::<bool>(), any::<bool>(), any::<bool>(), cursed).prop_map(
        |(seed, history, times, page, filters, versions, tombstones, cursed_one_of)| Nature {
            seed,
            history,
            times,
            // Otherwise the model takes all the time.
            page: page.max(history / 100),
            filters,
            versions,
            tombstones,
            cursed_one_of: if cursed_one_of == 0 { 0 } else { cursed_one_of.max(history as u64 / 30) },
        },
    )
}

/// How many items times runs a case may take: each run is checked against every item. Most cases are short, so
/// that there are many of them; one in a thousand has any cap and any chunk, whatever that takes.
fn work() -> impl Strategy<Value = u64> {
    prop_oneof![850 => Just(10_000_u64), 140 => Just(50_000), 9 => Just(500_000), 1 => Just(u64::MAX)]
}

/// With bounds of at least one, and a history that they let come in within the work.
fn case(history: Range<usize>) -> impl Strategy<Value = Case> {
    let bound = || prop_oneof![Just(1_u64), 1_u64..8, 1_u64..600];
    let caps = prop_oneof![
        4 => (bound(), bound()).prop_map(|(cap, chunk)| (Some(cap), Some(chunk))),
        2 => bound().prop_map(|cap| (Some(cap), Some(500))),
        2 => bound().prop_map(|chunk| (None, Some(chunk))),
        1 => Just((None, None)),
    ];
    let storm = (0_u64..300, 0_u64..300, 0_u64..800, 0_u64..12);
    let concurrency = prop_oneof![3 => Just(1_usize), 1 => 2_usize..5];
    (nature(history), caps, 1_usize..120, concurrency, storm, work()).prop_map(
        |(nature, (cap, chunk), batch, concurrency, storm, work)| {
            let (changes, refusals, kills, stormy) = storm;
            let least = (nature.history as u64).pow(2) / work;
            let at_least = |bound: Option<u64>| bound.map(|bound| bound.max(least));
            let (cap, chunk) = (at_least(cap), at_least(chunk));
            Case { nature, cap, chunk, batch, concurrency, changes, refusals, kills, stormy }
        },
    )
}

/// Runs a case to its end. The error says what is wrong.
fn live(case: &Case, fault: Option<Fault>) -> Result<u64, String> {
    let provider = Provider::new(case.nature.clone());
    let mut home = Home::new();
    home.fault = fault;
    let mut world = World { case, provider, home, details: 0, messages: 10, last_row: 0, caught_up: false };
    for _ in 0..case.stormy {
        world.provider.set_mood(Mood { changes: case.changes, refusals: case.refusals });
        world.provider.change(case.changes / 50);
        let kill = world.provider.random(1000) < case.kills;
        let kill_at = kill.then(|| 1 + world.provider.random(world.messages));
        let runtime_dies = world.provider.random(2) == 0;
        let requests = (world.provider.random(4) == 0).then(|| 1 + world.provider.random(20));
        // A bound on requests would bring a chunk with it.
        let requests = requests.filter(|_| case.chunk.is_some());
        let terms = world.stormy_terms();
        world.run(&Terms { kill_at, runtime_dies, requests, ..terms })?;
    }
    world.provider.set_mood(Mood::default());
    let enough = world.enough_runs();
    for calm in 0..enough {
        // The remainder of catching up waits for the next catch-up.
        if world.caught_up {
            world.run(&world.catch_up())?;
        }
        let ran = world.run(&world.terms())?;
        if ran.ended.is_err() {
            return Err(format!("a calm run ended with {:?}", ran.ended));
        }
        if world.is_all_in() {
            world.check_rest()?;
            return Ok(calm);
        }
    }
    Err(format!("not all is in after {enough} calm runs: {}", world.missing()))
}

struct World<'c> {
    case: &'c Case,
    provider: Provider,
    home: Home,
    /// How many details the last run asked for.
    details: u64,
    /// How many messages the longest run had.
    messages: u64,
    /// The newest row of a gap.
    last_row: i64,
    /// Whether a run has caught up.
    caught_up: bool,
}

fn all() -> Scope {
    Scope::new([LIST, DETAIL].map(StreamScope::all_of).to_vec()).unwrap()
}

impl World<'_> {
    fn terms(&self) -> Terms {
        let Case { cap, chunk, batch, concurrency, .. } = *self.case;
        let asks = Some(RunScope::ordinary(all()));
        Terms { details: cap, chunk, batch: Some(batch), concurrency: Some(concurrency), asks, ..Terms::default() }
    }

    /// The older half of the list, on a track of its own.
    fn catch_up(&self) -> Terms {
        let until = self.case.nature.times / 2 + 1;
        let part = GrantPart::History { until: Some(until.to_string()) };
        Terms { until: Some(until), asks: Some(RunScope { part, ..RunScope::ordinary(all()) }), ..self.terms() }
    }

    /// Five runs of eight ask for everything; the others for the list alone, for some records, or for what is old.
    fn stormy_terms(&mut self) -> Terms {
        let streams = match self.provider.random(8) {
            0 => vec![StreamScope::all_of(LIST)],
            1 => {
                let keys = self.provider.items().into_keys().step_by(3).collect::<Vec<_>>();
                let some = |name| StreamScope { resources: keys.clone(), ..StreamScope::all_of(name) };
                [LIST, DETAIL].map(some).to_vec()
            }
            2 => {
                self.caught_up = true;
                return self.catch_up();
            }
            _ => return self.terms(),
        };
        let asks = Some(RunScope { asked: Scope::new(streams).unwrap(), ..RunScope::ordinary(all()) });
        Terms { asks, ..self.terms() }
    }

    /// Each run fetches the cap or writes the chunk; what fails is tried eight times.
    fn enough_runs(&self) -> u64 {
        let everything = self.home.gaps().len() as u64 + self.provider.items().len() as u64;
        let per_run = |bound: Option<u64>| everything / bound.unwrap_or(u64::MAX) + 1;
        20 + 4 * per_run(self.case.cap)
            + 2 * per_run(self.case.chunk)
            + 9 * self.tried_often() / self.case.cap.unwrap_or(u64::MAX)
    }

    /// Records without a detail: the cursed, and those deleted while they were a gap.
    fn tried_often(&self) -> u64 {
        let cursed = self.provider.items().len() as u64 / self.case.nature.cursed_one_of.max(1);
        let cursed = if self.case.nature.cursed_one_of == 0 { 0 } else { cursed };
        let items = self.provider.items();
        let gone =
            self.home.gaps().iter().filter(|gap| !items.contains_key(gap.record_key.as_deref().unwrap())).count();
        cursed + gone as u64
    }

    fn run(&mut self, terms: &Terms) -> Result<Ran, String> {
        self.provider.requests();
        let ran = self.home.run(&self.provider, terms);
        let (_, details, _) = self.provider.requests();
        self.details = details;
        self.messages = self.messages.max(ran.messages);
        if self.case.cap.is_some_and(|cap| details > cap) {
            return Err(format!("{details} details with a cap of {:?}", self.case.cap));
        }
        self.check_messages(&ran)?;
        let rows = self.home.gaps_after(self.last_row);
        self.last_row = rows.last().map_or(self.last_row, |gap| gap.id);
        // A record that was requested and failed does not count: the chunk is about what a cap left.
        let new_rows = rows.iter().filter(|gap| gap.run_cap).count() as u64;
        if self.case.chunk.is_some_and(|chunk| new_rows > chunk + 1) {
            return Err(format!("{new_rows} new gap rows with a chunk of {:?}", self.case.chunk));
        }
        // With a fault it is to be seen in the account, not only by the engine, which looks at coverage too.
        if !ran.killed && self.home.fault.is_none() {
            let outcome = ran.outcome.as_ref().ok_or("the run did not end")?;
            if outcome.violation.is_some() || !outcome.withheld.is_empty() || outcome.counts.unaccounted > 0 {
                return Err(format!("the engine says: {outcome:?}"));
            }
        }
        self.check_account()?;
        Ok(ran)
    }

    /// Messages that a run may send.
    fn check_messages(&self, ran: &Ran) -> Result<(), String> {
        let fresh = ran.new_rows().filter(|gap| gap.class == "run_cap_deferred").count() as u64;
        let backlogs = ran.backlogs().len();
        let rewritten = ran.said.iter().position(|said| matches!(said, Said::Gap(gap) if gap.key == BACKLOG_KEY));
        let settled = Said::Recovered { key: BACKLOG_KEY.to_owned() };
        let settled = ran.said.iter().rposition(|said| *said == settled);
        if self.home.fault.is_none() && rewritten.is_some_and(|rewritten| settled.is_some_and(|at| at > rewritten)) {
            return Err("the backlog gap is settled after it was written again".to_owned());
        }
        match self.case.chunk {
            Some(chunk) if fresh > chunk => Err(format!("{fresh} gaps with a chunk of {chunk}")),
            None if backlogs > 0 => Err("a backlog gap without a chunk".to_owned()),
            Some(_) | None => Ok(()),
        }
    }

    /// The forward cursor never passed an unaccounted record.
    fn check_account(&self) -> Result<(), String> {
        let Some(cursor) = self.home.cursor() else { return Ok(()) };
        let cursor = serde_json::from_str::<Value>(&cursor).unwrap();
        let gaps = self.home.open_gaps();
        let open = gaps.iter().filter_map(|gap| gap.record_key.as_deref()).collect::<BTreeSet<_>>();
        let backlog = self.home.backlog().map(|locator| serde_json::from_str::<Value>(&locator).unwrap());
        let in_backlog = |list: &Listed<'_>, key: &str, entry: Entry| {
            let ranges = backlog.as_ref().and_then(|backlog| backlog["ranges"].as_array());
            ranges.is_some_and(|ranges| ranges.iter().any(|range| list.is_in(range, key, entry)))
        };
        let stored = self.home.records(DETAIL);
        let list = Listed::by(&self.provider);
        for (key, entry) in self.provider.items() {
            let is_accounted_for = !list.is_behind(&cursor, &key, entry)
                || is_stored(&stored, &key, entry)
                || open.contains(key.as_str())
                || in_backlog(&list, &key, entry);
            if !is_accounted_for {
                let stored = stored.get(&key);
                return Err(format!(
                    "{key} {entry:?} is behind {cursor} and neither stored ({stored:?}) nor a gap nor in {backlog:?}"
                ));
            }
        }
        Ok(())
    }

    fn unsettled(&self) -> BTreeSet<String> {
        let gaps = self.home.open_gaps();
        let keys = |state: &'static str| {
            gaps.iter().filter(move |gap| gap.state == state).filter_map(|gap| gap.record_key.clone())
        };
        let terminal = keys("terminal").collect::<BTreeSet<_>>();
        let stored = self.home.records(DETAIL);
        let items = self.provider.items().into_iter();
        let missing = items.filter(|(key, entry)| !is_stored(&stored, key, *entry) && !terminal.contains(key));
        missing.map(|(key, _)| key).chain(keys("pending")).collect()
    }

    fn is_all_in(&self) -> bool {
        self.unsettled().is_empty()
    }

    fn missing(&self) -> String {
        let unsettled = self.unsettled();
        format!("{} unsettled, among them {:?}; cursor {:?}", unsettled.len(), unsettled.first(), self.home.cursor())
    }

    /// When all is in, another run fetches nothing and changes nothing but the time.
    fn check_rest(&mut self) -> Result<(), String> {
        let (cursor, records) = (self.home.cursor(), self.home.records(DETAIL).clone());
        self.run(&self.terms())?;
        if self.details > 0 {
            return Err(format!("{} details were fetched for nothing", self.details));
        }
        let after = (self.home.cursor(), self.home.records(DETAIL).clone());
        if after != (cursor, records) || !self.is_all_in() {
            return Err("a run for nothing changed something".to_owned());
        }
        Ok(())
    }
}

fn is_stored(stored: &Records, key: &str, entry: Entry) -> bool {
    stored.get(key).is_some_and(|body| body.as_ref() == Some(&provider::text(key, entry)))
}

/// So many of 200 cases; the library's variable asks for another number than 200.
fn cases_of_200(share: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    let cases = (asked.unwrap_or(200) * share).div_ceil(200);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases_of_200(185))]

    #[test]
    fn after_enough_runs_every_listed_key_is_stored_tombstoned_or_a_gap_with_a_terminal_reason(case in case(0..400)) {
        live(&case, None).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(cases_of_200(15))]

    #[test]
    fn the_same_holds_for_long_histories(case in case(400..5001)) {
        live(&case, None).map_err(TestCaseError::fail)?;
    }
}

/// One detail and one gap a run, the tightest bounds there are. It takes as many runs as there are items, and each
/// is checked against all of them, so the longest history only with `GLEANER_TEST_ALL`.
#[test]
fn a_history_fills_in_one_by_one() {
    let history = if std::env::var_os("GLEANER_TEST_ALL").is_some() { 5_000 } else { 120 };
    let nature = Nature {
        seed: 7,
        history,
        times: history as u64 / 3,
        page: 40,
        filters: false,
        versions: true,
        tombstones: true,
        cursed_one_of: 0,
    };
    let (changes, refusals, kills) = (100, 100, 300);
    let (cap, chunk) = (Some(1), Some(1));
    let case = Case { nature, cap, chunk, batch: 10, concurrency: 1, changes, refusals, kills, stormy: 10 };
    let runs = live(&case, None).unwrap();
    assert!(runs + 10 >= history as u64 / 2, "{history} came in with {runs} runs of one detail each");
}

/// Small worlds with tight bounds, in which much goes wrong: what a fault needs to show.
fn tight_cases(count: usize) -> Vec<Case> {
    let mut runner = TestRunner::deterministic();
    let tree = (case(0..40), 1_u64..5, 1_u64..4, 5_usize..40, 3_u64..10);
    let tight = tree.prop_map(|(case, cap, chunk, history, stormy)| {
        let times = case.nature.times.min(20);
        let nature = Nature { history, times, cursed_one_of: 0, ..case.nature };
        Case { nature, cap: Some(cap), chunk: Some(chunk), kills: 500, batch: 3, concurrency: 1, stormy, ..case }
    });
    (0..count).map(|_| tight.new_tree(&mut runner).unwrap().current()).collect()
}

/// The first case that a fault spoils, and how.
fn caught(fault: Fault) -> Option<(usize, String)> {
    let cases = tight_cases(40);
    cases.iter().enumerate().find_map(|(number, case)| live(case, Some(fault)).err().map(|why| (number, why)))
}

#[test]
fn a_backlog_gap_that_is_settled_although_it_was_written_again_is_caught() {
    let (_, why) = caught(Fault::SettleRewrittenBacklog).expect("nobody noticed");
    assert!(why.contains("neither stored"), "{why}");
}

#[test]
fn the_engine_does_not_settle_a_backlog_gap_that_was_written_again() {
    assert_eq!(caught(Fault::RecoveredAfterRewrite), None);
}

#[test]
fn a_cursor_that_forgets_its_walk_is_caught() {
    let (_, why) = caught(Fault::ForgetTheWalk).expect("nobody noticed");
    assert!(why.contains("neither stored"), "{why}");
}

#[test]
fn a_backlog_gap_that_forgets_its_older_ranges_is_caught() {
    let (_, why) = caught(Fault::ForgetOldRanges).expect("nobody noticed");
    assert!(why.contains("neither stored"), "{why}");
}

#[test]
fn a_cursor_that_takes_new_ties_for_known_is_caught() {
    let (_, why) = caught(Fault::ForgetNewTies).expect("nobody noticed");
    assert!(why.contains("neither stored"), "{why}");
}

#[test]
fn a_cursor_that_goes_on_without_a_backlog_gap_is_caught() {
    let (_, why) = caught(Fault::ForgetTheBacklogGap).expect("nobody noticed");
    assert!(why.contains("neither stored"), "{why}");
}

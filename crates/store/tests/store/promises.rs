//! The negative control of each promise in `promise/mod.rs`.

use crate::promise::*;
use gleaner_engine::testing::promises::{Durable, Fact};
use gleaner_engine::{CommitSeq, GapCause, GapId, LeaseId, RunId};
use gleaner_protocol::{GapReason, Semantics};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Db {
    checkpoint: Option<u64>,
    slices: Vec<u64>,
    accounted: Vec<&'static str>,
    backlog: Option<i64>,
    tombstones: Vec<(&'static str, &'static str)>,
    gaps: Vec<&'static str>,
}

impl Durable for Db {
    fn checkpoint(&self, _: &str) -> Option<CommitSeq> {
        self.checkpoint.map(CommitSeq::new)
    }
    fn whole_slices(&self, _: &str) -> Vec<CommitSeq> {
        self.slices.iter().copied().map(CommitSeq::new).collect()
    }
    fn accounts_for(&self, _: &str, key: &str) -> bool {
        self.accounted.contains(&key)
    }
    fn backlog_covers(&self, _: &str, position: i64) -> bool {
        self.backlog.is_some_and(|watermark| position <= watermark)
    }
    fn tombstones(&self) -> Vec<(String, String)> {
        self.tombstones.iter().map(|&(stream, key)| (stream.to_owned(), key.to_owned())).collect()
    }
    fn semantics(&self, stream: &str) -> Option<Semantics> {
        Some(if stream == "photos" { Semantics::AppendOnly } else { Semantics::MutableState })
    }
    fn open_gaps(&self) -> BTreeSet<GapId> {
        self.gaps.iter().map(|&gap| GapId::new(gap)).collect()
    }
}

fn run(name: &str) -> RunId {
    RunId::new(name)
}

fn accepted(key: &str) -> Fact {
    Fact::Accepted { run: run("r"), stream: "trips".to_owned(), key: key.to_owned() }
}

fn ended(superseded: bool) -> Fact {
    Fact::Ended { run: run("r"), superseded }
}

fn gap_written(lease: &str) -> Fact {
    Fact::GapWritten { run: run("r"), gap: GapId::new("g"), lease: LeaseId::new(lease) }
}

fn gap_leased(key: Option<&str>) -> Fact {
    let (gap, lease) = (GapId::new("g"), LeaseId::new("l"));
    Fact::GapLeased { gap, lease, stream: "details".to_owned(), key: key.map(str::to_owned) }
}

fn stored(stream: &str, key: &str, fields: &[&str]) -> Fact {
    let fields = fields.iter().map(|&field| field.to_owned()).collect();
    Fact::Stored { stream: stream.to_owned(), key: key.to_owned(), fields }
}

fn covered(lists: [&[&str]; 4]) -> Fact {
    let lists = lists.map(|list| list.iter().map(|&key| key.to_owned()).collect());
    Fact::Covered { stream: "details".to_owned(), state_stream: "trips".to_owned(), lists }
}

#[test]
fn a12_catches_a_gap_that_is_closed_without_its_record() {
    let settled = Fact::GapSettled { gap: GapId::new("g"), lease: LeaseId::new("l") };
    let check = |came: &[Fact]| {
        let facts = [&[gap_leased(Some("k"))], came, std::slice::from_ref(&settled)].concat();
        a12_closed_gaps_were_confirmed(&facts).is_ok()
    };
    assert!(check(&[stored("details", "k", &[])]));
    assert!(check(&[stored("details", "m", &["x", "k"])]), "by a field");
    assert!(check(&[stored("trips", "k", &[])]), "it is empty");
    assert!(!check(&[]), "nothing came");
    assert!(!check(&[stored("details", "m", &["x"])]), "another record came");
    assert!(!check(&[stored("trips", "m", &["k"])]), "a field of another stream proves nothing");
    let early = [stored("details", "k", &[]), gap_leased(Some("k")), settled.clone()];
    assert!(a12_closed_gaps_were_confirmed(&early).is_err(), "it came before the gap was handed out");
    let again = [gap_leased(Some("k")), stored("details", "k", &[]), gap_leased(Some("k")), settled.clone()];
    assert!(a12_closed_gaps_were_confirmed(&again).is_err(), "handed out again, and nothing came since");
    assert_eq!(a12_closed_gaps_were_confirmed(&[gap_leased(None), settled]), Ok(()), "a part of a list");
}

#[test]
fn a5_catches_a_gap_that_disappears() {
    let before = BTreeSet::from([GapId::new("g")]);
    let leased = gap_leased(Some("k"));
    let settled = |lease: &str| Fact::GapSettled { gap: GapId::new("g"), lease: LeaseId::new(lease) };
    let check = |gaps, facts: &[Fact]| {
        a5_gaps_disappear_only_when_settled(&before, &Db { gaps, ..Db::default() }, facts).is_ok()
    };
    assert!(check(vec!["g"], &[]));
    assert!(check(vec![], &[leased.clone(), settled("l")]));
    assert!(!check(vec![], &[]), "it vanished");
    assert!(!check(vec![], std::slice::from_ref(&leased)), "the run ended with it");
    assert!(!check(vec![], &[leased.clone(), settled("other")]));
    assert!(!check(vec![], &[leased.clone(), gap_written("l"), settled("l")]), "deferred again");
    assert!(!check(vec![], &[leased, settled("l"), gap_written("l")]), "open again, and gone");
}

#[test]
fn a7_catches_a_new_version_of_equal_content() {
    assert_eq!(a7_writing_twice_is_writing_once((7, 2), (7, 2)), Ok(()));
    assert!(a7_writing_twice_is_writing_once((7, 2), (8, 2)).is_err());
    assert!(a7_writing_twice_is_writing_once((7, 2), (7, 3)).is_err());
}

#[test]
fn a8_catches_a_steady_cursor_that_changed() {
    let at = |token: &str| BTreeMap::from([("trips".to_owned(), token.to_owned())]);
    assert_eq!(a8_catch_up_leaves_steady_alone(&at("{}"), &at("{}")), Ok(()));
    assert!(a8_catch_up_leaves_steady_alone(&at("{}"), &at("{ }")).is_err(), "byte for byte");
    assert!(a8_catch_up_leaves_steady_alone(&at("{}"), &BTreeMap::new()).is_err());
    assert!(a8_catch_up_leaves_steady_alone(&BTreeMap::new(), &at("{}")).is_err());
}

#[test]
fn a10_catches_reports_that_do_not_add_up() {
    let full = covered([&["a", "b", "c"], &["a"], &["b"], &["c"]]);
    let detail = Fact::Detail { stream: "details".to_owned() };
    assert_eq!(a10_coverage_adds_up(&[detail.clone(), full.clone()]), Ok(()));
    assert!(a10_coverage_adds_up(&[full.clone(), detail]).is_err(), "too early");
    assert!(a10_coverage_adds_up(&[full.clone(), full]).is_err(), "twice");
    assert!(a10_coverage_adds_up(&[covered([&["a", "b"], &["a"], &[], &[]])]).is_err(), "short");
    assert!(a10_coverage_adds_up(&[covered([&["a"], &["a"], &["a"], &[]])]).is_err(), "overlap");
    assert!(a10_coverage_adds_up(&[covered([&["a", "a"], &["a"], &["a"], &[]])]).is_err(), "doubled");
}

#[test]
fn a11_catches_tombstones_that_nobody_asked_for() {
    let deleted = Fact::Deleted { stream: "trips".to_owned(), key: "a".to_owned() };
    let db = |stream| Db { tombstones: vec![(stream, "a")], ..Db::default() };
    assert_eq!(a11_tombstones_were_asked_for(&db("trips"), &[deleted]), Ok(()));
    assert!(a11_tombstones_were_asked_for(&db("trips"), &[]).is_err(), "an empty list deletes nothing");
    let deleted = Fact::Deleted { stream: "photos".to_owned(), key: "a".to_owned() };
    assert!(a11_tombstones_were_asked_for(&db("photos"), &[deleted]).is_err());
}

#[test]
fn p1_catches_records_that_were_not_asked_for() {
    let scope = |keys: &[&str]| BTreeMap::from([("trips".to_owned(), keys.iter().map(|&k| k.to_owned()).collect())]);
    assert_eq!(p1_accepted_records_were_asked_for(&scope(&[]), &[accepted("a")]), Ok(()));
    assert_eq!(p1_accepted_records_were_asked_for(&scope(&["a"]), &[accepted("a")]), Ok(()));
    assert!(p1_accepted_records_were_asked_for(&scope(&["b"]), &[accepted("a")]).is_err());
    assert!(p1_accepted_records_were_asked_for(&BTreeMap::new(), &[accepted("a")]).is_err());
}

#[test]
fn p3_catches_runs_that_do_not_end_once() {
    assert_eq!(p3_runs_end_once(&[accepted("a"), ended(false)]), Ok(()));
    assert!(p3_runs_end_once(&[accepted("a")]).is_err(), "never");
    assert!(p3_runs_end_once(&[ended(false), ended(false)]).is_err(), "twice");
    assert!(p3_runs_end_once(&[ended(false), accepted("a")]).is_err(), "after its end");
}

#[test]
fn a13_catches_a_gap_that_was_given_up_although_its_cause_may_pass() {
    let status = |status| GapCause { http_status: Some(status), ..GapCause::default() };
    let by = |code| GapCause { reason: GapReason::from_code(code), ..GapCause::default() };
    assert_eq!(a13_only_permanent_causes_are_given_up([status(404), status(410), by("permanent_forbidden")]), Ok(()));
    let passing = [status(500), status(503), by("temporary_unavailable"), by("rate_limited"), GapCause::default()];
    for cause in passing {
        assert!(a13_only_permanent_causes_are_given_up([status(404), cause]).is_err(), "{cause:?}");
    }
}

#[test]
fn l3_catches_a_stale_runner_that_goes_on() {
    let stale = |rows_changed| Fact::StaleCommit { run: run("r"), rows_changed };
    assert_eq!(l3_a_stale_runner_changes_nothing(&[gap_written("l"), stale(0), ended(true)]), Ok(()));
    assert!(l3_a_stale_runner_changes_nothing(&[stale(1), ended(true)]).is_err());
    assert!(l3_a_stale_runner_changes_nothing(&[stale(0), gap_written("l"), ended(true)]).is_err());
    assert!(l3_a_stale_runner_changes_nothing(&[stale(0), Fact::CooldownArmed { run: run("r") }]).is_err());
    assert!(l3_a_stale_runner_changes_nothing(&[stale(0), ended(false)]).is_err());
    assert!(l3_a_stale_runner_changes_nothing(&[stale(0)]).is_err());
}

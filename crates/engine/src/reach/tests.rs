//! Which track a run moves, and what it may do, case by case.

use super::*;
use crate::testing::manifest;
use gleaner_protocol::ManifestOrigin;
use proptest::prelude::*;

fn scope(streams: &[StreamScope]) -> Scope {
    Scope::new(streams.to_vec()).unwrap()
}

fn all(names: &[&str]) -> Scope {
    Scope::new(names.iter().copied().map(StreamScope::all_of).collect()).unwrap()
}

fn range(since: Option<&str>, until: Option<&str>) -> Option<TimeRange> {
    Some(TimeRange { since: since.map(str::to_owned), until: until.map(str::to_owned) })
}

const GRANT: [&str; 4] = ["trips", "comments", "details", "photos"];

/// A store in which `trips` and `photos` have cursors of their own.
fn seen() -> SeenStreams {
    SeenStreams { with_cursor: ["trips", "photos"].map(str::to_owned).into(), ..SeenStreams::default() }
}

fn reach(asked: Scope, part: GrantPart, seen: &SeenStreams) -> Reach {
    Reach::decide(&manifest(), &RunScope { grant: all(&GRANT), asked, part }, seen)
}

fn track(asked: Scope) -> TrackChoice {
    reach(asked, GrantPart::All, &seen()).track()
}

/// Everything, but of trips only this.
fn with_trips(trips: StreamScope) -> Scope {
    let trips = StreamScope { name: "trips".to_owned(), ..trips };
    let others = ["photos", "comments", "details"].map(StreamScope::all_of);
    scope(&[vec![trips], others.to_vec()].concat())
}

#[test]
fn a_run_that_asks_for_all_of_the_grant_is_ordinary_in_any_order() {
    assert_eq!(track(all(&["photos", "details", "comments", "trips"])), TrackChoice::Steady);
}

#[test]
fn less_resources_time_or_fields_is_never_ordinary() {
    let narrow = [
        StreamScope { resources: vec!["t1".to_owned()], ..StreamScope::default() },
        StreamScope { fields: vec!["km".to_owned()], ..StreamScope::default() },
        StreamScope { time_range: range(Some("2031-01-01"), None), ..StreamScope::default() },
        StreamScope { time_range: range(None, Some("2031-01-01")), ..StreamScope::default() },
    ];
    for trips in narrow {
        assert_eq!(track(with_trips(trips.clone())), TrackChoice::Scoped, "{trips:?}");
    }
    let empty = StreamScope { time_range: range(None, None), ..StreamScope::default() };
    assert_eq!(track(with_trips(empty)), TrackChoice::Steady, "a range without ends limits nothing");
}

#[test]
fn a_subset_is_ordinary_only_if_no_dependency_crosses_its_border() {
    assert_eq!(track(all(&["trips"])), TrackChoice::Scoped, "comments and details ride on trips");
    assert_eq!(track(all(&["trips", "comments"])), TrackChoice::Scoped);
    assert_eq!(track(all(&["comments"])), TrackChoice::Scoped, "without trips nobody finds its comments");
    assert_eq!(track(all(&["trips", "comments", "details"])), TrackChoice::Steady);
    assert_eq!(track(all(&["photos"])), TrackChoice::Steady);
}

#[test]
fn a_pair_that_was_reported_is_a_dependency() {
    let reported = [("photos".to_owned(), "trips".to_owned())].into();
    let seen = SeenStreams { reported, ..seen() };
    let track = |names: &[&str]| reach(all(names), GrantPart::All, &seen).track();
    assert_eq!(track(&["trips", "comments", "details"]), TrackChoice::Scoped);
    assert_eq!(track(&["photos"]), TrackChoice::Scoped);
}

#[test]
fn a_stream_that_never_had_a_cursor_of_its_own_may_ride_on_any() {
    let track = |names: &[&str]| reach(all(names), GrantPart::All, &SeenStreams::default()).track();
    assert_eq!(track(&["trips", "comments", "details"]), TrackChoice::Scoped, "photos may ride on trips");
    assert_eq!(track(&GRANT), TrackChoice::Steady);
}

#[test]
fn details_without_a_declared_parent_depend_on_every_stream_and_whole_lists_on_none() {
    let text = r#"{"connector_id":"c","connector_key":"c","version":"1","streams":[
        {"name":"orders","semantics":"mutable_state"},
        {"name":"items","semantics":"mutable_state","coverage_strategy":"parent_detail_accounting"},
        {"name":"labels","semantics":"mutable_state","coverage_strategy":"full_inventory"}]}"#;
    let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).unwrap();
    let with_cursor = ["orders", "items", "labels"].map(str::to_owned).into();
    let seen = SeenStreams { with_cursor, ..SeenStreams::default() };
    let track = |names: &[&str]| {
        let run = RunScope { grant: all(&["orders", "items", "labels"]), asked: all(names), part: GrantPart::All };
        Reach::decide(&manifest, &run, &seen).track()
    };
    assert_eq!(track(&["orders"]), TrackChoice::Scoped);
    assert_eq!(track(&["labels"]), TrackChoice::Scoped);
    let without_items = RunScope { grant: all(&["orders", "labels"]), asked: all(&["orders"]), part: GrantPart::All };
    let nothing = SeenStreams { with_cursor: ["orders".to_owned()].into(), ..SeenStreams::default() };
    assert_eq!(Reach::decide(&manifest, &without_items, &nothing).track(), TrackChoice::Steady);
}

#[test]
fn catch_up_has_its_track_and_with_another_scope_one_of_its_own() {
    let until = "2031-01-01T00:00:00Z";
    let part = || GrantPart::History { until: Some(until.to_owned()) };
    let asked = |range: Option<TimeRange>| {
        let of = |name: &str| StreamScope { time_range: range.clone(), ..StreamScope::all_of(name) };
        Scope::new(GRANT.iter().copied().map(of).collect()).unwrap()
    };
    let track = |asked| reach(asked, part(), &seen()).track();
    assert_eq!(track(asked(range(None, Some(until)))), TrackChoice::CatchUp);
    assert_eq!(track(asked(range(None, Some("2031-01-01T01:00:00+01:00")))), TrackChoice::CatchUp);
    assert_eq!(track(asked(range(Some("2030-01-01"), Some(until)))), TrackChoice::Scoped);
    assert_eq!(track(asked(range(None, Some("2030-01-01")))), TrackChoice::Scoped);
    assert_eq!(reach(all(&GRANT), GrantPart::History { until: None }, &seen()).track(), TrackChoice::CatchUp);
    assert_eq!(
        reach(all(&["trips"]), GrantPart::History { until: None }, &seen()).track(),
        TrackChoice::Scoped,
        "never catch_up, whatever is left out"
    );
}

#[test]
fn a_cursor_is_gone_on_from_only_if_all_that_it_accounts_for_was_looked_at() {
    let whole = reach(all(&GRANT), GrantPart::All, &seen());
    let basis = |scope: &Scope| Extent::of(scope).to_text();
    let narrower = basis(&all(&["trips", "comments", "photos"]));
    assert!(!whole.may_resume("trips", &narrower), "details were not looked at");
    assert!(whole.may_resume("photos", &narrower), "nothing else rides on it");
    assert!(whole.may_resume("trips", &basis(&all(&GRANT))));
    assert!(!whole.may_resume(
        "trips",
        &basis(&with_trips(StreamScope { resources: vec!["t1".to_owned()], ..StreamScope::default() }))
    ));
    assert!(!whole.may_resume("trips", "nonsense"));
}

#[test]
fn a_basis_never_grows_but_by_listing_again() {
    let whole = reach(all(&GRANT), GrantPart::All, &seen());
    let narrow = Extent::of(&all(&["trips"])).to_text();
    assert_eq!(whole.basis(Some(&narrow)), narrow);
    assert_eq!(whole.basis(None), Extent::of(&all(&GRANT)).to_text());
    let less = reach(all(&["photos"]), GrantPart::All, &seen());
    assert_eq!(less.basis(Some(&whole.basis(None))), Extent::of(&all(&["photos"])).to_text());
}

#[test]
fn a_scoped_run_is_served_only_records_that_are_certainly_in_its_scope() {
    let resources = with_trips(StreamScope { resources: vec!["t1".to_owned()], ..StreamScope::default() });
    let reach_of = |asked| reach(asked, GrantPart::All, &seen());
    let only = reach_of(resources);
    assert!(only.serves("trips", Some("t1"), false));
    assert!(!only.serves("trips", Some("t2"), false));
    assert!(only.serves("photos", Some("p"), false));
    assert!(!only.serves("photos", Some("gleaner:backlog"), true));
    assert!(!only.serves("photos", None, true));
    let timed = with_trips(StreamScope { time_range: range(Some("2031-01-01"), None), ..StreamScope::default() });
    assert!(!reach_of(timed).serves("trips", Some("t1"), false));
    let fields = with_trips(StreamScope { fields: vec!["km".to_owned()], ..StreamScope::default() });
    assert!(!reach_of(fields).serves("trips", Some("t1"), false));
    assert!(reach_of(all(&GRANT)).serves("trips", None, true), "an ordinary run is served everything");
}

fn part() -> impl Strategy<Value = StreamExtent> {
    let set = || proptest::collection::btree_set(prop_oneof!["a", "b", "c"].prop_map(String::from), 0..3);
    let time = || proptest::option::of(prop_oneof!["2030-01-01", "2030-06-01", "2031-01-01"].prop_map(String::from));
    (set(), set(), time(), time()).prop_map(|(resources, fields, since, until)| StreamExtent {
        name: String::new(),
        resources,
        fields,
        since,
        until,
    })
}

fn extent() -> impl Strategy<Value = Extent> {
    let named = |(name, part): (String, StreamExtent)| (name.clone(), StreamExtent { name, ..part });
    proptest::collection::btree_map(prop_oneof!["x", "y", "z"].prop_map(String::from), part(), 0..3)
        .prop_map(move |parts| Extent(parts.into_iter().map(named).collect()))
}

proptest! {
    #[test]
    fn an_extent_is_read_back_as_it_was_written(extent in extent()) {
        prop_assert_eq!(Extent::from_text(&extent.to_text()), Some(extent));
    }

    /// What two have in common is in both, and what covers both ways is the same but for spelling.
    #[test]
    fn a_meet_is_within_both(one in extent(), other in extent()) {
        let meet = one.meet(&other);
        for name in meet.0.keys() {
            prop_assert!(one.covers(&meet, name) && other.covers(&meet, name));
        }
        prop_assert_eq!(one.meet(&one), one);
    }
}

//! The store counts the keys of a coverage report as `KeysInMemory`, its model in the engine, does.

#![allow(dead_code, reason = "the harness has more than this needs")]

use crate::world::{Home, Sitting, Terms, done, lease, now, parse, record, start};
use gleaner_engine::testing::keys_in_memory::{KeyFacts, KeysInMemory, Presence};
use gleaner_engine::{CoveragePair, CoverageTally, Misfit, ReportId, Steady, Validate};
use gleaner_protocol::{CoverageField, RawJson};
use gleaner_store::GapFilter;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MANIFEST: &str = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
    {"name":"items","semantics":"mutable_state"},{"name":"details","semantics":"mutable_state"}]}"#;
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const FIELDS: [CoverageField; 4] =
    [CoverageField::RequiredKeys, CoverageField::HydratedKeys, CoverageField::GapKeys, CoverageField::OptionalSkipKeys];

/// What a store has for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Listed,
    Record,
    Field,
    Quarantined,
    Gap,
}

/// Bodies with a member `bad` do not fit.
#[derive(Debug)]
struct NoBad;

impl Validate for NoBad {
    fn check(&self, _: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/bad".to_owned(), ..Misfit::default() })
        } else {
            Ok(())
        }
    }
}

#[derive(Debug)]
struct Facts(BTreeSet<(&'static str, Fact)>);

impl Facts {
    fn has(&self, key: &str, fact: Fact) -> bool {
        self.0.iter().any(|(known, other)| *known == key && *other == fact)
    }

    fn lines(&self) -> String {
        let line = |(key, fact): &(&str, Fact)| match fact {
            Fact::Listed => record("items", key, "{}"),
            Fact::Record => record("details", key, "{}"),
            Fact::Field => record("details", &format!("of-{key}"), &format!(r#"{{"item":"{key}"}}"#)),
            Fact::Quarantined => record("details", key, r#"{"bad":1}"#),
            Fact::Gap => crate::world::gap("details", key),
        };
        self.0.iter().map(line).collect()
    }
}

impl KeyFacts for Facts {
    fn has_durable_gap(&self, key: &str) -> bool {
        self.has(key, Fact::Gap)
    }

    fn is_in_quarantine(&self, key: &str) -> bool {
        self.has(key, Fact::Quarantined)
    }

    fn presence(&self, key: &str) -> Presence {
        let has_records = KEYS.into_iter().any(|key| self.has(key, Fact::Record) || self.has(key, Fact::Field));
        let shares_keys = KEYS.into_iter().any(|key| self.has(key, Fact::Record) && self.has(key, Fact::Listed));
        if self.has(key, Fact::Record) || self.has(key, Fact::Field) {
            Presence::Here
        } else if self.has(key, Fact::Listed) && has_records && !shares_keys {
            Presence::Empty
        } else {
            Presence::Nowhere
        }
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let fact = prop_oneof![
        3 => Just(Fact::Listed),
        2 => Just(Fact::Record),
        2 => Just(Fact::Field),
        1 => Just(Fact::Quarantined),
        2 => Just(Fact::Gap),
    ];
    proptest::collection::vec((proptest::sample::select(&KEYS[..]), fact), 0..14).prop_map(|facts| {
        let mut facts = facts.into_iter().collect::<BTreeSet<_>>();
        // A record that fits takes its key out of quarantine, and the other way round.
        let fits = facts.iter().filter(|(_, fact)| *fact == Fact::Record).map(|(key, _)| *key).collect::<Vec<_>>();
        facts.retain(|(key, fact)| *fact != Fact::Quarantined || !fits.contains(key));
        Facts(facts)
    })
}

/// In which lists each key is, one bit for each; mostly as the protocol wants it. And perhaps one key in a list once more.
fn lists() -> impl Strategy<Value = Vec<(CoverageField, Vec<&'static str>)>> {
    let valid = proptest::sample::select(&[0_u8, 1, 3, 5, 9][..]);
    let masks = proptest::collection::vec(prop_oneof![30 => valid, 1 => 0_u8..16], KEYS.len());
    let doubled = proptest::option::weighted(0.1, (0..FIELDS.len(), 0..KEYS.len()));
    (masks, doubled).prop_map(|(masks, doubled)| {
        let keys = |bit: usize| {
            let of_list = masks.iter().zip(KEYS).filter(|(mask, _)| *mask & (1 << bit) != 0).map(|(_, key)| key);
            of_list.collect::<Vec<_>>()
        };
        let mut lists = FIELDS.into_iter().enumerate().map(|(bit, field)| (field, keys(bit))).collect::<Vec<_>>();
        lists.extend(doubled.map(|(field, key)| (FIELDS[field], vec![KEYS[key]])));
        lists
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn the_store_counts_keys_as_its_model_does(facts in facts(), lists in lists().prop_shuffle()) {
        let home = Home::new();
        let terms = Terms { validator: Box::new(NoBad), ..Terms::default() };
        let mut sitting = Sitting::begin_with(home.open(), "c", MANIFEST, terms);
        let records = facts.0.iter().filter(|(_, fact)| *fact != Fact::Gap).count();
        sitting.feed((facts.lines() + &done(records as u64)).as_bytes()).unwrap();
        prop_assert_eq!(sitting.end().unwrap().violation, None);
        drop(sitting);

        let mut store = home.open();
        let leases = lease(&mut store, "c");
        let mut session = store.begin_run::<Steady>(start("c", "check", &parse(MANIFEST)), leases, now().wall).unwrap();
        let pair = CoveragePair { stream: "details".to_owned(), state_stream: "items".to_owned(), any_parent: true };
        let (report, mut model) = (ReportId::new(1), KeysInMemory::default());
        for (field, keys) in &lists {
            let block = keys.iter().copied().collect();
            model.push(*field, &block).unwrap();
            store.keep_coverage_keys(&session, report, *field, &block).unwrap();
        }
        let (expected, tally) = (model.tally(&facts), store.tally_coverage(&mut session, report, &pair).unwrap());
        // Of several doubled keys any one is named.
        prop_assert_eq!(expected.duplicate.is_some(), tally.duplicate.is_some());
        let duplicate = tally.duplicate.clone();
        prop_assert_eq!(&CoverageTally { duplicate, ..expected }, &tally);
        if tally.judge("details").is_ok() {
            let gaps = || {
                let gaps = home.reader().gaps("c", GapFilter::default(), 0, 100).unwrap();
                gaps.into_iter().filter_map(|gap| gap.record_key).collect::<BTreeSet<_>>()
            };
            let before = gaps();
            store.write_unaccounted(&mut session, report, &pair, now().wall).unwrap();
            let written = gaps().difference(&before).cloned().collect::<BTreeSet<_>>();
            let expected = model.unaccounted(&facts).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
            prop_assert_eq!(written, expected);
        }
    }
}

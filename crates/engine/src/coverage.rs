//! What a coverage report proves: every required key has one outcome, or a checkpoint waits.
//!
//! Why the keys are not here: a report names a million of them. They go to the store in blocks as
//! they arrive, and the store answers with a [`CoverageTally`], a handful of numbers and at most one
//! key per fault. The decision is made here, from the tally alone. Nothing here fails a run for
//! a shortfall: that withholds a checkpoint and is said.

use gleaner_protocol::{Checkpoint, Manifest, Violation, ViolationCode};

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveragePair {
    /// The detail stream: records and gaps are looked for in it.
    pub stream: String,
    /// Whose checkpoint waits for the report.
    pub state_stream: String,
    /// Whether gaps that name no parent count.
    pub any_parent: bool,
}

/// What a store found among the keys of one report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageTally {
    /// A key that is in one list twice.
    pub duplicate: Option<String>,
    /// A key that has an outcome and is not required.
    pub not_required: Option<String>,
    /// A key that has two outcomes.
    pub overlap: Option<String>,
    /// How many keys are required.
    pub required: u64,
    /// How many required keys have no outcome, and no durable, open gap either.
    pub without_outcome: u64,
    /// How many gap keys have no durable, open gap of the same stream and parent.
    pub gaps_not_durable: u64,
    /// How many hydrated keys the store has nothing for, and no durable, open gap either.
    pub unconfirmed: u64,
    /// How many hydrated keys only the parent has: there is nothing to collect for them.
    pub empty: u64,
    /// How many keys are left out on purpose.
    pub skipped: u64,
    /// How many gaps of the stream this run wrote that are not among the gap keys. Parts of lists have no key.
    pub gaps_unlisted: u64,
    /// The first of the keys that the checkpoint waits for, in order.
    pub waiting: Vec<String>,
    /// How many hydrated keys are in quarantine, because their record does not fit its schema. They
    /// are not hydrated, and they are accounted for: they withhold nothing.
    pub in_quarantine: u64,
    /// Whether the run was served a gap that stands for a part of a list. Its keys lie behind a cursor that an earlier run
    /// has committed.
    pub expands_list: bool,
}

/// What a report means for the checkpoint that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverageVerdict {
    /// Every required key is accounted for.
    Complete,
    /// Some are not. The checkpoint is withheld, or the keys become gaps if it was committed already.
    Short {
        /// How many.
        unaccounted: u64,
    },
}

impl CoverageTally {
    /// The meaning of the tally.
    ///
    /// # Errors
    ///
    /// When the lists contradict each other. That ends the run.
    pub fn judge(&self, stream: &str) -> Result<CoverageVerdict, Violation> {
        let faults = [
            (ViolationCode::CoverageDuplicateKey, &self.duplicate),
            (ViolationCode::CoverageKeyNotRequired, &self.not_required),
            (ViolationCode::CoverageOverlap, &self.overlap),
        ];
        for (code, key) in faults {
            if let Some(key) = key {
                return Err(Violation::new(code).of_stream(stream).of_key(key));
            }
        }
        match self.unaccounted() {
            0 => Ok(CoverageVerdict::Complete),
            unaccounted => Ok(CoverageVerdict::Short { unaccounted }),
        }
    }

    /// How many required keys nothing accounts for.
    #[must_use]
    pub const fn unaccounted(&self) -> u64 {
        self.without_outcome.saturating_add(self.gaps_not_durable).saturating_add(self.unconfirmed)
    }

    /// Takes note of a key that the checkpoint waits for.
    pub fn wait_for(&mut self, key: &str) {
        let at = self.waiting.partition_point(|known| known.as_str() < key);
        if at < Self::WAITING_MAX {
            // A key may be as long as a line; so much of it tells which is meant.
            let end = key.char_indices().nth(Self::WAITING_CHARS_MAX).map_or(key.len(), |(end, _)| end);
            self.waiting.insert(at, key[..end].to_owned());
            self.waiting.truncate(Self::WAITING_MAX);
        }
    }

    /// So many keys are named; of the others there is a number.
    pub const WAITING_MAX: usize = 100;
    /// So much of each.
    const WAITING_CHARS_MAX: usize = 200;
}

/// Whether the manifest allows a report for this pair. A stream that declares no parents may report for any stream.
///
/// # Errors
///
/// When the stream rides on another's checkpoint, or the parent is not among those that it declares.
pub fn check_pair(manifest: &Manifest, stream: &str, state_stream: &str) -> Result<(), Violation> {
    // Connectors without a list of their own report on themselves; that is always allowed.
    if stream == state_stream {
        return Ok(());
    }
    let code = match manifest.stream(stream).map(|stream| &stream.checkpoint) {
        Some(Checkpoint::ParentStreams(parents)) if parents.iter().any(|parent| parent == state_stream) => {
            return Ok(());
        }
        Some(Checkpoint::Own) => return Ok(()),
        Some(Checkpoint::StateStream(_)) => ViolationCode::CoverageForChild,
        Some(Checkpoint::ParentStreams(_)) | None => ViolationCode::CoverageUndeclaredParent,
    };
    Err(Violation::new(code).in_field("state_stream").of_stream(stream))
}

/// Whether gaps of the stream that name no parent count for a report: there is one parent at most that they can mean.
#[must_use]
pub fn gaps_need_no_parent(manifest: &Manifest, stream: &str) -> bool {
    let parents = manifest.stream(stream).map_or(&[][..], |stream| stream.checkpoint.parents());
    parents.len() <= 1
}

/// The pairs of which no report came: streams in scope and their declared parents, whose checkpoints wait for it.
pub fn missing_reports<'a>(
    manifest: &'a Manifest,
    in_scope: impl Fn(&str) -> bool + 'a,
    reported: impl Fn(&str, &str) -> bool + 'a,
) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
    manifest.streams.iter().filter(move |stream| in_scope(&stream.name)).flat_map(move |stream| {
        let parents = match &stream.checkpoint {
            Checkpoint::ParentStreams(parents) => parents.as_slice(),
            Checkpoint::Own | Checkpoint::StateStream(_) => &[],
        };
        let missing = parents.iter().filter(|parent| !reported(&stream.name, parent));
        missing.map(|parent| (stream.name.as_str(), parent.as_str())).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::keys_in_memory::{KeyFacts, KeysInMemory, Presence, TooManyKeys};
    use crate::testing::manifest;
    use gleaner_protocol::CoverageField::{self, GapKeys, HydratedKeys, OptionalSkipKeys, RequiredKeys};
    use std::collections::BTreeSet;

    struct Facts(&'static [&'static str], &'static [&'static str]);

    impl KeyFacts for Facts {
        fn has_durable_gap(&self, key: &str) -> bool {
            self.0.contains(&key)
        }
        fn is_in_quarantine(&self, key: &str) -> bool {
            self.1.contains(&key)
        }
        fn presence(&self, key: &str) -> Presence {
            match key {
                _ if key.starts_with("unsent") => Presence::Nowhere,
                _ if key.starts_with("empty") => Presence::Empty,
                _ => Presence::Here,
            }
        }
    }

    fn keys(lists: &[(CoverageField, &[&str])]) -> KeysInMemory {
        let mut keys = KeysInMemory::default();
        for (field, list) in lists {
            keys.push(*field, &list.iter().copied().collect()).unwrap();
        }
        keys
    }

    fn verdict(lists: &[(CoverageField, &[&str])], gaps: &'static [&'static str]) -> Result<u64, ViolationCode> {
        match keys(lists).tally(&Facts(gaps, &[])).judge("details") {
            Ok(CoverageVerdict::Complete) => Ok(0),
            Ok(CoverageVerdict::Short { unaccounted }) => Ok(unaccounted),
            Err(violation) => Err(violation.code),
        }
    }

    #[test]
    fn required_is_the_disjoint_union_of_the_outcomes() {
        let full: &[(CoverageField, &[&str])] =
            &[(RequiredKeys, &["a", "b", "c"]), (HydratedKeys, &["a"]), (GapKeys, &["b"]), (OptionalSkipKeys, &["c"])];
        assert_eq!(verdict(full, &["b"]), Ok(0));
        assert_eq!(verdict(&full[..3], &["b"]), Ok(1), "c has no outcome");
        assert_eq!(verdict(full, &[]), Ok(1), "the gap of b is not durable");
    }

    #[test]
    fn the_order_of_the_lists_does_not_matter() {
        assert_eq!(verdict(&[(HydratedKeys, &["a"]), (RequiredKeys, &["a"])], &[]), Ok(0));
    }

    #[test]
    fn lists_that_contradict_each_other_end_the_run() {
        let code = |lists| verdict(lists, &["a", "b"]).unwrap_err();
        assert_eq!(code(&[(RequiredKeys, &["a", "a"])]), ViolationCode::CoverageDuplicateKey);
        assert_eq!(code(&[(RequiredKeys, &["a"]), (GapKeys, &["b"])]), ViolationCode::CoverageKeyNotRequired);
        assert_eq!(
            code(&[(RequiredKeys, &["a"]), (GapKeys, &["a"]), (HydratedKeys, &["a"])]),
            ViolationCode::CoverageOverlap
        );
    }

    #[test]
    fn a_record_in_quarantine_is_not_hydrated_and_withholds_nothing() {
        let tally = keys(&[(RequiredKeys, &["a"]), (HydratedKeys, &["a"])]).tally(&Facts(&[], &["a"]));
        assert_eq!((tally.in_quarantine, tally.judge("details")), (1, Ok(CoverageVerdict::Complete)));
    }

    #[test]
    fn a_hydrated_key_that_the_store_does_not_have_is_not_accounted_for_and_is_named() {
        let lists: &[(CoverageField, &[&str])] = &[
            (RequiredKeys, &["a", "empty", "unsent2", "unsent1", "skip"]),
            (HydratedKeys, &["a", "empty", "unsent1", "unsent2"]),
            (OptionalSkipKeys, &["skip"]),
        ];
        let keys = keys(lists);
        let tally = keys.tally(&Facts(&[], &[]));
        assert_eq!((tally.unconfirmed, tally.empty, tally.skipped), (2, 1, 1));
        assert_eq!(tally.waiting, ["unsent1", "unsent2"]);
        assert_eq!(tally.judge("details"), Ok(CoverageVerdict::Short { unaccounted: 2 }));
        assert_eq!(keys.unaccounted(&Facts(&[], &[])), BTreeSet::from(["unsent1", "unsent2"]));
        // A durable gap accounts for a key, whatever list it is in.
        assert_eq!(verdict(lists, &["unsent1"]), Ok(1));
        assert_eq!(verdict(&[(RequiredKeys, &["a"])], &["a"]), Ok(0), "in none");
        let in_quarantine = keys.tally(&Facts(&[], &["unsent1", "unsent2"]));
        assert_eq!(in_quarantine.judge("details"), Ok(CoverageVerdict::Complete));
    }

    #[test]
    fn so_many_of_the_keys_that_are_waited_for_are_named_and_they_are_the_first() {
        let mut tally = CoverageTally::default();
        (0..200).rev().for_each(|n| tally.wait_for(&format!("{n:03}")));
        assert_eq!(tally.waiting.len(), CoverageTally::WAITING_MAX);
        assert_eq!((tally.waiting[0].as_str(), tally.waiting[99].as_str()), ("000", "099"));
    }

    #[test]
    fn what_nothing_accounts_for_is_named() {
        let keys = keys(&[(RequiredKeys, &["a", "b", "c", "d"]), (HydratedKeys, &["a"]), (GapKeys, &["b", "c"])]);
        let facts = Facts(&["b"], &[]);
        assert_eq!(keys.unaccounted(&facts), BTreeSet::from(["c", "d"]));
        let tally = keys.tally(&facts);
        assert_eq!(tally.without_outcome + tally.gaps_not_durable, 2, "tally and list agree");
    }

    #[test]
    fn only_so_many_keys_are_held() {
        let mut held = KeysInMemory::default();
        let many = (0..=KeysInMemory::KEYS_MAX).map(|n| n.to_string()).collect::<Vec<_>>();
        let (last, fit) = many.split_last().unwrap();
        held.push(RequiredKeys, &fit.iter().map(String::as_str).collect()).unwrap();
        held.push(HydratedKeys, &fit.iter().map(String::as_str).collect()).unwrap();
        assert_eq!(held.push(RequiredKeys, &[last.as_str()].into_iter().collect()), Err(TooManyKeys));
    }

    #[test]
    fn a_report_is_for_a_declared_parent_or_for_the_stream_itself() {
        let manifest = manifest();
        let code = |stream, parent| check_pair(&manifest, stream, parent).map_err(|violation| violation.code);
        assert_eq!(code("details", "trips"), Ok(()));
        assert_eq!(code("comments", "comments"), Ok(()));
        assert_eq!(code("comments", "trips"), Err(ViolationCode::CoverageForChild));
        assert_eq!(code("details", "photos"), Err(ViolationCode::CoverageUndeclaredParent));
        assert_eq!(code("photos", "trips"), Ok(()), "it declares no parents");
        assert!(gaps_need_no_parent(&manifest, "photos") && gaps_need_no_parent(&manifest, "details"));
    }

    #[test]
    fn a_declared_parent_without_a_report_is_missing_one_while_the_child_is_in_scope() {
        let manifest = manifest();
        let missing = |scope: &'static [&'static str], reported: bool| {
            let in_scope = move |stream: &str| scope.contains(&stream);
            let missing = missing_reports(&manifest, in_scope, move |_, _| reported);
            missing.map(|(_, parent)| parent.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(missing(&["trips", "details"], false), ["trips"]);
        assert_eq!(missing(&["trips", "details"], true), Vec::<String>::new());
        assert_eq!(missing(&["trips", "comments"], false), Vec::<String>::new());
    }
}

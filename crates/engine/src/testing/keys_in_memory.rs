//! What a store must count among the keys of a coverage report: the same in memory, without a database.

use crate::coverage::CoverageTally;
use gleaner_protocol::{CoverageField, KeyBlock};
use std::collections::{BTreeMap, BTreeSet};

/// The keys of one small report, held in memory.
#[derive(Debug, Default)]
pub struct KeysInMemory {
    keys: BTreeMap<String, Outcomes>,
    duplicate: Option<String>,
}

/// In which lists a key was.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    required: bool,
    hydrated: bool,
    gap: bool,
    skipped: bool,
}

/// There are too many keys to hold them; a store must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {} keys", KeysInMemory::KEYS_MAX)]
pub struct TooManyKeys;

/// What is asked about a key that only a store can answer.
pub trait KeyFacts {
    /// Whether there is a durable, open gap for this key, of the report's stream and parent.
    fn has_durable_gap(&self, key: &str) -> bool;
    /// Whether the key's record is in quarantine.
    fn is_in_quarantine(&self, key: &str) -> bool;
    /// What the store has for the key, of any run.
    fn presence(&self, key: &str) -> Presence;
}

/// What a store has for a key that is called hydrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A record or deletion of the stream with this key, or one of whose top-level fields equals it.
    Here,
    /// Only the parent has it: there is nothing to collect.
    Empty,
    /// Nothing.
    Nowhere,
}

impl KeysInMemory {
    /// The most keys that are held: with keys of 20 bytes that is some 10 MB.
    pub const KEYS_MAX: usize = 1 << 16;

    /// Adds a block of one list.
    ///
    /// # Errors
    ///
    /// [`TooManyKeys`]; what was added stays, and the caller moves to a store of its own.
    pub fn push(&mut self, field: CoverageField, block: &KeyBlock) -> Result<(), TooManyKeys> {
        for key in block.iter() {
            if self.keys.len() >= Self::KEYS_MAX && !self.keys.contains_key(key) {
                return Err(TooManyKeys);
            }
            let outcomes = self.keys.entry(key.to_owned()).or_default();
            let seen = match field {
                CoverageField::RequiredKeys => &mut outcomes.required,
                CoverageField::HydratedKeys => &mut outcomes.hydrated,
                CoverageField::GapKeys => &mut outcomes.gap,
                CoverageField::OptionalSkipKeys => &mut outcomes.skipped,
            };
            if std::mem::replace(seen, true) && self.duplicate.is_none() {
                self.duplicate = Some(key.to_owned());
            }
        }
        Ok(())
    }

    /// Counts.
    pub fn tally(&self, facts: &impl KeyFacts) -> CoverageTally {
        let mut tally = CoverageTally { duplicate: self.duplicate.clone(), ..CoverageTally::default() };
        for (key, outcomes) in &self.keys {
            let count = u8::from(outcomes.hydrated) + u8::from(outcomes.gap) + u8::from(outcomes.skipped);
            if !outcomes.required {
                tally.not_required.get_or_insert_with(|| key.clone());
                continue;
            }
            tally.required += 1;
            match count {
                0 | 1 if outcomes.skipped => tally.skipped += 1,
                0 | 1 if outcomes.hydrated && facts.is_in_quarantine(key) => tally.in_quarantine += 1,
                0 | 1 if outcomes.hydrated && facts.presence(key) == Presence::Here => {}
                0 | 1 if outcomes.hydrated && facts.presence(key) == Presence::Empty => tally.empty += 1,
                0 | 1 if facts.has_durable_gap(key) => {}
                0 | 1 => {
                    let counter = match (outcomes.hydrated, outcomes.gap) {
                        (true, _) => &mut tally.unconfirmed,
                        (false, true) => &mut tally.gaps_not_durable,
                        (false, false) => &mut tally.without_outcome,
                    };
                    *counter += 1;
                    tally.wait_for(key);
                }
                _ => drop(tally.overlap.get_or_insert_with(|| key.clone())),
            }
        }
        tally
    }

    /// The required keys that nothing accounts for, in order: what becomes a gap with the reason
    /// `unaccounted` when the checkpoint is already committed.
    pub fn unaccounted(&self, facts: &impl KeyFacts) -> BTreeSet<&str> {
        let is_there = |key: &str| facts.is_in_quarantine(key) || facts.presence(key) != Presence::Nowhere;
        let is_open = |key: &str, outcomes: &Outcomes| {
            let is_claimed = outcomes.required || outcomes.gap;
            let is_accounted = outcomes.skipped || (outcomes.hydrated && is_there(key));
            is_claimed && !is_accounted && !facts.has_durable_gap(key)
        };
        self.keys.iter().filter(|(key, outcomes)| is_open(key, outcomes)).map(|(key, _)| key.as_str()).collect()
    }
}

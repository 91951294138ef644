//! One shard of a registry: its keys by name, the heap of idle times, and the watch list.
//!
//! Everything here runs under the shard's lock and handles at most [`STEP`] keys at a time. A slot is a number: names
//! map to it, the heap orders it, the watch list visits it. Each slot has one entry in the heap, whose time is never
//! later than the key's last use. So the top, once brought up to date, is the longest idle key.

use super::config::RegistryRules;
use super::handle::Entry;
use super::key::Key;
use super::snapshot::Totals;
use crate::time::Time;
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Keys per step under the lock: some ten microseconds, when none of them is in the CPU cache.
pub(crate) const STEP: usize = 16;

/// A slot, and the last use of its key as the heap knows it.
type Record = Reverse<(Time, u32)>;

#[derive(Debug)]
pub(crate) struct Shard<W> {
    names: HashTable<u32>,
    slots: Vec<Option<Arc<Entry<W>>>>,
    /// Whether a slot is in the watch list. Stays true when the key is dropped before the list is walked.
    is_watched: Vec<bool>,
    free: Vec<u32>,
    by_age: BinaryHeap<Record>,
    /// Active keys, and idle keys whose circuit is not closed.
    watch: VecDeque<u32>,
    /// Counts of keys that are idle or dropped.
    pub(crate) totals: Totals,
    pub(crate) forgotten: u64,
}

/// Keys dropped in one step. Drop this value when no lock is held.
#[derive(Debug)]
pub struct Forgotten<W = ()> {
    gone: Vec<Arc<Entry<W>>>,
    /// Whether more keys may be dropped.
    pub more: bool,
}

impl<W> Forgotten<W> {
    pub(crate) const fn new(gone: Vec<Arc<Entry<W>>>, more: bool) -> Self {
        Self { gone, more }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gone.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }
}

impl<W> Default for Shard<W> {
    fn default() -> Self {
        Self {
            names: HashTable::new(),
            slots: Vec::new(),
            is_watched: Vec::new(),
            free: Vec::new(),
            by_age: BinaryHeap::new(),
            watch: VecDeque::new(),
            totals: Totals::default(),
            forgotten: 0,
        }
    }
}

impl<W> Shard<W> {
    #[inline]
    pub(crate) fn find(&self, hash: u64, name: &str) -> Option<&Arc<Entry<W>>> {
        let slot = self.names.find(hash, |&slot| self.entry(slot).is_some_and(|entry| entry.name() == name))?;
        self.entry(*slot)
    }

    #[inline]
    fn entry(&self, slot: u32) -> Option<&Arc<Entry<W>>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Adds a key; `make` gets its slot number. A table that grows hashes the other names again.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        hash_again: impl Fn(&str) -> u64,
        now: Time,
        make: impl FnOnce(u32) -> Entry<W>,
    ) -> Arc<Entry<W>> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.is_watched.push(false);
            // Room for all, so that dropping keys allocates nothing: that would take milliseconds.
            self.free.reserve(self.slots.capacity());
            (self.slots.len() - 1) as u32
        });
        let entry = Arc::new(make(slot));
        self.slots[slot as usize] = Some(Arc::clone(&entry));
        let Self { names, slots, .. } = self;
        let hash_of = |&slot: &u32| slots[slot as usize].as_ref().map_or(0, |entry| hash_again(entry.name()));
        names.insert_unique(hash, slot, hash_of);
        self.by_age.push(Reverse((now, slot)));
        entry
    }

    /// No key of this shard was last used before this time.
    pub(crate) fn oldest(&self) -> Time {
        self.by_age.peek().map_or(Time::NEVER, |&Reverse((at, _))| at)
    }

    /// Adds a key to the watch list.
    pub(crate) fn watch(&mut self, slot: u32) {
        if let Some(is_watched) = self.is_watched.get_mut(slot as usize).filter(|is_watched| !**is_watched) {
            *is_watched = true;
            self.watch.push_back(slot);
        }
    }

    pub(crate) fn watched(&self) -> usize {
        self.watch.len()
    }

    /// The slots of the watch list.
    pub(crate) fn watched_slots(&self) -> Vec<u32> {
        self.watch.iter().copied().collect()
    }

    /// The keys of these slots that still exist.
    pub(crate) fn entries(&self, slots: &[u32]) -> Vec<Arc<Entry<W>>> {
        slots.iter().filter_map(|&slot| self.entry(slot).cloned()).collect()
    }

    /// Keys of the slots from `from` on, and how many slots those are, at most [`STEP`].
    pub(crate) fn slots_from(&self, from: usize) -> (Vec<Arc<Entry<W>>>, usize) {
        let part = self.slots.get(from..).unwrap_or_default();
        let part = &part[..part.len().min(STEP)];
        (part.iter().filter_map(Clone::clone).collect(), part.len())
    }

    /// Visits the next keys of the watch list: makes unused ones idle, and removes idle ones with a closed circuit.
    /// `left`: keys still to visit in this round.
    pub(crate) fn look_after(&mut self, rules: &RegistryRules, left: &mut usize, now: Time) {
        for _ in 0..STEP.min(*left) {
            *left -= 1;
            let Some(slot) = self.watch.pop_front() else { return };
            let Some(entry) = self.entry(slot).cloned() else {
                self.is_watched[slot as usize] = false;
                continue;
            };
            let mut key = entry.lock(rules, now);
            if let Some(tally) = key.rest(rules, now) {
                self.totals.add(tally);
            }
            if matches!(*key, Key::Active(_)) || key.circuit(now) != crate::CircuitState::Closed {
                self.watch.push_back(slot);
            } else {
                self.is_watched[slot as usize] = false;
            }
        }
    }

    /// Drops at most [`STEP`] keys that were not used since `before`, and puts them into `gone`, which has room for
    /// them. True when there are more.
    pub(crate) fn forget_before(
        &mut self,
        rules: &RegistryRules,
        hash_again: &impl Fn(&str) -> u64,
        before: Time,
        gone: &mut Vec<Arc<Entry<W>>>,
        now: Time,
    ) -> bool {
        for _ in 0..STEP {
            if self.oldest() > before || self.by_age.is_empty() {
                return false;
            }
            gone.extend(self.forget_oldest(rules, hash_again, before, now));
        }
        true
    }

    /// Drops the longest idle key, if one step can find it and it was not used after `rival`, the age of another
    /// shard's oldest key.
    pub(crate) fn forget_one(
        &mut self,
        rules: &RegistryRules,
        hash_again: &impl Fn(&str) -> u64,
        rival: Time,
        now: Time,
    ) -> Option<Arc<Entry<W>>> {
        for _ in 0..STEP {
            if self.oldest() > rival || self.by_age.is_empty() {
                return None;
            }
            let gone = self.forget_oldest(rules, hash_again, rival, now);
            if gone.is_some() {
                return gone;
            }
        }
        None
    }

    /// Takes the top of the heap: drops it if it was not used since `limit` and may be dropped, and puts it back
    /// otherwise.
    fn forget_oldest(
        &mut self,
        rules: &RegistryRules,
        hash_again: &impl Fn(&str) -> u64,
        limit: Time,
        now: Time,
    ) -> Option<Arc<Entry<W>>> {
        let Reverse((at, slot)) = self.by_age.pop()?;
        let entry = self.entry(slot)?;
        let mut key = entry.lock(rules, now);
        let last = key.last();
        if last > at {
            drop(key);
            self.by_age.push(Reverse((last, slot)));
            return None;
        }
        // Handles are created under this lock only, and a permit needs one: without a handle nothing is in flight.
        if last > limit || Arc::strong_count(entry) > 1 || key.is_in_flight() || key.is_closed(now) {
            drop(key);
            // Treated as just used: it is visited again after all others.
            self.by_age.push(Reverse((now.max(last), slot)));
            return None;
        }
        let tally = key.take_tally();
        let hash = hash_again(entry.name());
        drop(key);
        self.totals.add(tally);
        self.forgotten += 1;
        if let Ok(found) = self.names.find_entry(hash, |&other| other == slot) {
            found.remove();
        }
        self.free.push(slot);
        self.slots[slot as usize].take()
    }
}

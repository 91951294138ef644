//! A provider whose list changes while it is read: inserts, edits, deletions, ties in an order of its own,
//! refusals at any request. The same seed gives the same provider.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use gleaner_protocol::{DeferReason, PressureReason, RawJson};
use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Source, Target};
use gleaner_sdk::{FetchError, FetchErrorKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Properties of the provider.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) seed: u64,
    pub(crate) history: usize,
    /// How many different times the history has.
    pub(crate) times: u64,
    pub(crate) page: usize,
    /// Whether it can begin in the middle.
    pub(crate) filters: bool,
    /// Whether its list tells a version.
    pub(crate) versions: bool,
    /// A deleted item is answered with a tombstone, not with 404.
    pub(crate) tombstones: bool,
    /// One of so many has no detail, ever; 0 for none.
    pub(crate) cursed_one_of: u64,
}

/// How it behaves at the moment, each per thousand requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mood {
    pub(crate) changes: u64,
    pub(crate) refusals: u64,
}

pub(crate) struct Provider {
    nature: Nature,
    inner: Mutex<Inner>,
}

struct Inner {
    random: u64,
    now: u64,
    born: u64,
    items: BTreeMap<String, Entry>,
    /// Newest first; ties in the order of a hash that belongs to this provider.
    order: BTreeMap<Place, String>,
    seed: u64,
    cursed: BTreeSet<String>,
    mood: Mood,
    open_circuit: u32,
    details_are_down: bool,
    /// The caller whose next request finds the circuit open.
    find_it_open: BTreeSet<String>,
    throttled: u64,
    tombstones: bool,
    backwards: bool,
    lists: u64,
    details: u64,
    sent: Vec<String>,
}

type Place = (Reverse<u64>, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) version: u64,
}

impl Inner {
    /// xorshift: the same numbers on every machine.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        per_thousand > 0 && self.next() % 1000 < per_thousand
    }

    fn some_key(&mut self) -> Option<String> {
        let len = self.items.len() as u64;
        let number = self.next().checked_rem(len)?;
        self.items.keys().nth(usize::try_from(number).unwrap()).cloned()
    }

    fn place(&self, key: &str, entry: Entry) -> Place {
        (Reverse(entry.at), xxh3_64_with_seed(key.as_bytes(), self.seed))
    }

    fn set(&mut self, key: &str, entry: Option<Entry>) {
        if let Some(before) = self.items.remove(key) {
            self.order.remove(&self.place(key, before));
        }
        if let Some(entry) = entry {
            self.order.insert(self.place(key, entry), key.to_owned());
            self.items.insert(key.to_owned(), entry);
        }
    }

    fn insert(&mut self, at: u64, cursed_one_of: u64) {
        self.born += 1;
        let key = format!("k{:x}", self.born.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if cursed_one_of > 0 && self.born.is_multiple_of(cursed_one_of) {
            self.cursed.insert(key.clone());
        }
        self.set(&key, Some(Entry { at, version: 0 }));
    }

    fn change(&mut self, nature: &Nature) {
        if self.next().is_multiple_of(2) {
            self.now += 1;
        }
        match self.next() % 4 {
            0 => self.insert(self.now, nature.cursed_one_of),
            // Without a version in the list, two edits at one time look the same.
            1 | 2 => {
                if !nature.versions {
                    self.now += 1;
                }
                if let Some(key) = self.some_key() {
                    let version = self.items[&key].version + 1;
                    self.set(&key, Some(Entry { at: self.now, version }));
                }
            }
            _ => {
                if let Some(key) = self.some_key() {
                    self.set(&key, None);
                }
            }
        }
    }
}

impl Provider {
    pub(crate) fn new(nature: Nature) -> Self {
        let mut inner = Inner {
            random: nature.seed | 1,
            now: nature.times,
            born: 0,
            items: BTreeMap::new(),
            order: BTreeMap::new(),
            seed: nature.seed,
            cursed: BTreeSet::new(),
            mood: Mood::default(),
            open_circuit: 0,
            details_are_down: false,
            find_it_open: BTreeSet::new(),
            throttled: 0,
            tombstones: nature.tombstones,
            backwards: false,
            lists: 0,
            details: 0,
            sent: Vec::new(),
        };
        for _ in 0..nature.history {
            let at = inner.next() % nature.times.max(1) + 1;
            inner.insert(at, nature.cursed_one_of);
        }
        Self { nature, inner: Mutex::new(inner) }
    }

    /// A calm provider with these items.
    pub(crate) fn of(items: &[(u64, &str)]) -> Self {
        let nature = Nature {
            seed: 1,
            history: 0,
            times: 0,
            page: 10,
            filters: true,
            versions: false,
            tombstones: false,
            cursed_one_of: 0,
        };
        let provider = Self::new(nature);
        for (at, key) in items {
            provider.put(*at, key);
        }
        provider
    }

    pub(crate) fn put(&self, at: u64, key: &str) {
        let mut inner = self.inner.lock().unwrap();
        let version = inner.items.get(key).map_or(0, |entry| entry.version + 1);
        inner.set(key, Some(Entry { at, version }));
    }

    pub(crate) fn curse(&self, key: &str) {
        self.inner.lock().unwrap().cursed.insert(key.to_owned());
    }

    pub(crate) fn bless(&self) {
        self.inner.lock().unwrap().cursed.clear();
    }

    pub(crate) fn delete(&self, key: &str) {
        self.inner.lock().unwrap().set(key, None);
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        let mut inner = self.inner.lock().unwrap();
        (inner.mood, inner.open_circuit) = (mood, 0);
    }

    /// The circuit opens for so many requests.
    pub(crate) fn open_circuit(&self, requests: u32) {
        self.inner.lock().unwrap().open_circuit = requests;
    }

    /// No detail is to be had: the circuit is open.
    pub(crate) fn open_circuit_for_details(&self, open: bool) {
        self.inner.lock().unwrap().details_are_down = open;
    }

    /// The next request for each of these finds the circuit open.
    pub(crate) fn open_circuit_once_for(&self, keys: Vec<String>) {
        self.inner.lock().unwrap().find_it_open = keys.into_iter().collect();
    }

    /// All details are refused, or none.
    pub(crate) fn throttle(&self, all: bool) {
        self.throttle_next(if all { u64::MAX } else { 0 });
    }

    /// So many details are refused.
    pub(crate) fn throttle_next(&self, details: u64) {
        self.inner.lock().unwrap().throttled = details;
    }

    pub(crate) fn answer_with_tombstones(&self, tombstones: bool) {
        self.inner.lock().unwrap().tombstones = tombstones;
    }

    /// The list comes oldest first.
    pub(crate) fn list_backwards(&self) {
        self.inner.lock().unwrap().backwards = true;
    }

    pub(crate) fn change(&self, times: u64) {
        let mut inner = self.inner.lock().unwrap();
        for _ in 0..times {
            inner.change(&self.nature);
        }
    }

    pub(crate) fn random(&self, below: u64) -> u64 {
        self.inner.lock().unwrap().next() % below
    }

    pub(crate) fn items(&self) -> BTreeMap<String, Entry> {
        self.inner.lock().unwrap().items.clone()
    }

    /// The items of one time.
    pub(crate) fn items_at(&self, at: u64) -> Vec<(String, Entry)> {
        let inner = self.inner.lock().unwrap();
        let tied = inner.order.range((Reverse(at), 0)..=(Reverse(at), u64::MAX));
        tied.map(|(_, key)| (key.clone(), inner.items[key])).collect()
    }

    pub(crate) fn version_of(&self, entry: Entry) -> Option<String> {
        self.nature.versions.then(|| entry.version.to_string())
    }

    /// How many lists and details were asked for since the last time, and which details.
    pub(crate) fn requests(&self) -> (u64, u64, Vec<String>) {
        let mut inner = self.inner.lock().unwrap();
        let sent = std::mem::take(&mut inner.sent);
        (std::mem::take(&mut inner.lists), std::mem::take(&mut inner.details), sent)
    }

    /// Whether this request is refused, and what changes meanwhile.
    fn meet(&self, inner: &mut Inner) -> Result<(), FetchError> {
        if inner.chance(inner.mood.changes) {
            inner.change(&self.nature);
        }
        if inner.open_circuit > 0 {
            inner.open_circuit -= 1;
            return Err(FetchError::new(FetchErrorKind::CircuitOpen, "open"));
        }
        if inner.chance(inner.mood.refusals) {
            let kind = match inner.next() % 5 {
                0 | 1 => FetchErrorKind::Pressure(PressureReason::RateLimited),
                2 => FetchErrorKind::Temporary,
                3 => FetchErrorKind::Deferred(DeferReason::Attempts),
                _ => {
                    inner.open_circuit = u32::try_from(inner.next() % 6).unwrap();
                    FetchErrorKind::CircuitOpen
                }
            };
            return Err(FetchError::new(kind, "refused"));
        }
        Ok(())
    }
}

impl Source for Provider {
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        let mut inner = self.inner.lock().unwrap();
        inner.lists += 1;
        self.meet(&mut inner)?;
        let after = at.page.as_ref().map(|token| {
            let (time, hash) = token.split_once('.').unwrap();
            (Reverse(time.parse::<u64>().unwrap()), hash.parse::<u64>().unwrap())
        });
        let asked = at.at_or_older_than.as_ref().filter(|_| self.nature.filters);
        let first = match (&after, asked) {
            (Some(after), _) => Bound::Excluded(*after),
            (None, Some(at)) => Bound::Included((Reverse(at.as_str().parse::<u64>().unwrap()), 0)),
            (None, None) => Bound::Unbounded,
        };
        let mut places = inner.order.range((first, Bound::Unbounded));
        let page = places.by_ref().take(self.nature.page).collect::<Vec<_>>();
        let left = u64::try_from(places.count()).unwrap();
        let next = page.last().filter(|_| left > 0).map(|((time, hash), _)| format!("{}.{hash}", time.0));
        let item = |key: &String| {
            let entry = inner.items[key];
            let locator = RawJson::new(format!("{{\"at\":\"{key}\"}}")).unwrap();
            let item = ListItem::new(key.clone(), entry.at).record(&body(key, entry)).locator(locator);
            match self.version_of(entry) {
                Some(version) => item.version(version),
                None => item,
            }
        };
        let mut items = page.iter().map(|(_, key)| item(key)).collect::<Vec<_>>();
        if inner.backwards {
            items.reverse();
        }
        Ok(ListPage { items, next, left: Some(left) })
    }

    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        let mut inner = self.inner.lock().unwrap();
        inner.details += 1;
        inner.sent.push(target.key.clone());
        self.meet(&mut inner)?;
        if inner.details_are_down || inner.find_it_open.remove(&target.key) {
            return Err(FetchError::new(FetchErrorKind::CircuitOpen, "open"));
        }
        if inner.throttled > 0 {
            inner.throttled -= 1;
            return Err(FetchError::of_status(429));
        }
        if inner.cursed.contains(&target.key) {
            // A cause that may pass is never given up, so that nothing would ever settle.
            return Err(FetchError::of_status(404));
        }
        match inner.items.get(&target.key) {
            Some(entry) => Ok(Detail::new().record(target.key.as_str(), &body(&target.key, *entry))),
            None if inner.tombstones => {
                let (items, details) = ("items", "details");
                let key = target.key.as_str();
                Ok(Detail::new().tombstone_of(items, key).tombstone_of(details, key))
            }
            None => Err(FetchError::of_status(404)),
        }
    }
}

/// The detail of an item, as it is stored.
pub(crate) fn text(key: &str, entry: Entry) -> String {
    format!("{{\"at\":{},\"id\":\"{key}\",\"v\":{}}}", entry.at, entry.version)
}

pub(crate) fn body(key: &str, entry: Entry) -> serde_json::Value {
    serde_json::from_str(&text(key, entry)).unwrap()
}

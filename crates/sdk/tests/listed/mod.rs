//! The meaning of a cursor and a backlog, read from their JSON and written anew here, so that a mistake in the
//! lane is not made twice.

use crate::provider::{Entry, Provider};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) struct Listed<'p> {
    provider: &'p Provider,
    /// How many items the times have that were asked about, and the sum of their hashes.
    groups: RefCell<BTreeMap<u64, (u64, u64)>>,
}

fn hash(key: &str, version: Option<&str>) -> u64 {
    let mut text = (key.len() as u64).to_le_bytes().to_vec();
    text.extend_from_slice(key.as_bytes());
    if let Some(version) = version {
        text.push(1);
        text.extend_from_slice(version.as_bytes());
    }
    xxh3_64(&text)
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

impl<'p> Listed<'p> {
    pub(crate) const fn by(provider: &'p Provider) -> Self {
        Self { provider, groups: RefCell::new(BTreeMap::new()) }
    }

    fn hash_of(&self, key: &str, entry: Entry) -> u64 {
        hash(key, self.provider.version_of(entry).as_deref())
    }

    fn group(&self, at: u64) -> (u64, u64) {
        *self.groups.borrow_mut().entry(at).or_insert_with(|| {
            let tied = self.provider.items_at(at);
            let sum = tied.iter().fold(0_u64, |sum, (key, entry)| sum.wrapping_add(self.hash_of(key, *entry)));
            (tied.len() as u64, sum)
        })
    }

    /// Whether ties account for an item of their time.
    fn is_tie(&self, ties: &Value, key: &str, entry: Entry) -> bool {
        match ties {
            Value::Null => false,
            Value::Array(known) => {
                let own = format!("{:016x}", self.hash_of(key, entry));
                known.iter().any(|known| known.as_str().unwrap() == own)
            }
            told => {
                let (count, sum) = self.group(entry.at);
                told["count"] == count && told["sum"].as_str().unwrap() == format!("{sum:016x}")
            }
        }
    }

    fn is_above(&self, floor: &Value, key: &str, entry: Entry) -> bool {
        if floor.is_null() {
            return true;
        }
        let at = number(&floor["at"]);
        entry.at > at || (entry.at == at && !self.is_tie(&floor["ties"], key, entry))
    }

    fn is_after(place: &Value, key: &str, entry: Entry) -> bool {
        if place.is_null() {
            return true;
        }
        let at = number(&place["at"]);
        entry.at < at || (entry.at == at && key > place["key"].as_str().unwrap())
    }

    /// Whether an item is in a range of a backlog.
    pub(crate) fn is_in(&self, range: &Value, key: &str, entry: Entry) -> bool {
        Self::is_after(&range["from"], key, entry) && self.is_above(&range["to"], key, entry)
    }

    /// Whether a cursor says that an item is accounted for.
    pub(crate) fn is_behind(&self, cursor: &Value, key: &str, entry: Entry) -> bool {
        if cursor["high"].is_null() {
            return false;
        }
        let high = number(&cursor["high"]);
        let below = entry.at < high || (entry.at == high && self.is_tie(&cursor["ties"], key, entry));
        let walk = &cursor["walk"];
        let in_walk =
            !walk.is_null() && Self::is_after(&walk["low"], key, entry) && self.is_above(&walk["floor"], key, entry);
        below && !in_walk
    }
}

//! Accounted items of one time, in bounded space.
//!
//! A cursor that ends at a time must know which items of that time were seen, because new ones may have the same
//! time. It stores a hash of each; when there are too many, their number and the sum of their hashes: then a change
//! is detected, and the whole group is read again. A new item is never skipped.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum of single ties: 4 KiB of cursor. Larger groups come from bulk imports.
const TIES_MAX: usize = 256;

/// The ties at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Ties {
    /// The hash of each, sorted.
    Known(Vec<Hash>),
    /// Too many to keep.
    Sum {
        /// Their number.
        count: u64,
        /// The sum of their hashes.
        sum: Hash,
    },
}

/// A hash, written as 16 digits: not every JSON parser keeps numbers of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Hash(u64);

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        format!("{:016x}", hash.0)
    }
}

impl TryFrom<String> for Hash {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Self)
    }
}

impl Hash {
    /// The hash of an item: its key and, if the list has one, its version.
    pub(crate) fn of_item(key: &str, version: Option<&str>) -> Self {
        let mut text = Vec::with_capacity(key.len() + version.map_or(0, str::len) + 9);
        text.extend_from_slice(&(key.len() as u64).to_le_bytes());
        text.extend_from_slice(key.as_bytes());
        if let Some(version) = version {
            text.push(1);
            text.extend_from_slice(version.as_bytes());
        }
        Self(xxh3_64(&text))
    }
}

impl Default for Ties {
    fn default() -> Self {
        Self::Known(Vec::new())
    }
}

impl Ties {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Known(known) if known.is_empty())
    }

    /// Whether an item is known.
    pub(crate) fn knows(&self, hash: Hash) -> bool {
        matches!(self, Self::Known(known) if known.binary_search(&hash).is_ok())
    }

    /// The common ones, or none if that is unknown.
    pub(crate) fn both(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(_)) => {
                Self::Known(a.iter().copied().filter(|hash| other.knows(*hash)).collect())
            }
            _ if self == other => self.clone(),
            _ => Self::default(),
        }
    }
}

/// The ties of a group being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    known: BTreeSet<Hash>,
    count: u64,
    sum: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, hash: Hash) {
        let is_new = if self.known.len() <= TIES_MAX { self.known.insert(hash) } else { !self.known.contains(&hash) };
        if is_new {
            self.count += 1;
            self.sum = self.sum.wrapping_add(hash.0);
        }
    }

    pub(crate) fn ties(&self) -> Ties {
        if self.known.len() <= TIES_MAX {
            return Ties::Known(self.known.iter().copied().collect());
        }
        Ties::Sum { count: self.count, sum: Hash(self.sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ties(keys: impl IntoIterator<Item = usize>) -> Ties {
        let mut tally = Tally::default();
        keys.into_iter().for_each(|key| tally.add(Hash::of_item(&key.to_string(), None)));
        tally.ties()
    }

    #[test]
    fn few_ties_are_known_one_by_one_and_many_by_their_sum() {
        let few = ties(0..TIES_MAX);
        assert!(
            few.knows(Hash::of_item("7", None)) && !few.knows(Hash::of_item("7", Some("2"))),
            "a version is a part of it"
        );
        let many = ties(0..TIES_MAX + 1);
        assert!(matches!(many, Ties::Sum { count, .. } if count == TIES_MAX as u64 + 1));
        assert!(!many.knows(Hash::of_item("7", None)), "unknown, not absent");
        assert_eq!(many, ties((0..TIES_MAX + 1).rev()), "the order does not matter");
        assert_ne!(many, ties(1..TIES_MAX + 2));
    }

    #[test]
    fn ties_are_read_back_as_they_were_written() {
        for ties in [Ties::default(), ties(0..5), ties(0..1000)] {
            let text = serde_json::to_string(&ties).unwrap();
            assert!(text.len() < 5 * 1024, "{}", text.len());
            assert_eq!(serde_json::from_str::<Ties>(&text).unwrap(), ties);
        }
    }

    #[test]
    fn what_two_groups_have_in_common_is_never_too_much() {
        assert_eq!(ties(0..5).both(&ties(3..9)), ties(3..5));
        assert_eq!(ties(0..500).both(&ties(3..9)), Ties::default());
        assert_eq!(ties(0..500).both(&ties(0..500)), ties(0..500));
    }
}

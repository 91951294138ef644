//! Positions in a list: newest first, ties by key.
//!
//! Why a pair and not a time: providers give many items the same time, and a cursor of a time alone either repeats
//! all of them or loses some. Why not an offset: it is meaningless after a change of the list. A position consists of
//! an item's own values, so it stays valid.

use super::ties::Ties;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The sort time of a list, as text that sorts like the time: RFC 3339 in UTC with a fixed number of digits, or a
/// number with leading zeros. Compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// A time in sortable form.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A number, padded with zeros to the maximum number of digits.
impl From<u64> for Timestamp {
    fn from(number: u64) -> Self {
        Self(format!("{number:020}"))
    }
}

/// A position in a list. Smaller is earlier in the list, which is newer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) at: Timestamp,
    /// Empty for the position before all items of that time.
    pub(crate) key: String,
}

impl Position {
    pub(crate) fn new(at: &Timestamp, key: &str) -> Self {
        Self { at: at.clone(), key: key.to_owned() }
    }

    /// The position before all items of a time.
    pub(crate) fn before(at: &Timestamp) -> Self {
        Self::new(at, "")
    }

    /// Whether an item comes after this position.
    pub(crate) fn is_before(&self, at: &Timestamp, key: &str) -> bool {
        order((&self.at, &self.key), (at, key)) == Ordering::Less
    }
}

/// Newest first, ties by key.
pub(crate) fn order(a: (&Timestamp, &str), b: (&Timestamp, &str)) -> Ordering {
    b.0.cmp(a.0).then_with(|| a.1.cmp(b.1))
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        order((&self.at, &self.key), (&other.at, &other.key))
    }
}

/// Start of the accounted part: everything older than this time, and the named ties at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Floor {
    pub(crate) at: Timestamp,
    #[serde(default, skip_serializing_if = "Ties::is_none")]
    pub(crate) ties: Ties,
}

impl Floor {
    /// A floor without accounted items at its own time.
    pub(crate) fn under(at: &Timestamp) -> Self {
        Self { at: at.clone(), ties: Ties::default() }
    }

    /// The lower of two floors.
    fn lower(a: &Self, b: &Self) -> Self {
        match a.at.cmp(&b.at) {
            Ordering::Less => a.clone(),
            Ordering::Greater => b.clone(),
            Ordering::Equal => Self { at: a.at.clone(), ties: a.ties.both(&b.ties) },
        }
    }
}

/// An unaccounted part of a list: everything after one position, down to a floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    /// `None` for the top of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Position>,
    /// `None` for the end of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Floor>,
}

impl Range {
    /// Whether no accounted item is between this range and an older one, so that they can merge.
    pub(crate) fn reaches(&self, older: &Self) -> bool {
        match (&self.to, &older.from) {
            (None, _) | (_, None) => true,
            (Some(to), Some(from)) => from.at > to.at || (from.at == to.at && from.key.is_empty()),
        }
    }

    /// Merges this range, an older one, and everything between.
    pub(crate) fn joined(&self, older: &Self) -> Self {
        let to = match (&self.to, &older.to) {
            (Some(a), Some(b)) => Some(Floor::lower(a, b)),
            _ => None,
        };
        Self { from: self.from.clone(), to }
    }

    /// Splits it into the part with `since ≤ time < until` and the rest. The first is walked with the same `until`.
    /// An item at a border may be in both: it is checked twice and never lost.
    pub(crate) fn within(self, since: Option<&Timestamp>, until: Option<&Timestamp>) -> (Option<Self>, Vec<Self>) {
        let from = self.from.as_ref().map(|from| &from.at);
        let to = self.to.as_ref().map(|to| &to.at);
        let reaches_above = until.is_some_and(|until| from.is_none_or(|from| from >= until));
        let is_above = reaches_above && to.is_some_and(|to| until.is_some_and(|until| to >= until));
        let is_below = since.is_some_and(|since| from.is_some_and(|from| from < since));
        if is_above || is_below {
            return (None, vec![self]);
        }
        let reaches_below = since.is_some_and(|since| to.is_none_or(|to| to < since));
        let mut outside = Vec::new();
        if let Some(until) = until.filter(|_| reaches_above) {
            outside.push(Self { from: self.from.clone(), to: Some(Floor::under(until)) });
        }
        let mut inside = self;
        if let Some(since) = since.filter(|_| reaches_below) {
            outside.push(Self { from: Some(Position::before(since)), to: inside.to.take() });
            inside.to = Some(Floor::under(since));
        }
        (Some(inside), outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Timestamp {
        Timestamp::from(number)
    }

    fn range(from: (u64, &str), to: u64) -> Range {
        Range { from: Some(Position::new(&at(from.0), from.1)), to: Some(Floor::under(&at(to))) }
    }

    #[test]
    fn newest_first_and_ties_by_key() {
        let mut places = [(1, "a"), (2, "b"), (2, "a"), (10, "z")].map(|(n, key)| Position::new(&at(n), key));
        places.sort();
        assert_eq!(places.map(|place| place.key), ["z", "a", "b", "a"]);
        assert!(Position::before(&at(2)).is_before(&at(2), "a"));
        assert!(!Position::new(&at(2), "a").is_before(&at(2), "a"), "exclusive");
    }

    #[test]
    fn ranges_that_touch_are_one_and_others_are_two() {
        assert!(range((9, ""), 5).reaches(&range((5, ""), 1)), "they touch");
        assert!(range((9, ""), 5).reaches(&range((6, "k"), 1)), "they overlap");
        assert!(!range((9, ""), 5).reaches(&range((4, ""), 1)));
        assert!(!range((9, ""), 5).reaches(&range((5, "k"), 1)), "up to k is accounted for");
    }

    #[test]
    fn a_joined_range_leaves_nothing_out() {
        let joined = range((9, ""), 5).joined(&range((4, "k"), 1));
        assert_eq!(joined, range((9, ""), 1));
        let open = Range { to: None, ..range((4, ""), 1) };
        assert_eq!(range((9, ""), 5).joined(&open).to, None, "the end of the list is lower than any floor");
        assert_eq!(range((9, ""), 1).joined(&range((8, ""), 5)).to, range((9, ""), 1).to, "one within the other");
    }

    #[test]
    fn a_range_is_parted_at_the_borders_of_what_was_asked_for() {
        let (since, until) = (at(3), at(7));
        let parts = |range: Range| range.within(Some(&since), Some(&until));
        assert_eq!(parts(range((6, ""), 4)), (Some(range((6, ""), 4)), vec![]));
        assert_eq!(parts(range((9, ""), 7)), (None, vec![range((9, ""), 7)]));
        assert_eq!(parts(range((2, "k"), 1)), (None, vec![range((2, "k"), 1)]));
        let both = parts(range((9, "k"), 1));
        assert_eq!(both, (Some(range((9, "k"), 3)), vec![range((9, "k"), 7), range((3, ""), 1)]));
        let all = Range { from: None, to: None };
        assert_eq!(all.clone().within(None, None), (Some(all.clone()), vec![]));
        let (inside, outside) = all.within(Some(&since), None);
        assert_eq!(inside, Some(Range { from: None, to: Some(Floor::under(&since)) }));
        assert_eq!(outside, [Range { from: Some(Position::before(&since)), to: None }]);
    }
}

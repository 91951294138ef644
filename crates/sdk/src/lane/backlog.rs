//! The backlog gap: one gap for every item in some ranges of a list.
//!
//! A run that stops at its cap with 100,000 items left writes a chunk of gaps and this one. Its ranges consist of
//! items' own values, never of offsets. There is one per lane, so the remainders of several runs merge here: touching
//! ranges become one, and beyond a limit the newest two are joined with everything between, which costs a second
//! check and loses nothing.

use super::place::Range;
use gleaner_protocol::RawJson;
use serde::{Deserialize, Serialize};

/// Record key of the backlog gap. No record has it.
pub const BACKLOG_KEY: &str = "gleaner:backlog";
/// Maximum of ranges: their ties take up to 4 KiB each, and a gap should fit into a page of gaps.
const RANGES_MAX: usize = 8;
/// Kind in the locator.
const KIND: &str = "backlog";

/// Remaining ranges of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Newest first, apart from each other.
    pub(crate) ranges: Vec<Range>,
    /// Number of items, if known. For people.
    remaining: Option<u64>,
}

/// Serialized form in the gap.
#[derive(Serialize, Deserialize)]
struct Locator {
    kind: String,
    /// Id of this writing: progress on one does not count for another.
    id: String,
    ranges: Vec<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Parses a gap; returns its id too. An invalid locator represents the whole list: checking all of it again loses
    /// nothing.
    pub(crate) fn read(locator: Option<&RawJson<'_>>) -> (String, Self) {
        let read = locator.and_then(|locator| serde_json::from_str::<Locator>(locator.as_str()).ok());
        match read.filter(|locator| locator.kind == KIND) {
            Some(locator) => (locator.id, Self { ranges: locator.ranges, remaining: locator.remaining }),
            None => (String::new(), Self { ranges: vec![Range { from: None, to: None }], remaining: None }),
        }
    }

    pub(crate) fn locator(&self, id: &str) -> RawJson<'static> {
        let Self { ranges, remaining } = self.clone();
        let locator = Locator { kind: KIND.to_owned(), id: id.to_owned(), ranges, remaining };
        // Our own types always serialize.
        let text = serde_json::to_string(&locator).unwrap_or_default();
        RawJson::new(text).unwrap_or_default()
    }

    /// Takes the newest range to work on.
    pub(crate) fn take_newest(&mut self) -> Option<Range> {
        // The rest is counted again when it comes back.
        self.remaining = None;
        (!self.ranges.is_empty()).then(|| self.ranges.remove(0))
    }

    /// Adds the rest of a range.
    pub(crate) fn add(&mut self, range: Range, remaining: Option<u64>) {
        self.remaining = match (self.ranges.is_empty(), self.remaining, remaining) {
            (true, _, new) => new,
            (false, Some(old), Some(new)) => Some(old + new),
            (false, _, _) => None,
        };
        self.ranges.push(range);
        // The top of the list, which has no position, comes first.
        self.ranges.sort_by(|a, b| a.from.cmp(&b.from));
        let mut apart = Vec::<Range>::new();
        for range in std::mem::take(&mut self.ranges) {
            match apart.last_mut() {
                Some(newer) if newer.reaches(&range) => *newer = newer.joined(&range),
                _ => apart.push(range),
            }
        }
        while apart.len() > RANGES_MAX {
            let older = apart.remove(1);
            apart[0] = apart[0].joined(&older);
            self.remaining = None;
        }
        self.ranges = apart;
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::{Floor, Position};
    use super::*;

    fn range(from: u64, to: u64) -> Range {
        Range { from: Some(Position::before(&from.into())), to: Some(Floor::under(&to.into())) }
    }

    fn backlog(ranges: impl IntoIterator<Item = (u64, u64)>) -> Backlog {
        let mut backlog = Backlog::default();
        ranges.into_iter().for_each(|(from, to)| backlog.add(range(from, to), None));
        backlog
    }

    #[test]
    fn ranges_come_together_in_any_order() {
        let one = backlog([(50, 40), (90, 80), (40, 30), (85, 70)]);
        assert_eq!(one.ranges, [range(90, 70), range(50, 30)]);
        let within = backlog([(50, 10), (40, 30)]);
        assert_eq!(within.ranges, [range(50, 10)]);
    }

    #[test]
    fn too_many_ranges_are_joined_and_nothing_is_left_out() {
        let many = backlog((0..100).map(|n| (n * 10 + 5, n * 10)));
        assert_eq!(many.ranges.len(), RANGES_MAX);
        assert_eq!(many.ranges[0].from, range(995, 0).from);
        assert_eq!(many.ranges[RANGES_MAX - 1], range(5, 0), "the oldest are as they were");
        assert!(many.locator("x").as_str().len() < 4096);
    }

    #[test]
    fn it_is_read_back_from_its_gap_byte_for_byte() {
        let mut written = backlog([(50, 40), (20, 10)]);
        written.add(Range { from: Some(Position::new(&9.into(), "k\"\u{1}ü")), to: None }, None);
        let locator = written.locator("run-1.2");
        assert_eq!(Backlog::read(Some(&locator)), ("run-1.2".to_owned(), written));
    }

    #[test]
    fn a_locator_that_makes_no_sense_stands_for_the_whole_list() {
        let whole = [Range { from: None, to: None }];
        assert_eq!(Backlog::read(None).1.ranges, whole);
        for text in ["{}", "7", r#"{"kind":"other","id":"x","ranges":[]}"#, r#"{"kind":"backlog","ranges":[]}"#] {
            assert_eq!(Backlog::read(Some(&RawJson::new(text).unwrap())).1.ranges, whole, "{text}");
        }
    }

    #[test]
    fn how_many_are_left_is_said_only_when_it_is_known() {
        let mut one = Backlog::default();
        one.add(range(9, 8), Some(3));
        one.add(range(5, 4), Some(4));
        assert!(one.locator("x").as_str().contains("\"remaining\":7"));
        one.add(range(3, 2), None);
        assert!(!one.locator("x").as_str().contains("remaining"));
    }
}

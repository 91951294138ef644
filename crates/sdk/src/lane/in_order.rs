//! Turns pages into items in one total order: newest first, ties by key, from a position down to a floor.
//!
//! Why a separate state machine: providers return ties in any order and spread them over pages, lists move while they
//! are read, and not every provider can start in the middle. Everything after this file sees one total order. A group
//! of ties is gathered completely before its first item is returned. One that is too large is returned in parts: the
//! smallest keys first, then the list is read again from there, so that memory is bounded and any number of ties
//! ends. Pure: it returns the next page to fetch.

use super::place::{Floor, Position, Range, Timestamp};
use super::source::{ListAt, ListItem, ListPage};
use super::ties::{Hash, Tally, Ties};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of ties held at once, and at least one item: about 20,000 small records. A larger group costs another
/// reading of its pages per part.
const HELD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum of consecutive pages without a new item. Providers that cannot start in the middle need many; a list of
/// ten million items in pages of ten has this many, and more are a loop.
const PAGES_IN_VAIN_MAX: u32 = 1_000_000;
/// Rereads from the last item after contradicting pages before it is an error. Once is a concurrent change; a list
/// that is not newest first contradicts each time.
const RESTARTS_MAX: u32 = 3;

/// Next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Fetch this page and feed it.
    Fetch(ListAt),
    /// The next item.
    Item(ListItem),
    /// Nothing more above the floor.
    End,
}

/// Why a list cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListFault {
    #[error("the provider's list is not newest first, so seen items cannot be told from new ones")]
    NotNewestFirst,
    #[error("the provider's list does not end")]
    DoesNotEnd,
}

/// A part of a list, in order.
#[derive(Debug, Default)]
pub(crate) struct InOrder {
    /// Nothing up to here is returned: the start, then the last returned item.
    after: Option<Position>,
    /// Nothing of this time or newer is returned.
    until: Option<Timestamp>,
    floor: Option<Floor>,
    next: Next,
    /// The query of the first page: its page tokens belong to that query.
    asked: Option<Timestamp>,
    raw: VecDeque<ListItem>,
    left: Option<u64>,
    group: Option<Group>,
    ready: VecDeque<ListItem>,
    /// The group that is returned in parts continues when `ready` is empty.
    cut: bool,
    top: Option<Floor>,
    restarts: u32,
    pages_in_vain: u32,
    held_bytes_max: usize,
}

#[derive(Debug, Default)]
enum Next {
    #[default]
    First,
    Page(String),
    Nothing,
}

/// The items of one time.
#[derive(Debug)]
struct Group {
    at: Timestamp,
    tally: Tally,
    held: BTreeMap<String, ListItem>,
    bytes: usize,
    /// The smallest key without room. No key from it on is held.
    cut: Option<String>,
}

impl Group {
    fn new(at: Timestamp) -> Self {
        Self { at, tally: Tally::default(), held: BTreeMap::new(), bytes: 0, cut: None }
    }

    fn hold(&mut self, item: ListItem, bytes_max: usize) {
        if self.cut.as_ref().is_some_and(|cut| item.key >= *cut) {
            return;
        }
        self.bytes += item.bytes();
        if let Some(before) = self.held.insert(item.key.clone(), item) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
        while self.bytes > bytes_max && self.held.len() > 1 {
            let Some((key, last)) = self.held.pop_last() else { break };
            self.bytes = self.bytes.saturating_sub(last.bytes());
            self.cut = Some(key);
        }
    }
}

impl InOrder {
    /// The items of a range older than `until`.
    pub(crate) fn new(range: &Range, until: Option<&Timestamp>) -> Self {
        Self {
            after: range.from.clone(),
            until: until.cloned(),
            floor: range.to.clone(),
            held_bytes_max: HELD_BYTES_MAX,
            ..Self::default()
        }
    }

    /// The time of the newest group with all its ties, known before its first item is returned.
    pub(crate) const fn top(&self) -> Option<&Floor> {
        self.top.as_ref()
    }

    /// Number of items not yet returned, if the provider reports it. For people.
    pub(crate) fn left(&self) -> Option<u64> {
        if self.cut {
            return None;
        }
        let held = self.raw.len() + self.ready.len() + self.group.as_ref().map_or(0, |group| group.held.len());
        match self.next {
            Next::Nothing => Some(held as u64),
            Next::First | Next::Page(_) => self.left.map(|left| left + held as u64),
        }
    }

    /// Takes the requested page.
    ///
    /// # Errors
    ///
    /// The page is not newest first in itself. Pages may overlap when the list moves, but one page is one state of
    /// the list. Also when too many pages had no new item.
    pub(crate) fn feed(&mut self, page: ListPage) -> Result<(), ListFault> {
        if !page.items.is_sorted_by(|a, b| a.timestamp >= b.timestamp) {
            return Err(ListFault::NotNewestFirst);
        }
        self.pages_in_vain += 1;
        if self.pages_in_vain > PAGES_IN_VAIN_MAX {
            return Err(ListFault::DoesNotEnd);
        }
        self.raw = page.items.into();
        self.left = page.left;
        self.next = page.next.map_or(Next::Nothing, Next::Page);
        Ok(())
    }

    /// Returns the next step.
    ///
    /// # Errors
    ///
    /// The list is not newest first on every reading.
    pub(crate) fn step(&mut self) -> Result<Step, ListFault> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.after = Some(Position::new(&item.timestamp, &item.key));
                (self.restarts, self.pages_in_vain) = (0, 0);
                return Ok(Step::Item(item));
            }
            if std::mem::take(&mut self.cut) {
                self.restart();
            }
            match self.raw.pop_front() {
                Some(item) => self.take(item)?,
                None => match &self.next {
                    Next::First => {
                        let after = self.after.as_ref().map(|after| &after.at);
                        self.asked = after.or(self.until.as_ref()).cloned();
                        return Ok(Step::Fetch(ListAt { at_or_older_than: self.asked.clone(), page: None }));
                    }
                    Next::Page(token) => {
                        let page = Some(token.clone());
                        return Ok(Step::Fetch(ListAt { at_or_older_than: self.asked.clone(), page }));
                    }
                    Next::Nothing if self.group.is_none() => return Ok(Step::End),
                    Next::Nothing => self.close(),
                },
            }
        }
    }

    /// Reads the list again from the last returned item.
    fn restart(&mut self) {
        (self.next, self.group, self.left) = (Next::First, None, None);
        self.raw.clear();
    }

    fn take(&mut self, item: ListItem) -> Result<(), ListFault> {
        let at = &item.timestamp;
        let too_new = self.until.as_ref().is_some_and(|until| at >= until)
            || self.after.as_ref().is_some_and(|after| *at > after.at);
        if too_new {
            return Ok(());
        }
        if self.floor.as_ref().is_some_and(|floor| *at < floor.at) {
            self.raw.clear();
            self.next = Next::Nothing;
            return Ok(());
        }
        let is_seen = self.after.as_ref().is_some_and(|after| !after.is_before(at, &item.key));
        match self.group.as_ref().map(|group| at.cmp(&group.at)) {
            None => self.group = Some(Group::new(at.clone())),
            Some(std::cmp::Ordering::Equal) => {}
            // The group is complete, and is returned before this item is handled.
            Some(std::cmp::Ordering::Less) => {
                self.raw.push_front(item);
                self.close();
                return Ok(());
            }
            // The page repeats items of the previous one: the list has moved down.
            Some(std::cmp::Ordering::Greater) if is_seen => return Ok(()),
            Some(std::cmp::Ordering::Greater) => return self.contradiction(),
        }
        let hash = Hash::of_item(&item.key, item.version.as_deref());
        let is_known = self.floor.as_ref().is_some_and(|floor| floor.at == *at && floor.ties.knows(hash));
        if let Some(group) = &mut self.group {
            group.tally.add(hash);
            if !is_known && !is_seen {
                group.hold(item, self.held_bytes_max);
            }
        }
        Ok(())
    }

    /// An item newer than the one before that was not returned: the list has moved.
    fn contradiction(&mut self) -> Result<(), ListFault> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            return Err(ListFault::NotNewestFirst);
        }
        self.restart();
        Ok(())
    }

    /// Completes the group.
    fn close(&mut self) {
        let Some(group) = self.group.take() else { return };
        let ties = group.tally.ties();
        if self.top.is_none() {
            self.top = Some(Floor { at: group.at.clone(), ties: ties.clone() });
        }
        // Too many to know one by one, and none has changed.
        let unchanged = matches!(ties, Ties::Sum { .. })
            && self.floor.as_ref().is_some_and(|floor| floor.at == group.at && floor.ties == ties);
        if !unchanged {
            self.cut = group.cut.is_some();
            self.ready = group.held.into_values().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item((at, key): (u64, &str)) -> ListItem {
        ListItem::new(key, at)
    }

    /// Reads everything from these pages, which do not filter and whose tokens are their numbers.
    fn read(reader: &mut InOrder, pages: &[Vec<(u64, &str)>]) -> Result<Vec<String>, ListFault> {
        let mut seen = Vec::new();
        for _ in 0..10_000 {
            match reader.step()? {
                Step::Fetch(at) => {
                    let number = at.page.map_or(0, |page| page.parse::<usize>().unwrap());
                    let items = pages.get(number).into_iter().flatten().copied().map(item).collect();
                    let next = (number + 1 < pages.len()).then(|| (number + 1).to_string());
                    reader.feed(ListPage { items, next, left: None })?;
                }
                Step::Item(item) => seen.push(item.key),
                Step::End => return Ok(seen),
            }
        }
        panic!("it does not end");
    }

    fn range(from: Option<(u64, &str)>, to: Option<(u64, &[&str])>) -> Range {
        let floor = |(at, keys): (u64, &[&str])| {
            let mut tally = Tally::default();
            keys.iter().for_each(|key| tally.add(Hash::of_item(key, None)));
            Floor { at: at.into(), ties: tally.ties() }
        };
        Range { from: from.map(|(at, key)| Position::new(&at.into(), key)), to: to.map(floor) }
    }

    #[test]
    fn ties_over_several_pages_come_in_the_order_of_their_keys() {
        let pages = [vec![(9, "x"), (5, "d"), (5, "b")], vec![(5, "c")], vec![(5, "a"), (1, "z")]];
        let mut reader = InOrder::new(&range(None, None), None);
        assert_eq!(read(&mut reader, &pages).unwrap(), ["x", "a", "b", "c", "d", "z"]);
        assert_eq!(reader.top(), Some(&range(None, Some((9, &["x"]))).to.unwrap()));
    }

    #[test]
    fn it_begins_after_a_place_and_ends_at_a_floor_whose_ties_have_new_members() {
        let pages = [vec![(9, "x"), (5, "d"), (5, "b"), (5, "c"), (3, "n"), (3, "m"), (2, "l")]];
        let mut reader = InOrder::new(&range(Some((5, "b")), Some((3, &["m"]))), None);
        assert_eq!(read(&mut reader, &pages).unwrap(), ["c", "d", "n"]);
        let mut reader = InOrder::new(&range(None, Some((9, &["x"]))), None);
        assert_eq!(read(&mut reader, &pages).unwrap(), Vec::<String>::new());
        let mut reader = InOrder::new(&range(None, Some((3, &[]))), Some(&5.into()));
        assert_eq!(read(&mut reader, &pages).unwrap(), ["m", "n"], "older than 5");
    }

    #[test]
    fn a_group_that_is_too_large_to_hold_is_read_in_parts() {
        let keys = (0..1000).map(|n| format!("{:03}", n * 7 % 1000)).collect::<Vec<_>>();
        let pages = keys.chunks(30).map(|page| page.iter().map(|key| (5, key.as_str())).collect()).collect::<Vec<_>>();
        let mut reader = InOrder::new(&range(None, None), None);
        reader.held_bytes_max = 64 * item((5, "000")).bytes();
        let seen = read(&mut reader, &pages).unwrap();
        assert_eq!(seen, (0..1000).map(|n| format!("{n:03}")).collect::<Vec<_>>());
        assert!(matches!(&reader.top().unwrap().ties, Ties::Sum { count: 1000, .. }));
        let mut again = InOrder::new(&Range { from: None, to: reader.top().cloned() }, None);
        assert_eq!(read(&mut again, &pages).unwrap(), Vec::<String>::new(), "nothing has changed");
        let more = [pages, vec![vec![(5, "new")]]].concat();
        let mut again = InOrder::new(&Range { from: None, to: reader.top().cloned() }, None);
        assert_eq!(read(&mut again, &more).unwrap().len(), 1001, "something has, so all are read again");
    }

    #[test]
    fn a_small_item_does_not_take_the_place_of_a_large_one_before_it() {
        let large = item((5, "c")).record(&"x".repeat(1000));
        let mut reader = InOrder::new(&range(None, None), None);
        reader.held_bytes_max = large.bytes();
        let mut seen = Vec::new();
        loop {
            match reader.step().unwrap() {
                Step::Fetch(_) => {
                    let items = vec![item((5, "a")), large.clone(), item((5, "d"))];
                    reader.feed(ListPage { items, next: None, left: None }).unwrap();
                }
                Step::Item(item) => seen.push(item.key),
                Step::End => break,
            }
        }
        assert_eq!(seen, ["a", "c", "d"]);
    }

    #[test]
    fn what_a_page_repeats_is_given_out_once() {
        let pages = [vec![(9, "x"), (8, "y")], vec![(9, "x"), (8, "y"), (7, "z")]];
        assert_eq!(read(&mut InOrder::new(&range(None, None), None), &pages).unwrap(), ["x", "y", "z"]);
    }

    #[test]
    fn a_list_that_is_not_newest_first_is_an_error_and_nothing_is_passed_over() {
        let in_a_page = [vec![(9, "x"), (7, "z"), (8, "y")]];
        assert_eq!(read(&mut InOrder::new(&range(None, None), None), &in_a_page), Err(ListFault::NotNewestFirst));
        let between = [vec![(9, "x"), (7, "z")], vec![(8, "y")]];
        assert_eq!(read(&mut InOrder::new(&range(None, None), None), &between), Err(ListFault::NotNewestFirst));
    }

    #[test]
    fn a_list_that_goes_round_ends_with_an_error() {
        let mut reader = InOrder::new(&range(Some((5, "")), None), None);
        let ring = || ListPage { items: vec![item((9, "x"))], next: Some("same".to_owned()), left: None };
        let fault = (0..=PAGES_IN_VAIN_MAX).find_map(|_| reader.step().and_then(|_| reader.feed(ring())).err());
        assert_eq!(fault, Some(ListFault::DoesNotEnd));
    }

    proptest! {
        /// Whatever the pages, the place and the floor: exactly what lies between, once, in order.
        #[test]
        fn every_item_between_place_and_floor_comes_once_and_in_order(
            times in proptest::collection::vec(0_u64..12, 0..80),
            page in 1_usize..9,
            held in 1_usize..5,
            from in proptest::option::of((0_u64..13, 0_usize..80)),
            to in proptest::option::of(0_u64..13),
        ) {
            let keys = (0..times.len()).map(|n| format!("{:02}", n * 31 % 80)).collect::<Vec<_>>();
            let mut list = times.iter().copied().zip(keys.iter().map(String::as_str)).collect::<Vec<_>>();
            list.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            let pages = list.chunks(page).map(<[_]>::to_vec).collect::<Vec<_>>();
            let from = from.map(|(at, key)| (at, format!("{key:02}")));
            let from = from.as_ref().map(|(at, key)| (*at, key.as_str()));
            let mut reader = InOrder::new(&range(from, to.map(|to| (to, &[] as &[&str]))), None);
            reader.held_bytes_max = held * item((5, "00")).bytes();
            let seen = read(&mut reader, &pages).unwrap();
            let mut expected = list.iter().map(|(at, key)| Position::new(&(*at).into(), key)).collect::<Vec<_>>();
            expected.sort();
            expected.retain(|place| {
                from.is_none_or(|(at, key)| Position::new(&at.into(), key) < *place)
                    && to.is_none_or(|to| place.at >= to.into())
            });
            prop_assert_eq!(seen, expected.into_iter().map(|place| place.key).collect::<Vec<_>>());
        }
    }
}

//! How the list is walked, though the service counts places: `offset` and `limit`.
//!
//! A count means nothing once the list has moved. So each page begins one item before the end of the last: if that
//! item is there, nothing moved. If something newer is there, items came in above, and what was seen is left out. If
//! it is not there, items above are gone, those below moved up, and the walk steps back until it finds its place
//! again. Nothing is stepped over, whatever is deleted meanwhile. Pure.

use super::parse::{ListAnswer, Listed};
use serde::{Deserialize, Serialize};

/// Items that are asked for at once: what the service allows at most.
pub(super) const LIMIT: usize = 100;

/// Where a walk is. It goes to the lane and comes back as text, within one walk only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// How many places of the list are behind us.
    offset: usize,
    /// The last item that was seen: its time and its id.
    last: Option<(String, String)>,
}

/// What an answer means for the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// New items, and where to go on; `None` at the end.
    Page(Vec<Listed>, Option<Place>),
    /// The list moved up: ask for this offset instead.
    StepBack(usize),
}

impl Place {
    /// From the text that the lane kept. What is none begins at the top, where nothing is lost.
    pub(super) fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The offset to ask for: the last item again, as a mark.
    pub(super) const fn ask(&self) -> usize {
        self.offset.saturating_sub(1)
    }

    /// What an answer to `offset` means.
    pub(super) fn turn(&self, offset: usize, answer: ListAnswer) -> Turn {
        let got = answer.items.len() + answer.unreadable;
        let items = match &self.last {
            Some(last) if offset > 0 && has_moved_up(last, &answer.items) => {
                return Turn::StepBack(offset.saturating_sub(LIMIT));
            }
            Some((time, id)) => {
                answer.items.into_iter().filter(|item| item.updated <= *time && item.id != *id).collect::<Vec<_>>()
            }
            None => answer.items,
        };
        let limit = answer.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIMIT).min(LIMIT);
        let all = answer.total.and_then(|total| usize::try_from(total).ok());
        let is_short = got < limit && all.is_none_or(|all| offset + got >= all);
        // A mark and nothing behind it is the end, whatever the counts say.
        let is_end = is_short || got <= usize::from(offset > 0);
        let last = items.last().map(|item| (item.updated.clone(), item.id.clone())).or_else(|| self.last.clone());
        Turn::Page(items, (!is_end).then_some(Self { offset: offset + got, last }))
    }
}

/// Whether a page begins below the last item that was seen, so that some may have slipped past us.
fn has_moved_up((time, id): &(String, String), items: &[Listed]) -> bool {
    items.first().is_none_or(|first| first.updated < *time || (first.updated == *time && first.id != *id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn item(number: usize) -> Listed {
        Listed { id: format!("c{number:03}"), updated: format!("{:05}", 10_000 - number), record: Value::Null }
    }

    /// A service that holds these, newest first, at most `cap` on a page.
    fn answer(held: &[usize], offset: usize, cap: usize) -> ListAnswer {
        let items = held.iter().skip(offset).take(cap.min(LIMIT)).map(|number| item(*number)).collect();
        ListAnswer { items, total: Some(held.len() as u64), limit: Some(cap as u64), unreadable: 0 }
    }

    /// Walks the whole list; `change` is called before each request with its number.
    fn walk(held: &mut Vec<usize>, cap: usize, mut change: impl FnMut(usize, &mut Vec<usize>)) -> (Vec<usize>, usize) {
        let (mut place, mut seen, mut requests) = (Place::default(), Vec::new(), 0);
        loop {
            let mut offset = place.ask();
            let (items, next) = loop {
                change(requests, held);
                requests += 1;
                assert!(requests < 200, "it comes to an end");
                match place.turn(offset, answer(held, offset, cap)) {
                    Turn::Page(items, next) => break (items, next),
                    Turn::StepBack(to) => offset = to,
                }
            };
            seen.extend(items.iter().map(|item| item.id[1..].parse::<usize>().unwrap()));
            match next {
                Some(next) => place = Place::read(Some(&next.write())),
                None => return (seen, requests),
            }
        }
    }

    #[test]
    fn a_list_at_rest_is_read_once_in_its_order() {
        for (count, cap) in [(0, 10), (1, 10), (10, 10), (11, 10), (250, 100), (60, 20), (3, 1)] {
            let (seen, requests) = walk(&mut (0..count).collect(), cap.max(2), |_, _| {});
            assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{count} in pages of {cap}");
            assert!(requests <= count / (cap.max(2) - 1) + 2, "{count} in pages of {cap}: {requests}");
        }
    }

    #[test]
    fn what_is_deleted_above_hides_nothing_below() {
        // Whichever request it comes before, and however many are gone.
        for (before, gone) in (1..6).flat_map(|before| [1, 2, 9, 25].map(|gone| (before, gone))) {
            let (seen, _) = walk(&mut (0..60).collect(), 10, |request, held| {
                if request == before {
                    drop(held.drain(..gone));
                }
            });
            let missed = (gone..60).filter(|number| !seen.contains(number)).collect::<Vec<_>>();
            assert_eq!(missed, Vec::<usize>::new(), "{gone} gone before request {before}");
        }
    }

    #[test]
    fn what_comes_in_above_is_not_seen_twice_and_does_not_end_the_walk() {
        let (seen, _) = walk(&mut (100..160).collect(), 10, |request, held| {
            if request == 2 {
                held.splice(0..0, 0..35);
            }
        });
        assert_eq!(seen, (100..160).collect::<Vec<_>>(), "what is newer is for the next run");
    }

    #[test]
    fn counts_that_lie_do_not_end_the_walk_early() {
        let held = (0..30).collect::<Vec<_>>();
        for total in [None, Some(0), Some(5), Some(1000)] {
            let (mut place, mut seen) = (Place::default(), 0);
            for _ in 0..50 {
                let told = ListAnswer { total, ..answer(&held, place.ask(), 10) };
                let Turn::Page(items, next) = place.turn(place.ask(), told) else { panic!("nothing moved") };
                seen += items.len();
                match next {
                    Some(next) => place = next,
                    None => break,
                }
            }
            assert_eq!(seen, 30, "{total:?}");
        }
    }
}

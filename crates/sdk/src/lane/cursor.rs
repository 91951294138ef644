//! The cursor of a lane: the accounted part of the list, and the work in progress.
//!
//! Everything at or older than `high` is accounted for, except the range in `walk`. A run that is killed during a
//! walk resumes it from here and repeats one batch at most. `drain` is the progress on a backlog gap since it was
//! written. Fields of others on the same cursor are kept.

use super::backlog::Backlog;
use super::place::{Floor, Position, Range, Timestamp};
use super::ties::Ties;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The accounted part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// The newest accounted time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high: Option<Timestamp>,
    /// The accounted items of that time.
    #[serde(default, skip_serializing_if = "Ties::is_none")]
    ties: Ties,
    /// An unfinished walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    walk: Option<Walk>,
    /// A backlog gap in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drain: Option<Drain>,
}

/// The rest of a walk: everything after `low`, down to the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Walk {
    low: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<Floor>,
}

/// The rest of a backlog gap, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drain {
    of: String,
    ranges: Vec<Range>,
}

impl Cursor {
    /// Parses it. An invalid one counts as absent: everything is checked again, and nothing is lost.
    pub(crate) fn read(cursor: Option<&Map<String, Value>>) -> Self {
        let cursor = cursor.cloned().map(Value::Object);
        cursor.and_then(|cursor| serde_json::from_value(cursor).ok()).unwrap_or_default()
    }

    pub(crate) fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            // Never: it serializes as an object.
            _ => Map::new(),
        }
    }

    /// Whether it is empty.
    pub(crate) fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    /// Start of the accounted part, if any.
    pub(crate) fn floor(&self) -> Option<Floor> {
        self.high.as_ref().map(|at| Floor { at: at.clone(), ties: self.ties.clone() })
    }

    /// The rest of an unfinished walk.
    pub(crate) fn unfinished(&self) -> Option<Range> {
        let walk = self.walk.as_ref()?;
        Some(Range { from: Some(walk.low.clone()), to: walk.floor.clone() })
    }

    /// A walk from the top began: it accounts for everything up to its top. If the newest items were deleted, the top
    /// is older than the cursor, which stays.
    pub(crate) fn raise(&mut self, top: &Floor) {
        if self.high.as_ref().is_none_or(|high| *high <= top.at) {
            (self.high, self.ties) = (Some(top.at.clone()), top.ties.clone());
        }
    }

    /// A walk reached this position.
    pub(crate) fn walked_to(&mut self, low: Position, floor: Option<Floor>) {
        self.walk = Some(Walk { low, floor });
    }

    /// The walk is over: it reached its end, or a backlog gap represents its rest.
    pub(crate) fn finish_walk(&mut self) {
        self.walk = None;
    }

    /// The rest of a backlog gap: as written, or less if it is in progress.
    pub(crate) fn left_of(&self, id: &str, written: Backlog) -> Backlog {
        match self.drain.as_ref().filter(|drain| drain.of == id && !id.is_empty()) {
            None => written,
            Some(drain) => {
                let mut left = Backlog::default();
                drain.ranges.iter().for_each(|range| left.add(range.clone(), None));
                left
            }
        }
    }

    /// A backlog gap was processed down to this.
    pub(crate) fn drained_to(&mut self, id: &str, left: &Backlog, current: Option<Range>) {
        let mut all = left.clone();
        if let Some(range) = current {
            all.add(range, None);
        }
        self.drain = Some(Drain { of: id.to_owned(), ranges: all.ranges });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(at: u64) -> Floor {
        Floor::under(&at.into())
    }

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
        let mut cursor = Cursor::default();
        assert!(cursor.to_map().is_empty());
        cursor.raise(&floor(9));
        cursor.walked_to(Position::new(&5.into(), "k"), Some(floor(2)));
        cursor.drained_to("r.1", &Backlog::default(), Some(Range { from: None, to: Some(floor(1)) }));
        assert_eq!(Cursor::read(Some(&cursor.to_map())), cursor);
        cursor.finish_walk();
        assert_eq!(cursor.unfinished(), None);
    }

    #[test]
    fn fields_of_others_are_left_alone_and_nonsense_is_no_cursor() {
        let map = |text| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let with_pace = map(r#"{"high":"00000000000000000009","pacing_interval_ms":250}"#);
        assert_eq!(Cursor::read(Some(&with_pace)).floor(), Some(floor(9)));
        for text in ["{}", r#"{"high":7}"#, r#"{"walk":{}}"#] {
            assert_eq!(Cursor::read(Some(&map(text))), Cursor::default(), "{text}");
        }
    }

    #[test]
    fn the_cursor_never_goes_back_when_the_newest_are_deleted() {
        let mut cursor = Cursor::default();
        cursor.raise(&floor(9));
        cursor.raise(&floor(3));
        assert_eq!(cursor.floor(), Some(floor(9)));
    }

    #[test]
    fn what_was_drained_of_one_writing_is_not_drained_of_another() {
        let mut cursor = Cursor::default();
        let mut written = Backlog::default();
        written.add(Range { from: None, to: None }, None);
        cursor.drained_to("r.1", &Backlog::default(), None);
        assert!(cursor.left_of("r.1", written.clone()).is_empty());
        assert_eq!(cursor.left_of("r.2", written.clone()), written);
        cursor.drained_to("", &Backlog::default(), None);
        assert_eq!(cursor.left_of("", written.clone()), written, "a locator without a name is always whole");
    }
}

//! Pages of long lists: at most so many rows, and from where the next one goes on.

use crate::problem::Problem;
use gleaner_store::PAGE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Rows of a page where nobody says how many.
const LIMIT_DEFAULT: usize = 100;
/// The most rows of a page.
pub(crate) const LIMIT_MAX: usize = 500;

/// A page.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T, N> {
    items: Vec<T>,
    /// From where the next page goes on; absent after the last row. It may lead to an empty page.
    next: Option<N>,
}

/// A list that is short enough to be whole.
#[derive(Debug, Serialize)]
pub(crate) struct Items<T> {
    pub(super) items: Vec<T>,
}

/// Where a list goes on, and how many rows of it are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageWanted<P> {
    pub(super) after: Option<P>,
    pub(super) limit: Option<usize>,
}

/// How many rows are wanted. What is out of bounds is refused and not bent.
pub(crate) fn limit(wanted: Option<usize>) -> Result<usize, Problem> {
    match wanted {
        None => Ok(LIMIT_DEFAULT),
        Some(limit @ 1..=LIMIT_MAX) => Ok(limit),
        Some(_) => Err(Problem::bad_request(format!("a page has 1 to {LIMIT_MAX} rows"), "give another limit")),
    }
}

/// A place in a list, as the store counts them.
pub(crate) fn place(wanted: Option<u64>) -> Result<i64, Problem> {
    let place = i64::try_from(wanted.unwrap_or(0));
    place.map_err(|_| Problem::bad_request("there is no such place", "give what the page before said"))
}

impl<T, N> Page<T, N> {
    /// A page of rows that the store cut off at `limit` rows, or after so many bytes.
    pub(crate) fn of<R>(
        rows: Vec<R>,
        limit: usize,
        size: impl Fn(&R) -> usize,
        place: impl Fn(&R) -> N,
        show: impl FnMut(R) -> T,
    ) -> Self {
        let is_cut = rows.len() >= limit || rows.iter().map(size).sum::<usize>() >= PAGE_BYTES_MAX;
        let next = rows.last().filter(|_| is_cut).map(place);
        Self { items: rows.into_iter().map(show).collect(), next }
    }
}

/// JSON as it was stored: no number of it is read and written again.
pub(crate) fn raw(text: Option<String>) -> Option<Box<RawValue>> {
    text.and_then(|text| RawValue::from_string(text).ok())
}

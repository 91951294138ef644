//! What is remembered of a table: a sum for each bucket of rows, so that what changed is found again.
//!
//! Why sums and not a highest row alone: a message is edited, unsent, read or deleted long after it was written, and an
//! edit that was made on another device may arrive with an older date than what is known. Why not everything: a cursor
//! is written with every slice, and a million messages have a thousand buckets. A bucket whose sum differs is read
//! again as a whole; what is stored already is known by its keys. In the last bucket it is remembered how far it was
//! filled, so that a new message costs one message.
//!
//! Pure: rows come in, what has to be read comes out.

use gleaner_sdk::Cursor;
use serde_json::Value;
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::Xxh3;

/// Rows of a bucket, while there are not more than [`BUCKETS_MAX`] of them: one slice, which is sent in a moment.
pub(crate) const BUCKET_ROWS: i64 = 1000;
/// Sums on a cursor: 64 KiB. Where a table has more rows than a thousand times this, buckets are larger.
const BUCKETS_MAX: i64 = 4096;

/// The sums of a table as it is now.
#[derive(Debug)]
pub(crate) struct Table {
    rows_per_bucket: i64,
    sums: Vec<u64>,
    /// The last row.
    last: i64,
    /// The sum of the last known bucket, if only its rows up to the known last one are counted.
    known_part: Option<u64>,
}

/// How far a table was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    rows_per_bucket: i64,
    /// Zero for a bucket that was not read yet.
    sums: Vec<u64>,
    /// The last row that was read.
    last: i64,
}

/// Rows that are to be read, and what is known when they were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) rows: RangeInclusive<i64>,
    pub(crate) known: Known,
}

/// Takes rows in their order.
pub(crate) struct Summing<'k> {
    table: Table,
    known: &'k Known,
    bucket: Xxh3,
    at: usize,
    is_empty: bool,
}

impl Table {
    /// Begins to sum a table whose last row has this number.
    pub(crate) fn begin(last: i64, known: &Known) -> Summing<'_> {
        let last = last.max(0);
        let rows_per_bucket = rows_per_bucket(last);
        // A bucket that is not there has no rows.
        let sums = vec![EMPTY; usize::try_from(last / rows_per_bucket + 1).unwrap_or(0)];
        let table = Self { rows_per_bucket, sums, last, known_part: None };
        Summing { table, known, bucket: Xxh3::new(), at: 0, is_empty: true }
    }

    /// The next rows to read; `None` when everything is known.
    pub(crate) fn next(&self, known: &Known) -> Option<Next> {
        let is_comparable = known.rows_per_bucket == self.rows_per_bucket;
        let old = |at: usize| if is_comparable { known.sums.get(at).copied().unwrap_or(0) } else { 0 };
        let at =
            (0..self.sums.len()).find(|&at| self.sums[at] != old(at) && (self.sums[at] != EMPTY || old(at) != 0))?;
        let mut sums = if is_comparable { known.sums.clone() } else { Vec::new() };
        sums.resize(self.sums.len().max(at + 1), 0);
        sums[at] = self.sums[at];
        let first = i64::try_from(at).ok()? * self.rows_per_bucket;
        let end = first.saturating_add(self.rows_per_bucket - 1);
        let is_grown = is_comparable
            && (first..=end).contains(&known.last)
            && self.known_part.is_some()
            && self.known_part == Some(old(at));
        let from = if is_grown { known.last.saturating_add(1) } else { first };
        let last = known.last.max(end.min(self.last));
        let last = if is_comparable { last } else { end.min(self.last) };
        Some(Next { rows: from..=end, known: Known { rows_per_bucket: self.rows_per_bucket, sums, last } })
    }
}

/// The sum of a bucket without rows, which is as good as one that was never there.
const EMPTY: u64 = 1;

fn rows_per_bucket(last: i64) -> i64 {
    let mut rows = BUCKET_ROWS;
    while last / rows >= BUCKETS_MAX {
        rows = rows.saturating_mul(2);
    }
    rows
}

impl Summing<'_> {
    /// Takes a row: its number, and whatever about it may change.
    pub(crate) fn row(&mut self, number: i64, content: &[u8]) {
        let Ok(at) = usize::try_from(number / self.table.rows_per_bucket) else { return };
        if at >= self.table.sums.len() {
            return;
        }
        if at != self.at {
            self.close();
            self.at = at;
        }
        if number > self.known.last && self.table.known_part.is_none() {
            self.note_known_part();
        }
        self.bucket.update(&number.to_le_bytes());
        self.bucket.update(&(content.len() as u64).to_le_bytes());
        self.bucket.update(content);
        self.is_empty = false;
    }

    /// The sum as it is before the first row behind the known last one.
    fn note_known_part(&mut self) {
        let known_at = usize::try_from(self.known.last / self.table.rows_per_bucket).unwrap_or(usize::MAX);
        // Any sum that is no bucket's, when the last known bucket lies before.
        let sum = if known_at == self.at && !self.is_empty { sum_of(&self.bucket) } else { 0 };
        self.table.known_part = Some(sum);
    }

    fn close(&mut self) {
        if !self.is_empty {
            self.table.sums[self.at] = sum_of(&self.bucket);
        }
        self.bucket.reset();
        self.is_empty = true;
    }

    pub(crate) fn finish(mut self) -> Table {
        self.close();
        self.table
    }
}

/// Never one of the two that mean something else.
fn sum_of(bucket: &Xxh3) -> u64 {
    bucket.digest().max(2)
}

impl Known {
    /// What a run left on a cursor. One that cannot be read is as good as none.
    pub(crate) fn of_cursor(cursor: &Cursor) -> Option<Self> {
        let text = cursor.get("sums")?.as_str()?;
        let sum = |part: &[u8]| u64::from_str_radix(std::str::from_utf8(part).ok()?, 16).ok();
        let sums = text.as_bytes().chunks(16).map(sum).collect::<Option<Vec<_>>>()?;
        let rows_per_bucket = cursor.get("bucket")?.as_i64().filter(|&rows| rows >= BUCKET_ROWS)?;
        Some(Self { rows_per_bucket, sums, last: cursor.get("last")?.as_i64()? })
    }

    /// Puts it onto a cursor.
    pub(crate) fn put_onto(&self, cursor: &mut Cursor) {
        let text = self.sums.iter().map(|sum| format!("{sum:016x}")).collect::<String>();
        cursor.insert("bucket".to_owned(), Value::from(self.rows_per_bucket));
        cursor.insert("last".to_owned(), Value::from(self.last));
        cursor.insert("sums".to_owned(), Value::from(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Rows = BTreeMap<i64, String>;

    fn table(rows: &Rows, known: &Known) -> Table {
        let mut summing = Table::begin(rows.keys().max().copied().unwrap_or(0), known);
        for (number, content) in rows {
            summing.row(*number, content.as_bytes());
        }
        summing.finish()
    }

    /// Reads until there is nothing more; the rows that were read.
    fn read(rows: &Rows, known: &mut Known, slices_max: usize) -> Vec<i64> {
        let table = table(rows, known);
        let mut read = Vec::new();
        for _ in 0..slices_max {
            let Some(next) = table.next(known) else { break };
            read.extend(rows.range(next.rows).map(|(number, _)| *number));
            let mut cursor = Cursor::new();
            next.known.put_onto(&mut cursor);
            *known = Known::of_cursor(&cursor).unwrap();
            assert_eq!(*known, next.known);
        }
        read
    }

    fn some(count: i64) -> Rows {
        (1..=count).map(|number| (number, format!("row {number}"))).collect()
    }

    #[test]
    fn what_is_known_is_not_read_again() {
        let (rows, mut known) = (some(3500), Known::default());
        assert_eq!(read(&rows, &mut known, 99), (1..=3500).collect::<Vec<_>>());
        assert_eq!(read(&rows, &mut known, 99), [0; 0]);
    }

    #[test]
    fn new_rows_cost_what_they_are() {
        let (mut rows, mut known) = (some(3500), Known::default());
        read(&rows, &mut known, 99);
        rows.insert(3501, "new".into());
        rows.insert(4100, "new".into());
        assert_eq!(read(&rows, &mut known, 99), [3501, 4100]);
        assert_eq!(read(&rows, &mut known, 99), [0; 0]);
    }

    #[test]
    fn a_changed_row_and_a_deleted_one_bring_their_bucket_back() {
        let (mut rows, mut known) = (some(3500), Known::default());
        read(&rows, &mut known, 99);
        rows.insert(1500, "edited".into());
        assert_eq!(read(&rows, &mut known, 99), (1000..=1999).collect::<Vec<_>>());
        rows.remove(&3400);
        rows.insert(3501, "new".into());
        assert_eq!(read(&rows, &mut known, 99).len(), 501, "what was known of the last bucket is not so any more");
        assert_eq!(read(&rows, &mut known, 99), [0; 0]);
        rows.retain(|number, _| *number > 3000);
        read(&rows, &mut known, 99);
        assert_eq!(read(&rows, &mut known, 99), [0; 0], "empty buckets do not come again and again");
        rows.clear();
        read(&rows, &mut known, 99);
        assert_eq!(read(&rows, &mut known, 99), [0; 0]);
    }

    #[test]
    fn a_run_that_was_stopped_goes_on_with_the_next_bucket() {
        let (mut rows, mut known) = (some(3500), Known::default());
        assert_eq!(read(&rows, &mut known, 2).len(), 1999);
        rows.insert(4000, "meanwhile".into());
        assert_eq!(read(&rows, &mut known, 99), (2000..=3500).chain([4000]).collect::<Vec<_>>());
    }

    #[test]
    fn a_very_long_table_has_larger_buckets_and_no_larger_cursor() {
        let rows = Rows::from([(1, "a".into()), (i64::MAX, "b".into())]);
        let mut known = Known::default();
        assert_eq!(read(&rows, &mut known, 9999), [1, i64::MAX]);
        assert!(known.sums.len() <= 4096, "{}", known.sums.len());
        assert_eq!(read(&rows, &mut known, 99), [0; 0]);
    }

    #[test]
    fn a_cursor_that_is_none_of_ours_is_as_good_as_none() {
        for text in
            [r#"{}"#, r#"{"sums":"zz","bucket":1000,"last":1}"#, r#"{"sums":"","bucket":0,"last":1}"#, r#"{"sums":7}"#]
        {
            assert_eq!(Known::of_cursor(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}

//! The hashes that are stored with records, gaps and commits, so that damage to one can be found.
//!
//! A page that a disk returns wrongly is still a page, and SQLite takes it for a row. Each value is
//! hashed with its type and length, so nothing can move from one to the next unnoticed, and as SQLite
//! keeps it: what cannot be read as ours any more must differ, too.
//!
//! Why a hash without a key or a secret: it guards against accidents, and whoever can write the file
//! can write the hash. So it is the fastest one whose values are defined for good (XXH3).

use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Of the values of a row, in the order of its columns.
pub(crate) fn row_hash<'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> i64 {
    let put = |hash: u64, kind: u64, bytes: &[u8]| {
        xxh3_64_with_seed(bytes, hash.rotate_left(31) ^ (kind << 56) ^ bytes.len() as u64)
    };
    let hash = values.into_iter().fold(0, |hash, value| match value {
        ValueRef::Null => put(hash, 0, &[]),
        ValueRef::Integer(number) => put(hash, 1, &number.to_le_bytes()),
        ValueRef::Real(number) => put(hash, 2, &number.to_le_bytes()),
        ValueRef::Text(text) => put(hash, 3, text),
        ValueRef::Blob(bytes) => put(hash, 4, bytes),
    });
    hash.cast_signed()
}

/// A text as SQLite keeps it.
pub(crate) const fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

/// A text that may be absent.
pub(crate) fn optional_text(value: Option<&str>) -> ValueRef<'_> {
    value.map_or(ValueRef::Null, text)
}

/// Whether so many values of a row have the hash that comes after them.
pub(crate) fn is_what_was_hashed(row: &rusqlite::Row<'_>, values: usize) -> Result<bool, crate::error::Failure> {
    let hashed = (0..values).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?;
    Ok(row.get_ref(values)? == ValueRef::Integer(row_hash(hashed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_value_counts_and_keeps_its_place() {
        let rows = [
            vec![text("k"), text("b"), ValueRef::Integer(0)],
            vec![text("kb"), text(""), ValueRef::Integer(0)],
            vec![text("k"), ValueRef::Null, ValueRef::Integer(0)],
            vec![text("k"), text(""), ValueRef::Integer(0)],
            vec![text("k"), text("b"), ValueRef::Integer(1)],
            vec![text("k"), ValueRef::Blob(b"b"), ValueRef::Integer(0)],
            vec![text("k"), text("b"), ValueRef::Null],
            vec![text("k"), text("b")],
        ];
        let hashes = rows.into_iter().map(row_hash).collect::<BTreeSet<_>>();
        assert_eq!(hashes.len(), 8);
    }

    #[test]
    fn what_is_stored_today_is_read_in_ten_years() {
        assert_eq!(row_hash([text("k"), ValueRef::Null, ValueRef::Integer(7)]), 555_044_732_975_324_117);
    }
}

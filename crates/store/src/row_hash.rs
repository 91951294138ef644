//! The hashes that are stored with records, gaps and commits, so that damage to one can be found.
//!
//! A page that a disk returns wrongly is still a page, and SQLite takes it for a row. Each value is
//! hashed with its type and length, so nothing can move from one to the next unnoticed, and as SQLite
//! keeps it: what cannot be read as ours any more must differ, too.

use rusqlite::types::ValueRef;

/// How much of the hash is kept: enough that damage does not go unnoticed by chance.
pub(crate) const HASH_BYTES: usize = 16;

/// Of the values of a row, in the order of its columns.
pub(crate) fn row_hash<'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    let mut put = |kind: u8, bytes: &[u8]| {
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for value in values {
        match value {
            ValueRef::Null => put(0, &[]),
            ValueRef::Integer(number) => put(1, &number.to_le_bytes()),
            ValueRef::Real(number) => put(2, &number.to_le_bytes()),
            ValueRef::Text(text) => put(3, text),
            ValueRef::Blob(bytes) => put(4, bytes),
        }
    }
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..HASH_BYTES]);
    hash
}

/// A text as SQLite keeps it.
pub(crate) const fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

/// A text that may be absent.
pub(crate) fn optional_text(value: Option<&str>) -> ValueRef<'_> {
    value.map_or(ValueRef::Null, text)
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
}

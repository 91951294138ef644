//! The hash that is stored with each version, so that damage to a record can be found by itself.
//!
//! A page that a disk returns wrongly is still a page, and SQLite takes it for a record. Why a hash
//! without a key or a secret: it guards against accidents, and whoever can write the file can write
//! the hash. So it is the fastest one whose values are defined for good (XXH3). Each part goes in with
//! its length, so nothing can move from one to the next unnoticed.

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(crate) fn record_hash(key: &str, body: Option<&str>, deleted: bool, emitted_at: Option<&str>) -> i64 {
    let parts = [Some(key), body, emitted_at];
    let hash = parts.into_iter().fold(u64::from(deleted), |hash, part| {
        // What is absent is not the same as what is empty.
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        xxh3_64_with_seed(part.unwrap_or_default().as_bytes(), hash.rotate_left(31) ^ length)
    });
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::record_hash;
    use std::collections::BTreeSet;

    #[test]
    fn every_part_counts_and_keeps_its_place() {
        let hashes = BTreeSet::from([
            record_hash("k", Some("b"), false, Some("t")),
            record_hash("kb", Some(""), false, Some("t")),
            record_hash("k", None, false, Some("t")),
            record_hash("k", Some(""), false, Some("t")),
            record_hash("k", Some("b"), true, Some("t")),
            record_hash("k", Some("b"), false, None),
            record_hash("k", Some("bt"), false, Some("")),
        ]);
        assert_eq!(hashes.len(), 7);
    }

    #[test]
    fn what_is_stored_today_is_read_in_ten_years() {
        assert_eq!(record_hash("k", Some("{}"), false, None), 6_333_166_958_892_727_223);
    }
}

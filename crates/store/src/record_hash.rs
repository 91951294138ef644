//! The hash that is stored with each version, so that damage to a record can be found by itself.
//!
//! A page that a disk returns wrongly is still a page, and SQLite takes it for a record. Each part is
//! hashed with its length, so nothing can move from one to the next unnoticed.

/// How much of the hash is kept: enough that damage does not go unnoticed by chance.
pub(crate) const HASH_BYTES: usize = 16;

pub(crate) fn record_hash(key: &str, body: Option<&str>, deleted: bool, emitted_at: Option<&str>) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    for part in [Some(key), body, emitted_at] {
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(part.unwrap_or_default().as_bytes());
    }
    hasher.update(&[u8::from(deleted)]);
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..HASH_BYTES]);
    hash
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
}

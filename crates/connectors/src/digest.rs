//! Sums over several parts, each told apart from the next.

use xxhash_rust::xxh3::Xxh3;

/// A hash that has taken all parts.
pub(crate) fn hash<P: AsRef<[u8]>>(parts: &[P]) -> Xxh3 {
    let mut hash = Xxh3::new();
    for part in parts.iter().map(AsRef::as_ref) {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(super::hash(&["a", "bc"]).digest128(), super::hash(&["ab", "c"]).digest128());
    }
}

//! Hash of a name: short, and keyed, so that nobody can choose names that collide.

/// Multiplies, and folds the upper half onto the lower: every bit reaches every other.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// A keyed hash of a short name. Why not the standard one: it costs as much as the rest of a request's path. The
/// constants are fractions of pi, as in other hashes.
#[inline]
pub(crate) fn hash(seed: u64, name: &[u8]) -> u64 {
    let mut state = seed ^ (name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = name.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), 0x243f_6a88_85a3_08d3);
    }
    // The last eight bytes, some of them a second time, or all if there are fewer.
    let tail = match name.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |tail, &byte| tail << 8 | u64::from(byte)),
    };
    fold(state ^ tail, 0x1319_8a2e_0370_7344 ^ seed)
}

#[cfg(test)]
mod tests {
    use super::hash;
    use std::collections::BTreeSet;

    #[test]
    fn names_that_differ_little_fall_into_different_places() {
        let names: Vec<String> =
            (0..20_000).map(|n| format!("host-{n}.example.com")).chain((0..1000).map(|n| format!("{n}"))).collect();
        let hashes: BTreeSet<u64> = names.iter().map(|name| hash(7, name.as_bytes())).collect();
        assert_eq!(hashes.len(), names.len());
        // Shards are chosen by some bits and places in a table by others; each of them is even.
        for shift in [0, 7, 32, 40, 57] {
            let mut places = [0_u32; 16];
            names.iter().for_each(|name| places[(hash(7, name.as_bytes()) >> shift) as usize % 16] += 1);
            let most = *places.iter().max().unwrap();
            assert!(most < 1500, "{places:?} at {shift}");
        }
    }

    #[test]
    fn another_seed_is_another_hash() {
        assert_ne!(hash(1, b"example.com"), hash(2, b"example.com"));
        assert_ne!(hash(1, b""), hash(2, b""));
    }
}

//! Detects duplicate keys in the open objects of a text.
//!
//! Why refuse them: of `{"key":1,"key":2}` one parser keeps the first and another the last, so two programs would act
//! on different messages. Why not a set per object: it allocates for every key of every record. Here a key costs
//! eight bytes in one reused list; small objects are compared as they grow, large ones are sorted when they close.

use crate::json::json_string;
use crate::json::lex;
use std::cmp::Ordering;

/// Maximum of open keys in one text. It limits the ledger to 8 MiB, so that a maximal line and its ledger stay under
/// twice the line limit. A line of 16 MiB with a million keys has 16 bytes per key and value; real ones have a few
/// hundred thousand.
pub(crate) const KEYS_MAX: usize = 1 << 20;

/// Up to this many keys of an object are compared one by one; more are sorted at the end.
const COMPARED_MAX: usize = 48;

/// Capacity kept between texts: 8 KiB.
const KEPT_MAX: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Key {
    /// Equal for equal keys; differs for most others.
    signature: u32,
    /// Offset of its opening quote.
    start: u32,
}

/// The keys of all open objects, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct KeyLedger {
    keys: Vec<Key>,
}

/// Result of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    New,
    Duplicate,
    Full,
}

impl KeyLedger {
    /// Begins a new text. Frees unusual capacity.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        if self.keys.capacity() > KEPT_MAX {
            self.keys.shrink_to(KEPT_MAX);
        }
    }

    /// Start of the keys of an object that opens now.
    pub(crate) fn mark(&self) -> usize {
        self.keys.len()
    }

    /// Adds the key between `start` and `end`, of the object that began at `mark`.
    pub(crate) fn enter(&mut self, bytes: &[u8], mark: usize, start: usize, end: usize, escaped: bool) -> Entry {
        let inside = &bytes[start + 1..end - 1];
        let signature = if escaped { signature(&unescaped(inside)) } else { signature(inside) };
        let siblings = &self.keys[mark..];
        if siblings.len() <= COMPARED_MAX {
            let twin = |key: &Key| key.signature == signature && order(bytes, key.start as usize, start).is_eq();
            if siblings.iter().any(twin) {
                return Entry::Duplicate;
            }
        }
        let Ok(start) = u32::try_from(start) else { return Entry::Full };
        if self.keys.len() >= KEYS_MAX {
            return Entry::Full;
        }
        self.keys.push(Key { signature, start });
        Entry::New
    }

    /// Ends the object that began at `mark`. Returns the offset of a duplicate key.
    pub(crate) fn close(&mut self, bytes: &[u8], mark: usize) -> Option<usize> {
        let keys = &mut self.keys[mark..];
        let twice = if keys.len() > COMPARED_MAX + 1 { find_twice(bytes, keys) } else { None };
        self.keys.truncate(mark);
        twice
    }
}

fn find_twice(bytes: &[u8], keys: &mut [Key]) -> Option<usize> {
    keys.sort_unstable_by(|a, b| {
        a.signature.cmp(&b.signature).then_with(|| order(bytes, a.start as usize, b.start as usize))
    });
    keys.windows(2)
        .filter(|pair| pair[0].signature == pair[1].signature)
        .filter(|pair| order(bytes, pair[0].start as usize, pair[1].start as usize).is_eq())
        .map(|pair| pair[0].start.max(pair[1].start) as usize)
        .min()
}

/// Compares the keys whose opening quotes are at `a` and `b`, decoded.
fn order(bytes: &[u8], a: usize, b: usize) -> Ordering {
    let inside = |start: usize| {
        // The key was scanned before, so it has an end.
        let token = lex::string(bytes, start).ok();
        token.map_or((&bytes[..0], false), |token| (&bytes[start + 1..token.end - 1], token.escaped))
    };
    match (inside(a), inside(b)) {
        ((a, false), (b, false)) => a.cmp(b),
        ((a, _), (b, _)) => unescaped(a).cmp(&unescaped(b)),
    }
}

fn unescaped(inside: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    // Lines are checked as UTF-8 before they are scanned; other bytes are compared unchanged.
    std::str::from_utf8(inside).map_or(std::borrow::Cow::Borrowed(inside), json_string::decode_bytes)
}

/// A quick hash. It need not resist an attacker: equal signatures are compared in full.
fn signature(bytes: &[u8]) -> u32 {
    /// Odd and without pattern, from the golden ratio.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = (hash.rotate_left(5) ^ u64::from_le_bytes(last)).wrapping_mul(MIX);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters each key of a list and closes the object; whether one was there twice.
    fn has_twice(keys: &[String]) -> bool {
        let text = keys.iter().map(|key| format!("\"{key}\"")).collect::<String>();
        let mut ledger = KeyLedger::default();
        let mut at = 0;
        for key in keys {
            let end = at + key.len() + 2;
            match ledger.enter(text.as_bytes(), 0, at, end, key.contains('\\')) {
                Entry::New => at = end,
                Entry::Duplicate => return true,
                Entry::Full => panic!("the ledger is large enough"),
            }
        }
        ledger.close(text.as_bytes(), 0).is_some()
    }

    #[test]
    fn a_second_key_of_the_same_name_is_seen_in_objects_of_any_size() {
        for size in [1, 2, 40, 48, 49, 50, 51, 500, 5_000] {
            let mut keys = (0..size).map(|n| format!("key-{n}")).collect::<Vec<_>>();
            assert!(!has_twice(&keys), "{size} different keys");
            for place in [0, size / 2, size] {
                keys.insert(place, format!("key-{}", size - 1));
                assert!(has_twice(&keys), "{size} keys, twin at {place}");
                keys.remove(place);
            }
        }
    }

    #[test]
    fn keys_are_compared_by_what_they_say() {
        let keys = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(has_twice(&keys(&["a", r"\u0061"])));
        assert!(has_twice(&keys(&[r"\u00e9", "é"])));
        assert!(!has_twice(&keys(&[r"\ud800", r"\ud801", r"\ufffd"])));
        let mut many = (0..100).map(|n| format!("k{n}")).collect::<Vec<_>>();
        many.push(r"\u006b7".to_owned());
        assert!(has_twice(&many));
    }

    #[test]
    fn an_inner_object_has_keys_of_its_own() {
        let text = br#""a""a""b""#;
        let mut ledger = KeyLedger::default();
        assert_eq!(ledger.enter(text, 0, 0, 3, false), Entry::New);
        let mark = ledger.mark();
        assert_eq!(ledger.enter(text, mark, 3, 6, false), Entry::New);
        assert_eq!(ledger.close(text, mark), None);
        assert_eq!(ledger.enter(text, 0, 3, 6, false), Entry::Duplicate);
    }
}

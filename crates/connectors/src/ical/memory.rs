//! What was sent of a calendar, so that changes and deletions are noticed: a name, a sum and a day of each record.
//!
//! Why all of it on the cursor: a calendar has no other way of saying that something was deleted than not to mention it
//! any more. 21 bytes for each record, which is why there is a bound on their number. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;

/// Records of one stream: 14 MB on a cursor, of the 16 MiB that a line may have.
pub(crate) const ENTRIES_MAX: usize = 500_000;

/// The name of a record: its key is this in hexadecimal.
pub(crate) type Name = [u8; 12];

/// What is remembered of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Over its content; zero of one that was cancelled.
    pub(crate) sum: u64,
    /// Days since 1970, as far as 23 bits go.
    pub(crate) day: i64,
    pub(crate) is_of_series: bool,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) entries: BTreeMap<Name, Entry>,
}

const BYTES: usize = 21;
const SUM_BITS: u32 = 48;
const DAY_MIDDLE: i64 = 1 << 22;

impl Entry {
    /// As it comes back from a cursor.
    pub(crate) fn new(sum: u64, day: i64, is_of_series: bool) -> Self {
        // One that is not cancelled is never zero.
        let sum = (sum >> (64 - SUM_BITS)).max(1);
        Self { sum, day: day.clamp(-DAY_MIDDLE, DAY_MIDDLE - 1), is_of_series }
    }

    pub(crate) fn cancelled(day: i64, is_of_series: bool) -> Self {
        Self { sum: 0, ..Self::new(0, day, is_of_series) }
    }

    pub(crate) const fn is_cancelled(&self) -> bool {
        self.sum == 0
    }
}

impl Memory {
    /// Everything is sent again, because something else is asked for of it. What is gone meanwhile is still noticed.
    pub(crate) fn send_again(&mut self) {
        self.entries.values_mut().filter(|entry| !entry.is_cancelled()).for_each(|entry| entry.sum = u64::MAX);
    }

    /// As one text: letters, digits, `-` and `_`, 28 for each record.
    pub(crate) fn text(&self) -> String {
        let mut all = Vec::with_capacity(self.entries.len() * BYTES);
        for (name, entry) in &self.entries {
            let mut bytes = [0; BYTES];
            bytes[..12].copy_from_slice(name);
            bytes[12..18].copy_from_slice(&entry.sum.to_be_bytes()[2..]);
            let day = (entry.day + DAY_MIDDLE) as u32 * 2 + u32::from(entry.is_of_series);
            bytes[18..].copy_from_slice(&day.to_be_bytes()[1..]);
            all.extend(bytes);
        }
        URL_SAFE_NO_PAD.encode(all)
    }

    /// The same back; `None` for what it never writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let all = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (records, []) = all.as_chunks::<BYTES>() else { return None };
        let mut memory = Self::default();
        for bytes in records {
            let mut name = [0; 12];
            name.copy_from_slice(&bytes[..12]);
            let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
            let day = number(&bytes[18..]);
            let entry =
                Entry { sum: number(&bytes[12..18]), day: (day / 2) as i64 - DAY_MIDDLE, is_of_series: day % 2 == 1 };
            memory.entries.insert(name, entry);
        }
        Some(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_comes_back_as_it_was() {
        let mut memory = Memory::default();
        for n in 0..1000_u64 {
            let mut name = [0; 12];
            name[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            let day = n as i64 * 10_000 - 5_000_000;
            let entry =
                if n % 7 == 0 { Entry::cancelled(day, n % 2 == 0) } else { Entry::new(n << 40, day, n % 2 == 0) };
            memory.entries.insert(name, entry);
        }
        let text = memory.text();
        assert_eq!((text.len(), Memory::parse(&text)), (28_000, Some(memory)));
    }

    #[test]
    fn what_is_to_be_sent_again_is_no_record_of_now_and_is_not_forgotten() {
        let [one, other] = [1, 2].map(|n| Entry::new(n << 50, 3, false));
        let mut memory =
            Memory { entries: [([1; 12], one), ([2; 12], other), ([3; 12], Entry::cancelled(3, false))].into() };
        memory.send_again();
        assert!(
            memory.entries[&[1; 12]] != one && memory.entries.len() == 3 && memory.entries[&[3; 12]].is_cancelled()
        );
        assert_eq!(Memory::parse(&memory.text()).unwrap().entries.len(), 3);
    }

    #[test]
    fn a_text_that_is_not_ours_is_as_good_as_none() {
        for text in ["A", "AAAA", &"*".repeat(28), &"A".repeat(29), &"ä".repeat(14)] {
            assert_eq!(Memory::parse(text), None, "{text}");
        }
        assert_eq!(Memory::parse(""), Some(Memory::default()));
    }
}

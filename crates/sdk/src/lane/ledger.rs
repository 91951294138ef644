//! Outcome of every key of a run, and the coverage report.
//!
//! Why not a map of strings: a run may list a million keys at a hundred bytes each. Here a key costs its bytes and
//! nine more: one text, its start, an index of numbers, one outcome. A key has one outcome; the last one counts,
//! because the runtime will find that one. The report is written in pieces, never as one text in memory.

use gleaner_protocol::CoverageField;
use std::io::{self, Write};
use xxhash_rust::xxh3::xxh3_64;

/// Outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its detail was fetched and sent.
    Hydrated,
    /// It has a gap.
    Gap,
    /// It was skipped on purpose.
    Skipped,
}

impl Outcome {
    const fn field(self) -> CoverageField {
        match self {
            Self::Hydrated => CoverageField::HydratedKeys,
            Self::Gap => CoverageField::GapKeys,
            Self::Skipped => CoverageField::OptionalSkipKeys,
        }
    }
}

/// The text of all keys is in pieces of this size, so that growing never copies it.
const PIECE_BYTES: usize = 1024 * 1024;
/// Maximum load of the index, in percent: a key is found after two probes on average.
const FULL_PERCENT: usize = 75;

/// Keys and their outcomes, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pieces: Vec<String>,
    /// Piece and offset of each key.
    keys: Vec<KeyLocation>,
    outcomes: Vec<Outcome>,
    /// Indexes of keys plus one, by hash; zero is free.
    index: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct KeyLocation {
    piece: u32,
    start: u32,
}

impl Ledger {
    /// Sets the outcome of a key. The last one counts.
    pub(crate) fn note(&mut self, key: &str, outcome: Outcome) {
        if (self.keys.len() + 1) * 100 > self.index.len() * FULL_PERCENT {
            self.grow();
        }
        let slot = self.slot(key);
        match self.index[slot] {
            0 => {
                self.append(key);
                self.outcomes.push(outcome);
                // Memory ends before four thousand million keys.
                self.index[slot] = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
            }
            number => self.outcomes[number as usize - 1] = outcome,
        }
    }

    /// How many keys have this outcome.
    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|&&other| other == outcome).count()
    }

    fn append(&mut self, key: &str) {
        let has_room = |piece: &String| piece.len() + key.len() <= piece.capacity();
        if !self.pieces.last().is_some_and(has_room) {
            self.pieces.push(String::with_capacity(PIECE_BYTES.max(key.len())));
        }
        let piece = self.pieces.len() - 1;
        let start = self.pieces[piece].len();
        self.pieces[piece].push_str(key);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.keys.push(KeyLocation { piece: number(piece), start: number(start) });
    }

    fn key(&self, number: usize) -> &str {
        let place = self.keys[number];
        let piece = &self.pieces[place.piece as usize];
        // It ends at the start of the next one, or with its piece.
        let next = self.keys.get(number + 1).filter(|next| next.piece == place.piece);
        let end = next.map_or(piece.len(), |next| next.start as usize);
        &piece[place.start as usize..end]
    }

    /// Slot of a key in the index.
    fn slot(&self, key: &str) -> usize {
        let mask = self.index.len() - 1;
        // The length is a power of two.
        let mut slot = xxh3_64(key.as_bytes()) as usize & mask;
        while self.index[slot] != 0 && self.key(self.index[slot] as usize - 1) != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.index = vec![0; (self.index.len() * 2).max(1024)];
        for number in 0..self.keys.len() {
            let slot = self.slot(self.key(number));
            self.index[slot] = u32::try_from(number + 1).unwrap_or(u32::MAX);
        }
    }

    fn keys_with(&self, outcome: Option<Outcome>) -> impl Iterator<Item = &str> {
        let wanted = move |number: &usize| outcome.is_none_or(|outcome| self.outcomes[*number] == outcome);
        (0..self.keys.len()).filter(wanted).map(|number| self.key(number))
    }

    /// Writes the report as one line, piece by piece.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub(crate) fn write_report(&self, stream: &str, state_stream: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(64 * 1024, out);
        out.write_all(br#"{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"#)?;
        serde_json::to_writer(&mut out, stream)?;
        out.write_all(br#","state_stream":"#)?;
        serde_json::to_writer(&mut out, state_stream)?;
        write_keys(&mut out, CoverageField::RequiredKeys, self.keys_with(None))?;
        for outcome in [Outcome::Hydrated, Outcome::Gap, Outcome::Skipped] {
            if outcome == Outcome::Hydrated || self.count(outcome) > 0 {
                write_keys(&mut out, outcome.field(), self.keys_with(Some(outcome)))?;
            }
        }
        out.write_all(b"}\n")?;
        out.flush()
    }
}

fn write_keys<'k>(out: &mut impl Write, field: CoverageField, keys: impl Iterator<Item = &'k str>) -> io::Result<()> {
    write!(out, ",\"{}\":[", field.code())?;
    for (number, key) in keys.enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, key)?;
    }
    out.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::{Decoder, Event, Limits};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![Just(Outcome::Hydrated), Just(Outcome::Gap), Just(Outcome::Skipped)]
    }

    proptest! {
        #[test]
        fn a_key_has_one_outcome_and_it_is_the_last(
            notes in proptest::collection::vec(("[a-c]{1,3}", outcome()), 0..300),
        ) {
            let mut ledger = Ledger::default();
            let mut expected = BTreeMap::new();
            for (key, outcome) in &notes {
                ledger.note(key, *outcome);
                expected.insert(key.as_str(), *outcome);
            }
            prop_assert_eq!(ledger.keys.len(), expected.len());
            let mut line = Vec::new();
            ledger.write_report("d", "l", &mut line).unwrap();
            let mut lists = BTreeMap::<CoverageField, Vec<String>>::new();
            let mut decoder = Decoder::new(Limits::default());
            let mut feed = decoder.feed(&line);
            let mut ended = false;
            while let Some(event) = feed.next() {
                match event {
                    Event::CoverageKeys { field, keys, .. } => {
                        lists.entry(field).or_default().extend(keys.iter().map(ToOwned::to_owned));
                    }
                    Event::CoverageEnd { report, .. } => {
                        ended = report.stream == "d" && report.state_stream == "l";
                    }
                    other => panic!("{other:?}"),
                }
            }
            prop_assert!(ended);
            let of = |outcome: Option<Outcome>| {
                expected.iter().filter(|(_, known)| outcome.is_none_or(|outcome| outcome == **known))
                    .map(|(key, _)| (*key).to_owned()).collect::<Vec<_>>()
            };
            for (field, outcome) in [(CoverageField::RequiredKeys, None), (CoverageField::HydratedKeys, Some(Outcome::Hydrated)),
                (CoverageField::GapKeys, Some(Outcome::Gap)), (CoverageField::OptionalSkipKeys, Some(Outcome::Skipped))] {
                let mut listed = lists.remove(&field).unwrap_or_default();
                listed.sort_unstable();
                prop_assert_eq!(listed, of(outcome), "{:?}", field);
            }
        }
    }

    #[test]
    fn keys_longer_than_a_piece_are_kept_whole() {
        let mut ledger = Ledger::default();
        let long = "x".repeat(PIECE_BYTES + 1);
        for key in ["a", &long, "b"] {
            ledger.note(key, Outcome::Gap);
            ledger.note(key, Outcome::Hydrated);
        }
        assert_eq!(ledger.keys_with(None).map(str::len).collect::<Vec<_>>(), [1, PIECE_BYTES + 1, 1]);
        assert_eq!((ledger.keys.len(), ledger.count(Outcome::Hydrated)), (3, 3));
    }
}

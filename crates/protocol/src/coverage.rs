//! DETAIL_COVERAGE: what became of every record that a detail pass looked at.
//!
//! Why it is not one message like the others: it names every key of a run, a million of them. It is
//! read in blocks ([`KeyBlock`]) and ends with a [`CoverageReport`], so a reader holds one block. A
//! [`DetailCoverage`] with all keys exists for writers, and for readers that know theirs is small.

use crate::line_writer::{LineWriter, write_string};
use crate::violation::{Violation, ViolationCode};
use crate::vocabulary::wire_words;
use std::cmp::Ordering;

wire_words! {
    /// The lists of a coverage report.
    pub enum CoverageField {
        /// Every record that was looked at.
        RequiredKeys = "required_keys";
        /// Those that were read and sent.
        HydratedKeys = "hydrated_keys";
        /// Those that became a gap.
        GapKeys = "gap_keys";
        /// Those that were skipped on purpose.
        OptionalSkipKeys = "optional_skip_keys";
    }
}

impl CoverageField {
    /// The three lists that say what became of a record.
    pub const OUTCOMES: [Self; 3] = [Self::HydratedKeys, Self::GapKeys, Self::OptionalSkipKeys];

    const fn index(self) -> usize {
        match self {
            Self::RequiredKeys => 0,
            Self::HydratedKeys => 1,
            Self::GapKeys => 2,
            Self::OptionalSkipKeys => 3,
        }
    }
}

/// Some keys, one after the other in one text: a key costs its bytes and four more.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyBlock {
    text: String,
    ends: Vec<u32>,
}

impl KeyBlock {
    /// Adds a key.
    pub fn push(&mut self, key: &str) {
        self.text.push_str(key);
        // A report is at most 256 MiB long, so its text never reaches four.
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.key(index))
    }

    /// All keys as one text with nothing between them: to look for something in all of them at once.
    #[must_use]
    pub fn joined(&self) -> &str {
        &self.text
    }

    /// How many keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes the keys have together.
    #[must_use]
    pub const fn text_len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn extend(&mut self, other: &Self) {
        for key in other.iter() {
            self.push(key);
        }
    }

    fn key(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[index] as usize]
    }

    /// The places of the keys in the order of their text.
    fn sorted(&self) -> Vec<u32> {
        let mut order = (0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX)).collect::<Vec<_>>();
        order.sort_unstable_by(|a, b| self.key(*a as usize).cmp(self.key(*b as usize)));
        order
    }
}

/// How many keys, never which.
impl std::fmt::Debug for KeyBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyBlock({} keys)", self.len())
    }
}

impl<'a> FromIterator<&'a str> for KeyBlock {
    fn from_iter<T: IntoIterator<Item = &'a str>>(keys: T) -> Self {
        let mut block = Self::default();
        for key in keys {
            block.push(key);
        }
        block
    }
}

/// The end of a coverage report: everything but the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageReport {
    /// The detail stream.
    pub stream: String,
    /// The stream whose cursor depends on this report.
    pub state_stream: String,
    /// How many records were looked at, where the connector counts more than keys.
    pub considered: Option<u64>,
    /// How many of those are accounted for.
    pub covered: Option<u64>,
    /// How many keys each list had, in the order of [`CoverageField::ALL`].
    pub key_counts: [u64; 4],
}

impl CoverageReport {
    /// How many keys a list had.
    #[must_use]
    pub const fn key_count(&self, field: CoverageField) -> u64 {
        self.key_counts[field.index()]
    }

    pub(crate) const fn count_mut(&mut self, field: CoverageField) -> &mut u64 {
        &mut self.key_counts[field.index()]
    }
}

/// A coverage report with all its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailCoverage {
    /// The detail stream.
    pub stream: String,
    /// The stream whose cursor depends on this report.
    pub state_stream: String,
    /// How many records were looked at, where the connector counts more than keys.
    pub considered: Option<u64>,
    /// How many of those are accounted for.
    pub covered: Option<u64>,
    lists: [KeyBlock; 4],
}

impl DetailCoverage {
    /// A report without keys yet.
    #[must_use]
    pub fn new(stream: impl Into<String>, state_stream: impl Into<String>) -> Self {
        Self { stream: stream.into(), state_stream: state_stream.into(), ..Self::default() }
    }

    /// One list.
    #[must_use]
    pub const fn keys(&self, field: CoverageField) -> &KeyBlock {
        &self.lists[field.index()]
    }

    /// Adds a key to a list.
    pub fn push(&mut self, field: CoverageField, key: &str) {
        self.lists[field.index()].push(key);
    }

    /// Adds a block that was read.
    pub fn push_block(&mut self, field: CoverageField, block: &KeyBlock) {
        self.lists[field.index()].extend(block);
    }

    /// Takes over the end of a report that was read.
    pub fn finish(&mut self, report: CoverageReport) {
        self.stream = report.stream;
        self.state_stream = report.state_stream;
        self.considered = report.considered;
        self.covered = report.covered;
    }

    /// Whether the lists fit together: no key twice, outcomes only for required keys, one outcome each.
    /// Required keys without an outcome are not a fault of shape; they withhold a checkpoint.
    ///
    /// # Errors
    ///
    /// The violation, with stream and key.
    pub fn check_shape(&self) -> Result<(), Violation> {
        let orders = [0, 1, 2, 3].map(|list: usize| self.lists[list].sorted());
        for (list, order) in self.lists.iter().zip(&orders) {
            let twice = order.windows(2).find(|pair| list.key(pair[0] as usize) == list.key(pair[1] as usize));
            if let Some(pair) = twice {
                return Err(self.fault(ViolationCode::CoverageDuplicateKey, list.key(pair[0] as usize)));
            }
        }
        let has = |list: usize, key: &str| {
            let place = |&at: &u32| -> Ordering { self.lists[list].key(at as usize).cmp(key) };
            orders[list].binary_search_by(place).is_ok()
        };
        for field in CoverageField::OUTCOMES {
            for key in self.keys(field).iter() {
                if !has(CoverageField::RequiredKeys.index(), key) {
                    return Err(self.fault(ViolationCode::CoverageKeyNotRequired, key));
                }
                let mut later = CoverageField::OUTCOMES.into_iter().filter(|other| other.index() > field.index());
                if later.any(|other| has(other.index(), key)) {
                    return Err(self.fault(ViolationCode::CoverageOverlap, key));
                }
            }
        }
        Ok(())
    }

    /// The required keys that no list says anything about.
    pub fn unaccounted(&self) -> impl Iterator<Item = &str> {
        let orders = [0, 1, 2, 3].map(|list: usize| self.lists[list].sorted());
        self.keys(CoverageField::RequiredKeys).iter().filter(move |key| {
            !CoverageField::OUTCOMES.into_iter().any(|field| {
                let list = self.keys(field);
                orders[field.index()].binary_search_by(|&at| list.key(at as usize).cmp(key)).is_ok()
            })
        })
    }

    /// Writes the message as one line.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let keys = |out: &mut Vec<u8>, key: &str| write_string(out, key);
        let mut line = LineWriter::message(out, "DETAIL_COVERAGE")
            .flag("reference_only", true)
            .text("stream", &self.stream)
            .text("state_stream", &self.state_stream);
        for field in CoverageField::ALL {
            let list = self.keys(*field);
            let required = matches!(field, CoverageField::RequiredKeys | CoverageField::HydratedKeys);
            if required || !list.is_empty() {
                line = line.list(field.code(), list.iter(), keys);
            }
        }
        line.optional_number("considered", self.considered).optional_number("covered", self.covered).end();
    }

    fn fault(&self, code: ViolationCode, key: &str) -> Violation {
        Violation::new(code).of_stream(&self.stream).of_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::CoverageField::{GapKeys, HydratedKeys, OptionalSkipKeys, RequiredKeys};
    use super::*;

    fn coverage(lists: &[(CoverageField, &[&str])]) -> DetailCoverage {
        let mut coverage = DetailCoverage::new("messages", "threads");
        for (field, keys) in lists {
            keys.iter().for_each(|key| coverage.push(*field, key));
        }
        coverage
    }

    fn code(lists: &[(CoverageField, &[&str])]) -> Option<(ViolationCode, Option<String>)> {
        coverage(lists).check_shape().err().map(|violation| (violation.code, violation.key))
    }

    #[test]
    fn list_detail_run_emits_detail_coverage_after_the_detail_lane() {
        // The order within a run is the engine's to check; this is the shape.
        let report = coverage(&[(RequiredKeys, &["a", "b"]), (HydratedKeys, &["a", "b"])]);
        assert_eq!(report.check_shape(), Ok(()));
        assert_eq!(report.unaccounted().count(), 0);
        let mut line = Vec::new();
        report.encode(&mut line);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"type\":\"DETAIL_COVERAGE\",\"reference_only\":true,\"stream\":\"messages\",\"state_stream\":\"threads\",\
             \"required_keys\":[\"a\",\"b\"],\"hydrated_keys\":[\"a\",\"b\"]}\n"
        );
    }

    #[test]
    fn fully_hydrated_run_emits_detail_coverage_with_no_gap_keys() {
        let report = coverage(&[(RequiredKeys, &["b", "a"]), (HydratedKeys, &["a", "b"]), (GapKeys, &[])]);
        assert_eq!(report.check_shape(), Ok(()));
        let mut line = Vec::new();
        report.encode(&mut line);
        assert!(!String::from_utf8(line).unwrap().contains("gap_keys"));
    }

    #[test]
    fn partially_hydrated_run_carries_gap_keys_matching_emitted_detail_gaps() {
        let partial: &[(CoverageField, &[&str])] =
            &[(RequiredKeys, &["a", "b", "c", "d"]), (HydratedKeys, &["a"]), (GapKeys, &["b", "c"])];
        assert_eq!(code(partial), None);
        assert_eq!(coverage(partial).unaccounted().collect::<Vec<_>>(), ["d"]);
        let overlap: &[(CoverageField, &[&str])] =
            &[(RequiredKeys, &["a", "b"]), (HydratedKeys, &["a", "b"]), (GapKeys, &["b"])];
        assert_eq!(code(overlap), Some((ViolationCode::CoverageOverlap, Some("b".to_owned()))));
    }

    #[test]
    fn lists_that_do_not_fit_together_are_named_with_their_key() {
        let named = |code, key: &str| Some((code, Some(key.to_owned())));
        assert_eq!(code(&[(RequiredKeys, &["a", "b", "a"])]), named(ViolationCode::CoverageDuplicateKey, "a"));
        assert_eq!(
            code(&[(RequiredKeys, &["a"]), (OptionalSkipKeys, &["a", "a"])]),
            named(ViolationCode::CoverageDuplicateKey, "a")
        );
        assert_eq!(
            code(&[(RequiredKeys, &["a"]), (GapKeys, &["z"])]),
            named(ViolationCode::CoverageKeyNotRequired, "z")
        );
        assert_eq!(
            code(&[(RequiredKeys, &["a"]), (GapKeys, &["a"]), (OptionalSkipKeys, &["a"])]),
            named(ViolationCode::CoverageOverlap, "a")
        );
    }
}

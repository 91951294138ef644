//! DETAIL_COVERAGE: the outcome of every record in a detail pass.
//!
//! Why it differs from other messages: it names up to a million keys. It is read in blocks ([`KeyBlock`]) and ends
//! with a [`CoverageReport`], so a reader holds one block.

use crate::words::vocabulary::wire_words;

wire_words! {
    /// The lists of a coverage report.
    pub enum CoverageField {
        /// Every record of the pass.
        RequiredKeys = "required_keys";
        /// Records that were read and sent.
        HydratedKeys = "hydrated_keys";
        /// Records that became a gap.
        GapKeys = "gap_keys";
        /// Records that were skipped on purpose.
        OptionalSkipKeys = "optional_skip_keys";
    }
}

impl CoverageField {
    /// The three lists of outcomes.
    pub const OUTCOMES: [Self; 3] = [Self::HydratedKeys, Self::GapKeys, Self::OptionalSkipKeys];
}

/// Keys concatenated in one text: a key costs its bytes and four more.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyBlock {
    text: String,
    ends: Vec<u32>,
}

impl KeyBlock {
    /// Adds a key.
    pub fn push(&mut self, key: &str) {
        self.text.push_str(key);
        // A report has at most 256 MiB, so the offset fits.
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.key(index))
    }

    /// All keys as one text without separators, for a search in all of them at once.
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

    /// Total bytes of the keys.
    #[must_use]
    pub const fn text_len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn key(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[index] as usize]
    }
}

/// Shows the number of keys, never the keys.
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

/// The end of a coverage report: everything except the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageReport {
    /// The detail stream.
    pub stream: String,
    /// The stream whose cursor depends on this report.
    pub state_stream: String,
    /// Number of records in the pass, if the connector counts more than keys.
    pub considered: Option<u64>,
    /// Number of those accounted for.
    pub covered: Option<u64>,
    /// Number of keys per list, in the order of [`CoverageField::ALL`].
    pub key_counts: [u64; 4],
}

impl CoverageReport {
    /// How many keys a list had.
    #[must_use]
    pub const fn key_count(&self, field: CoverageField) -> u64 {
        self.key_counts[field as usize]
    }

    pub(crate) const fn count_mut(&mut self, field: CoverageField) -> &mut u64 {
        &mut self.key_counts[field as usize]
    }
}

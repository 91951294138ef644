//! DETAIL_COVERAGE: what became of every record that a detail pass looked at.
//!
//! Why it is not one message like the others: it names every key of a run, a million of them. It is
//! read in blocks ([`KeyBlock`]) and ends with a [`CoverageReport`], so a reader holds one block.

use crate::words::vocabulary::wire_words;

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

    fn key(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[index] as usize]
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
        self.key_counts[field as usize]
    }

    pub(crate) const fn count_mut(&mut self, field: CoverageField) -> &mut u64 {
        &mut self.key_counts[field as usize]
    }
}

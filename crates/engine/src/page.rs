//! How large a page of gaps is: transport, never a cap.
//!
//! A page is bounded by bytes because that is what a pipe and a connector's memory care about. How
//! many rows to read for it is guessed from the rows before; a wrong guess costs one more read and
//! nothing else. Recovery goes on until a page is empty (D11), and nothing here can end it.

/// The smallest page.
pub const PAGE_BYTES_MIN: u64 = 16 * 1024;
/// The page of a connector that asks for no size.
pub const PAGE_BYTES_DEFAULT: u64 = 256 * 1024;
/// The largest page.
pub const PAGE_BYTES_MAX: u64 = 1024 * 1024;

/// The bytes of a page, for what a connector asked.
#[must_use]
pub fn page_bytes(asked: Option<u64>) -> u64 {
    asked.unwrap_or(PAGE_BYTES_DEFAULT).clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX)
}

/// How many of these rows, by their sizes, fit a page. At least one if there is one: a gap that is
/// larger than a page must be recoverable too.
pub fn rows_that_fit(budget: u64, sizes: impl IntoIterator<Item = u64>) -> usize {
    let mut left = budget;
    let mut rows = 0;
    for size in sizes {
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None if rows == 0 => left = 0,
            None => break,
        }
        rows += 1;
    }
    rows
}

/// Learns how large rows are, so that a page takes one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSizes {
    average: u64,
}

impl Default for RowSizes {
    /// A key, a locator of one field, and two ids.
    fn default() -> Self {
        Self { average: 256 }
    }
}

impl RowSizes {
    /// The most rows that one read may take, whatever the average.
    pub const ROWS_MAX: u64 = 10_000;

    /// How many rows to read for a page: those that fit, and half as many again for luck.
    #[must_use]
    pub fn rows_to_read(self, budget: u64) -> u64 {
        let fit = budget / self.average.max(1);
        fit.saturating_add(fit / 2).clamp(1, Self::ROWS_MAX)
    }

    /// Learns from a page that was made. The newest page counts as much as all before it.
    pub const fn observe(&mut self, rows: u64, bytes: u64) {
        if let Some(seen) = bytes.checked_div(rows) {
            let sum = self.average.saturating_add(seen) / 2;
            self.average = if sum == 0 { 1 } else { sum };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_between_16_kib_and_1_mib() {
        assert_eq!(page_bytes(None), 262_144);
        assert_eq!(page_bytes(Some(0)), 16_384);
        assert_eq!(page_bytes(Some(100_000)), 100_000);
        assert_eq!(page_bytes(Some(u64::MAX)), 1_048_576);
    }

    #[test]
    fn a_page_has_at_least_one_row_and_is_bounded_by_bytes() {
        assert_eq!(rows_that_fit(100, [40, 60, 1]), 2);
        assert_eq!(rows_that_fit(100, [500, 1]), 1);
        assert_eq!(rows_that_fit(100, []), 0);
    }

    #[test]
    fn rows_are_sized_by_what_was_seen() {
        let mut sizes = RowSizes::default();
        assert_eq!(sizes.rows_to_read(256 * 100), 150);
        for _ in 0..20 {
            sizes.observe(10, 10_240);
        }
        assert_eq!(sizes.rows_to_read(102_400), 150, "1 KiB per row was seen");
        sizes.observe(0, 0);
        sizes.observe(1, u64::MAX);
        assert_eq!(sizes.rows_to_read(16_384), 1);
    }
}

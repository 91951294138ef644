//! How large a page of gaps is: transport, never a cap.
//!
//! A page is bounded by bytes because that is what a pipe and a connector's memory care about; a store
//! reads gaps until it is full, and at least one. Recovery goes on until a page is empty (D11), and nothing here can end it.

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
}

//! Gaps as rows: found, handed out, held, settled, and what their owner says.

pub(crate) mod gap_pages;
pub(crate) mod gap_rows;
pub(crate) mod held_gaps;
pub(crate) mod owners_gaps;
pub(crate) mod renewal;

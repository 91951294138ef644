//! What a run shows about a connector. Nothing here starts anything: runs go in, verdicts come out.

pub(crate) mod claims;
pub(crate) mod coverage;
pub(crate) mod gaps;
pub(crate) mod lines;
pub(crate) mod manifest;
pub(crate) mod records;
pub(crate) mod secrets;
pub(crate) mod time;

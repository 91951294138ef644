//! A connector's output, from bytes to events.

pub(crate) mod coverage_reader;
pub(crate) mod decoder;
pub(crate) mod framer;

//! What the commands of the laboratory share: which runs are made, on all cores, and how one is written as a line.

pub(crate) mod plan;
pub(crate) mod row;
pub(crate) mod runner;
pub(crate) mod tuning;

//! The pace of a run: remembered from run to run (`warm_start`), shown while it lasts (`rate`), and what it waits for (`waits`).

pub(crate) mod rate;
pub(crate) mod waits;
pub(crate) mod warm_start;

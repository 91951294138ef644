//! Pacing of a run: saved between runs (`warm_start`), shown during a run (`rate`), and its waits (`waits`).

pub(crate) mod rate;
pub(crate) mod waits;
pub(crate) mod warm_start;

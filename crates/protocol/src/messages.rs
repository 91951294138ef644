//! Messages of both directions, and the reading and writing of their fields.

pub(crate) mod coverage;
pub(crate) mod done;
pub(crate) mod fields;
pub(crate) mod gap;
pub(crate) mod hints;
pub(crate) mod interaction;
pub(crate) mod line_writer;
pub(crate) mod message;
pub(crate) mod observability;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod start;
pub(crate) mod waiting;
pub(crate) mod wire;

//! One run: opened, fed with slices, ended.

pub(crate) mod carry_out;
pub(crate) mod finish;
pub(crate) mod interactions;
pub(crate) mod listings;
pub(crate) mod quarantine;
pub(crate) mod rest_of_run;
pub(crate) mod session;
pub(crate) mod skips;
pub(crate) mod slices;
pub(crate) mod trace;

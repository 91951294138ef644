//! The commands, one file each.

pub(crate) mod add;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod gaps;
pub(crate) mod lab_list;
pub(crate) mod lab_random;
pub(crate) mod lab_run;
pub(crate) mod lab_show;
pub(crate) mod new;
pub(crate) mod proxy;
pub(crate) mod records;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod status;
pub(crate) mod verify;

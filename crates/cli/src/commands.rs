//! The commands, one file each.

pub(crate) mod lab_list;
pub(crate) mod lab_random;
pub(crate) mod lab_run;
pub(crate) mod lab_show;
pub(crate) mod proxy;

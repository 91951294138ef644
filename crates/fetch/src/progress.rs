//! How a fetch goes, for whoever watches.

use crate::result_line::ResultLine;

/// What the scheduler tells.
#[derive(Debug)]
pub(crate) enum Told {
    Line(Box<ResultLine>),
    Progress(Progress),
}

/// How it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// URLs that are finished, those of a former run of this pass included.
    pub done: u64,
    /// Of those, the ones without a body.
    pub failed: u64,
    /// URLs that were found, finished ones included.
    pub found: u64,
    /// Whether that is all.
    pub all_found: bool,
    /// Hosts that were met.
    pub hosts: usize,
    /// Requests that were sent.
    pub requests: u64,
    /// Of those, the ones that were refused as too many.
    pub refused: u64,
    /// Hosts that are left alone because they fail.
    pub circuits_open: usize,
    /// Requests under way.
    pub under_way: usize,
}

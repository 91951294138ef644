//! Progress of a fetch, for the listener.

use crate::result_line::ResultLine;

/// Messages of the scheduler.
#[derive(Debug)]
pub(crate) enum PipelineEvent {
    Line(Box<ResultLine>),
    Progress(Progress),
}

/// Progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished URLs, including earlier runs of this pass.
    pub done: u64,
    /// Finished URLs without a body.
    pub failed: u64,
    /// URLs found, finished ones included.
    pub found: u64,
    /// Whether the list was read to its end.
    pub all_found: bool,
    /// Hosts seen.
    pub hosts: usize,
    /// Requests sent.
    pub requests: u64,
    /// Requests refused by a rate limit.
    pub refused: u64,
    /// Hosts with an open circuit.
    pub circuits_open: usize,
    /// Requests in flight.
    pub under_way: usize,
}

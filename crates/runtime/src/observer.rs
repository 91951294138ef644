//! What a run shows while it goes on. The runtime tells; whoever draws a line or a page decides how.

use gleaner_engine::{Counts, TraceEvent};
use gleaner_protocol::{ConnectorMessage, Interaction};

/// Somebody who watches a run. Every method is called between two steps of the run and should be quick.
pub trait Observer {
    /// A slice is durable. What went through the run so far.
    fn saved(&mut self, _saved: Saved) {}
    /// A message came. Nothing is made of it yet, and it is as the connector wrote it.
    fn message(&mut self, _message: &ConnectorMessage<'_>) {}
    /// More came in. What went through the run so far, durable or not.
    fn heard(&mut self, _counts: Counts) {}
    /// The connector said something.
    fn said(&mut self, _event: &TraceEvent) {}
    /// The connector asks something, under this number.
    fn asked(&mut self, _question: &Interaction, _id: i64) {}
    /// A question is no longer open.
    fn withdrawn(&mut self, _request_id: &str) {}
}

/// What is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Slices.
    pub slices: u64,
    /// What was in them.
    pub counts: Counts,
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

//! What a lane needs of the run that it is a part of.
//!
//! A trait, so that the lane decides and somebody else speaks, counts and waits; and so that tests run a
//! lane against a real engine and store and end it at any message.

use crate::stop::Stop;
use gleaner_protocol::{ConnectorMessage, DeferReason, RawJson, ServedGap};
use std::io::{self, Write};
use std::time::Duration;

/// A run, as a lane sees it.
pub trait Host {
    /// A text that no other run has.
    fn run_id(&self) -> &str;

    /// Whether the owner asked for this record of this stream.
    fn wants(&self, stream: &str, key: &str) -> bool;

    /// Sends a record, or without a body the news that it is gone.
    ///
    /// # Errors
    ///
    /// When nothing more can be said.
    fn record(&mut self, stream: &str, key: &str, data: Option<&RawJson<'static>>) -> Result<Sent, Stop>;

    /// Says something about a gap.
    ///
    /// # Errors
    ///
    /// When nothing more can be said.
    fn say(&mut self, message: &ConnectorMessage<'_>) -> Result<(), Stop>;

    /// Says that everything before this belongs to this cursor, so that both become durable together.
    ///
    /// # Errors
    ///
    /// When nothing more can be said.
    fn commit(&mut self, stream: &str, cursor: RawJson<'static>) -> Result<(), Stop>;

    /// The next page of gaps of a stream; the first is that of START. Empty when none is left.
    ///
    /// # Errors
    ///
    /// When nobody answers any more.
    fn gaps_page(&mut self, stream: &str) -> Result<Vec<ServedGap>, Stop>;

    /// Sends one long line in pieces.
    ///
    /// # Errors
    ///
    /// When nothing more can be said.
    fn long_line(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop>;

    /// Takes one page of a list out of the run's budget.
    ///
    /// # Errors
    ///
    /// Why not.
    fn take_list(&mut self) -> Result<(), DeferReason>;

    /// Takes one detail out of the run's budget.
    ///
    /// # Errors
    ///
    /// Why not.
    fn take_detail(&mut self) -> Result<(), DeferReason>;

    /// How many gaps of single records this run may still write; `None` for any number.
    fn gap_rows_left(&self) -> Option<u64>;

    /// Takes one of those; `false` when there is none.
    fn take_gap_row(&mut self) -> bool;

    /// Waits, unless the run's time would be over before: then `false`, at once.
    fn pause(&mut self, wait: Duration) -> bool;
}

/// What became of a record that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was sent.
    Yes,
    /// The owner did not ask for it.
    OutOfScope,
    /// It does not fit its schema. That has been reported.
    Invalid,
}

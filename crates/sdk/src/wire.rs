//! The two directions between a connector and its runtime, as a trait.
//!
//! Why a trait: a test runs a connector in its own process against the real engine and store, and breaks
//! the connection at any message. Standard input and output are the one that connectors use.

pub(crate) mod stdio;

use gleaner_protocol::RuntimeMessage;
use std::time::Duration;

/// What carries lines out and messages in.
pub trait Wire: Send {
    /// Adds bytes to the output. Whoever calls writes whole lines, a long one in several pieces. May
    /// block while the other side is slow.
    ///
    /// # Errors
    ///
    /// When nobody reads any more.
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault>;

    /// The next message of the runtime, waiting for it; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// When a line cannot be read.
    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault>;

    /// Waits until everything that was written is taken over by the other side, for at most `patience`
    /// without any progress.
    ///
    /// # Errors
    ///
    /// When it was not.
    fn drain(&mut self, patience: Duration) -> Result<(), WireFault>;

    /// A second way to the output, for what is said while the connector itself waits; `None` where there is none.
    fn aside(&self) -> Option<Box<dyn Aside>> {
        None
    }

    /// Lets nothing be said aside from now on, or lets it again: not while a question waits for its answer, and not
    /// after the last message.
    fn hold_asides(&mut self, hold: bool) {
        let _: bool = hold;
    }

    /// Waits for the end of the input, which says that everything is saved; `false` when `patience` was
    /// over before.
    fn wait_for_end(&mut self, patience: Duration) -> bool;
}

/// A second way to the output of a [`Wire`], from another thread.
pub trait Aside: Send {
    /// Adds a whole line between two others, at once or not at all; `false` when that is not possible now.
    fn say(&self, line: &[u8]) -> bool;
}

/// Why the wire cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// Nobody reads any more.
    #[error("the runtime does not read any more")]
    Disconnected,
    /// The runtime said something that is no message.
    #[error("a line of the runtime cannot be read: {0}")]
    Unreadable(String),
}

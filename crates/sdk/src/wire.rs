//! Connection between a connector and its runtime, as a trait.
//!
//! Why a trait: a test runs a connector in its own process against the real engine and store, and breaks the
//! connection at any message. Connectors use standard input and output.

pub(crate) mod stdio;

use gleaner_protocol::RuntimeMessage;
use std::time::Duration;

/// Carries lines out and messages in.
pub trait Wire: Send {
    /// Adds bytes to the output. The caller writes whole lines, a long one in several pieces. May block while the
    /// other side is slow.
    ///
    /// # Errors
    ///
    /// The runtime no longer reads.
    fn write(&mut self, bytes: &[u8]) -> Result<(), WireFault>;

    /// Waits for the next message of the runtime; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// A line is invalid.
    fn read(&mut self) -> Result<Option<RuntimeMessage>, WireFault>;

    /// Waits until the other side has taken everything, for at most `patience` without progress.
    ///
    /// # Errors
    ///
    /// It has not.
    fn drain(&mut self, patience: Duration) -> Result<(), WireFault>;

    /// A second writer, for reports while the connector waits; `None` if there is none.
    fn aside(&self) -> Option<Box<dyn Aside>> {
        None
    }

    /// Blocks or allows the second writer: blocked while a question is open, and after the last message.
    fn hold_asides(&mut self, hold: bool) {
        let _: bool = hold;
    }

    /// Waits for the end of the input, which confirms that everything is saved; `false` after `patience`.
    fn wait_for_end(&mut self, patience: Duration) -> bool;
}

/// A second writer to the output of a [`Wire`], for another thread.
pub trait Aside: Send {
    /// Adds a whole line between two others, at once or not at all; `false` when that is not possible now.
    fn say(&self, line: &[u8]) -> bool;
}

/// Why the wire cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// The runtime no longer reads.
    #[error("the runtime no longer reads")]
    Disconnected,
    /// The runtime sent an invalid message.
    #[error("a line of the runtime cannot be read: {0}")]
    Unreadable(String),
}

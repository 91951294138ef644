//! Promises of the driver, kept through its public API on a paused clock: hours pass in milliseconds,
//! and a wait can be measured to the millisecond. Test names are the sentences of the specification.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod adaptive;
mod callers;
mod legible;
mod memory;
mod one_wait;
mod retries;
mod retry_after;
mod support;
mod terminal;
mod warm_start;

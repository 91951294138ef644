//! Promises of the driver of many hosts, kept through its public API on a paused clock: hours pass in milliseconds,
//! and a wait can be measured to the millisecond.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod hosts;
mod isolation;
mod remembering;
mod scripted;
mod upkeep;
mod waiting;

//! A connector's side of the contract, in one process: what it is told is written down, what it says is read.

#![expect(clippy::unwrap_used, reason = "tests")]

mod caps;
mod credentials;
mod ending;
mod exchanges;
mod pace;
mod records;
mod script;
mod server;

//! Shared by all crates with IO. Pure crates (governor, lab, protocol, engine, schedule) do not depend on it.
//!
//! # Files
//!
//! - `private.rs`: files and folders that only their owner may use
//! - `atomic.rs`: files that are replaced as a whole
//! - `clock.rs`: the wall clock
//! - `date.rs`: RFC 3339 in UTC
//! - `debug_only.rs`: `Debug` with selected fields
//! - `live_line.rs`: a terminal line that is redrawn
//! - `outside.rs`: makes text from outside safe to show
//! - `process.rs`: lists the processes of the machine

pub mod atomic;
pub mod clock;
pub mod date;
mod debug_only;
pub mod live_line;
pub mod outside;
pub mod private;
pub mod process;

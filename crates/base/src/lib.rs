//! What the crates that do IO share. Pure crates (governor, lab, protocol, engine, schedule) do not depend on it.
//!
//! # Files
//!
//! - `private.rs`: files and folders that only their owner may use
//! - `atomic.rs`: files that are replaced as a whole
//! - `clock.rs`: the wall clock
//! - `date.rs`: RFC 3339 in UTC
//! - `debug_only.rs`: `Debug` that shows some fields alone
//! - `live_line.rs`: one line on a terminal that is drawn again and again
//! - `outside.rs`: text that somebody else wrote, made safe to show
//! - `process.rs`: which processes there are

pub mod atomic;
pub mod clock;
pub mod date;
mod debug_only;
pub mod live_line;
pub mod outside;
pub mod private;
pub mod process;

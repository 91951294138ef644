//! Lists fetched from real servers on loopback: what the hosts see, and what is in the folder afterwards.
//!
//! Waits are tested on a virtual clock next to the pipeline; here are sockets, bodies and files.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod bad_hosts;
mod isolation;
mod passes;
mod support;

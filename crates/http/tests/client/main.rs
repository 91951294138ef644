//! The client against real servers on loopback: no mocks, and nothing outside of this machine.
//!
//! Rules that need no socket (redirect table, addresses, `Link` headers, final refusals) are tested next to
//! their code; here is what a provider would see on the wire.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod blocking;
mod bodies;
mod keys;
mod paging;
mod record_replay;
mod redirects;
mod retries;
mod secrecy;
mod support;
mod timeouts;
mod tls;

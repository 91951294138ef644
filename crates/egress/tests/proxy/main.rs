//! The sidecar as callers and upstreams meet it: real sockets on loopback, and upstreams that throttle, fail,
//! break off, trickle and vanish.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]
#![expect(clippy::disallowed_methods, reason = "tests wait for what others do; nothing is sent after it")]

mod bodies;
mod extract;
mod keys;
mod pages;
mod passing;
mod refusing;
mod repeating;
mod stopping;
mod support;
mod vanishing;

//! The adapters for `reqwest-middleware` and `tower`: that they drive the governor as the client does,
//! and that two of them on one path are refused. No test waits in real time, and none leaves loopback.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod loopback;
mod rules;
mod support;
mod two_gates;
mod waits;

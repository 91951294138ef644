//! The program as a user meets it: what it prints where, and how it ends.
//!
//! One binary for all of it; figures themselves are tested in the lab, here only that they arrive.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod bad_input;
mod collect;
mod expectations;
mod html;
mod json;
mod new;
mod proxy;
mod proxy_support;
mod support;
mod tables;

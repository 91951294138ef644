//! The vault from outside: what it keeps, what it refuses, what it finds, and what it never shows.
#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod canary;
mod guarding;
mod resolving;
mod storing;
mod support;

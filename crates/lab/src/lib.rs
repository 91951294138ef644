//! A laboratory for rate laws: simulated providers on virtual time, an oracle, and a score.
//!
//! Deterministic and seeded: the same scenario, law and seed give the same figures, byte for byte.
//! The law called `gleaner` is the `Governor` that ships, not a model of it.

pub mod builtin;
pub mod laws;
pub mod oracle;
pub mod provider;
pub mod random;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod score;
pub mod sim;
pub mod trace;

pub use gleaner_governor::{BadValue, Number, Tuning};

/// The code of docs/governor.md, so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/governor.md")]
struct Documents;

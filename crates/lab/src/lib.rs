//! A laboratory for rate laws: simulated providers on virtual time, an oracle, and a score.
//!
//! Deterministic and seeded: the same scenario, law and seed give the same figures, byte for byte.
//! The law called `gleaner` is the `Governor` that ships, not a model of it.
//!
//! # Files
//!
//! - `scenario.rs`, `scenario/check.rs`: the file format; every number is checked once
//! - `provider.rs`: limits as services enforce them, and their answers
//! - `sim.rs`: the event loop on virtual time
//! - `laws.rs`: the interface of a law, and what an answer looks like to one
//! - `laws/gleaner.rs`: drives the shipped `Governor`
//! - `laws/workers.rs`: sleeps of single workers, which those laws have in common
//! - `oracle.rs`: the best that is possible
//! - `score.rs`: one run in figures
//! - `trace.rs`: samples over time, in bins
//! - `random.rs`: scenarios that nobody tuned for
//! - `builtin.rs`: the files of `scenarios/`, compiled in
//! - `rng.rs`: our own seeded generator, so that figures outlive dependencies
//! - `report/`: text from figures: words (`describe`, `story`, `summary`), terminal chart (`chart`), page (`html`,
//!   `svg`, `page.css`), what both draw (`series`, `axis`)

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

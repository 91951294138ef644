//! A laboratory for pacing laws: simulated providers on virtual time, an oracle, and a score.
//!
//! Deterministic and seeded: the same scenario, law and seed give the same figures, byte for byte.
//! The law `gleaner` is the shipped `Governor`, not a model of it.
//!
//! # Files
//!
//! - `scenario.rs`, `scenario/check.rs`: the file format; checks of every number
//! - `provider.rs`: limits as services enforce them, and their answers
//! - `sim.rs`: the event loop on virtual time
//! - `laws.rs`: the interface of a law, and an answer as it sees it
//! - `laws/gleaner.rs`: drives the shipped `Governor`
//! - `laws/workers.rs`: sleeping workers, shared by those laws
//! - `oracle.rs`: the best possible result
//! - `score.rs`: figures of one run
//! - `trace.rs`: samples over time, in bins
//! - `random.rs`: random scenarios
//! - `builtin.rs`: the files of `scenarios/`, compiled in
//! - `rng.rs`: our own seeded generator, so that figures do not change with dependencies
//! - `report/`: text from figures: words (`describe`, `story`, `summary`), terminal chart (`chart`), page (`html`,
//!   `svg`, `page.css`), shared parts of both (`series`, `axis`)

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

/// Compiles the code of docs/governor.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/governor.md")]
struct Documents;

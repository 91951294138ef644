//! Checks any connector program, in any language, against the protocol.
//!
//! It starts the connector several times with different STARTs, treats it roughly (slow reading,
//! SIGTERM, the end of its input, SIGKILL at random lines), and says what failed and in which line.
//! Engine and store behind it are those of a real run, and one start goes through the runtime and its
//! guard. Stores are scratch and in a temporary folder.
//!
//! | for | see |
//! |---|---|
//! | what is checked | [`CHECKS`], [`Check`] |
//! | checking | [`check`], [`Subject`], [`Limits`] |
//! | what was found | [`Report`], [`CheckResult`], [`Verdict`], [`Finding`] |
//!
//! # What is deliberately absent
//!
//! - What a line said. A verdict names streams, keys and places; records are private.
//! - A way to touch the user's store, or to answer a connector's questions.
//! - Trust: every start has a limit, and all of them together have one.
//!
//! # Files
//!
//! - `checks.rs`: every check by its name
//! - `plan.rs`, `subject.rs`, `report.rs`: the order of the checks; what is checked; the result
//! - `ask.rs`, `selection.rs`, `resume.rs`, `refusal.rs`, `treatment.rs`, `runtime_run.rs`: the starts that are made
//! - `bench.rs`, `child.rs`, `checked_run.rs`: scratch stores; the connector's process; engine and store behind it
//! - `observed.rs`, `judge.rs`, `judge/`: what was seen in a start, and the verdicts about it

#![warn(missing_docs)]

mod ask;
mod bench;
mod checked_run;
mod checks;
mod child;
mod judge;
mod observed;
mod plan;
mod refusal;
mod report;
mod resume;
mod runtime_run;
mod selection;
mod subject;
mod treatment;

pub use checks::{CHECKS, Check};
pub use plan::check;
pub use report::{CheckResult, Finding, Report, Verdict};
pub use subject::{Limits, Subject};

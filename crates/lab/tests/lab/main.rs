//! Tests of the laboratory: numbers worked out by hand, and the rules of docs/lab.md.

#![expect(clippy::unwrap_used, reason = "a test whose scenario cannot be built has failed")]

mod baselines;
mod oracle;
mod provider;
mod random;
mod scenario_errors;
mod simulator;
mod support;
mod suspensions;
mod tuning;

//! Promises of the keyed registry, kept through its public API with a clock that only moves when it is told to.

#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod circuit;
mod desk;
mod fields;
mod forgetting;
mod memory;
mod properties;
mod refused_settings;
mod remembering;
mod retries;
mod shown;
mod stress;
mod waits;

//! The contract seen from outside: what a user of the crate can observe, in one test program.
//!
//! `messages`: one test per message. `violations`: one row per breach. `splitting`: properties that hold
//! for any input. `manifest_rules`: the rules of the manifest. `scenarios`: the specification's scenarios,
//! by their names. `memory.rs` is a program of its own, because it counts every allocation.

mod manifest_rules;
mod messages;
mod scenarios;
mod splitting;
mod support;
mod violations;

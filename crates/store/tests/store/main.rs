//! The tests of the store, in one program: each would link the store once more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod account;
mod backup;
mod bad_input;
mod confirm_hydrated;
mod confirm_recovered;
mod crash;
mod disk;
mod growth;
mod keys_agree;
mod kill;
mod leases;
mod looking;
mod model;
mod owner;
mod power_loss;
mod promise;
mod promises;
mod purge;
mod reading;
mod retries;
mod world;

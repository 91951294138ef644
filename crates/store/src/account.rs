//! Whether a cursor accounts for what it has passed: coverage reports, and what the store has for their keys.

pub(crate) mod accounts;
pub(crate) mod awaited_keys;
pub(crate) mod coverage_keys;
pub(crate) mod empty_details;
pub(crate) mod hydrated_keys;
pub(crate) mod owed;
pub(crate) mod reach;
pub(crate) mod shortfalls;

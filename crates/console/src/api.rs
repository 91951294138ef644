//! The JSON API: one file per resource, each with what it looks like on the wire and the handlers that give it.
//!
//! Types with `Serialize` are here and nowhere else; they are the format, and `openapi.json` says the same for people.

pub(crate) mod actions;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod connectors;
pub(crate) mod coverage;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod gaps;
pub(crate) mod health;
pub(crate) mod interactions;
pub(crate) mod page;
pub(crate) mod quarantine;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod sign_in;
pub(crate) mod status;

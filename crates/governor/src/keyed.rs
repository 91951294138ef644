//! A governor for each of very many keys, in bounded memory: hosts of a crawl, tenants of a service.
//!
//! A [`Registry`] finds the key of a [`Domain`] and gives out a [`Handle`], which its caller keeps. With it,
//! [`acquire`](Registry::acquire) says whether a request may be sent now, and
//! [`feedback`](Registry::feedback) takes what came back. Each key has its own pace, circuit and retry budget;
//! what happens at one host leaves all others alone.
//!
//! | | [`Governor`](crate::Governor) | [`Registry`] |
//! |---|---|---|
//! | keys | one | a million |
//! | pace | the law | the law, AIMD or a fixed rate |
//! | quota headers, run budget, evidence of transitions | yes | no |
//! | lock | none, the caller owns it | one per key, one per shard |
//!
//! # Memory
//!
//! A key that nobody used for the breaker's window is put away in a small form; one that nobody used for
//! `forget_after` is forgotten, and so is the one that was idle the longest when there is no room for another.
//! Never forgotten is a key with a request on its way, with a gate that is closed (Retry-After, a ban) or with
//! an open circuit, nor one whose handle somebody keeps. [`Registry::tend`] does this when it is called.
//!
//! Like everything in this crate it reads no clock and never waits.

mod active;
mod config;
mod domain;
mod fast_path;
mod feedback;
mod handle;
mod hash;
mod key;
mod lookup;
mod registry;
mod shard;
mod snapshot;
mod stats;

pub use config::RegistryConfig;
pub use domain::{Domain, DomainError};
pub use feedback::{Feedback, Statuses};
pub use handle::Handle;
pub use lookup::Lookup;
pub use registry::{Full, Registry};
pub use shard::Forgotten;
pub use snapshot::{KeySnapshot, Snapshot, Totals};

//! A governor for each of very many keys, in bounded memory: hosts of a crawl, tenants of a service.
//!
//! A [`Registry`] finds the key of a [`Domain`] and returns a [`Handle`], which the caller keeps. With it,
//! [`acquire`](Registry::acquire) asks for a permit and [`feedback`](Registry::feedback) reports the answer. Each key
//! has its own pace, circuit and retry budget; keys do not affect each other.
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
//! A key that was not used for the breaker's window is stored in a small form. A key that was not used for
//! `forget_after` is dropped, and so is the longest idle one when there is no room for another. A key stays while it
//! has a request in flight, a closed gate (Retry-After, a ban), an open circuit, or a handle. [`Registry::tend`] does
//! this when it is called.
//!
//! Like the whole crate it reads no clock and never waits.

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

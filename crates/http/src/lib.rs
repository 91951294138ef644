//! HTTP that finds a provider's rate limit from below, stays just under it, and remembers it.
//!
//! This crate drives [`gleaner_governor::Governor`] with a clock and sockets. It has four interfaces, which behave
//! alike:
//!
//! | | feature | for |
//! |---|---|---|
//! | `GovernedClient` | `client` (default) | a program that wants one good HTTP client |
//! | `GovernedMiddleware` | `reqwest-middleware` | a program that has a `reqwest-middleware` stack |
//! | `GovernedLayer` | `tower` | a program that has a `tower` stack |
//! | `external_send::ExternalSender` | `client` | requests that another program sends, such as a page in a browser |
//!
//! Every other language uses the reverse proxy of `gleaner-egress` (`gleaner proxy`), which drives the same governors.
//!
//! All of them use [`SendGovernor`]: one per [`Key`], and a key is a provider and a credential. All users of a key in
//! a process share one send governor through [`Governors`], so two clients do not exceed a limit together, and a slow
//! provider delays only its own callers.
//!
//! Programs with thousands of hosts instead of a few providers use [`Domains`]: a registry in bounded memory, with a
//! pace, a circuit and a retry budget for each host; `gleaner-fetch` fetches lists of URLs with it. Programs that
//! send by themselves can use [`wire`]: connections, bodies, redirects.
//!
//! # Path of a request
//!
//! 1. It queues for its key: first come, first served, and a retry keeps its place. The queue is bounded.
//! 2. The governor admits it. **This is the only wait before a send**, as long as the longest of its reasons (pacing,
//!    gate, quota, window, in flight) and never their sum.
//! 3. It is sent. The attempt's timeout starts here.
//! 4. The answer is classified, and the governor learns from it. A refusal is saved before the caller sees it, so
//!    that a crash cannot lose a gate.
//! 5. If a retry helps and is safe, it goes back to step 1, not before the provider's Retry-After. Otherwise the
//!    caller gets the answer.
//!
//! Run budget, circuit breaker and retry budget decide at once and never wait.
//!
//! # Deliberately absent
//!
//! - A second sleep before a send. There is one `sleep_until` ([`SendGovernor`]), a lint rejects others, and a
//!   request that would pass two governed layers is refused with [`Refusal::GovernedTwice`].
//! - A setting for the rate. The owner sets a ceiling, the governor finds the rest.
//! - Credentials in keys, states, logs or metrics: a [`Key`] holds a keyed hash.
//!
//! # Files
//!
//! - `transport.rs`: one call with its attempts, the one retry loop; the trait that all interfaces implement
//! - `send_governor.rs`: one turn: queue, admission, the only sleep, and guards that give permits back
//! - `queue.rs`: queue of waiting callers
//! - `call_limits.rs`: limits of a call on waits and attempts
//! - `refusal.rs`: why a request was not sent
//! - `retry.rs`: whether and when a request is retried
//! - `governors.rs`: all send governors of a process, by key
//! - `key.rs`: provider and credential, the latter as a keyed hash
//! - `memory.rs`: learned state on disk: a file per key
//! - `domains/`: very many hosts: `permit` (one turn), `waiters` (queue), `upkeep` (periodic work), `remembered` (a
//!   line per host), `status` and `prometheus` (figures)
//! - `warm_start.rs`: learned state on a stream's cursor
//! - `figures.rs`, `readout.rs`, `metrics.rs`: counters; as types and as the sidecar's JSON; as Prometheus text
//! - `causes.rs`: an error with all its causes
//! - `clock.rs`, `headers.rs`: tokio's clock as the governor's time; headers for the classifier
//! - `external_send.rs`: feature `client`: requests that another program sends, such as a page in a browser
//! - `client/`: feature `client`: `builder`, `request`, `defaults` (default headers), `cookies`, `send` (the
//!   transport), `redirect` (the request after a redirect), `record_replay` (recording and replay), `response`,
//!   `paging` and `link`, `error` and `shown_url` (URLs without their secrets)
//! - `blocking.rs`: the client without an async runtime in the caller's code
//! - `adapter.rs`, `middleware.rs`, `layer.rs`: features `reqwest-middleware` and `tower`, and their shared parts
//! - `wire.rs`, `wire/`: shared by everything that sends: `connections`, `body` and `decode` (bombs, idle time),
//!   `redirect` and `address` (allowed targets), `no_answer` and `causes` (failures)

#![warn(missing_docs)]

#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
mod adapter;
#[cfg(feature = "client")]
pub mod blocking;
mod call_limits;
mod causes;
#[cfg(feature = "client")]
pub mod client;
mod clock;
mod domains;
#[cfg(feature = "client")]
pub mod external_send;
mod figures;
mod governors;
mod headers;
mod key;
#[cfg(feature = "tower")]
mod layer;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod queue;
mod readout;
mod refusal;
mod retry;
mod send_governor;
mod transport;
mod warm_start;
#[cfg(feature = "client")]
pub mod wire;

#[cfg(any(feature = "reqwest-middleware", feature = "tower"))]
pub use adapter::{CallReport, TimedOut};
pub use call_limits::CallLimits;
pub use causes::{cause, causes};
#[cfg(feature = "client")]
pub use client::{Error, GovernedClient};
pub use clock::Clock;
#[cfg(feature = "metrics")]
pub use domains::domains_prometheus_text;
pub use domains::{AcquireError, DomainHandle, DomainPermit, DomainSettings, Domains, DomainsError, NotYet, domain_of};
pub use governors::{Governors, KEYS_MAX, KeyError, Settings};
pub use headers::Headers;
pub use key::Key;
#[cfg(feature = "tower")]
pub use layer::{CloneBody, Governed, GovernedError, GovernedLayer, RepeatBody, SendOnce};
pub use memory::MemoryError;
#[cfg(feature = "metrics")]
pub use metrics::prometheus_text;
#[cfg(feature = "reqwest-middleware")]
pub use middleware::GovernedMiddleware;
pub use readout::{CollectionRate, LastBackoff, Status, StatusBackoff, Waiting};
pub use refusal::{Refusal, Refused};
pub use retry::{End, Failure, Later, Next, Repeatable};
pub use send_governor::{SendGovernor, SendPermit};
pub use transport::{Finished, Transport};
pub use warm_start::{UndeclaredStream, persist_onto, restore_from};

pub use gleaner_governor as governor;

/// Compiles the code of the project's README and the crate's.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/domains.md")]
struct Readme;

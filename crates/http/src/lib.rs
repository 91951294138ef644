//! HTTP that finds a provider's rate limit from below, sits just under it, and remembers it.
//!
//! This crate drives [`gleaner_governor::Governor`] with a clock and sockets. There are four ways in,
//! and all of them behave alike:
//!
//! | | feature | for |
//! |---|---|---|
//! | `GovernedClient` | `client` (default) | a program that wants one good HTTP client |
//! | `GovernedMiddleware` | `reqwest-middleware` | a program that has a `reqwest-middleware` stack |
//! | `GovernedLayer` | `tower` | a program that has a `tower` stack |
//! | `external_send::ExternalSender` | `client` | requests that something else sends, such as a page of a browser |
//!
//! Every other language uses the reverse proxy of `gleaner-egress` (`gleaner proxy`), which drives the same governors.
//!
//! Behind all of them is [`SendGovernor`]: one per [`Key`], and a key is a provider and a credential. Everyone
//! who asks [`Governors`] for the same key gets the same send governor, so two clients in one process
//! do not break a limit together, and a slow provider delays nobody but its own callers.
//!
//! Whoever asks thousands of hosts instead of a few providers takes [`Domains`]: a registry in bounded memory, with a
//! pace, a circuit and retry credit for each host; `gleaner-fetch` fetches lists of URLs with it. Programs that send in
//! their own way share [`wire`]: connections, bodies, redirects.
//!
//! # What happens to a request
//!
//! 1. It queues for its key: first come, first served, and a retry keeps its place. The queue is bounded.
//! 2. It is admitted by the governor. **This is the only wait before a send**, as long as the longest
//!    of its reasons (pacing, gate, quota, window, in flight) and never their sum.
//! 3. It is sent. The attempt's timeout starts here.
//! 4. The answer is classified, and the governor learns from it. A refusal is written down before
//!    anybody hears of it, so that a crash cannot forget a gate.
//! 5. If it is worth repeating and safe to repeat, it goes back to 1, not before the time that the
//!    provider asked for. Otherwise the caller gets the answer.
//!
//! Run budget, circuit breaker and retry budget answer at once and never wait.
//!
//! # What is deliberately absent
//!
//! - A second place that sleeps before a send. There is one `sleep_until` ([`SendGovernor`]), a lint
//!   rejects others, and a request that would pass two governed layers is refused with
//!   [`Refusal::GovernedTwice`].
//! - A setting for the rate. The owner sets a ceiling, the rest is found.
//! - Credentials in keys, states, logs or metrics: a [`Key`] holds a keyed hash.
//!
//! # Files
//!
//! - `transport.rs`: one call with its attempts, the one retry loop; the trait that the five ways in implement
//! - `send_governor.rs`: one turn: queue, admission, the one sleep, and guards that give permits back
//! - `queue.rs`: who is next
//! - `call_limits.rs`: how long a caller waits, and how often it is sent
//! - `refusal.rs`: why a request was not sent
//! - `retry.rs`: whether a request is sent again, when, and what became of it if not: the one meaning of an advice
//! - `governors.rs`: all send governors of a process, by key
//! - `key.rs`: provider and credential, the latter as a keyed hash
//! - `memory.rs`: what outlives the process: a file per key
//! - `domains/`: very many hosts: `permit` (one turn), `waiters` (who is next), `upkeep` (what is done from time to
//!   time), `remembered` (a line per host), `status` and `prometheus` (how they are, for programs)
//! - `warm_start.rs`: the same on a stream's cursor
//! - `figures.rs`, `readout.rs`, `metrics.rs`: counts; for programs, and as the sidecar shows them; as Prometheus
//!   text
//! - `causes.rs`: an error with all its causes, in one line
//! - `clock.rs`, `headers.rs`: tokio's clock as the governor's time; headers for the classifier
//! - `external_send.rs`: feature `client`: requests that something else sends, such as a page of a browser
//! - `client/`: feature `client`: `builder`, `request`, `defaults` (headers of every request), `cookies`, `send` (the
//!   transport), `redirect` (what a redirect makes of a request), `record_replay` (the seam for recording and
//!   replaying), `response`, `paging` and `link`, `error` and `place` (URLs without their secrets)
//! - `blocking.rs`: the client without an async runtime in the caller's code
//! - `adapter.rs`, `middleware.rs`, `layer.rs`: features `reqwest-middleware` and `tower`, and what they share
//! - `wire.rs`, `wire/`: what everyone who sends shares: `connections`, `body` and `decode` (bombs, idle time),
//!   `redirect` and `address` (where it may lead), `no_answer` and `causes` (what went wrong)

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

/// The code of the project's README and of the crate's, so that it cannot rot.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/domains.md")]
struct Readme;

//! SDK for connector authors: a list function, a detail function and a parser become a connector that is paced,
//! bounded, resumable and honest about missing records.
//!
//! **The framework handles** the order of messages, slices and their commits, recovery before new work, caps and
//! backlog, coverage, pacing, credentials, scope, validation and a clean exit. **The author provides** a manifest,
//! and the meaning of the provider's answers.
//!
//! | for | see |
//! |---|---|
//! | the whole of a connector's `main` | [`run_connector`], [`Connector`] |
//! | the requested data, and a client to fetch it | [`Collect`] |
//! | a stream that goes forward page by page | [`Collect::pages`], [`Page`] |
//! | the same for authors who send records of several streams themselves | [`Collect::slices`], [`SliceEnd`] |
//! | a list, newest first, with a detail per item | [`lane`] |
//! | a question to the owner during a run | [`Collect::ask`], [`Question`] |
//! | anything else: records, tombstones, gaps, cursors one by one | [`Emitter`] |
//! | why something was not fetched, why a run ends | [`FetchError`], [`Stop`] |
//! | caps of an owner | [`variable_names`] |
//! | recorded exchanges, and a replay of them in a test | [`exchanges`], [`replay`](fn@replay) |
//! | running a connector in a test | [`run_on`], [`Wire`], [`Clock`] |
//!
//! # Deliberately absent
//!
//! - An async interface: a connector waits for one thing at a time, and the framework manages threads.
//! - A way to write an unchecked line, or to send a record past its schema.
//! - A setting for the pace, except the ceiling.
//! - Storage of its own: everything that outlives a run is on a cursor or in a gap.
//!
//! # Files
//!
//! - `connector.rs`: from START to the exit code; a panic ends the run, not its account (`connector/panics.rs`)
//! - `collect.rs`: one run as an author sees it: client, cursors, scope, coverage
//! - `same_names.rs`: conversions between enums whose variants have the same names
//! - `question.rs`: asks the owner during a run
//! - `pages.rs`, `pages/page.rs`: streams that go forward: a slice per page, one gap for the rest after a budget
//!   ended
//! - `lane.rs`, `lane/source.rs`: a list, newest first, with a detail per item: the author's interface
//! - `lane/place.rs`, `lane/ties.rs`: positions in a moving list; seen items of one time, in bounded space
//! - `lane/in_order.rs`: pages in, items in one total order out, with bounded memory
//! - `lane/cursor.rs`, `lane/backlog.rs`: the accounted part of a list; the one gap for the rest, as ranges
//! - `lane/ledger.rs`: outcomes of a million keys, in 40 MB
//! - `lane/work.rs`, `lane/walk.rs`: handling of one item; a walk down a range in batches
//! - `lane/threads.rs`: concurrent fetches, on as many threads as the system provides
//! - `lane/recovery.rs`, `lane/forward.rs`: the two passes, which share walk, budget and chunk
//! - `emit.rs`, `emit/new_record.rs`, `emit/rejected.rs`: sending of all messages; a record before it is sent;
//!   invalid records, counted and reported without their content
//! - `budget.rs`, `budget/caps.rs`: the budget of a run, pure; caps of an owner
//! - `gaps.rs`: gaps to recover, page by page
//! - `connector/credentials.rs`: lookup of credentials, and the question for missing ones
//! - `pace/warm_start.rs`, `pace/rate.rs`: the pace on a cursor; the pace as progress
//! - `fetch_error.rs`, `stop.rs`: why something was not fetched, by reaction; why a run ends
//! - `exchanges.rs`, `exchanges/`: recorded exchanges: format and limits, removal of secrets, writing, replay
//! - `replay.rs`: a connector in a test, answered from a recording
//! - `pace/waits.rs`: reports waits from a separate thread
//! - `wire.rs`, `wire/stdio.rs`, `clock.rs`: the pipe as a trait; bounded standard input and output; the only file
//!   that reads clocks and waits

#![warn(missing_docs)]

mod budget;
mod clock;
mod collect;
mod connector;
mod emit;
pub mod exchanges;
mod fetch_error;
mod gaps;
pub mod lane;
mod pace;
mod pages;
mod question;
mod replay;
mod same_names;
mod stop;
mod wire;

pub use budget::caps::variable_names;
pub use clock::{Clock, SystemClock, rfc3339};
pub use collect::{Collect, SenderSettings};
pub use connector::{ACCOUNT_VARIABLE, Connector, PACING_VARIABLE, Surroundings, run_connector, run_on};
pub use emit::{Counts, Cursor, Emitted, Emitter};
pub use fetch_error::{FetchError, FetchErrorKind};
pub use gleaner_http::blocking::Client;
pub use pages::page::Page;
pub use pages::{Left, REST_OF_STREAM, SliceEnd};
pub use question::{Question, Reply};
pub use replay::{Replay, Replayed, replay};
pub use stop::{Failure, Stop};
pub use wire::{Aside, Wire, WireFault};

pub use gleaner_http as http;
pub use gleaner_protocol as protocol;

/// Compiles the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/connectors.md")]
struct Guide;

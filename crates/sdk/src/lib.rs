//! What a connector author links: a list function, a detail function and a parser become a connector that
//! is paced, bounded, resumable and honest about what is missing.
//!
//! **The framework's:** the order of messages, slices and their commits, recovery before new work, caps and
//! backlog, coverage, the pace and its memory, credentials, scope, validation, a clean exit. **The author's:**
//! a manifest, and what the provider's answers mean.
//!
//! | for | see |
//! |---|---|
//! | the whole of a connector's `main` | [`run_connector`], [`Connector`] |
//! | what was asked for, and a client to get it with | [`Collect`] |
//! | a stream that goes forward page by page | [`Collect::pages`], [`Page`] |
//! | the same for an author who sends records of several streams by himself | [`Collect::slices`], [`SliceEnd`] |
//! | a list, newest first, with a detail per item | [`lane`] |
//! | a question to the owner in the middle of a run | [`Collect::ask`], [`Question`] |
//! | anything else: records, tombstones, gaps, cursors one by one | [`Emitter`] |
//! | why something was not fetched, why a run ends | [`FetchError`], [`Stop`] |
//! | what an owner may bound | [`variable_names`] |
//! | recorded exchanges, and a connector that is answered from them in a test | [`exchanges`], [`replay`](fn@replay) |
//! | running a connector in a test | [`run_on`], [`Wire`], [`Clock`] |
//!
//! # What is deliberately absent
//!
//! - An async interface: a connector waits for one thing at a time, and threads are the framework's.
//! - A way to write a line that was not checked, and a way to send a record around its schema.
//! - A setting for the pace but the owner's one number.
//! - A place of its own to remember things: everything that outlives a run is on a cursor or in a gap.
//!
//! # Files
//!
//! - `connector.rs`: from START to the exit code; a panic ends the run and not its account (`connector/panics.rs`)
//! - `collect.rs`: one run as an author sees it: client, cursors, scope, what is accounted for
//! - `same_names.rs`: conversions between enums whose variants have the same names
//! - `question.rs`: asks the owner in the middle of a run
//! - `pages.rs`, `pages/page.rs`: streams that go forward: a slice per page, one gap for what a budget left
//! - `lane.rs`, `lane/source.rs`: a list, newest first, with a detail per item: what an author gives
//! - `lane/place.rs`, `lane/ties.rs`: a place in a list that moves; which items of one time were seen, in bounded
//!   space
//! - `lane/in_order.rs`: pages in, items in one total order out, with bounded memory
//! - `lane/cursor.rs`, `lane/backlog.rs`: how far a list is accounted for; the one gap for the rest, as ranges
//! - `lane/ledger.rs`: what became of a million keys, in 40 MB
//! - `lane/work.rs`, `lane/walk.rs`: what happens to one item; a walk down a range in batches
//! - `lane/threads.rs`: several fetches at a time, on as many threads as the system gives
//! - `lane/recovery.rs`, `lane/forward.rs`: the two passes, which share walk, budget and chunk
//! - `emit.rs`, `emit/new_record.rs`, `emit/rejected.rs`: everything that is said; a record on its way there; records
//!   that do not fit, counted and reported without their content
//! - `budget.rs`, `budget/caps.rs`: the one budget of a run, pure; what an owner may bound
//! - `gaps.rs`: gaps to recover, page after page
//! - `connector/credentials.rs`: found, asked for, or missed by name
//! - `pace/warm_start.rs`, `pace/rate.rs`: the pace on a cursor; the pace as progress
//! - `fetch_error.rs`, `stop.rs`: why something was not fetched, by what is to be done about it; why a run ends
//! - `exchanges.rs`, `exchanges/`: recorded exchanges: the format with its bounds, what never gets into it, writing
//!   it, answering from it
//! - `replay.rs`: a connector in a test, answered from a recording
//! - `pace/waits.rs`: says what a run waits for, from a thread of its own, while it waits
//! - `wire.rs`, `wire/stdio.rs`, `clock.rs`: the pipe as a trait; standard input and output with bounds; the one file
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
pub use collect::{Collect, Habits};
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

/// The code of the guide, so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/connectors.md")]
struct Guide;

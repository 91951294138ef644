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

//! When which connection runs, in what kind of run, and why not now.
//!
//! **It decides and does nothing.** What is known about each connection ([`Facts`]) and the time go in; what to launch,
//! when to ask again, and the reason of every wait come out. No clock, no store, no process: a year is lived through in
//! the tests of this crate.
//!
//! | for | see |
//! |---|---|
//! | how often, at which hours, in which zone | [`Cadence`], [`QuietHours`] |
//! | what the owner and the manifest say together | [`Plan`], [`OwnerWish`] |
//! | what one connection does next, and why | [`Next`], [`Because`], [`Held`] |
//! | which of those that are due goes first | [`Scheduler`], [`Launch`] |
//!
//! # What is deliberately absent
//!
//! - A queue of missed runs: a connection that slept through ten of them is due once.
//! - Priorities that somebody sets. Stale data goes first, and no provider lives at the cost of another.
//!
//! # Files
//!
//! - `calendar.rs`: intervals, patterns, quiet hours, zones; what a change of the clock does to each
//! - `plan.rs`: what the owner and the manifest say together
//! - `facts.rs`: what is known about a connection, as far as it decides something
//! - `next.rs`: what it does next, when and why, without regard to the others: all rules are here
//! - `scheduler.rs`: which of those that are due goes first: classes, shares of providers, one run per account, no
//!   storm

#![warn(missing_docs)]

mod calendar;
mod facts;
mod next;
mod plan;
mod scheduler;

pub use calendar::{BadCadence, Cadence, Every, QuietHours, Zone};
pub use facts::{Detained, Facts, Failures, LastRun, Span};
pub use next::{Because, Held, Kind, Next, PROBE_EVERY, REMAINDER_AFTER};
pub use plan::{HeldBack, Mode, OwnerWish, Plan, Session};
pub use scheduler::{Class, Launch, Limits, Scheduler};

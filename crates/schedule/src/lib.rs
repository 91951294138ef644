//! Decides when each connection runs, in what kind of run, and why not now.
//!
//! **It decides and does nothing.** Facts about each connection ([`Facts`]) and the time go in; runs to start, the
//! time to ask again, and the reason of every wait come out. No clock, no store, no process: the tests of this crate
//! simulate a year.
//!
//! | for | see |
//! |---|---|
//! | intervals, cron patterns, quiet hours, time zones | [`Cadence`], [`QuietHours`] |
//! | settings of owner and manifest combined | [`Plan`], [`OwnerWish`] |
//! | the next run of one connection, and why | [`Next`], [`Because`], [`Held`] |
//! | the order of due connections | [`Scheduler`], [`Launch`] |
//!
//! # Deliberately absent
//!
//! - A queue of missed runs: a connection that missed ten is due once.
//! - Configurable priorities. Stale data goes first, and providers share the machine fairly.
//!
//! # Files
//!
//! - `calendar.rs`: intervals, cron patterns, quiet hours, time zones; clock changes
//! - `plan.rs`: settings of owner and manifest combined
//! - `facts.rs`: facts about a connection
//! - `next.rs`: the next run of one connection, when and why: all rules are here
//! - `scheduler.rs`: the order of due connections: classes, shares of providers, one run per account, spaced starts

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

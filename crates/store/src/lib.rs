//! Durable facts of collection runs, in one SQLite file.
//!
//! The engine decides, this crate keeps. A slice of records, gaps and cursor becomes durable in one
//! transaction with one sync, and only then is there a receipt for it; so a cursor is never ahead of
//! what it covers. Whoever lost its lease changes nothing, because every change looks at the lease
//! inside its own transaction. The file can be read with any SQLite program while we write it.
//!
//! | for | see |
//! |---|---|
//! | opening a store, adding a connection | [`Store::open`], [`Store::register`] |
//! | who may work on what | [`Store::acquire`], [`Lease`], [`Holder`] |
//! | a run: begin, slices, gaps, coverage, commit, end | [`Store::begin_run`], [`Store::carry_out`], [`Session`] |
//! | everything that is shown | [`Reader`] |
//! | whether the file is whole | [`Reader::verify`] |
//! | a copy, and putting it back | [`Reader::backup`], [`restore()`] |
//! | records as text, for files and downloads | [`Snapshot::export`], [`ExportOf`] |
//! | when a connection runs, as its owner said | [`Store::set_schedule`], [`OwnerSchedule`] |
//! | forgetting | [`Store::purge`] |
//! | what can go wrong, in words | [`StoreError`] |
//!
//! # What is deliberately absent
//!
//! - Decisions: what a gap may become, which cursor is eligible, how long a rest is. Rows become the
//!   engine's types, and those have the rules.
//! - A way to commit a cursor without the receipt of its slice.
//! - Secrets. Answers of the owner and credentials are never handed to this crate.
//! - A clock for dates: they are arguments. Leases read the machine's own clock, which nobody can set.

mod account;
mod care;
mod error;
mod export;
mod gaps;
mod lease;
mod open;
mod read;
mod registry;
mod run;
mod schedule;
mod sql;
mod store;
mod views;

pub use care::backup::CopyStep;
pub use care::repair::{Doubt, DoubtAbout, Repaired};
pub use care::restore::{RestoreOutcome, restore};
pub use care::verify::Damage;
pub use error::StoreError;
pub use export::{ExportForm, ExportOf, ExportStopped, Formulas};
pub use gaps::owners_gaps::GapsMeant;
pub use lease::holder::Holder;
pub use lease::{Acquired, HEARTBEAT, HeldBy, LEASE_TTL, Lease, LeaseOn};
pub use read::{
    Cell, Change, ConnectionState, ConnectionSummary, Evidence, Found, GAP_ID_DIGITS_MIN, GapCause, GapCount,
    GapFilter, GapSummary, GapsWaiting, Ignored, Interrupter, LeaseStanding, LeftOpen, LeftOpenKind, Listing, MeantGap,
    Missing, PAGE_BYTES_MAX, PAGE_ROWS_MAX, QuarantinedRecord, QueryError, QuerySink, Reader, RecordRow, RunSummary,
    Share, Snapshot, StoredRecord, StreamCoverage, StreamSummary, Told, TracedEvent, WhyUnknown,
};
pub use run::interactions::{OpenQuestion, Settled};
pub use run::session::{RunAbout, RunStart, Session};
pub use run::skips::OpenSkip;
pub use schedule::{OwnerSchedule, Wanted, WantedBy};
pub use store::Store;

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
//!
//! # Files
//!
//! - `store.rs`: the writer: fence, change, commit, sync; stops for good when the device fails
//! - `open.rs`: opening: ours, whole, not newer; the settings that make "saved" true; the schema in steps
//! - `error.rs`, `sql.rs`: what can go wrong in words; statements in one line each
//! - `lease.rs`, `lease/`: leases with an epoch; who a process is (`holder`), who holds the lock (`lock_holder`), the
//!   note that notices an older copy (`seen`)
//! - `registry.rs`, `views.rs`: connections and streams; a view per stream
//! - `run/session.rs`, `run/finish.rs`: a run is opened and ended, each in one transaction
//! - `run/carry_out.rs`, `run/slices.rs`: an effect of a run in, its answer back; records and cursors of a slice
//! - `run/quarantine.rs`, `run/skips.rs`: records that do not fit, judged again when something changes; what runs
//!   left out, until a run brings it
//! - `run/trace.rs`, `run/interactions.rs`, `run/listings.rs`, `run/rest_of_run.rs`: what connectors say and ask; the
//!   numbers of a coverage report that stay; what a budget left
//! - `gaps/gap_rows.rs`, `gaps/gap_pages.rs`: gaps as rows; handing them out
//! - `gaps/held_gaps.rs`, `gaps/owners_gaps.rs`, `gaps/renewal.rs`: whether the store has what a connector calls
//!   recovered; what an owner says about one gap; gaps that come back with another version or credential
//! - `account/coverage_keys.rs`, `account/hydrated_keys.rs`, `account/awaited_keys.rs`: a million keys of a report,
//!   counted in a temporary table; whether the store has what a connector calls hydrated; keys that wait for a later
//!   report
//! - `account/accounts.rs`, `account/owed.rs`, `account/reach.rs`: whether a coverage report stands behind a cursor,
//!   and which cursor the next run continues from; the details that a run owes; the scope behind each cursor
//! - `account/shortfalls.rs`: accounts of scoped and catch-up runs that fell short, until a later run settles them
//! - `schedule.rs`: what the owner set and was told, runs that are wanted
//! - `care/verify.rs`, `care/verify/`, `care/row_hash.rs`: damage is found by row; the engine's invariants, asked of
//!   every row
//! - `care/repair.rs`: what earlier versions left in doubt, and the way to list it again
//! - `care/backup.rs`, `care/restore.rs`, `care/purge.rs`: a copy of one moment, putting it back in one transaction;
//!   forgetting for good
//! - `export.rs`, `export/csv_sheet.rs`: records as JSON lines or as a table, for files and downloads
//! - `read.rs`, `read/`: the read model: connections, records and the change feed, runs, gaps, evidence for health,
//!   coverage, upkeep; one moment for an export; questions in SQL

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

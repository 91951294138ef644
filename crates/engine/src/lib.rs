//! What a run means: which cursors may be committed, what a gap may become, when a connection rests.
//!
//! **It decides and does nothing.** Messages of a connector, receipts of a store, answers of an owner
//! and the time go in; effects for a store and a process come out. No clock, no files, no threads, no
//! random numbers (the crate's `clippy.toml` rejects them), so any run can be replayed.
//!
//! | for | see |
//! |---|---|
//! | which cursors are committed | [`Ledger`], [`CommitPlan`], [`Receipt`] |
//! | what becomes durable together | [`Slice`] |
//! | whether a report accounts for every key | [`CoverageTally`] |
//! | what a gap may become | [`Gap`], [`GapIdentity`], [`page_bytes`] |
//! | what a run does with a message, a receipt, an answer, an exit | [`Run`], [`Effect`] (for the store, the process or the owner), [`RunOutcome`] |
//! | whether a record fits the schema of its stream | [`Schemas`], [`SchemaFault`], [`Validate`], [`RecordChecks`] |
//! | what a scope leaves of a record, for whoever writes records | [`ScopeFilter`] |
//! | keeping secrets out of what people see | [`Redactor`] |
//! | how a connection is doing | [`Health`], [`Finding`] |
//! | that none of it is broken | [`invariants`] |
//! | what a run is for | [`RunPurpose`] |
//! | which track a run moves, and what it may do to the account | [`Reach`], [`RunScope`] |
//! | when a connection rests | [`Cooldown`], [`Rest`], [`PressureBacklog`] |
//!
//! # Files
//!
//! - `run.rs`: the run machine: what can happen to a run, what it wants, what it waits for
//! - `run/messages.rs`, `run/question.rs`, `run/ending.rs`: what each message means; questions to the owner; how a
//!   run ends, once
//! - `run/masking.rs`: the connection's own credential: masked where people read, a violation where it would be kept
//! - `run/effect.rs`: what store, process and owner are to do, each a type of its own, and the outcome
//! - `testing/`: what tests of this crate and of the store share
//! - `ended.rs`, `incomplete.rs`: how a run ended, in a sentence; what a run that succeeded leaves open
//! - `slice.rs`: records, gaps and cursor that become durable together; the one source of receipts
//! - `checkpoint.rs`: receipts to plan: which cursors are committed; the three tracks as types
//! - `reach.rs`: which track a run moves, given what it asks for (docs/decisions/0001-scoped-runs.md)
//! - `coverage.rs`: the meaning of a coverage report, from a tally that the store makes
//! - `note.rs`: what an owner writes beside a decision
//! - `gap.rs`, `page.rs`: what a gap may become; how large a page is
//! - `cooldown.rs`: when a connection rests; the backlog under source pressure
//! - `purpose.rs`: what a run is for: everything, gaps alone, or one request as a probe
//! - `scope.rs`, `scope_filter.rs`, `instant.rs`: whether a record was asked for, for who judges it and for who
//!   writes it; times as records write them
//! - `redact.rs`: a connection's own secrets out of what people see
//! - `schema.rs`: whether a body fits its stream's schema
//! - `schema/`: `plan`, `node`, `properties`, `number`: a schema compiled for one pass over the text; `walk`, `text`:
//!   that pass; `library`, `value`: everything else, through jsonschema; `survey`, `bounds`: schemas that would take
//!   too long are refused; `agreement`: both give the same verdict
//! - `health.rs`: findings and a grade, from typed evidence
//! - `invariants.rs`: promises as predicates over single steps, for `verify` and tests
//! - `time.rs`, `ids.rs`: two clocks as numbers; a type for every name

mod checkpoint;
mod cooldown;
mod coverage;
mod ended;
mod gap;
mod health;
mod ids;
mod incomplete;
mod instant;
pub mod invariants;
mod note;
mod page;
mod purpose;
mod reach;
mod redact;
mod run;
mod schema;
mod scope;
mod scope_filter;
mod slice;
mod time;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use checkpoint::{
    CatchUp, CommitPlan, Cursor, Ending, FoundBy, Ledger, Receipt, ReceiptOutOfOrder, Scoped, Steady, Track, Withheld,
    WithheldBecause,
};
pub use cooldown::{
    Cooldown, CooldownPolicy, EVIDENCE_WINDOW, Permission, PressureBacklog, PressureSeen, REST_MAX, Rest, Trigger,
};
pub use coverage::{CoveragePair, CoverageTally, CoverageVerdict, check_pair, gaps_need_no_parent, missing_reports};
pub use ended::Ended;
pub use gap::{
    AttemptLimits, Confirmation, Evidence, Gap, GapCause, GapIdentity, GapState, GapsConfirmed, NOT_BEFORE_MAX,
    REST_OF_RUN, Recovery, rest_of_run,
};
pub use health::{BACK_OFF_FROM, BLOCKED_FROM, Finding, Grade, Health, HealthEvidence, OpenRun, is_failure};
pub use ids::{CommitSeq, Epoch, GapId, LeaseId, ReportId, RunId, SliceId};
pub use incomplete::{Shortfall, Skipped, Skips, Warning, WarningCode};
pub use note::{NOTE_CHARS_MAX, Note, NoteFault};
pub use page::{PAGE_BYTES_DEFAULT, PAGE_BYTES_MAX, PAGE_BYTES_MIN, page_bytes};
pub use purpose::RunPurpose;
pub use reach::{ExpectedReport, Extent, GrantPart, Reach, ReportedKeys, RunScope, SeenStreams, TrackChoice};
pub use redact::Redactor;
pub use run::{
    AnswerTaken, Counts, EFFECTS_MAX, Effect, Exit, Full, OwnerEffect, ProcessEffect, Run, RunConfig, RunOutcome,
    StoreEffect, TraceEvent,
};
pub use schema::{SchemaFault, SchemaFaultCode, Schemas};
pub use scope::{Misfit, NoSchema, RecordChecks, Refusal, Validate, check_scope};
pub use scope_filter::{ScopeFilter, Selected};
pub use slice::{GapChange, Slice, SliceRecord, SliceStep};
pub use time::{Now, Time, WallTime};

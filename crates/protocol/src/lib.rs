//! Messages between a connector and its runtime.
//!
//! A connector is a program that knows one provider. It reads messages on its standard input and writes them on its
//! standard output, one JSON object per line. This crate has the messages of both directions, a decoder for a
//! connector's output with bounded memory, the connector's manifest, and the fixed vocabularies of all of them, each
//! code with a text for people.
//!
//! **It does no IO.** No clock, no files, no threads, no random numbers: it is fed data from a pipe, and returns
//! events.
//!
//! # Why not `serde_json` on each line
//!
//! - A line may be a gigabyte long. Here it is refused when it exceeds the limit, with the name of its stream.
//! - A coverage report names every key of a run. Here it is read in blocks while it arrives.
//! - `1e400`, 2^63 and `1.0` do not survive a parser, and a provider's data must not change. Here bodies, cursors and
//!   locators stay the bytes that were written ([`RawJson`]).
//! - Of `{"key":1,"key":2}` one parser keeps the first and another the last. Here both are refused,
//!   at every depth.
//! - An error must give the position of a fault and must not repeat the line, which may be private. Here it is a
//!   [`Violation`]: a code, a position, a field, a stream, never the bytes.
//!
//! # A complete example
//!
//! ```
//! use gleaner_protocol::{ConnectorMessage, Decoder, Event, Limits, ViolationCode};
//!
//! let output = concat!(
//!     r#"{"type":"RECORD","stream":"trips","key":"t1","data":{"km":1.50},"emitted_at":"2031-01-01T00:00:00Z"}"#, "\n",
//!     r#"{"type":"STATE","stream":"trips","cursor":{"page":2},"slice":true}"#, "\n",
//!     r#"{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"trips","state_stream":"trips","#,
//!     r#""required_keys":["t1","t2"],"hydrated_keys":["t1"],"gap_keys":["t2"]}"#, "\n",
//!     r#"{"type":"DONE","status":"succ"#, // the connector was killed here
//! );
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut seen = Vec::new();
//! // A pipe cuts where it likes.
//! for piece in output.as_bytes().chunks(10) {
//!     let mut feed = decoder.feed(piece);
//!     while let Some(event) = feed.next() {
//!         seen.push(match event {
//!             Event::Message { message: ConnectorMessage::Record(record), .. } => {
//!                 // The body, as it was written.
//!                 record.data.map(|data| data.as_str().to_owned()).unwrap_or_default()
//!             }
//!             Event::Message { message: ConnectorMessage::State(state), .. } => state.cursor.as_str().to_owned(),
//!             Event::CoverageKeys { field, keys, .. } => format!("{}: {}", field.code(), keys.len()),
//!             Event::CoverageEnd { report, .. } => format!("covers {}", report.state_stream),
//!             Event::Message { .. } => "something else".to_owned(),
//!             Event::Violation(violation) => violation.to_string(),
//!         });
//!     }
//! }
//! assert_eq!(
//!     seen,
//!     [r#"{"km":1.50}"#, r#"{"page":2}"#, "required_keys: 2", "hydrated_keys: 1", "gap_keys: 1", "covers trips"]
//! );
//!
//! // A line without its line feed is never a message.
//! let violation = decoder.finish().unwrap_err();
//! assert_eq!(violation.code, ViolationCode::IncompleteLine);
//! assert_eq!(violation.wording().next, "Run it again to continue from the last saved slice; if it happens again, tell the connector's author.");
//! ```
//!
//! # Overview
//!
//! | for | see |
//! |---|---|
//! | reading a connector's output | [`Decoder`], [`Event`], [`Limits`] |
//! | one line in either direction | [`ConnectorMessage`], [`RuntimeMessage`] |
//! | coverage of every record | [`CoverageReport`], [`KeyBlock`] |
//! | a connector's manifest | [`Manifest`], [`ManifestFault`] |
//! | the end of a run | [`Violation`], [`ViolationCode`], [`TerminalReason`] |
//! | why a record is missing | [`GapReason`], [`PressureReason`], [`DeferReason`], [`ErrorClass`] |
//! | rate and circuit | [`CollectionRate`], [`ProviderBudget`] |
//! | a check of all texts for people | [`check_wording`] |
//!
//! # Deliberately absent
//!
//! - Rules over more than one message: scope, order, counts, the commit of cursors. The engine has those.
//! - A tree of JSON values, and any way to rewrite a body.
//! - A variant "other" in a vocabulary, and a conversion from [`DeferReason`] to [`PressureReason`].
//! - The bytes of a line in an error, and the content of a body in a `Debug` text.
//! - Files, pipes, clocks, threads. A lint (`clippy.toml` of this crate) rejects them.
//!
//! # Files
//!
//! - `decoding/`: `decoder`: a connector's output to events; `framer`: bytes to lines, with the limit;
//!   `coverage_reader`: one DETAIL_COVERAGE, piece by piece, as blocks of keys
//! - `messages/message.rs`: the two enums of messages, by type
//! - `messages/wire.rs`, `messages/fields.rs`, `messages/line_writer.rs`: reading and writing of fields by type: a
//!   message lists its fields once
//! - `messages/record.rs`: RECORD and STATE (borrowed), resource filter, deletion check
//! - `messages/`: the other messages: `gap`, `coverage`, `progress`, `interaction`, `done`, `start`; parts of them:
//!   `hints` (recovery hints, continuations), `observability` (`collection_rate`, `provider_budget`), `waiting`
//! - `json/`: JSON kept as written (`raw_json`, `view`); one pass over a text: grammar, depth, duplicate keys, fields
//!   (`scan`, `lex`, `key_ledger`, `json_string`)
//! - `words/`: code and text declared together (`vocabulary`, checked at start by `wording_check`): `reasons`
//!   (pressure, own budget, absence: three types that do not convert), `violation`, `terminal`
//! - `manifest.rs`, `manifest/`: the manifest: its parts, streams, checkpoints (cycle search), refresh policy,
//!   bindings, capabilities, command; faults with path, value and allowed values

#![warn(missing_docs)]

mod decoding;
pub mod json;
mod manifest;
mod messages;
mod words;

pub use decoding::decoder::{Decoder, Event, Feed, Limits};
pub use json::raw_json::{RawJson, RawJsonFault};
pub use manifest::{
    Auth, Binding, BindingKind, Checkpoint, CoveragePolicy, InteractionPosture, MANIFEST_BYTES_MAX, Manifest,
    ManifestFault, ManifestFaultCode, ManifestOrigin, ManifestRejected, RecommendedMode, RefreshPolicy, STREAMS_MAX,
    Selection, Semantics, Sensitivity, StreamManifest, VariableText,
};
pub use messages::coverage::{CoverageField, CoverageReport, KeyBlock};
pub use messages::done::{Done, DoneError, DoneStatus, STREAM_COLLECTION_FAILED};
pub use messages::gap::{
    DetailGap, DetailGapAttempted, DetailGapRecovered, GapKey, GapsPageRequest, LastError, ServedGap,
};
pub use messages::hints::{Continuation, RecoveryAction, RecoveryHint};
pub use messages::interaction::{
    Answer, Assistance, AssistanceOutcome, AssistanceStatus, Interaction, InteractionKind, InteractionResponse,
    InteractionStatus, OwnerAction, ProgressPosture, is_picture_name,
};
pub use messages::message::{ConnectorMessage, RuntimeMessage};
pub use messages::observability::{
    Backoff, BackoffReason, CircuitChange, CircuitReason, CircuitState, CircuitTrigger, CollectionRate, Evidence,
    ProviderBudget, RetryTokens, UnboundedTag,
};
pub use messages::progress::{Progress, SkipResult};
pub use messages::record::{Op, Record, RecordKey, ResourceFilter, State};
pub use messages::start::{
    CollectionMode, GapsPageResponse, RunBudget, Scope, ScopeFault, Start, StreamScope, TimeRange,
};
pub use messages::waiting::{Waiting, WaitingReason};
pub use words::reasons::{
    AbsenceReason, DeferReason, ErrorClass, GapReason, PressureReason, pressure_in_terminal_error,
};
pub use words::terminal::TerminalReason;
pub use words::violation::{Position, Violation, ViolationCode};
pub use words::vocabulary::Wording;
pub use words::wording_check::{WordingFault, blames_the_service, check_wording};

/// Compiles the code of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

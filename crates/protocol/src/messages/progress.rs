//! PROGRESS and SKIP_RESULT: progress messages, and skipped parts.
//!
//! A progress message is for people and may be lossy; unknown keys are ignored. A skip is part of the account, so its
//! hint and its continuation are read strictly.

use crate::json::raw_json::RawJson;
use crate::messages::fields::{Fault, Fields};
use crate::messages::hints::{Continuation, RecoveryHint};
use crate::messages::line_writer::LineWriter;
use crate::messages::observability::{CollectionRate, Evidence, ProviderBudget, Report, read_evidence};
use crate::messages::start::TimeRange;
use crate::messages::waiting::Waiting;
use crate::messages::wire::{Holds, Optional, OptionalList, Sentence, wire_fields};

/// Progress for people, with reports for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// A sentence.
    pub message: String,
    /// The stream it is about.
    pub stream: Option<String>,
    /// Number done.
    pub count: Option<u64>,
    /// Total number.
    pub total: Option<u64>,
    /// The current rate.
    pub collection_rate: Evidence<CollectionRate>,
    /// A circuit transition.
    pub provider_budget: Evidence<ProviderBudget>,
    /// The current wait; `None` in it ends the wait.
    pub waiting: Evidence<Option<Waiting>>,
}

wire_fields! {
    Progress {
        message: Sentence,
        stream: Optional,
        count: Optional,
        total: Optional,
        collection_rate: Evident,
        provider_budget: Evident,
        waiting: Evident,
    }
}

/// An implausible report is dropped on reading and stays dropped on writing.
struct Evident;

impl<T: Report> Holds<Evidence<T>> for Evident {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Evidence<T>, Fault> {
        Ok(fields.any(name).map_or(Evidence::Absent, |view| read_evidence(view.text())))
    }

    fn write<'o>(value: &Evidence<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        match value.valid().map(serde_json::to_vec) {
            Some(Ok(text)) => line.value(name, |out| out.extend_from_slice(&text)),
            // These types hold finite numbers and words, which always serialize.
            Some(Err(_)) | None => line,
        }
    }
}

/// A skipped part, and the recommended action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipResult {
    /// The stream, unless it is about the whole run.
    pub stream: Option<String>,
    /// Reason, in the connector's own vocabulary.
    pub reason: Option<String>,
    /// A sentence.
    pub message: Option<String>,
    /// Details for debugging. They may hold anything, so they are sanitized before they are shown.
    pub diagnostics: Option<RawJson<'static>>,
    /// Recommended action.
    pub recovery_hint: Option<RecoveryHint>,
    /// Proof of one bounded page.
    pub continuation: Option<Continuation>,
    /// The records, if it is about some.
    pub resources: Vec<String>,
    /// The time range, if it is about one.
    pub time_range: Option<TimeRange>,
}

wire_fields! {
    SkipResult {
        stream: Optional,
        reason: Optional,
        message: Sentence,
        diagnostics: Optional,
        resources: Resources,
        recovery_hint: Optional,
        continuation: Optional,
        time_range: Optional,
    }
}

/// Two names are in use; a connector sends one of them.
struct Resources;

impl Holds<Vec<String>> for Resources {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Vec<String>, Fault> {
        let mut resources = OptionalList::read(fields, "resource_ids")?;
        resources.extend(OptionalList::read(fields, name)?);
        Ok(resources)
    }

    fn write<'o>(value: &Vec<String>, line: LineWriter<'o>, _: &str) -> LineWriter<'o> {
        OptionalList::write(value, line, "resource_ids")
    }
}

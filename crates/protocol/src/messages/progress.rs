//! PROGRESS and SKIP_RESULT: what a connector says on the way, and what it left out.
//!
//! A progress message is for people and may be lossy; keys that are not known are ignored. A skip is
//! part of the account, so its hint and its continuation are read strictly.

use crate::json::raw_json::RawJson;
use crate::messages::fields::{Fault, Fields};
use crate::messages::hints::{Continuation, RecoveryHint};
use crate::messages::line_writer::LineWriter;
use crate::messages::observability::{CollectionRate, Evidence, ProviderBudget, Report, read_evidence};
use crate::messages::start::TimeRange;
use crate::messages::waiting::Waiting;
use crate::messages::wire::{Holds, Optional, OptionalList, Sentence, wire_fields};

/// News for people, with evidence for programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// A sentence.
    pub message: String,
    /// The stream it is about.
    pub stream: Option<String>,
    /// How many are done.
    pub count: Option<u64>,
    /// Out of how many.
    pub total: Option<u64>,
    /// The present pace.
    pub collection_rate: Evidence<CollectionRate>,
    /// A change of the circuit.
    pub provider_budget: Evidence<ProviderBudget>,
    /// What is waited for now; `None` in it says that nothing is any more.
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

/// What cannot be right is dropped when it is read, and what was dropped stays so when it is written.
struct Evident;

impl<T: Report> Holds<Evidence<T>> for Evident {
    fn read(fields: Fields<'_, '_>, name: &'static str) -> Result<Evidence<T>, Fault> {
        Ok(fields.any(name).map_or(Evidence::Absent, |view| read_evidence(view.text())))
    }

    fn write<'o>(value: &Evidence<T>, line: LineWriter<'o>, name: &str) -> LineWriter<'o> {
        match value.valid().map(serde_json::to_vec) {
            Some(Ok(text)) => line.value(name, |out| out.extend_from_slice(&text)),
            // These types hold finite numbers and words, which are always written.
            Some(Err(_)) | None => line,
        }
    }
}

/// Something that the connector left out, and what may help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipResult {
    /// The stream, unless it is about the whole run.
    pub stream: Option<String>,
    /// Why, in the connector's own vocabulary.
    pub reason: Option<String>,
    /// A sentence.
    pub message: Option<String>,
    /// Details for whoever looks into it. They may hold anything, so they are sanitised before they are shown.
    pub diagnostics: Option<RawJson<'static>>,
    /// What may help.
    pub recovery_hint: Option<RecoveryHint>,
    /// Proof of one bounded page.
    pub continuation: Option<Continuation>,
    /// Which records, if it is about some.
    pub resources: Vec<String>,
    /// Which time, if it is about one.
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

/// Both spellings are in use; a connector sends one of them.
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

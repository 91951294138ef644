//! PROGRESS and SKIP_RESULT: what a connector says on the way, and what it left out.
//!
//! A progress message is for people and may be lossy; keys that are not known are ignored. A skip is
//! part of the account, so its hint and its continuation are read strictly.

use crate::fields::{Fault, Fields};
use crate::hints::{Continuation, RecoveryHint};
use crate::line_writer::LineWriter;
use crate::observability::{CollectionRate, Evidence, ProviderBudget};
use crate::raw_json::RawJson;
use crate::start::TimeRange;
use crate::waiting::Waiting;
use serde::Serialize;

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

impl Progress {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        Ok(Self {
            message: fields.required_sentence("message")?,
            stream: fields.optional_name("stream")?.map(Into::into),
            count: fields.optional_count("count")?,
            total: fields.optional_count("total")?,
            collection_rate: fields
                .optional("collection_rate")
                .map_or(Evidence::Absent, |view| CollectionRate::read(view.text())),
            provider_budget: fields
                .optional("provider_budget")
                .map_or(Evidence::Absent, |view| ProviderBudget::read(view.text())),
            waiting: fields.any("waiting").map_or(Evidence::Absent, |view| Waiting::read(view.text())),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let line = LineWriter::message(out, "PROGRESS")
            .text("message", &self.message)
            .optional_text("stream", self.stream.as_deref())
            .optional_number("count", self.count)
            .optional_number("total", self.total);
        let line = write_evidence(line, "collection_rate", &self.collection_rate);
        let line = write_evidence(line, "provider_budget", &self.provider_budget);
        write_evidence(line, "waiting", &self.waiting).end();
    }
}

/// Writes what is valid. What was dropped stays dropped.
fn write_evidence<'o, T: Serialize>(line: LineWriter<'o>, name: &str, evidence: &Evidence<T>) -> LineWriter<'o> {
    match evidence.valid().map(serde_json::to_vec) {
        Some(Ok(text)) => line.value(name, |out| out.extend_from_slice(&text)),
        // These types hold finite numbers and words, which are always written.
        Some(Err(_)) | None => line,
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

impl SkipResult {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        // Both spellings are in use; a connector sends one of them.
        let mut resources = fields.names("resource_ids")?;
        resources.extend(fields.names("resources")?);
        Ok(Self {
            stream: fields.optional_name("stream")?.map(Into::into),
            reason: fields.optional_name("reason")?.map(Into::into),
            message: fields.optional_sentence("message")?,
            diagnostics: fields.optional_raw("diagnostics"),
            recovery_hint: fields.optional("recovery_hint").map(RecoveryHint::read).transpose()?,
            continuation: fields.optional("continuation").map(Continuation::read).transpose()?,
            resources,
            time_range: fields.optional("time_range").map(TimeRange::read).transpose()?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut line = LineWriter::message(out, "SKIP_RESULT")
            .optional_text("stream", self.stream.as_deref())
            .optional_text("reason", self.reason.as_deref())
            .optional_text("message", self.message.as_deref())
            .optional_raw("diagnostics", self.diagnostics.as_ref())
            .optional_texts("resource_ids", &self.resources);
        if let Some(hint) = self.recovery_hint {
            line = line.value("recovery_hint", |out| hint.write(out));
        }
        if let Some(continuation) = &self.continuation {
            line = line.value("continuation", |out| continuation.write(out));
        }
        if let Some(range) = &self.time_range {
            line = line.value("time_range", |out| range.write(out));
        }
        line.end();
    }
}

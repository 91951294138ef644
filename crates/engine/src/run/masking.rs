//! The connection's own credential, kept out of everything that is shown or stored.
//!
//! What is for people is masked: they need the sentence and not the secret. What is kept as it came, or names something
//! (a body, a cursor, a locator, a key), cannot be masked without becoming something else; there the credential is a
//! violation. A violation names stream and key, which are the connector's words too, so they are masked as well.

use super::{Run, TraceEvent};
use crate::checkpoint::Track;
use gleaner_protocol::{
    CoverageField, DetailGap, DoneError, Evidence, Interaction, KeyBlock, RawJson, SkipResult, Violation,
    ViolationCode, Waiting,
};

/// A code that held it.
const MASKED_CODE: &str = "secret";

impl<T: Track> Run<T> {
    /// A gap's key and places are kept as they are.
    pub(super) fn check_gap(&self, gap: &DetailGap) -> Result<(), Violation> {
        let raw = |raw: &Option<RawJson<'static>>| raw.as_ref().is_some_and(|raw| self.reveals(raw.as_str()));
        let text = |text: Option<&str>| text.is_some_and(|text| self.reveals(text));
        let checks = [
            ("detail_locator", raw(&gap.detail_locator)),
            ("list_cursor", raw(&gap.list_cursor)),
            ("record_key", text(gap.record_key.as_ref().map(gleaner_protocol::GapKey::as_str))),
            ("parent_stream", text(gap.parent_stream.as_deref())),
        ];
        let found = checks.into_iter().find(|(_, reveals)| *reveals);
        found.map_or(Ok(()), |(field, _)| Err(in_output(field).of_stream(&gap.stream)))
    }

    pub(super) fn check_cursor(&self, stream: &str, cursor: &RawJson<'_>) -> Result<(), Violation> {
        if self.reveals(cursor.as_str()) { Err(in_output("cursor").of_stream(stream)) } else { Ok(()) }
    }

    /// Keys that nobody accounts for become gaps. There may be a million, so they are looked at together first; two
    /// that only together hold it do not count.
    pub(super) fn check_keys(&self, field: CoverageField, keys: &KeyBlock) -> Result<(), Violation> {
        // An escape must not reach from one key into the next.
        let may_be = keys.joined().contains(['\\', '%']) || self.reveals(keys.joined());
        let found = may_be && keys.iter().any(|key| self.reveals(key));
        if found { Err(in_output(field.code())) } else { Ok(()) }
    }

    /// The question without it. Its name goes back to the connector and is not changed.
    pub(super) fn masked_question(&self, question: &Interaction) -> Result<Interaction, Violation> {
        if self.reveals(&question.request_id) {
            return Err(in_output("request_id"));
        }
        let mut question = question.clone();
        self.mask(&mut question.message);
        self.mask_all(&mut question.stream);
        self.mask_raw(&mut question.schema);
        // The name of a file: another name would be no picture.
        question.picture = question.picture.filter(|name| !self.reveals(name));
        Ok(question)
    }

    pub(super) fn masked_gap(&self, gap: &DetailGap) -> DetailGap {
        let mut gap = gap.clone();
        if let Some(error) = &mut gap.last_error {
            self.mask(&mut error.class);
            self.mask_json(&mut error.raw);
        }
        self.mask_raw(&mut gap.detail);
        gap
    }

    pub(super) fn masked_event(&self, event: TraceEvent) -> TraceEvent {
        match event {
            TraceEvent::Progress(mut progress) => {
                self.mask(&mut progress.message);
                self.mask_all(&mut progress.stream);
                progress.waiting = self.masked_waiting(progress.waiting);
                TraceEvent::Progress(progress)
            }
            TraceEvent::Skip(skip) => TraceEvent::Skip(Box::new(self.masked_skip(*skip))),
            TraceEvent::Assistance(mut help) => {
                self.mask(&mut help.message);
                self.mask_all(&mut help.assistance_request_id);
                self.mask_raw(&mut help.attachments);
                TraceEvent::Assistance(help)
            }
            TraceEvent::AssistanceStatus(mut status) => {
                self.mask(&mut status.assistance_request_id);
                self.mask_all(&mut status.message);
                TraceEvent::AssistanceStatus(status)
            }
        }
    }

    /// The reason stays a code, so that the wait is still read as one.
    fn masked_waiting(&self, waiting: Evidence<Option<Waiting>>) -> Evidence<Option<Waiting>> {
        match waiting {
            Evidence::Valid(Some(mut waiting)) => {
                if self.validator.mask(&waiting.reason).is_some() {
                    MASKED_CODE.clone_into(&mut waiting.reason);
                }
                if self.reveals(&waiting.until) { Evidence::Malformed } else { Evidence::Valid(Some(waiting)) }
            }
            other => other,
        }
    }

    fn masked_skip(&self, mut skip: SkipResult) -> SkipResult {
        self.mask_all([&mut skip.stream, &mut skip.reason, &mut skip.message].into_iter().flatten());
        self.mask_all(&mut skip.resources);
        self.mask_raw(&mut skip.diagnostics);
        if let Some(range) = &mut skip.time_range {
            self.mask_all([&mut range.since, &mut range.until].into_iter().flatten());
        }
        if let Some(continuation) = &mut skip.continuation {
            self.mask(&mut continuation.boundary);
            self.mask_json(&mut continuation.slice_start);
            self.mask_json(&mut continuation.slice_end);
        }
        skip
    }

    pub(super) fn masked_error(&self, mut error: DoneError) -> DoneError {
        self.mask(&mut error.message);
        self.mask_all(&mut error.code);
        error
    }

    pub(super) fn masked_violation(&self, mut violation: Violation) -> Violation {
        self.mask_all([&mut violation.stream, &mut violation.key].into_iter().flatten());
        violation
    }

    fn reveals(&self, text: &str) -> bool {
        self.validator.reveals_credential(text)
    }

    fn mask(&self, text: &mut String) {
        if let Some(masked) = self.validator.mask(text) {
            *text = masked;
        }
    }

    fn mask_all<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        texts.into_iter().for_each(|text| self.mask(text));
    }

    fn mask_raw(&self, raw: &mut Option<RawJson<'static>>) {
        if let Some(raw) = raw {
            self.mask_json(raw);
        }
    }

    fn mask_json(&self, raw: &mut RawJson<'static>) {
        if let Some(masked) = self.validator.mask(raw.as_str()) {
            // A secret that was a number leaves no JSON behind; then nothing is.
            *raw = RawJson::new(masked).unwrap_or_default();
        }
    }
}

/// The credential is in this field.
pub(crate) const fn in_output(field: &'static str) -> Violation {
    Violation::new(ViolationCode::CredentialInOutput).in_field(field)
}

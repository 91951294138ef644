//! Messages about gaps: found, attempted, recovered, requested.
//!
//! A gap is a record that is known to be missing. Locators and list cursors return to the connector byte for byte,
//! because a backlog's watermark is in them.

use crate::json::raw_json::RawJson;
use crate::json::view::View;
use crate::messages::fields::{Fault, Fields};
use crate::messages::line_writer::LineWriter;
use crate::messages::wire::{
    Holds, Nullable, Optional, OptionalList, Required, Sentence, Value, wire_fields, wire_object,
};
use crate::words::reasons::{AbsenceReason, ErrorClass, GapReason};
use crate::words::violation::ViolationCode;
use crate::words::vocabulary::Wording;

/// Key of the missing record: connectors write a string or a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapKey {
    /// A string.
    Text(String),
    /// A number, as written.
    Number(String),
}

impl GapKey {
    /// The key as one text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }
}

impl Value for GapKey {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        if view.is_number() {
            Ok(Self::Number(view.text().to_owned()))
        } else {
            String::read(field, view).map(Self::Text)
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => text.write(out),
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// The last error, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// The class of the error, in the connector's own vocabulary or ours ([`ErrorClass`]).
    pub class: String,
    /// The status of the answer, if any.
    pub http_status: Option<u16>,
    /// The connector's full text. Sanitized before it is shown.
    pub raw: RawJson<'static>,
}

impl LastError {
    /// An error with this class only.
    #[must_use]
    pub fn of_class(class: ErrorClass) -> Self {
        let mut out = Vec::new();
        LineWriter::object(&mut out).text("class", class.code()).close();
        let text = String::from_utf8_lossy(&out).into_owned();
        let raw = RawJson::new(text).unwrap_or(RawJson::checked("{}"));
        Self { class: class.code().to_owned(), http_status: None, raw }
    }
}

impl Value for LastError {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed(field, view))?;
        let fields = Fields::nested(&members);
        let http_status = match fields.optional("http_status") {
            None => None,
            Some(status) => match status.count().and_then(|status| u16::try_from(status).ok()) {
                Some(code @ 100..=599) => Some(code),
                Some(_) | None => return Err(Fault::malformed(field, status)),
            },
        };
        Ok(Self { class: Sentence::read(fields, "class")?, http_status, raw: view.raw().into_owned() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.raw.write(out);
    }
}

/// A known record that was not collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailGap {
    /// The stream.
    pub stream: String,
    /// Key of the record, if known.
    pub record_key: Option<GapKey>,
    /// The stream whose list named it.
    pub parent_stream: Option<String>,
    /// Why it is missing.
    pub reason: Option<GapReason>,
    /// Locator, with which the connector finds it again.
    pub detail_locator: Option<RawJson<'static>>,
    /// Its position in the list.
    pub list_cursor: Option<RawJson<'static>>,
    /// The last error.
    pub last_error: Option<LastError>,
    /// Details in the connector's own words.
    pub detail: Option<RawJson<'static>>,
    /// Whether a retry may succeed, if the connector says so.
    pub retryable: Option<bool>,
    /// Earliest time of a retry, in RFC 3339. Some connectors call it `next_attempt_after`.
    pub not_before: Option<String>,
    /// The gap's id, when a served one is put back.
    pub gap_id: Option<String>,
    /// The lease that it was served with.
    pub lease_id: Option<String>,
}

impl DetailGap {
    /// Whether this is a planned stop at an owner's cap.
    #[must_use]
    pub fn is_run_cap_deferral(&self) -> bool {
        self.class() == Some(ErrorClass::RunCapDeferred)
    }

    /// Text for people: a run cap has its own, everything else that of its reason.
    #[must_use]
    pub fn wording(&self) -> Option<Wording> {
        self.class().map(ErrorClass::wording).or_else(|| self.reason.map(GapReason::wording))
    }

    fn class(&self) -> Option<ErrorClass> {
        self.last_error.as_ref().and_then(|error| ErrorClass::from_code(&error.class))
    }

    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        let gap = Self::read_fields(fields)?;
        gap.check_run_cap()?;
        Ok(gap)
    }

    /// A run-cap deferral is no failure: it has its own reason and no status.
    fn check_run_cap(&self) -> Result<(), Fault> {
        let status = self.last_error.as_ref().and_then(|error| error.http_status);
        let reason = self.reason == Some(GapReason::Absence(AbsenceReason::RetryExhausted));
        if self.is_run_cap_deferral() && (!reason || status.is_some()) {
            return Err(Fault { code: ViolationCode::ContradictoryGap, field: "last_error", offset: 0 });
        }
        Ok(())
    }
}

wire_fields! {
    DetailGap {
        [reference_only = true]
        stream: Required,
        record_key: Optional,
        parent_stream: Optional,
        reason: Optional,
        detail_locator: Optional,
        list_cursor: Optional,
        last_error: Optional,
        detail: Optional,
        retryable: Optional,
        not_before: Optional = read_not_before,
        [status ~ "pending"]
        gap_id: Optional,
        lease_id: Optional,
    }
}

/// A hint that other connectors may use differently: anything but text is ignored.
fn read_not_before(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<String>, Fault> {
    let time = |name| fields.optional(name).and_then(View::name);
    Ok(time(name).or_else(|| time("next_attempt_after")).map(Into::into))
}

/// A served gap was attempted. Counts once per lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGapAttempted {
    /// The gap.
    pub gap_id: String,
    /// The lease that it was served with.
    pub lease_id: String,
    /// The stream.
    pub stream: String,
}

wire_fields!(DetailGapAttempted { [reference_only = true] gap_id: Required, lease_id: Required, stream: Required, });

/// A served gap was closed: the missing record was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGapRecovered {
    /// The gap.
    pub gap_id: String,
    /// The stream.
    pub stream: String,
    /// Key of the record.
    pub record_key: Option<GapKey>,
    /// The lease that it was served with; absent means that of this run.
    pub lease_id: Option<String>,
}

wire_fields! {
    DetailGapRecovered {
        [reference_only = true]
        gap_id: Required,
        stream: Required,
        record_key: Optional,
        lease_id: Optional,
    }
}

/// The connector asks for the next page of gaps to recover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapsPageRequest {
    /// Repeated in the answer.
    pub request_id: String,
    /// Only gaps of these streams; empty means any.
    pub streams: Vec<String>,
    /// Maximum size of the page.
    pub max_bytes: Option<u64>,
}

wire_fields! {
    GapsPageRequest { [reference_only = true] request_id: Required, streams: OptionalList, max_bytes: Optional, }
}

/// A gap that the runtime serves for recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGap {
    /// The gap.
    pub gap_id: String,
    /// The stream.
    pub stream: String,
    /// Key of the record.
    pub record_key: Option<GapKey>,
    /// The stream whose list named it.
    pub parent_stream: Option<String>,
    /// Locator, byte for byte as the connector wrote it.
    pub detail_locator: Option<RawJson<'static>>,
    /// Its position in the list.
    pub list_cursor: Option<RawJson<'static>>,
    /// The lease that it is served with.
    pub lease_id: String,
}

wire_object! {
    ServedGap {
        gap_id: Required,
        stream: Required,
        // Connectors read these two without checking whether they exist.
        record_key: Nullable,
        parent_stream: Optional,
        detail_locator: Nullable,
        list_cursor: Optional,
        [status ~ "pending"]
        [reference_only = true]
        lease_id: Required,
    }
}

//! The messages about gaps: one is found, tried, recovered, asked for.
//!
//! A gap is the promise that something is missing and known to be. Locators and list cursors come
//! back to the connector byte for byte, because a backlog's watermark lives in them.

use crate::fields::{Fault, Fields};
use crate::line_writer::{LineWriter, write_string};
use crate::raw_json::RawJson;
use crate::reasons::{AbsenceReason, ErrorClass, GapReason};
use crate::view::View;
use crate::violation::ViolationCode;
use crate::vocabulary::Wording;

/// What identifies the missing record: connectors write a string or a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapKey {
    /// A string.
    Text(String),
    /// A number, as it was written.
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

    fn read(fields: Fields<'_, '_>) -> Result<Option<Self>, Fault> {
        match fields.optional("record_key") {
            Some(view) if view.is_number() => Ok(Some(Self::Number(view.text().to_owned()))),
            Some(_) => fields.optional_name("record_key").map(|key| key.map(|key| Self::Text(key.into_owned()))),
            None => Ok(None),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_string(out, text),
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// What went wrong last, where something did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// The class of the error, in the connector's own vocabulary or ours ([`ErrorClass`]).
    pub class: String,
    /// The status of the answer, where there was one.
    pub http_status: Option<u16>,
    /// All that the connector wrote about it. Sanitised before it is shown.
    pub raw: RawJson<'static>,
}

impl LastError {
    /// An error of this class and nothing more.
    #[must_use]
    pub fn of_class(class: ErrorClass) -> Self {
        let mut out = Vec::new();
        LineWriter::object(&mut out).text("class", class.code()).close();
        let text = String::from_utf8_lossy(&out).into_owned();
        let raw = RawJson::new(text).unwrap_or(RawJson::checked("{}"));
        Self { class: class.code().to_owned(), http_status: None, raw }
    }

    fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("last_error", view))?;
        let fields = Fields::nested(&members);
        let http_status = match fields.optional("http_status") {
            None => None,
            Some(status) => match status.count().and_then(|status| u16::try_from(status).ok()) {
                Some(code @ 100..=599) => Some(code),
                Some(_) | None => return Err(Fault::malformed("last_error", status)),
            },
        };
        let class = fields.required_sentence("class")?;
        Ok(Self { class, http_status, raw: view.raw().into_owned() })
    }
}

/// A record that is known and not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailGap {
    /// The stream.
    pub stream: String,
    /// What identifies the record, if it has a key yet.
    pub record_key: Option<GapKey>,
    /// The stream in whose list it was found.
    pub parent_stream: Option<String>,
    /// Why it is missing.
    pub reason: Option<GapReason>,
    /// How the connector finds it again.
    pub detail_locator: Option<RawJson<'static>>,
    /// Where in the list it was.
    pub list_cursor: Option<RawJson<'static>>,
    /// What went wrong last.
    pub last_error: Option<LastError>,
    /// More about it, in the connector's own words.
    pub detail: Option<RawJson<'static>>,
    /// Whether another try may succeed, where the connector says so.
    pub retryable: Option<bool>,
    /// Not to be tried before this time, in RFC 3339. Some connectors call it `next_attempt_after`.
    pub not_before: Option<String>,
    /// The gap's id, when one that was served is put back.
    pub gap_id: Option<String>,
    /// The lease under which it was served.
    pub lease_id: Option<String>,
}

impl DetailGap {
    /// Whether this is a planned stop at a cap that the owner set.
    #[must_use]
    pub fn is_run_cap_deferral(&self) -> bool {
        self.class() == Some(ErrorClass::RunCapDeferred)
    }

    /// What a person is told: a run cap has words of its own, everything else those of its reason.
    #[must_use]
    pub fn wording(&self) -> Option<Wording> {
        self.class().map(ErrorClass::wording).or_else(|| self.reason.map(GapReason::wording))
    }

    fn class(&self) -> Option<ErrorClass> {
        self.last_error.as_ref().and_then(|error| ErrorClass::from_code(&error.class))
    }

    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        check_reference_only(fields)?;
        fields.optional_constant("status", "\"pending\"")?;
        let reason = fields
            .optional_word("reason", GapReason::from_code)
            .map_err(|fault| Fault { code: ViolationCode::UnknownReason, ..fault })?;
        let gap = Self {
            stream: fields.required_name("stream")?.into(),
            record_key: GapKey::read(fields)?,
            parent_stream: fields.optional_name("parent_stream")?.map(Into::into),
            reason,
            detail_locator: fields.optional_raw("detail_locator"),
            list_cursor: fields.optional_raw("list_cursor"),
            last_error: fields.optional("last_error").map(LastError::read).transpose()?,
            detail: fields.optional_raw("detail"),
            retryable: fields.optional_flag("retryable")?,
            not_before: read_not_before(fields),
            gap_id: fields.optional_name("gap_id")?.map(Into::into),
            lease_id: fields.optional_name("lease_id")?.map(Into::into),
        };
        gap.check_run_cap()?;
        Ok(gap)
    }

    /// A run-cap deferral says that nothing failed: it has the reason for that, and no status.
    fn check_run_cap(&self) -> Result<(), Fault> {
        let status = self.last_error.as_ref().and_then(|error| error.http_status);
        let reason = self.reason == Some(GapReason::Absence(AbsenceReason::RetryExhausted));
        if self.is_run_cap_deferral() && (!reason || status.is_some()) {
            return Err(Fault { code: ViolationCode::ContradictoryGap, field: "last_error", offset: 0 });
        }
        Ok(())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut line = LineWriter::message(out, "DETAIL_GAP").flag("reference_only", true).text("stream", &self.stream);
        if let Some(key) = &self.record_key {
            line = line.value("record_key", |out| key.write(out));
        }
        line.optional_text("parent_stream", self.parent_stream.as_deref())
            .optional_text("reason", self.reason.map(GapReason::code))
            .optional_raw("detail_locator", self.detail_locator.as_ref())
            .optional_raw("list_cursor", self.list_cursor.as_ref())
            .optional_raw("last_error", self.last_error.as_ref().map(|error| &error.raw))
            .optional_raw("detail", self.detail.as_ref())
            .optional_flag("retryable", self.retryable)
            .optional_text("not_before", self.not_before.as_deref())
            .text("status", "pending")
            .optional_text("gap_id", self.gap_id.as_deref())
            .optional_text("lease_id", self.lease_id.as_deref())
            .end();
    }
}

/// A hint, and not everybody's field: what is no text is left aside.
fn read_not_before(fields: Fields<'_, '_>) -> Option<String> {
    let time = |name| fields.optional(name).and_then(|view| view.name());
    time("not_before").or_else(|| time("next_attempt_after")).map(Into::into)
}

/// A served gap was tried. Counts once per lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGapAttempted {
    /// The gap.
    pub gap_id: String,
    /// The lease under which it was served.
    pub lease_id: String,
    /// The stream.
    pub stream: String,
}

impl DetailGapAttempted {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        check_reference_only(fields)?;
        Ok(Self {
            gap_id: fields.required_name("gap_id")?.into(),
            lease_id: fields.required_name("lease_id")?.into(),
            stream: fields.required_name("stream")?.into(),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "DETAIL_GAP_ATTEMPTED")
            .flag("reference_only", true)
            .text("gap_id", &self.gap_id)
            .text("lease_id", &self.lease_id)
            .text("stream", &self.stream)
            .end();
    }
}

/// A served gap was closed: what was missing has been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGapRecovered {
    /// The gap.
    pub gap_id: String,
    /// The stream.
    pub stream: String,
    /// What identifies the record.
    pub record_key: Option<GapKey>,
    /// The lease under which it was served; absent means that of this run.
    pub lease_id: Option<String>,
}

impl DetailGapRecovered {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        check_reference_only(fields)?;
        Ok(Self {
            gap_id: fields.required_name("gap_id")?.into(),
            stream: fields.required_name("stream")?.into(),
            record_key: GapKey::read(fields)?,
            lease_id: fields.optional_name("lease_id")?.map(Into::into),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut line = LineWriter::message(out, "DETAIL_GAP_RECOVERED")
            .flag("reference_only", true)
            .text("gap_id", &self.gap_id)
            .text("stream", &self.stream);
        if let Some(key) = &self.record_key {
            line = line.value("record_key", |out| key.write(out));
        }
        line.optional_text("lease_id", self.lease_id.as_deref()).end();
    }
}

/// The connector asks for the next page of gaps to recover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapsPageRequest {
    /// Repeated in the answer.
    pub request_id: String,
    /// Only gaps of these streams; empty means of any.
    pub streams: Vec<String>,
    /// How large the page may be.
    pub max_bytes: Option<u64>,
}

impl GapsPageRequest {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        check_reference_only(fields)?;
        Ok(Self {
            request_id: fields.required_name("request_id")?.into(),
            streams: fields.names("streams")?,
            max_bytes: fields.optional_count("max_bytes")?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "DETAIL_GAPS_PAGE_REQUEST")
            .flag("reference_only", true)
            .text("request_id", &self.request_id)
            .optional_texts("streams", &self.streams)
            .optional_number("max_bytes", self.max_bytes)
            .end();
    }
}

/// A gap that the runtime hands out to be recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGap {
    /// The gap.
    pub gap_id: String,
    /// The stream.
    pub stream: String,
    /// What identifies the record.
    pub record_key: Option<GapKey>,
    /// The stream in whose list it was found.
    pub parent_stream: Option<String>,
    /// How the connector finds it again, byte for byte as the connector wrote it.
    pub detail_locator: Option<RawJson<'static>>,
    /// Where in the list it was.
    pub list_cursor: Option<RawJson<'static>>,
    /// The lease under which it is served.
    pub lease_id: String,
}

impl ServedGap {
    pub(crate) fn read(view: View<'_>) -> Result<Self, Fault> {
        let members = view.members().ok_or_else(|| Fault::malformed("detail_gaps", view))?;
        let fields = Fields::nested(&members);
        check_reference_only(fields)?;
        fields.optional_constant("status", "\"pending\"")?;
        Ok(Self {
            gap_id: fields.required_name("gap_id")?.into(),
            stream: fields.required_name("stream")?.into(),
            record_key: GapKey::read(fields)?,
            parent_stream: fields.optional_name("parent_stream")?.map(Into::into),
            detail_locator: fields.optional_raw("detail_locator"),
            list_cursor: fields.optional_raw("list_cursor"),
            lease_id: fields.required_name("lease_id")?.into(),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let line = LineWriter::object(out).text("gap_id", &self.gap_id).text("stream", &self.stream);
        // Connectors look at these two without asking whether they are there.
        let line = match &self.record_key {
            Some(key) => line.value("record_key", |out| key.write(out)),
            None => line.null("record_key"),
        };
        let line = line.optional_text("parent_stream", self.parent_stream.as_deref());
        let line = match &self.detail_locator {
            Some(locator) => line.raw("detail_locator", locator),
            None => line.null("detail_locator"),
        };
        line.optional_raw("list_cursor", self.list_cursor.as_ref())
            .text("status", "pending")
            .flag("reference_only", true)
            .text("lease_id", &self.lease_id)
            .close();
    }
}

/// Messages about gaps and coverage are marked as not part of the core protocol.
pub(crate) fn check_reference_only(fields: Fields<'_, '_>) -> Result<(), Fault> {
    fields.constant("reference_only", "true")
}

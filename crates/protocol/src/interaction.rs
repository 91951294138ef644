//! Questions to the owner: one that must be answered, one that need not be, and the answer.
//!
//! An answer may be a password. It is held by a type that prints nothing.

use crate::fields::{Fault, Fields};
use crate::line_writer::LineWriter;
use crate::raw_json::RawJson;
use crate::vocabulary::wire_words;
use std::fmt;

/// A question. The connector writes nothing more until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// Repeated in the answer.
    pub request_id: String,
    /// What kind of answer is needed.
    pub kind: InteractionKind,
    /// The question, for people.
    pub message: String,
    /// A JSON Schema of the answer.
    pub schema: Option<RawJson<'static>>,
    /// How long the connector waits.
    pub timeout_seconds: Option<u64>,
    /// The stream it is about.
    pub stream: Option<String>,
    /// A picture of what is to be done: the name of a PNG file in the run's folder.
    pub picture: Option<String>,
}

/// The longest name of a picture. What our own connectors write has a tenth of it.
const PICTURE_BYTES_MAX: usize = 120;

/// Whether this can be the name of a picture in a run's folder: letters, digits, `_` and `-`, and the ending. So it is never a
/// path, and never leads elsewhere.
#[must_use]
pub fn is_picture_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let stem = name.strip_suffix(".png");
    name.len() <= PICTURE_BYTES_MAX && stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(is_plain))
}

wire_words! {
    /// What a connector needs from the owner.
    pub enum InteractionKind {
        /// A sign-in.
        Credentials = "credentials";
        /// A code that is valid once.
        Otp = "otp";
        /// Something to do in a browser or an app.
        ManualAction = "manual_action";
        /// Settings that are missing; the message names them.
        MissingCredentials = "missing_credentials";
    }
}

impl Interaction {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        Ok(Self {
            request_id: fields.required_name("request_id")?.into(),
            kind: fields.required_word("kind", InteractionKind::from_code)?,
            message: fields.required_sentence("message")?,
            schema: fields.optional_object("schema")?,
            timeout_seconds: fields.optional_count("timeout_seconds")?,
            stream: fields.optional_name("stream")?.map(Into::into),
            // Only a help to look at: one that cannot be ours is as good as none.
            picture: fields
                .optional_name("picture")
                .ok()
                .flatten()
                .map(Into::into)
                .filter(|name: &String| is_picture_name(name)),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "INTERACTION")
            .text("request_id", &self.request_id)
            .text("kind", self.kind.code())
            .text("message", &self.message)
            .optional_raw("schema", self.schema.as_ref())
            .optional_number("timeout_seconds", self.timeout_seconds)
            .optional_text("stream", self.stream.as_deref())
            .optional_text("picture", self.picture.as_deref())
            .end();
    }
}

/// A request for help that blocks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assistance {
    /// By which a later status names it.
    pub assistance_request_id: Option<String>,
    /// What is needed, for people.
    pub message: String,
    /// What the owner can do.
    pub owner_action: OwnerAction,
    /// What the connector does meanwhile.
    pub progress_posture: ProgressPosture,
    /// How long it makes sense.
    pub timeout_seconds: Option<u64>,
    /// What to look at or to operate.
    pub attachments: Option<RawJson<'static>>,
}

wire_words! {
    /// What the owner can do about a request for help.
    pub enum OwnerAction {
        /// Nothing.
        None = "none";
        /// Something outside Gleaner.
        ActElsewhere = "act_elsewhere";
        /// Enter a value.
        ProvideValue = "provide_value";
        /// Use what is attached.
        OperateAttachment = "operate_attachment";
    }
}

wire_words! {
    /// What a connector does while it waits for help.
    pub enum ProgressPosture {
        /// It goes on.
        Running = "running";
        /// It cannot go on.
        Blocked = "blocked";
        /// It tries again by itself.
        WaitingRetry = "waiting_retry";
    }
}

impl Assistance {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        fields.constant("response_contract", "\"none\"")?;
        Ok(Self {
            assistance_request_id: fields.optional_name("assistance_request_id")?.map(Into::into),
            message: fields.required_sentence("message")?,
            owner_action: fields.required_word("owner_action", OwnerAction::from_code)?,
            progress_posture: fields.required_word("progress_posture", ProgressPosture::from_code)?,
            timeout_seconds: fields.optional_count("timeout_seconds")?,
            attachments: fields.optional_raw("attachments"),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "ASSISTANCE")
            .optional_text("assistance_request_id", self.assistance_request_id.as_deref())
            .text("message", &self.message)
            .text("owner_action", self.owner_action.code())
            .text("progress_posture", self.progress_posture.code())
            .text("response_contract", "none")
            .optional_number("timeout_seconds", self.timeout_seconds)
            .optional_raw("attachments", self.attachments.as_ref())
            .end();
    }
}

/// What became of a request for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssistanceStatus {
    /// Which request.
    pub assistance_request_id: String,
    /// What became of it.
    pub status: AssistanceOutcome,
    /// More, for people.
    pub message: Option<String>,
}

wire_words! {
    /// What became of a request for help.
    pub enum AssistanceOutcome {
        /// It is done.
        Resolved = "resolved";
        /// It is no longer needed.
        Cancelled = "cancelled";
        /// It took too long.
        TimedOut = "timed_out";
        /// It became a question.
        Escalated = "escalated";
    }
}

impl AssistanceStatus {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        Ok(Self {
            assistance_request_id: fields.required_name("assistance_request_id")?.into(),
            status: fields.required_word("status", AssistanceOutcome::from_code)?,
            message: fields.optional_sentence("message")?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "ASSISTANCE_STATUS")
            .text("assistance_request_id", &self.assistance_request_id)
            .text("status", self.status.code())
            .optional_text("message", self.message.as_deref())
            .end();
    }
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteractionResponse {
    /// Of which question.
    pub request_id: String,
    /// Whether there is an answer.
    pub status: InteractionStatus,
    /// The answer.
    pub data: Option<Answer>,
}

wire_words! {
    /// Whether a question was answered.
    pub enum InteractionStatus {
        /// It was.
        Success = "success";
        /// The owner declined.
        Cancelled = "cancelled";
        /// Nobody answered in time.
        Timeout = "timeout";
    }
}

/// What the owner entered. Prints nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer(RawJson<'static>);

impl Answer {
    /// Holds an answer.
    #[must_use]
    pub const fn new(data: RawJson<'static>) -> Self {
        Self(data)
    }

    /// The answer, for the connector and nobody else.
    #[must_use]
    pub const fn expose(&self) -> &RawJson<'static> {
        &self.0
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

impl InteractionResponse {
    pub(crate) fn read(fields: Fields<'_, '_>) -> Result<Self, Fault> {
        Ok(Self {
            request_id: fields.required_name("request_id")?.into(),
            status: fields.required_word("status", InteractionStatus::from_code)?,
            data: fields.optional_raw("data").map(Answer),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        LineWriter::message(out, "INTERACTION_RESPONSE")
            .text("request_id", &self.request_id)
            .text("status", self.status.code())
            .optional_raw("data", self.data.as_ref().map(Answer::expose))
            .end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_picture_never_leads_out_of_its_folder() {
        assert!(is_picture_name("action-1.png") && is_picture_name("a_B-9.png"));
        let long = format!("{}.png", "a".repeat(200));
        for wrong in
            ["", ".png", "..png", "../a.png", "a/b.png", "a.png/", "a.jpg", "a.png\0", "ä.png", "a.b.png", &long]
        {
            assert!(!is_picture_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_answer_prints_nothing() {
        let response = InteractionResponse {
            request_id: "q1".to_owned(),
            status: InteractionStatus::Success,
            data: Some(Answer::new(RawJson::new(r#"{"otp":"123456"}"#).unwrap())),
        };
        assert!(!format!("{response:?}").contains("123456"));
    }
}

//! Questions to the owner: blocking ones, optional ones, and the answer.
//!
//! An answer may be a password. Its type prints nothing.

use crate::json::raw_json::RawJson;
use crate::json::view::View;
use crate::messages::fields::{Fault, Fields};
use crate::messages::wire::{Holds, Optional, Required, Sentence, Value, wire_fields};
use crate::words::vocabulary::wire_words;
use std::fmt;

/// A question. The connector sends nothing more until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// Repeated in the answer.
    pub request_id: String,
    /// Kind of answer.
    pub kind: InteractionKind,
    /// The question, for people.
    pub message: String,
    /// A JSON Schema of the answer.
    pub schema: Option<RawJson<'static>>,
    /// Longest wait of the connector.
    pub timeout_seconds: Option<u64>,
    /// The stream it is about.
    pub stream: Option<String>,
    /// A picture of the step: the name of a PNG file in the run's folder.
    pub picture: Option<String>,
}

/// Maximum length of a picture name. Ours have a tenth of it.
const PICTURE_BYTES_MAX: usize = 120;

/// Whether this is a valid picture name: letters, digits, `_` and `-`, and the suffix. So it is never a path.
#[must_use]
pub fn is_picture_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let stem = name.strip_suffix(".png");
    name.len() <= PICTURE_BYTES_MAX && stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(is_plain))
}

wire_words! {
    /// Kind of a question.
    pub enum InteractionKind {
        /// A sign-in.
        Credentials = "credentials";
        /// A code that is valid once.
        Otp = "otp";
        /// Something to do in a browser or an app.
        ManualAction = "manual_action";
        /// Missing settings; the message names them.
        MissingCredentials = "missing_credentials";
    }
}

wire_fields! {
    Interaction {
        request_id: Required,
        kind: Required,
        message: Sentence,
        schema: Optional = read_schema,
        timeout_seconds: Optional,
        stream: Optional,
        picture: Optional = read_picture,
    }
}

/// An object as written.
fn read_schema(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<RawJson<'static>>, Fault> {
    match fields.optional(name) {
        Some(view) if !view.is_object() => Err(Fault::malformed(name, view)),
        _ => Optional::read(fields, name),
    }
}

/// Only a help: an invalid name is ignored.
fn read_picture(fields: Fields<'_, '_>, name: &'static str) -> Result<Option<String>, Fault> {
    Ok(Optional::read(fields, name).ok().flatten().filter(|name: &String| is_picture_name(name)))
}

/// A request for help that blocks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assistance {
    /// Id for later status messages.
    pub assistance_request_id: Option<String>,
    /// The request, for people.
    pub message: String,
    /// Action of the owner.
    pub owner_action: OwnerAction,
    /// State of the connector meanwhile.
    pub progress_posture: ProgressPosture,
    /// Its lifetime.
    pub timeout_seconds: Option<u64>,
    /// Things to see or to operate.
    pub attachments: Option<RawJson<'static>>,
}

wire_words! {
    /// Action of the owner on a request for help.
    pub enum OwnerAction {
        /// Nothing.
        None = "none";
        /// Something outside Gleaner.
        ActElsewhere = "act_elsewhere";
        /// Enter a value.
        ProvideValue = "provide_value";
        /// Use the attachment.
        OperateAttachment = "operate_attachment";
    }
}

wire_words! {
    /// State of a connector while it waits for help.
    pub enum ProgressPosture {
        /// It continues.
        Running = "running";
        /// It cannot continue.
        Blocked = "blocked";
        /// It retries automatically.
        WaitingRetry = "waiting_retry";
    }
}

wire_fields! {
    Assistance {
        assistance_request_id: Optional,
        message: Sentence,
        owner_action: Required,
        progress_posture: Required,
        [response_contract = "none"]
        timeout_seconds: Optional,
        attachments: Optional,
    }
}

/// Status of a request for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssistanceStatus {
    /// The request.
    pub assistance_request_id: String,
    /// Its status.
    pub status: AssistanceOutcome,
    /// Details, for people.
    pub message: Option<String>,
}

wire_words! {
    /// Status of a request for help.
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

wire_fields!(AssistanceStatus { assistance_request_id: Required, status: Required, message: Sentence });

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteractionResponse {
    /// The question.
    pub request_id: String,
    /// Whether there is an answer.
    pub status: InteractionStatus,
    /// The answer.
    pub data: Option<Answer>,
}

wire_words! {
    /// Whether a question was answered.
    pub enum InteractionStatus {
        /// It was answered.
        Success = "success";
        /// The owner declined.
        Cancelled = "cancelled";
        /// Nobody answered in time.
        Timeout = "timeout";
    }
}

/// The owner's answer. Prints nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer(RawJson<'static>);

impl Answer {
    /// Wraps an answer.
    #[must_use]
    pub const fn new(data: RawJson<'static>) -> Self {
        Self(data)
    }

    /// The answer, only for the connector.
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

impl Value for Answer {
    fn read(field: &'static str, view: View<'_>) -> Result<Self, Fault> {
        RawJson::read(field, view).map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

wire_fields!(InteractionResponse { request_id: Required, status: Required, data: Optional });

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

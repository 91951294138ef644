//! Questions to the owner during a run: a one-time code, a sign-in, a manual step.
//!
//! A question is asked only if somebody can answer, and nothing else is sent until the answer arrives. Answers are
//! masked from then on in all messages for people. There is no timeout here: the runtime knows when a question
//! expires, and reports it.

use crate::collect::Collect;
use crate::emit::Emitter;
use crate::stop::Stop;
use gleaner_protocol::{
    ConnectorMessage, Interaction, InteractionKind, InteractionResponse, InteractionStatus, RawJson, RecoveryAction,
    RuntimeMessage,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The only field of a question for a code.
const CODE: &str = "code";

/// A question to the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a question that is not asked gets no answer"]
pub struct Question {
    kind: InteractionKind,
    message: String,
    fields: Vec<String>,
    patience: Option<Duration>,
    stream: Option<String>,
    picture: Option<String>,
}

impl Question {
    const fn new(kind: InteractionKind, message: String, fields: Vec<String>) -> Self {
        Self { kind, message, fields, patience: None, stream: None, picture: None }
    }

    /// Asks for a one-time code, such as one sent to a phone. The message says where to find it.
    pub fn code(message: impl Into<String>) -> Self {
        Self::new(InteractionKind::Otp, message.into(), vec![CODE.to_owned()])
    }

    /// Asks for the values of a sign-in, by field name. Credentials required by the manifest need no question.
    pub fn sign_in<F: Into<String>>(message: impl Into<String>, fields: impl IntoIterator<Item = F>) -> Self {
        Self::new(InteractionKind::Credentials, message.into(), fields.into_iter().map(Into::into).collect())
    }

    /// Asks the owner to do something elsewhere and to confirm it.
    pub fn action(message: impl Into<String>) -> Self {
        Self::new(InteractionKind::ManualAction, message.into(), Vec::new())
    }

    /// Asks for missing settings.
    pub(crate) fn missing(message: String, fields: Vec<String>) -> Self {
        Self::new(InteractionKind::MissingCredentials, message, fields)
    }

    /// Sets the time after which the answer is useless. Otherwise the runtime decides.
    pub const fn within(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sets the stream that needs it.
    pub fn about(mut self, stream: impl Into<String>) -> Self {
        self.stream = Some(stream.into());
        self
    }

    /// Adds a picture of the step: the name of a PNG file in the run's folder.
    pub fn shown_in(mut self, picture: impl Into<String>) -> Self {
        self.picture = Some(picture.into());
        self
    }

    fn to_message(&self, request_id: String) -> Interaction {
        let field = |name: &String| (name.clone(), json!({"type": "string", "minLength": 1, "writeOnly": true}));
        let properties = self.fields.iter().map(field).collect::<Map<_, _>>();
        let schema = json!({"type": "object", "properties": properties, "required": self.fields});
        Interaction {
            request_id,
            kind: self.kind,
            message: self.message.clone(),
            schema: (!self.fields.is_empty()).then(|| RawJson::new(schema.to_string()).ok()).flatten(),
            // At least one second: zero would mean no time at all.
            timeout_seconds: self.patience.map(|patience| patience.as_secs().max(1)),
            stream: self.stream.clone(),
            picture: self.picture.clone(),
        }
    }
}

/// Result of a question.
pub(crate) enum Answered {
    /// The values by name; empty if none were requested.
    Values(BTreeMap<String, String>),
    Declined,
    /// No answer, or not in time.
    NotAtAll,
}

/// Asks, and waits for the result.
pub(crate) fn put(emitter: &mut Emitter<'_>, question: &Question) -> Result<Answered, Stop> {
    let request_id = emitter.next_request_id(question.kind.code());
    let message = ConnectorMessage::Interaction(question.to_message(request_id.clone()));
    let answer = emitter.ask(&message, |message| match message {
        RuntimeMessage::InteractionResponse(answer) if answer.request_id == request_id => Some(answer),
        _ => None,
    })?;
    Ok(match answer {
        Some(InteractionResponse { status: InteractionStatus::Success, data, .. }) => {
            let data = data.and_then(|data| serde_json::from_str::<Map<String, Value>>(data.expose().as_str()).ok());
            let texts = data.unwrap_or_default().into_iter();
            Answered::Values(texts.filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect())
        }
        Some(InteractionResponse { status: InteractionStatus::Cancelled, .. }) => Answered::Declined,
        Some(InteractionResponse { status: InteractionStatus::Timeout, .. }) | None => Answered::NotAtAll,
    })
}

/// Answers of the owner by name. Prints names, never values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub(crate) values: BTreeMap<String, String>,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Reply {
    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&str> {
        self.values.get(field).map(String::as_str)
    }

    /// All values, for masking.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().map(String::as_str)
    }

    /// The answer to [`Question::code`]; empty for any other question.
    pub fn code(&self) -> &str {
        self.get(CODE).unwrap_or_default()
    }
}

impl Collect<'_> {
    /// Asks the owner, and waits. Ask after a slice: everything sent before it is kept, however long the answer
    /// takes. In a replay nobody is asked: each field gets a placeholder.
    ///
    /// # Errors
    ///
    /// The owner declines, nobody answers or can answer, or the answer lacks a field.
    pub fn ask(&mut self, question: &Question) -> Result<Reply, Stop> {
        if self.record_replay.is_playing() {
            let placeholder = |field: &String| (field.clone(), format!("placeholder-of-{field}"));
            return Ok(Reply { values: question.fields.iter().map(placeholder).collect() });
        }
        if !self.someone_can_answer {
            return Err(needs_owner(question, "and this run cannot ask the owner"));
        }
        let values = match put(&mut self.emitter, question)? {
            Answered::Values(values) => values,
            Answered::Declined => return Err(Stop::Cancelled),
            Answered::NotAtAll => return Err(needs_owner(question, "and nobody answered")),
        };
        self.emitter.keep_answers(values.values().cloned());
        let is_there = |field: &&String| values.get(*field).is_some_and(|value| !value.trim().is_empty());
        match question.fields.iter().find(|field| !is_there(field)) {
            Some(field) => Err(needs_owner(question, &format!("and the answer has no {field}"))),
            None => Ok(Reply { values }),
        }
    }
}

/// Ends the run and says what only the owner can do. It is not retried automatically: that would ask for ever.
fn needs_owner(question: &Question, why: &str) -> Stop {
    let asked = &question.message;
    let message = format!("the provider asks for something that only the owner has, {why}: {asked}");
    Stop::for_good(message, RecoveryAction::ManualActionRequired)
}

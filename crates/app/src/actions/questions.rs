//! Questions of connectors, and the owner's answers. An answer goes through the run's socket to the connector: it is in
//! no file, no log and no list of arguments.

use super::ControlFault;
use crate::app::{App, ourselves};
use crate::connection::credentials::Credentials;
use crate::dates::now;
use crate::error::{AppError, ErrorKind};
use gleaner_engine::AnswerTaken;
use gleaner_protocol::{Answer, InteractionKind, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::Control;
use gleaner_store::{HeldBy, OpenQuestion};
use gleaner_vault::{Secret, Vault};

/// What the owner says to a question.
#[derive(Clone, Debug)]
pub enum Reply {
    /// An object with a key per field.
    Given(RawJson<'static>),
    /// There is no answer.
    Declined,
}

/// What questions of this kind ask for where they do not say; `variables` are the credentials of the connector. Nothing
/// means that something is to be done, and no value is wanted.
#[must_use]
pub fn usual_fields(kind: InteractionKind, variables: Vec<String>) -> Vec<String> {
    match kind {
        InteractionKind::Otp => vec!["code".to_owned()],
        InteractionKind::Credentials => vec!["username".to_owned(), "password".to_owned()],
        InteractionKind::ManualAction => Vec::new(),
        InteractionKind::MissingCredentials => variables,
    }
}

impl App {
    /// The questions whose run still waits, the oldest first.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn questions(&self) -> Result<Vec<OpenQuestion>, AppError> {
        Ok(self.waiting()?.into_iter().map(|(question, _)| question).collect())
    }

    fn waiting(&self) -> Result<Vec<(OpenQuestion, HeldBy)>, AppError> {
        Ok(self.reader()?.waiting_questions(&ourselves()?, now())?)
    }

    /// One question.
    ///
    /// # Errors
    ///
    /// When it does not wait.
    pub fn question(&self, id: i64) -> Result<OpenQuestion, AppError> {
        self.questions()?.into_iter().find(|question| question.id == id).ok_or_else(|| too_late(id))
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// When it does not wait, or its run does not listen.
    pub fn answer(&self, id: i64, reply: Reply) -> Result<(), AppError> {
        let found = self.waiting()?.into_iter().find(|(question, _)| question.id == id);
        let (question, holder) = found.ok_or_else(|| too_late(id))?;
        let (status, data) = match reply {
            Reply::Given(data) => (InteractionStatus::Success, Some(Answer::new(data))),
            Reply::Declined => (InteractionStatus::Cancelled, None),
        };
        let response = InteractionResponse { request_id: question.request_id, status, data };
        match self.tell(&question.connection, &holder, &Control::Answer(response)) {
            Ok(AnswerTaken::Yes) => Ok(()),
            Ok(AnswerTaken::AlreadyAnswered | AnswerTaken::NoSuchQuestion) | Err(ControlFault::Over) => {
                Err(too_late(id))
            }
            Err(ControlFault::Unreachable(error)) => Err(error),
        }
    }

    /// The credentials of a connection that are missing, which is what some questions ask for.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn missing_credentials(&self, connection: &str) -> Result<Vec<String>, AppError> {
        let connection = self.connection(connection)?;
        Ok(Credentials::find(&connection.manifest, self, &connection.name)?.missing_names())
    }

    /// Stores what the connector signs in with, encrypted: the names of it, and where the key is. Fields that are valid
    /// once, or are no credentials, are not stored.
    ///
    /// # Errors
    ///
    /// When there is no such connection, or nothing can be stored.
    pub fn remember_answer(&self, connection: &str, data: &RawJson<'_>) -> Result<(Vec<String>, String), AppError> {
        let credentials = self.connection(connection)?.manifest.auth.unwrap_or_default();
        let vault = Vault::open(self.root())?;
        let mut stored = Vec::new();
        for (name, value) in data.members().unwrap_or_default() {
            if let Some(text) = value.text().filter(|_| credentials.names().any(|known| known == name)) {
                vault.set(connection, &name, Secret::new(text.into_owned()))?;
                stored.push(name.into_owned());
            }
        }
        Ok((stored, vault.key_place().to_string()))
    }
}

fn too_late(id: i64) -> AppError {
    let message = format!("question {id} does not wait: it was answered, its time is over, or its run has ended");
    AppError::new(ErrorKind::NoSuchQuestion, message, "`gleaner answer` lists what waits")
}

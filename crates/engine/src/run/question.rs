//! Questions to the owner, one at a time and answered once; and the end of the owner's permission.
//!
//! A question without a time limit waits until it is answered or the grant ends: an owner may be
//! away for a day. Nobody else may speak meanwhile, so the connector's next line is a violation.

use super::ending::Conclusion;
use super::{Effect, OwnerEffect, Run};
use crate::checkpoint::Track;
use crate::time::{Now, Time, WallTime};
use gleaner_protocol::{
    Interaction, InteractionResponse, InteractionStatus, RuntimeMessage, TerminalReason, Violation, ViolationCode,
    coded_enum,
};
use std::time::Duration;

coded_enum! {
    /// What became of an answer.
    pub enum AnswerTaken {
        /// It goes to the connector.
        Yes = "taken";
        /// Somebody was faster, or the question's time was over.
        AlreadyAnswered = "already_answered";
        /// There is no such question.
        NoSuchQuestion = "no_such_question";
    }
}

#[derive(Debug)]
pub(super) struct Questions {
    can_ask: bool,
    grant_expires_at: Option<WallTime>,
    open: Option<Question>,
    /// The last one that was closed, so that a second answer can be told so.
    closed: Option<String>,
    /// Whether one was not answered in time.
    expired: bool,
}

#[derive(Debug)]
struct Question {
    request_id: String,
    deadline: Option<Time>,
}

impl Questions {
    pub(super) const fn new(can_ask: bool, grant_expires_at: Option<WallTime>) -> Self {
        Self { can_ask, grant_expires_at, open: None, closed: None, expired: false }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) const fn has_expired(&self) -> bool {
        self.expired
    }

    /// The end of the open question's own time.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.open.as_ref()?.deadline
    }

    /// The end of the owner's permission.
    pub(super) fn grant_deadline(&self, now: Now) -> Option<Time> {
        self.grant_expires_at.map(|end| now.time + end.since(now.wall))
    }

    fn close(&mut self) -> Option<String> {
        let request_id = self.open.take()?.request_id;
        self.closed = Some(request_id.clone());
        Some(request_id)
    }
}

impl<T: Track> Run<T> {
    /// Takes an answer of the owner.
    pub fn handle_answer(&mut self, response: InteractionResponse, now: Now) -> AnswerTaken {
        match &self.questions.open {
            Some(open) if open.request_id == response.request_id => {
                self.questions.close();
                self.last_news = now.time;
                self.send(RuntimeMessage::InteractionResponse(response));
                AnswerTaken::Yes
            }
            _ if self.questions.closed.as_ref() == Some(&response.request_id) => AnswerTaken::AlreadyAnswered,
            Some(_) | None => AnswerTaken::NoSuchQuestion,
        }
    }

    pub(super) fn ask(&mut self, interaction: &Interaction, now: Now) -> Result<(), Violation> {
        if !self.questions.can_ask {
            return Err(Violation::new(ViolationCode::InteractionWithoutBinding));
        }
        let question = self.masked_question(interaction)?;
        let deadline = interaction.timeout_seconds.map(|seconds| now.time + Duration::from_secs(seconds));
        self.questions.open = Some(Question { request_id: interaction.request_id.clone(), deadline });
        self.want(Effect::Owner(OwnerEffect::Ask(question)));
        Ok(())
    }

    /// Ends a question whose time is over.
    pub(super) fn expire_question(&mut self, now: Now) {
        if self.questions.deadline().is_some_and(|deadline| deadline <= now.time) {
            self.time_out_question(now);
        }
    }

    /// Ends the run when the owner's permission ends, with whatever question is open. What is saved is
    /// saved, so that it goes on there once the permission is renewed.
    pub(super) fn expire_grant(&mut self, now: Now) {
        if self.conclusion.is_none() && self.questions.grant_expires_at.is_some_and(|end| end <= now.wall) {
            self.time_out_question(now);
            self.conclude(Conclusion::failed(TerminalReason::GrantExpired));
        }
    }

    fn time_out_question(&mut self, now: Now) {
        let Some(request_id) = self.withdraw_question(true) else { return };
        self.questions.expired = true;
        self.last_news = now.time;
        let status = InteractionStatus::Timeout;
        self.send(RuntimeMessage::InteractionResponse(InteractionResponse { request_id, status, data: None }));
    }

    /// Takes an open question back from the owner, because its own time is over or because the run is.
    pub(super) fn withdraw_question(&mut self, is_over: bool) -> Option<String> {
        let request_id = self.questions.close()?;
        self.want(Effect::Owner(OwnerEffect::Withdraw { request_id: request_id.clone(), is_over }));
        Some(request_id)
    }
}

//! Questions that wait for the owner. Answers are in no answer of ours.

use super::page::{Items, raw};
use crate::date;
use crate::problem::Problem;
use gleaner_app::Look;
use gleaner_store::{OpenQuestion, Reader};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Debug, Serialize)]
pub(crate) struct QuestionView {
    id: i64,
    connection: String,
    run_id: String,
    kind: String,
    message: String,
    schema: Option<Box<RawValue>>,
    asked_at: String,
    expires_at: Option<String>,
}

impl QuestionView {
    pub(crate) fn of(question: OpenQuestion) -> Self {
        Self {
            id: question.id,
            connection: question.connection,
            run_id: question.run_id,
            kind: question.kind,
            message: question.message,
            schema: raw(question.schema),
            asked_at: date::rfc3339(question.asked_at),
            expires_at: question.expires_at.map(date::rfc3339),
        }
    }
}

/// All of them, the oldest first. There is at most one per run that goes on.
pub(crate) fn all(reader: &Reader, (): ()) -> Result<Items<QuestionView>, Problem> {
    let waiting = Look::new(reader)?.waiting;
    Ok(Items { items: waiting.into_iter().map(QuestionView::of).collect() })
}

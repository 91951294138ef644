//! Questions that wait for the owner. Answers are in no answer of ours.

use super::page::{Items, raw};
use crate::date;
use crate::problem::Problem;
use gleaner_app::Look;
use gleaner_store::{OpenQuestion, Reader};
use serde_json::value::RawValue;

json_object! {
    pub(crate) struct QuestionView(question: OpenQuestion) {} => {
        id: i64 = question.id,
        connection: String = question.connection,
        run_id: String = question.run_id,
        kind: String = question.kind,
        message: String = question.message,
        schema: Option<Box<RawValue>> = raw(question.schema),
        asked_at: String = date::rfc3339(question.asked_at),
        expires_at: Option<String> = question.expires_at.map(date::rfc3339),
    }
}

/// All of them, the oldest first. There is at most one per run that goes on.
pub(crate) fn all(reader: &Reader, (): ()) -> Result<Items<QuestionView>, Problem> {
    let waiting = Look::new(reader)?.waiting;
    Ok(Items { items: waiting.into_iter().map(QuestionView::of).collect() })
}

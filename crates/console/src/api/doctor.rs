//! What a run depends on, looked at. Nothing is changed by it, and no secret is shown.

use super::page::Items;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::job_queue::Job;
use axum::extract::State;
use axum::response::Response;

/// Every check, once at a time.
pub(crate) async fn checks(State(state): Shared) -> Result<Response, Problem> {
    let items = state.do_job(Job::Examine, |app| Ok(app.doctor())).await?;
    state.responder.json(&Items { items })
}

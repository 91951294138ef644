//! What a run depends on, looked at. Nothing is changed by it, and no secret is shown.

use crate::inside::Inside;
use crate::problem::Problem;
use crate::turns::Turn;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct Examined {
    items: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    verdict: &'static str,
    what: String,
    hint: Option<String>,
}

/// Every check, once at a time.
pub(crate) async fn checks(State(inside): State<Arc<Inside>>) -> Result<Response, Problem> {
    let checks = inside.set_up(Turn::Examine, |setup| setup.examine()).await?;
    let check = |check: gleaner_app::Check| {
        let gleaner_app::Check { name, verdict, what, hint } = check;
        Check { name, verdict: verdict.word(), what, hint }
    };
    inside.giving.json(&Examined { items: checks.into_iter().map(check).collect() })
}

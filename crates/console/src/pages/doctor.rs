//! The doctor's checks as a page, the bad ones first. Looking changes nothing, so it is a GET; it goes on once at a time.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::words::counted;
use crate::server::app_state::Shared;
use crate::server::job_queue::Job;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::{Check, CheckVerdict, Look};
use gleaner_engine::WallTime;

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage {
    frame: Frame,
    headline: String,
    looked: WallTime,
    checks: Vec<Check>,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let mut checks = state.do_job(Job::Examine, |app| Ok(app.doctor())).await?;
    let look = state.reading.ask(|reader| Ok(Look::new(reader)?)).await?;
    // Those of one kind stay in the order in which one depends on another.
    checks.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    let frame = Frame::new("Doctor", Part::Settings, "/settings/doctor".to_owned(), &look);
    show(&DoctorPage { frame, headline: headline(&checks), looked: look.now, checks })
}

fn headline(checks: &[Check]) -> String {
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count() as u64;
    let (failed, warnings) = (count(CheckVerdict::Failed), count(CheckVerdict::Warning));
    let all = counted(checks.len() as u64, "check", "checks");
    match (failed, warnings) {
        (0, 0) => format!("All is well: {all}, nothing to do."),
        (0, _) => format!("{all}: {} to look at.", counted(warnings, "thing", "things")),
        (_, 0) => format!("{all}: {failed} failed."),
        (_, _) => format!("{all}: {failed} failed, {} to look at.", counted(warnings, "thing", "things")),
    }
}

/// How a check turned out, in words, and its tone.
fn words_of(verdict: CheckVerdict) -> (&'static str, &'static str) {
    match verdict {
        CheckVerdict::Well => ("well", "good"),
        CheckVerdict::Warning => ("look at it", "wait"),
        CheckVerdict::Failed => ("failed", "bad"),
    }
}

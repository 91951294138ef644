//! The doctor's checks as a page, the bad ones first. Looking changes nothing, so it is a GET; it goes on once at a time.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href};
use super::words::{When, counted};
use crate::server::app_state::Shared;
use crate::server::job_queue::Job;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_app::dates;
use gleaner_app::{Check, CheckVerdict};

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage {
    frame: Frame,
    headline: String,
    looked: When,
    checks: Vec<CheckView>,
}

struct CheckView {
    name: &'static str,
    tone: &'static str,
    word: &'static str,
    what: Outside,
    hint: Option<Outside>,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    let mut checks = state.do_job(Job::Examine, |app| Ok(app.doctor())).await?;
    let waiting = state.reading.ask(|reader| Ok(Look::new(reader)?.waiting.len())).await?;
    // Those of one kind stay in the order in which one depends on another.
    checks.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    let frame = Frame::new("Doctor", Part::Settings, href(&["settings", "doctor"]), waiting);
    let now = dates::now();
    let headline = headline(&checks);
    show(&DoctorPage { frame, headline, looked: When::new(now, now), checks: checks.into_iter().map(view).collect() })
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

fn view(check: Check) -> CheckView {
    let (tone, word) = match check.verdict {
        CheckVerdict::Well => ("good", "well"),
        CheckVerdict::Warning => ("wait", "look at it"),
        CheckVerdict::Failed => ("bad", "failed"),
    };
    let (what, hint) = (Outside::new(check.what), check.hint.map(Outside::new));
    CheckView { name: check.name, tone, word, what, hint }
}

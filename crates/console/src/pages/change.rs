//! The forms that change something. Each asks whoever collects, and leads back to the page that shows what came of it.

use super::error_page::PageProblem;
use super::outside::{href, href_with};
use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::extract::{Form, UrlPath};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{App, AppError, ScheduleChange, Setting, Stop};
use gleaner_schedule::Mode;
use http::StatusCode;
use http::header::LOCATION;
use std::collections::BTreeMap;
use std::time::Duration;

/// Leads to another page, which is then asked for by GET.
pub(crate) fn see(address: String) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}

/// The fields of a form. Of two with one name the last counts.
pub(crate) fn fields(form: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(form).into_owned().collect()
}

async fn of_connection<R: Send + 'static>(
    state: &AppState,
    name: String,
    done: &'static str,
    act: impl FnOnce(&App, &str) -> Result<R, AppError> + Send + 'static,
) -> Result<Response, PageProblem> {
    let back = href_with(&["connections", &name], &[("done", done)]);
    state.act(move |app| act(app, &name)).await?;
    Ok(see(back))
}

pub(crate) async fn run_now(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: Form,
) -> Result<Response, PageProblem> {
    of_connection(&state, name, "run", |app, name| app.run_now(name)).await
}

pub(crate) async fn pause(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: Form,
) -> Result<Response, PageProblem> {
    of_connection(&state, name, "paused", |app, name| app.pause(name)).await
}

pub(crate) async fn resume(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: Form,
) -> Result<Response, PageProblem> {
    of_connection(&state, name, "resumed", |app, name| app.resume(name, None)).await
}

pub(crate) async fn schedule(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    Form(form): Form,
) -> Result<Response, PageProblem> {
    let wish = wish(&fields(&form))?;
    of_connection(&state, name, "scheduled", move |app, name| app.set_schedule(name, &wish)).await
}

/// What the form of a schedule says. What is left empty is as the manifest recommends.
fn wish(fields: &BTreeMap<String, String>) -> Result<ScheduleChange, Problem> {
    let text = |name: &str| fields.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let setting = |name: &str| text(name).map_or(Setting::Default, |text| Setting::Set(text.to_owned()));
    let wrong = |what| Problem::bad_request(what, "go back and say it otherwise; nothing was changed");
    let mode = match text("mode") {
        None => Setting::Default,
        Some("automatic") => Setting::Set(Mode::Automatic),
        Some("manual") => Setting::Set(Mode::Manual),
        Some(_) => return Err(wrong("a connection runs by itself or when you say so")),
    };
    let every = match text("every_minutes").map(|text| text.parse::<u64>().ok().filter(|minutes| *minutes > 0)) {
        None => Setting::Default,
        Some(Some(minutes)) => Setting::Set(Duration::from_secs(minutes.saturating_mul(60))),
        Some(None) => return Err(wrong("the minutes between two runs are no whole number above zero")),
    };
    Ok(ScheduleChange { mode, every, cron: setting("cron"), quiet: setting("quiet"), zone: setting("zone") })
}

pub(crate) async fn retry_gap(
    State(state): Shared,
    UrlPath((name, gap)): UrlPath<(String, String)>,
    _: Form,
) -> Result<Response, PageProblem> {
    let back = href_with(&["connections", &name, "gaps"], &[("done", "retried")]);
    state.act(move |app| app.retry_gap(&name, &gap)).await?;
    Ok(see(back))
}

pub(crate) async fn ignore_gap(
    State(state): Shared,
    UrlPath((name, gap)): UrlPath<(String, String)>,
    Form(form): Form,
) -> Result<Response, PageProblem> {
    let note = fields(&form).remove("note").unwrap_or_default();
    let back = href_with(&["connections", &name, "gaps"], &[("done", "ignored")]);
    state.act(move |app| app.ignore_gap(&name, &gap, &note)).await?;
    Ok(see(back))
}

pub(crate) async fn take_back_gap(
    State(state): Shared,
    UrlPath((name, gap)): UrlPath<(String, String)>,
    _: Form,
) -> Result<Response, PageProblem> {
    let back = href_with(&["connections", &name, "gaps"], &[("done", "taken-back")]);
    state.act(move |app| app.take_back_gap(&name, &gap)).await?;
    Ok(see(back))
}

pub(crate) async fn cancel(
    State(state): Shared,
    UrlPath(run_id): UrlPath<String>,
    Form(form): Form,
) -> Result<Response, PageProblem> {
    let how = if fields(&form).contains_key("at_once") { Stop::Now } else { Stop::InOrder };
    let back = format!("{}?done=cancelled", href(&["runs", &run_id]));
    state.act(move |app| app.cancel_run(&run_id, how)).await?;
    Ok(see(back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_of_a_schedule_is_as_recommended() {
        let said = wish(&fields(b"mode=automatic&every_minutes=90&cron=&quiet=+22%3A00-07%3A00+&zone=")).unwrap();
        assert!(matches!(said.mode, Setting::Set(Mode::Automatic)));
        assert!(matches!(said.every, Setting::Set(every) if every == Duration::from_secs(5400)));
        assert!(matches!(said.quiet, Setting::Set(hours) if hours == "22:00-07:00"));
        assert!(matches!((said.cron, said.zone), (Setting::Default, Setting::Default)));
        for wrong in ["0", "-1", "x", "1.5", "99999999999999999999"] {
            assert!(wish(&fields(format!("every_minutes={wrong}").as_bytes())).is_err(), "{wrong}");
        }
        assert!(wish(&fields(b"mode=paused")).is_err());
    }
}

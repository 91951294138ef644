//! The forms that change something. Each asks whoever collects, and leads back to the page that shows what came of it.

use super::address::href_with;
use crate::problem::Problem;
use crate::server::extract::UrlPath;
use gleaner_app::{App, ScheduleChange, Setting, Stop};
use gleaner_schedule::Mode;
use std::collections::BTreeMap;
use std::time::Duration;

/// The fields of a form. Of two with one name the last counts.
pub(crate) fn fields(form: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(form).into_owned().collect()
}

type OfConnection = UrlPath<String>;
type OfGap = UrlPath<(String, String)>;

/// The page of a connection, with a line about what was done.
fn connection(name: &str, done: &str) -> Result<String, Problem> {
    Ok(href_with(&["connections", name], &[("done", done)]))
}

/// The same with what is missing of it.
fn gaps(name: &str, done: &str) -> Result<String, Problem> {
    Ok(href_with(&["connections", name, "gaps"], &[("done", done)]))
}

pub(super) fn run_now(app: &App, UrlPath(name): OfConnection, _: &[u8]) -> Result<String, Problem> {
    app.run_now(&name)?;
    connection(&name, "run")
}

pub(super) fn pause(app: &App, UrlPath(name): OfConnection, _: &[u8]) -> Result<String, Problem> {
    app.pause(&name)?;
    connection(&name, "paused")
}

pub(super) fn resume(app: &App, UrlPath(name): OfConnection, _: &[u8]) -> Result<String, Problem> {
    app.resume(&name, None)?;
    connection(&name, "resumed")
}

pub(super) fn schedule(app: &App, UrlPath(name): OfConnection, form: &[u8]) -> Result<String, Problem> {
    app.set_schedule(&name, &wish(&fields(form))?)?;
    connection(&name, "scheduled")
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
        Some(_) => return Err(wrong("a connection runs automatically or manually")),
    };
    let every = match text("every_minutes").map(|text| text.parse::<u64>().ok().filter(|minutes| *minutes > 0)) {
        None => Setting::Default,
        Some(Some(minutes)) => Setting::Set(Duration::from_secs(minutes.saturating_mul(60))),
        Some(None) => return Err(wrong("the minutes between two runs are no whole number above zero")),
    };
    Ok(ScheduleChange { mode, every, cron: setting("cron"), quiet: setting("quiet"), zone: setting("zone") })
}

pub(super) fn retry_gap(app: &App, UrlPath((name, gap)): OfGap, _: &[u8]) -> Result<String, Problem> {
    app.retry_gap(&name, &gap)?;
    gaps(&name, "retried")
}

pub(super) fn ignore_gap(app: &App, UrlPath((name, gap)): OfGap, form: &[u8]) -> Result<String, Problem> {
    app.ignore_gap(&name, &gap, &fields(form).remove("note").unwrap_or_default())?;
    gaps(&name, "ignored")
}

pub(super) fn take_back_gap(app: &App, UrlPath((name, gap)): OfGap, _: &[u8]) -> Result<String, Problem> {
    app.take_back_gap(&name, &gap)?;
    gaps(&name, "taken-back")
}

pub(super) fn cancel(app: &App, UrlPath(run_id): UrlPath<String>, form: &[u8]) -> Result<String, Problem> {
    let how = if fields(form).contains_key("at_once") { Stop::Now } else { Stop::InOrder };
    app.cancel_run(&run_id, how)?;
    Ok(href_with(&["runs", &run_id], &[("done", "cancelled")]))
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

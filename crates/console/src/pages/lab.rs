//! Whether the pace can be trusted with an account: the laboratory's report about the governor that runs here.
//!
//! The laboratory is a function without clock and network: the same scenarios give the same figures every time. So they
//! are computed when somebody first asks, once for the life of the process, and never stored. Nothing from outside is in
//! it; its drawing is the one markup that no template wrote.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::words::percent;
use super::{address, words};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::UrlQuery;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_lab::laws::LawName;
use gleaner_lab::report::{self, Drawing, Summary, is_on_target};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::score::{self, Figures};
use gleaner_lab::{builtin, report::TARGET_GOODPUT};
use serde::Deserialize;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::timeout;

/// What most programs do: try again later and later, and as late as they are told to.
const USUAL: LawName = LawName::BackoffRetryAfter;
/// The scenario that is drawn when none is named.
const FIRST: &str = "limit-falls";
/// The one seed: figures are the same each time.
const SEED: u64 = 1;
/// How long one waits while another one computes.
const TURN_MAX: Duration = Duration::from_secs(30);

struct Report {
    runs: Vec<Run>,
    ours: Summary,
    usual: Summary,
}

struct Run {
    scenario: Scenario,
    figures: Figures,
}

/// `None` never happens: the scenarios are compiled in, and a test reads them.
static REPORT: LazyLock<Option<Report>> = LazyLock::new(|| {
    let scenarios = builtin::all().ok()?;
    let measured = |law| scenarios.iter().map(move |scenario| score::measure(scenario, law, SEED)).collect::<Vec<_>>();
    let (ours, usual) = (measured(LawName::Gleaner), measured(USUAL));
    let sum = |figures: &[Figures]| Summary::from_runs(&figures.iter().collect::<Vec<_>>());
    let (sum_ours, sum_usual) = (sum(&ours)?, sum(&usual)?);
    let runs = scenarios.into_iter().zip(ours).map(|(scenario, figures)| Run { scenario, figures });
    Some(Report { runs: runs.collect(), ours: sum_ours, usual: sum_usual })
});

#[derive(Template)]
#[template(path = "lab.html")]
struct LabPage {
    frame: Frame,
    report: &'static Report,
    shown: Shown,
}

struct Shown {
    scenario: &'static Scenario,
    provider: String,
    story: String,
    svg: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabWanted {
    /// Which scenario is drawn.
    of: Option<String>,
}

pub(crate) async fn page(State(state): Shared, UrlQuery(wanted): UrlQuery<LabWanted>) -> Result<Response, PageProblem> {
    let look = state.reading.ask(|reader| Ok(Look::new(reader)?)).await?;
    let frame = Frame::new("Can the pace be trusted?", Part::Settings, "/lab".to_owned(), &look);
    let turn = timeout(TURN_MAX, Arc::clone(&state.jobs.simulating).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Err(Problem::busy("the laboratory is at work").into()) };
    let made = tokio::task::spawn_blocking(move || {
        let made = gather(wanted.of.as_deref().unwrap_or(FIRST), frame);
        drop(turn);
        made
    });
    let page = made.await.map_err(|_| Problem::internal("the laboratory met a fault of ours"))??;
    show(&page)
}

fn gather(of: &str, frame: Frame) -> Result<LabPage, Problem> {
    let report = REPORT.as_ref().ok_or_else(|| Problem::internal("the scenarios cannot be read"))?;
    let drawn = report.runs.iter().find(|run| run.scenario.name == of);
    let drawn = drawn.ok_or_else(|| Problem::not_found("there is no such scenario", "the report lists them"))?;
    Ok(LabPage { frame, report, shown: draw(&drawn.scenario) })
}

/// Drawn again each time: a drawing takes milliseconds, and all of them would take megabytes.
fn draw(scenario: &'static Scenario) -> Shown {
    let (figures, trace) = score::measure_traced(scenario, LawName::Gleaner, SEED);
    Shown {
        scenario,
        provider: report::provider(scenario),
        story: report::story(scenario, &figures),
        svg: Drawing::new(scenario, &figures, &trace).svg(scenario),
    }
}

impl Report {
    fn on_target(&self) -> usize {
        self.runs.iter().filter(|run| is_on_target(&run.figures)).count()
    }

    /// The scenario in which we were slowest.
    fn worst(&self) -> &str {
        self.runs.get(self.ours.worst).map_or("", |run| &run.scenario.name)
    }
}

/// The drawing of a scenario.
fn drawing(name: &str) -> String {
    format!("{}#drawn", address::href_with(&["lab"], &[("of", name)]))
}

/// The share that a run must reach: `95 %`.
fn target() -> String {
    format!("{:.0} %", TARGET_GOODPUT * 100.0)
}

/// `99.50 %`
fn share(of: f64) -> String {
    // Shares lie between zero and one, and the whole is a hundred percent only if nothing is missing.
    percent((of.clamp(0.0, 1.0) * 10_000.0).floor() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_about_every_scenario_and_says_of_each_how_it_went() {
        let frame = || Frame::of_error("");
        let LabPage { report, shown, .. } = gather(FIRST, frame()).unwrap();
        assert_eq!(report.runs.len(), builtin::names().count());
        assert_eq!(report.runs.iter().filter(|run| run.scenario.name == shown.scenario.name).count(), 1);
        assert_eq!(report.ours.bans, report.runs.iter().map(|run| run.figures.counts.bans).sum::<u64>());
        assert!(shown.svg.starts_with("<svg ") && !shown.svg.contains("style="), "the policy forbids styles");
        assert!(report.usual.bans > 0, "the other law is another one");
        assert!(gather("<script>", frame()).is_err());
    }
}

//! Whether the pace can be trusted with an account: the laboratory's report about the governor that runs here.
//!
//! The laboratory is a function without clock and network: the same scenarios give the same figures every time. So they
//! are computed when somebody first asks, once for the life of the process, and never stored. Nothing from outside is in
//! it; its drawing is the one markup that no template wrote.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{href, href_with};
use super::words::{number, percent};
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
    let sum = |figures: &[Figures]| Summary::of(&figures.iter().collect::<Vec<_>>());
    let (sum_ours, sum_usual) = (sum(&ours)?, sum(&usual)?);
    let runs = scenarios.into_iter().zip(ours).map(|(scenario, figures)| Run { scenario, figures });
    Some(Report { runs: runs.collect(), ours: sum_ours, usual: sum_usual })
});

#[derive(Template)]
#[template(path = "lab.html")]
struct LabPage {
    frame: Frame,
    on_target: usize,
    of: usize,
    goodput: String,
    goodput_worst: String,
    worst: String,
    refused: String,
    bans: u64,
    inside_retry_after: u64,
    usual_refused: String,
    usual_bans: u64,
    usual_inside: u64,
    target: String,
    shown: Shown,
    lines: Vec<Line>,
}

struct Shown {
    name: String,
    about: String,
    provider: String,
    story: String,
    svg: String,
}

struct Line {
    name: String,
    href: String,
    about: String,
    goodput: String,
    refused: String,
    sent: String,
    bans: u64,
    is_on_target: bool,
    is_shown: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabWanted {
    /// Which scenario is drawn.
    of: Option<String>,
}

pub(crate) async fn page(State(state): Shared, UrlQuery(wanted): UrlQuery<LabWanted>) -> Result<Response, PageProblem> {
    let waiting = state.reading.ask(|reader| Ok(Look::new(reader)?.waiting.len())).await?;
    let turn = timeout(TURN_MAX, Arc::clone(&state.jobs.simulating).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Err(Problem::busy("the laboratory is at work").into()) };
    let made = tokio::task::spawn_blocking(move || {
        let made = gather(wanted.of.as_deref().unwrap_or(FIRST), waiting);
        drop(turn);
        made
    });
    let page = made.await.map_err(|_| Problem::internal("the laboratory met a fault of ours"))??;
    show(&page)
}

fn gather(of: &str, waiting: usize) -> Result<LabPage, Problem> {
    let report = REPORT.as_ref().ok_or_else(|| Problem::internal("the scenarios cannot be read"))?;
    let drawn = report.runs.iter().find(|run| run.scenario.name == of);
    let drawn = drawn.ok_or_else(|| Problem::not_found("there is no such scenario", "the report lists them"))?;
    let Summary { goodput_mean, goodput_worst, worst, violation_mean, bans, sends_inside_retry_after, .. } =
        report.ours;
    Ok(LabPage {
        frame: Frame::new("Can the pace be trusted?", Part::Settings, href(&["lab"]), waiting),
        on_target: report.runs.iter().filter(|run| is_on_target(&run.figures)).count(),
        of: report.runs.len(),
        goodput: share(goodput_mean),
        goodput_worst: share(goodput_worst),
        worst: report.runs.get(worst).map(|run| run.scenario.name.clone()).unwrap_or_default(),
        refused: share(violation_mean),
        bans,
        inside_retry_after: sends_inside_retry_after,
        usual_refused: share(report.usual.violation_mean),
        usual_bans: report.usual.bans,
        usual_inside: report.usual.sends_inside_retry_after,
        target: format!("{:.0} %", TARGET_GOODPUT * 100.0),
        shown: draw(&drawn.scenario),
        lines: report.runs.iter().map(|run| line(run, of)).collect(),
    })
}

/// Drawn again each time: a drawing takes milliseconds, and all of them would take megabytes.
fn draw(scenario: &Scenario) -> Shown {
    let (figures, trace) = score::measure_traced(scenario, LawName::Gleaner, SEED);
    Shown {
        name: scenario.name.clone(),
        about: scenario.about.clone(),
        provider: report::provider(scenario),
        story: report::story(scenario, &figures),
        svg: Drawing::new(scenario, &figures, &trace).svg(scenario),
    }
}

fn line(run: &Run, shown: &str) -> Line {
    let Run { scenario, figures } = run;
    Line {
        href: format!("{}#drawn", href_with(&["lab"], &[("of", &scenario.name)])),
        about: scenario.about.clone(),
        goodput: share(figures.goodput),
        refused: number(figures.counts.rejected),
        sent: number(figures.counts.sent),
        bans: figures.counts.bans,
        is_on_target: is_on_target(figures),
        is_shown: scenario.name == shown,
        name: scenario.name.clone(),
    }
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
        let page = gather(FIRST, 0).unwrap();
        assert_eq!((page.of, page.lines.len()), (builtin::names().count(), builtin::names().count()));
        assert_eq!(page.lines.iter().filter(|line| line.is_shown).count(), 1);
        assert_eq!(page.bans, page.lines.iter().map(|line| line.bans).sum::<u64>());
        assert!(page.shown.svg.starts_with("<svg ") && !page.shown.svg.contains("style="), "the policy forbids styles");
        assert!(page.usual_bans > 0, "the other law is another one");
        assert!(gather("<script>", 0).is_err());
    }
}

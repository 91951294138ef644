//! `gleaner lab run`: laws on scenarios, as a table, as JSON, as a page.

use crate::args::RunArgs;
use crate::error::{CliError, EXIT_FAILED};
use crate::lab::plan::{self, Job, Plan};
use crate::lab::{row, runner, tuning};
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::progress::show_runs;
use crate::terminal::table;
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_lab::Tuning;
use gleaner_lab::laws::LawName;
use gleaner_lab::report::{self, Drawing, Section};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::score::{self, Figures};
use std::io;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &RunArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let tuning = tuning::tuning(&args.set)?;
    let default = if args.set.is_empty() { &LawName::ALL[..] } else { &[LawName::Gleaner] };
    let laws = plan::laws(&args.laws, default)?;
    let plan =
        Plan::new(plan::scenarios(&args.scenarios)?, laws, args.seeds, |scenario| workers(scenario, args.workers));
    let mut page = args.html.as_ref().map(|_| Page::new(&plan));
    let mut taken = Taken::default();
    let (progress, total) = (LiveLine::new(true), plan.jobs.len());
    let work = |index: usize| measure(&plan, &plan.jobs[index], tuning, args.html.is_some());
    runner::in_order(plan.jobs.len(), work, |index, (figures, drawing)| {
        let job = &plan.jobs[index];
        let scenario = &plan.scenarios[job.scenario];
        taken.check(scenario, &figures);
        if let (Some(page), Some(drawing)) = (&mut page, drawing) {
            page.drawings[job.scenario].push(drawing);
        }
        taken.figures.push(figures);
        show_runs(&progress, (index + 1, total), &scenario.name);
        if args.json {
            progress.clear();
            return out.line(&row::json(scenario, &taken.figures[index]));
        }
        let last_of_scenario = plan.jobs.get(index + 1).is_none_or(|next| next.scenario != job.scenario);
        if last_of_scenario {
            progress.clear();
            table::scenario(out, scenario, &taken.figures[taken.printed..])?;
            taken.printed = taken.figures.len();
        }
        Ok(())
    })
    .map_err(CliError::from)?;
    drop(progress);
    if !args.json {
        table::summary(out, &plan.laws, &taken.figures)?;
        table::legend(out, args.seeds)?;
        table::targets(out, &taken.figures)?;
    }
    if let (Some(path), Some(page)) = (&args.html, page) {
        write_page(path, &page.html(&plan, &taken.figures))?;
        report_to_stderr(&format!("wrote {}", path.display()));
    }
    Ok(taken.verdict())
}

/// The scenario's own number of workers and one, or what was asked for.
pub(super) fn workers(scenario: &Scenario, asked: Option<u16>) -> Vec<usize> {
    match (asked, scenario.workers) {
        (Some(workers), _) => vec![usize::from(workers)],
        (None, 1) => vec![1],
        (None, own) => vec![own, 1],
    }
}

/// A run, and its charts where there is a page and the page shows it: every law with the first
/// number of workers and the first seed, and of ours also the other number.
fn measure(plan: &Plan, job: &Job, tuning: &'static Tuning, page: bool) -> (Figures, Option<Drawing>) {
    let scenario = plan.scenario(job);
    let (figures, trace) = score::measure_tuned(&scenario, job.law, job.seed, tuning);
    let first_workers = plan.jobs.iter().find(|other| other.scenario == job.scenario).map(|first| first.workers);
    let shown = page && job.seed == 1 && (first_workers == Some(job.workers) || job.law == LawName::Gleaner);
    let drawing = shown.then(|| Drawing::new(&scenario, &figures, &trace));
    (figures, drawing)
}

/// Results so far.
#[derive(Default)]
struct Taken {
    figures: Vec<Figures>,
    printed: usize,
    missed: Vec<String>,
}

impl Taken {
    /// Scenario files hold our law to ranges; the others may do what they do.
    fn check(&mut self, scenario: &Scenario, figures: &Figures) {
        if figures.law != LawName::Gleaner {
            return;
        }
        let Figures { workers, seed, .. } = figures;
        let plural = if *workers == 1 { "" } else { "s" };
        let name = one_line(&scenario.name);
        let words = |miss: String| format!("missed: {name}, {workers} worker{plural}, seed {seed}: {miss}");
        self.missed.extend(figures.missed(scenario).into_iter().map(words));
    }

    fn verdict(&self) -> ExitCode {
        self.missed.iter().for_each(|line| report_to_stderr(line));
        if self.missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
    }
}

/// Charts for the page, by scenario.
struct Page {
    drawings: Vec<Vec<Drawing>>,
}

impl Page {
    fn new(plan: &Plan) -> Self {
        Self { drawings: plan.scenarios.iter().map(|_| Vec::new()).collect() }
    }

    fn html(self, plan: &Plan, figures: &[Figures]) -> String {
        let sections: Vec<Section<'_>> = plan
            .scenarios
            .iter()
            .zip(self.drawings)
            .map(|(scenario, drawings)| Section { scenario, drawings })
            .collect();
        report::page(&sections, &plan.laws, figures)
    }
}

/// Writes all or nothing: a reader never sees half a page, and a failure leaves the old one.
fn write_page(path: &Path, html: &str) -> Result<(), CliError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, html).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error: io::Error| {
        // What is left of a failed write is of no use; that it cannot be removed changes nothing.
        let _removed = std::fs::remove_file(&part);
        CliError::failed(
            format!("--html {}: cannot be written: {error}", path.display()),
            "give a file in a folder that exists and that you may write to",
        )
    })
}

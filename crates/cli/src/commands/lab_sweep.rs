//! `gleaner lab run --sweep`: the law with several values of one number, a row for each.

use super::{lab_random, lab_run};
use crate::args::RunArgs;
use crate::error::CliError;
use crate::lab::plan::{self, Plan};
use crate::lab::tuning::{self, Sweep};
use crate::lab::{row, runner};
use crate::terminal::output::{Output, Tone};
use crate::terminal::progress::show_runs;
use crate::terminal::table::{compact, percent};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::shortened;
use gleaner_lab::laws::LawName;
use gleaner_lab::report::Summary;
use gleaner_lab::score::{self, Figures};
use gleaner_lab::{Number, Tuning};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Characters of a value: a list is shown by its beginning.
const VALUE_WIDTH: usize = 12;

pub(crate) fn run(args: &RunArgs, assignment: &str, out: &mut Output) -> Result<(), CliError> {
    let sweep = tuning::sweep(assignment, &args.set)?;
    let plan = match args.random {
        Some(count) => lab_random::plan(args, count, vec![LawName::Gleaner]),
        None => Plan::new(plan::scenarios(&args.scenarios)?, vec![LawName::Gleaner], args.seeds, |scenario| {
            lab_run::workers(scenario, args.workers)
        }),
    };
    let each = plan.jobs.len();
    let (progress, total) = (LiveLine::new(true), each * sweep.tunings.len());
    let mut figures: Vec<Figures> = Vec::new();
    let work = |index: usize| {
        let job = &plan.jobs[index % each];
        score::measure_tuned(&plan.scenario(job), job.law, job.seed, sweep.tunings[index / each]).0
    };
    if !args.json {
        head(out, &sweep, each)?;
    }
    runner::in_order(each * sweep.tunings.len(), work, |index, one| {
        show_runs(&progress, (index + 1, total), &one.scenario);
        figures.push(one);
        if figures.len() < each {
            return Ok(());
        }
        progress.clear();
        let missed =
            plan.jobs.iter().zip(&figures).filter(|(job, f)| !f.missed(&plan.scenarios[job.scenario]).is_empty());
        let swept = Swept { number: sweep.number, tuning: sweep.tunings[index / each], missed: missed.count() };
        let runs: Vec<&Figures> = figures.iter().collect();
        let line =
            Summary::from_runs(&runs).map(|sum| if args.json { swept.json(&sum) } else { swept.line(out, &sum) });
        figures.clear();
        line.map_or(Ok(()), |line| out.line(&line))
    })
    .map_err(CliError::from)?;
    drop(progress);
    if !args.json {
        legend(out)?;
    }
    Ok(())
}

/// One value of the number.
struct Swept {
    number: &'static Number,
    tuning: &'static Tuning,
    /// Runs that missed what their scenario expects.
    missed: usize,
}

/// Other programs read it: keys are only ever added, at the end.
#[derive(Serialize)]
struct Row {
    number: &'static str,
    value: serde_json::Value,
    runs: usize,
    goodput_mean: f64,
    goodput_worst: f64,
    violation_ratio_mean: f64,
    over_target: usize,
    bans: u64,
    sends_inside_retry_after: u64,
    missed: usize,
    score_mean: f64,
    score_worst: f64,
    /// All numbers that are not as shipped.
    set: BTreeMap<&'static str, serde_json::Value>,
}

impl Swept {
    fn json(&self, sum: &Summary) -> String {
        let set = tuning::changed(self.tuning).map(|(number, _)| (number.name, tuning::json(number, self.tuning)));
        row::to_line(&Row {
            number: self.number.name,
            value: tuning::json(self.number, self.tuning),
            runs: sum.runs,
            goodput_mean: sum.goodput_mean,
            goodput_worst: sum.goodput_worst,
            violation_ratio_mean: sum.violation_mean,
            over_target: sum.over_target,
            bans: sum.bans,
            sends_inside_retry_after: sum.sends_inside_retry_after,
            missed: self.missed,
            score_mean: sum.score_mean,
            score_worst: sum.score_worst,
            set: set.collect(),
        })
    }

    fn line(&self, out: &Output, sum: &Summary) -> String {
        let cells = [
            format!("{:.3}", sum.goodput_mean),
            format!("{:.3}", sum.goodput_worst),
            percent(sum.violation_mean),
            sum.over_target.to_string(),
            compact(sum.bans),
            compact(sum.sends_inside_retry_after),
            self.missed.to_string(),
            format!("{:.3}", sum.score_mean),
            format!("{:.3}", sum.score_worst),
        ];
        fitting(out, &shortened(&self.number.text(self.tuning), VALUE_WIDTH - 1), &cells)
    }
}

/// The columns behind the value, the most telling first.
const COLUMNS: [&str; 9] = [" mean G", "worst G", " mean V", "over V", " bans", "inside", "missed", "score", "worst"];

fn head(out: &mut Output, sweep: &Sweep, runs: usize) -> io::Result<()> {
    let Sweep { number, tunings } = sweep;
    let shipped = number.text(Tuning::SHIPPED);
    let title =
        format!("{}: {runs} runs per value; shipped: {shipped}; allowed: {}", number.name, tuning::allowed(number));
    out.paragraph(Tone::Strong, &title, out.width())?;
    for (other, text) in tuning::changed(tunings[0]).filter(|(other, _)| other.name != number.name) {
        out.line(&format!("with {}={text}", other.name))?;
    }
    let line = fitting(out, "value", &COLUMNS.map(str::to_owned));
    out.line(&out.paint(Tone::Quiet, &line))
}

/// A line of as many columns as the terminal has room for.
fn fitting(out: &Output, value: &str, cells: &[String]) -> String {
    let mut line = format!("{value:<VALUE_WIDTH$}");
    for (cell, column) in cells.iter().zip(COLUMNS) {
        let next = format!(" {cell:>width$}", width = column.len());
        if line.chars().count() + next.chars().count() > out.width() {
            break;
        }
        line.push_str(&next);
    }
    line
}

fn legend(out: &mut Output) -> io::Result<()> {
    let text = "G: accepted / what an oracle gets. V: rejected / sent; over V: runs above 0.3 % and 6 in all. inside: sends \
                inside a Retry-After. missed: runs that miss what their scenario expects. score: mean, and the worst run.";
    out.paragraph(Tone::Quiet, text, out.width())
}

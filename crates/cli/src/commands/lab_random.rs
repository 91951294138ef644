//! `gleaner lab run --random`: scenarios that nobody tuned for, and how the figures are spread.

use crate::args::RunArgs;
use crate::error::CliError;
use crate::lab::plan::{self, Plan};
use crate::lab::{row, runner, tuning};
use crate::terminal::output::{Output, Tone, wrap};
use crate::terminal::progress::show_runs;
use crate::terminal::table::{WIDTH, percent};
use gleaner_base::live_line::LiveLine;
use gleaner_lab::laws::LawName;
use gleaner_lab::random;
use gleaner_lab::report::{self, Better, Spread, Summary};
use gleaner_lab::scenario::{LimitKind, Scenario};
use gleaner_lab::score::{self, Figures};
use std::io;

/// The runs that are named at the end: enough to see what goes wrong, few enough to be read.
const WORST_SHOWN: usize = 10;

pub(crate) fn run(args: &RunArgs, count: u64, out: &mut Output) -> Result<(), CliError> {
    let laws = plan::laws(&args.laws, &[LawName::Gleaner])?;
    let tuning = tuning::tuning(&args.set)?;
    let family = family(args);
    let plan = plan(args, count, laws);
    let (progress, total) = (LiveLine::new(true), plan.jobs.len());
    let mut runs = Vec::new();
    let work = |index: usize| {
        let job = &plan.jobs[index];
        score::measure_tuned(&plan.scenario(job), job.law, job.seed, tuning).0
    };
    runner::in_order(plan.jobs.len(), work, |index, figures| {
        let scenario = &plan.scenarios[plan.jobs[index].scenario];
        if args.json {
            progress.clear();
            out.line(&row::json(scenario, &figures))?;
        }
        show_runs(&progress, (index + 1, total), &scenario.name);
        runs.push(Run { scenario, figures });
        Ok::<(), io::Error>(())
    })?;
    drop(progress);
    if args.json {
        return Ok(());
    }
    for &law in &plan.laws {
        let of_law: Vec<&Run<'_>> = runs.iter().filter(|run| run.figures.law == law).collect();
        print_law(out, law, family, &of_law)?;
    }
    Ok(())
}

/// Every law on the scenarios that were drawn.
pub(super) fn plan(args: &RunArgs, count: u64, laws: Vec<LawName>) -> Plan {
    let scenarios = (0..count).map(|index| random::scenario(family(args), index)).collect();
    Plan::new(scenarios, laws, args.seeds, |own| vec![args.workers.map_or(own.workers, usize::from)])
}

/// Which scenarios are drawn.
fn family(args: &RunArgs) -> u64 {
    args.seed.unwrap_or(1)
}

struct Run<'a> {
    scenario: &'a Scenario,
    figures: Figures,
}

fn print_law(out: &mut Output, law: LawName, family: u64, runs: &[&Run<'_>]) -> io::Result<()> {
    let figures: Vec<&Figures> = runs.iter().map(|run| &run.figures).collect();
    let Some(sum) = Summary::from_runs(&figures) else { return Ok(()) };
    let title = format!("{}: {} runs of random scenarios, seed {family}", law.as_str(), sum.runs);
    out.line(&out.paint(Tone::Strong, &title))?;
    out.line(&format!(
        "{} bans in all, {} runs over the violation target, {} sends inside a Retry-After",
        sum.bans, sum.over_target, sum.sends_inside_retry_after
    ))?;
    out.line("")?;
    out.line(&out.paint(Tone::Quiet, "limit              runs                      G         V     score      bans"))?;
    print_spread(out, "all", &figures)?;
    for kind in KINDS {
        let of_kind: Vec<&Figures> =
            runs.iter().filter(|run| first_kind(run) == Some(kind)).map(|run| &run.figures).collect();
        print_spread(out, report::kind_name(kind), &of_kind)?;
    }
    out.line("")?;
    print_worst(out, runs)
}

/// The kinds in the order in which the generator knows them.
const KINDS: [LimitKind; 6] = [
    LimitKind::TokenBucket,
    LimitKind::FixedWindow,
    LimitKind::SlidingWindow,
    LimitKind::DelayQueue,
    LimitKind::Tarpit,
    LimitKind::Concurrency,
];

fn first_kind(run: &Run<'_>) -> Option<LimitKind> {
    run.scenario.limits.first().map(|limit| limit.kind)
}

fn print_spread(out: &mut Output, name: &str, figures: &[&Figures]) -> io::Result<()> {
    let spread = |better: Better, value: fn(&Figures) -> f64| {
        Spread::from_values(figures.iter().map(|f| value(f)).collect(), better)
    };
    let (Some(goodput), Some(violations), Some(score), Some(bans)) = (
        spread(Better::High, |f| f.goodput),
        spread(Better::Low, |f| f.violation_ratio),
        spread(Better::High, |f| f.score),
        spread(Better::Low, |f| f.counts.bans as f64),
    ) else {
        return Ok(());
    };
    let labels = ["mean", "median", "5 % are worse", "worst"];
    for (index, label) in labels.into_iter().enumerate() {
        let (name, runs) = if index == 0 { (name, figures.len().to_string()) } else { ("", String::new()) };
        let value = |spread: &Spread| [spread.mean, spread.median, spread.tail, spread.worst][index];
        out.line(&format!(
            "{name:<16} {runs:>6}  {label:<14} {:>7.3} {:>9} {:>9.3} {:>9}",
            value(&goodput),
            percent(value(&violations)),
            value(&score),
            report::number(value(&bans))
        ))?;
    }
    Ok(())
}

fn print_worst(out: &mut Output, runs: &[&Run<'_>]) -> io::Result<()> {
    let mut worst = runs.to_vec();
    // Among scores of 0, more bans and more refusals are worse.
    let badness = |run: &Run<'_>| (run.figures.counts.bans, run.figures.violation_ratio);
    worst.sort_by(|a, b| {
        let by_score = a.figures.score.total_cmp(&b.figures.score);
        let ((a_bans, a_share), (b_bans, b_share)) = (badness(a), badness(b));
        by_score.then(b_bans.cmp(&a_bans)).then(b_share.total_cmp(&a_share))
    });
    out.line(&out.paint(Tone::Strong, "the worst"))?;
    out.line(&out.paint(Tone::Quiet, "score      G       V  bans  latency  workers  scenario"))?;
    for run in worst.into_iter().take(WORST_SHOWN) {
        let Run { scenario, figures } = run;
        out.line(&format!(
            "{:>5.3}  {:>5.3} {:>7}  {:>4} {:>8.1} {:>8}  {}",
            figures.score,
            figures.goodput,
            percent(figures.violation_ratio),
            figures.counts.bans,
            figures.counts.latency_ratio,
            figures.workers,
            scenario.name
        ))?;
        for line in wrap(&report::provider(scenario), WIDTH - 7) {
            out.line(&format!("       {line}"))?;
        }
    }
    out.line("")
}

//! Tables for people: at most 100 columns, understandable without colour.

use crate::terminal::output::{Output, Tone};
use gleaner_base::outside::{self, one_line};
use gleaner_lab::laws::LawName;
use gleaner_lab::report::{self, Summary, TARGET_GOODPUT, TARGET_VIOLATIONS, is_on_target};
use gleaner_lab::scenario::Scenario;
use gleaner_lab::score::Figures;
use std::io;

/// Wide enough for the figures, narrow enough for half a screen.
pub(crate) const WIDTH: usize = 100;
/// Missed targets that are named; the table above has them all.
const MISSED_SHOWN: usize = 6;

/// A scenario's runs: its name, what it is, and a row per number of workers and law.
pub(crate) fn scenario(out: &mut Output, scenario: &Scenario, figures: &[Figures]) -> io::Result<()> {
    out.line(&out.paint(Tone::Strong, &one_line(&scenario.name)))?;
    out.paragraph(Tone::Plain, &outside::lines(&scenario.about), WIDTH)?;
    let head = "   n law                     G       V rejected bans converge recover latency inside retries  score";
    out.line(&out.paint(Tone::Quiet, head))?;
    let mut last_workers = None;
    for runs in figures.chunk_by(|a, b| a.law == b.law && a.workers == b.workers) {
        let workers = runs.first().map(|first| first.workers);
        let shown = workers.filter(|_| workers != last_workers).map(|workers| workers.to_string());
        last_workers = workers;
        if let Some(row) = row(out, scenario, &shown.unwrap_or_default(), runs) {
            out.line(&row)?;
        }
    }
    out.line("")
}

/// The runs of one law with one number of workers, over all seeds: shares are means, counts are sums, times the slowest
/// of all.
fn row(out: &Output, scenario: &Scenario, workers: &str, runs: &[Figures]) -> Option<String> {
    let first = runs.first()?;
    let mean = |value: fn(&Figures) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    let sum = |value: fn(&Figures) -> u64| runs.iter().map(value).sum::<u64>();
    let changes = report::limit_changes(&scenario.with_workers(first.workers));
    let is_over_target = runs.iter().any(|f| !f.violations_within(TARGET_VIOLATIONS));
    let (bans, inside) = (sum(|f| f.counts.bans), sum(|f| f.counts.sends_inside_retry_after));
    let law = out.paint(law_tone(first.law), &format!("{:<20}", first.law.as_str()));
    let violations = out.paint(bad_if(is_over_target), &format!("{:>7}", percent(mean(|f| f.violation_ratio))));
    Some(format!(
        "{workers:>4} {law} {:>5.3} {violations} {:>8} {} {:>8} {:>7} {:>7.1} {} {:>7} {:>6.3}",
        mean(|f| f.goodput),
        compact(sum(|f| f.counts.rejected)),
        out.paint(bad_if(bans > 0), &format!("{bans:>4}")),
        slowest(runs, |f| f.converge_s),
        if changes { slowest(runs, |f| f.recover_s) } else { "-".to_owned() },
        mean(|f| f.counts.latency_ratio),
        out.paint(bad_if(inside > 0), &format!("{:>6}", compact(inside))),
        compact(sum(|f| f.counts.retries)),
        mean(|f| f.score)
    ))
}

const fn bad_if(is_bad: bool) -> Tone {
    if is_bad { Tone::Bad } else { Tone::Plain }
}

/// A row per law over all its runs.
pub(crate) fn summary(out: &mut Output, laws: &[LawName], figures: &[Figures]) -> io::Result<()> {
    out.line(&out.paint(Tone::Strong, "all runs"))?;
    let head = "law                    runs  mean G worst G  mean V  over V    bans inside  mean score  worst score";
    out.line(&out.paint(Tone::Quiet, head))?;
    for &law in laws {
        let runs: Vec<&Figures> = figures.iter().filter(|f| f.law == law).collect();
        let Some(sum) = Summary::from_runs(&runs) else { continue };
        out.line(&summary_line(out, law, &sum))?;
    }
    out.line("")
}

fn summary_line(out: &Output, law: LawName, sum: &Summary) -> String {
    let name = out.paint(law_tone(law), &format!("{:<20}", law.as_str()));
    let over = out.paint(bad_if(sum.over_target > 0), &format!("{:>7}", sum.over_target));
    let bans = out.paint(bad_if(sum.bans > 0), &format!("{:>7}", sum.bans));
    let inside =
        out.paint(bad_if(sum.sends_inside_retry_after > 0), &format!("{:>6}", compact(sum.sends_inside_retry_after)));
    format!(
        "{name} {:>6}  {:>6.3} {:>7.3} {:>7} {over} {bans} {inside} {:>11.3} {:>12.3}",
        sum.runs,
        sum.goodput_mean,
        sum.goodput_worst,
        percent(sum.violation_mean),
        sum.score_mean,
        sum.score_worst
    )
}

/// What the columns mean, once, below the tables.
pub(crate) fn legend(out: &mut Output, seeds: u64) -> io::Result<()> {
    let mut text =
        "n: workers. G: accepted / what an oracle gets. V: rejected / sent; over V: runs above 0.3 % and 6 in all. \
                    converge, recover: seconds to 90 % of the limit, of a changed limit. latency: p95 / base. \
                    inside: sends inside a Retry-After."
            .to_owned();
    if seeds > 1 {
        text.push_str(&format!(" Over {seeds} seeds: shares are means, counts sums, times the slowest."));
    }
    out.paragraph(Tone::Quiet, &text, WIDTH)
}

/// How many runs of our law are where we want all of them, and which are not.
pub(crate) fn targets(out: &mut Output, figures: &[Figures]) -> io::Result<()> {
    let ours: Vec<&Figures> = figures.iter().filter(|f| f.law == LawName::Gleaner).collect();
    if ours.is_empty() {
        return Ok(());
    }
    let missed: Vec<String> = ours
        .iter()
        .filter(|f| !is_on_target(f))
        .map(|f| {
            let (g, v) = (f.goodput, percent(f.violation_ratio));
            format!("{} with {} (G {g:.3}, V {v}, {} bans)", one_line(&f.scenario), f.workers, f.counts.bans)
        })
        .collect();
    let mut text = format!(
        "gleaner: {} of {} runs on target (G at least {TARGET_GOODPUT:.2}, V at most 0.3 % or 6 in all, no ban, nothing \
         sent inside a Retry-After).",
        ours.len() - missed.len(),
        ours.len()
    );
    if !missed.is_empty() {
        let shown = missed.iter().take(MISSED_SHOWN).cloned().collect::<Vec<_>>().join("; ");
        let more = missed.len().saturating_sub(MISSED_SHOWN);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        text.push_str(&format!(" Not: {shown}{rest}. See one with: gleaner lab show NAME --workers N."));
    }
    out.line("")?;
    out.paragraph(Tone::Plain, &text, WIDTH)
}

/// A share as a percentage, in at most seven characters.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 9.995 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// A count in at most seven characters.
pub(crate) fn compact(count: u64) -> String {
    match count {
        0..10_000_000 => count.to_string(),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

fn slowest(runs: &[Figures], time: fn(&Figures) -> Option<f64>) -> String {
    let all: Option<Vec<f64>> = runs.iter().map(time).collect();
    all.map_or_else(|| "never".to_owned(), |times| format!("{:.0} s", times.into_iter().fold(0.0, f64::max)))
}

const fn law_tone(law: LawName) -> Tone {
    if matches!(law, LawName::Gleaner) { Tone::Strong } else { Tone::Plain }
}

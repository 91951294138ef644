//! `gleaner lab show`: one run in the terminal.

use crate::args::ShowArgs;
use crate::error::CliError;
use crate::lab::{plan, tuning};
use crate::terminal::output::{Output, Tone};
use crate::terminal::table::percent;
use gleaner_base::outside::{self, one_line};
use gleaner_lab::report::{self, Cell, Chart, Ink, Series};
use gleaner_lab::score::{self, Figures};
use std::io;

/// Lines of the plot: with the rest of the page it fits the usual 24.
const PLOT_HEIGHT: usize = 12;
/// A line longer than this is hard to follow, however wide the terminal.
const WIDTH_MAX: usize = 160;

pub(crate) fn run(args: &ShowArgs, out: &mut Output) -> Result<(), CliError> {
    let law = plan::law(&args.law)?;
    let scenario = plan::scenario(&args.scenario)?;
    let scenario = scenario.with_workers(args.workers.map_or(scenario.workers, usize::from));
    let tuning = tuning::tuning(&args.set)?;
    let (figures, trace) = score::measure_tuned(&scenario, law, args.seed, tuning);
    let width = out.width().clamp(40, WIDTH_MAX);
    let plot_width = Chart::plot_width(width);
    let series = Series::new(&scenario, &figures, &trace, plot_width * 2, plot_width);

    let plural = if figures.workers == 1 { "" } else { "s" };
    let name = one_line(&scenario.name);
    let title = format!("{name}: {}, {} worker{plural}, seed {}", law.as_str(), figures.workers, figures.seed);
    out.line(&out.paint(Tone::Strong, &title))?;
    out.paragraph(Tone::Plain, &outside::lines(&scenario.about), width)?;
    out.paragraph(Tone::Quiet, &report::provider(&scenario), width)?;
    out.line("")?;
    for cells in Chart::draw(&series, width, PLOT_HEIGHT).rows() {
        out.line(&painted(out, cells))?;
    }
    legend(out)?;
    out.line("")?;
    print_figures(out, &figures)?;
    out.paragraph(Tone::Plain, &report::story(&scenario, &figures), width)?;
    Ok(())
}

/// Characters of the same kind are painted together, so that a line stays short in bytes.
fn painted(out: &Output, cells: &[Cell]) -> String {
    let paint = |run: &[Cell]| {
        let text: String = run.iter().map(|cell| cell.glyph).collect();
        out.paint(run.first().map_or(Tone::Plain, |cell| tone(cell.ink)), &text)
    };
    let line: String = cells.chunk_by(|a, b| a.ink == b.ink).map(paint).collect();
    line.trim_end().to_owned()
}

const fn tone(ink: Ink) -> Tone {
    match ink {
        Ink::Plain => Tone::Plain,
        Ink::Accepted => Tone::Accepted,
        Ink::Limit => Tone::Limit,
        Ink::Refused => Tone::Bad,
    }
}

fn legend(out: &mut Output) -> io::Result<()> {
    let line = format!(
        "         {} accepted   {} true limit   {} refused (digit: how many, #: 10 up)",
        out.paint(Tone::Accepted, "⠤⠒"),
        out.paint(Tone::Limit, "──"),
        out.paint(Tone::Bad, "×"),
    );
    out.line(&line)
}

fn print_figures(out: &mut Output, figures: &Figures) -> io::Result<()> {
    let counts = &figures.counts;
    let time = |value: Option<f64>, none: &str| value.map_or_else(|| none.to_owned(), |s| format!("{s:.0} s"));
    let left = [
        ("goodput", format!("{:.3}  {} of {}", figures.goodput, counts.accepted, figures.oracle)),
        ("violations", format!("{}  {} of {}", percent(figures.violation_ratio), counts.rejected, counts.sent)),
        ("bans", counts.bans.to_string()),
        ("score", format!("{:.3}", figures.score)),
    ];
    let right = [
        ("converged after", time(figures.converge_s, "never")),
        ("recovered after", time(figures.recover_s, "-")),
        ("latency p95 / base", format!("{:.2}", counts.latency_ratio)),
        ("inside a Retry-After", format!("{}, retries {}", counts.sends_inside_retry_after, counts.retries)),
    ];
    for ((left_name, left), (right_name, right)) in left.into_iter().zip(right) {
        out.line(&format!("{left_name:<11} {left:<27} {right_name:<21} {right}"))?;
    }
    out.line("")
}

//! `gleaner lab list`: what can be run.

use crate::args::ListArgs;
use crate::error::CliError;
use crate::lab::row;
use crate::terminal::output::{Output, Tone, wrap};
use crate::terminal::table;
use gleaner_lab::builtin;
use gleaner_lab::laws::LawName;
use gleaner_lab::report;
use serde::Serialize;

#[derive(Serialize)]
struct Listed<'a> {
    scenario: &'a str,
    about: &'a str,
    provider: String,
    workers: usize,
    horizon_s: f64,
}

pub(crate) fn run(args: &ListArgs, out: &mut Output) -> Result<(), CliError> {
    let scenarios = builtin::all()?;
    if args.json {
        for scenario in &scenarios {
            let listed = Listed {
                scenario: &scenario.name,
                about: &scenario.about,
                provider: report::provider(scenario),
                workers: scenario.workers,
                horizon_s: scenario.horizon_s,
            };
            out.line(&row::to_line(&listed))?;
        }
        return Ok(());
    }
    let name_width = builtin::names().map(str::len).max().unwrap_or(0) + 2;
    for scenario in &scenarios {
        let mut name = out.paint(Tone::Strong, &format!("{:<name_width$}", scenario.name));
        for line in wrap(&scenario.about, table::WIDTH - name_width) {
            out.line(&format!("{name}{line}"))?;
            name = " ".repeat(name_width);
        }
    }
    out.line("")?;
    let laws: Vec<&str> = LawName::ALL.into_iter().map(LawName::as_str).collect();
    out.paragraph(Tone::Plain, &format!("laws: {}", laws.join(", ")), table::WIDTH)?;
    Ok(())
}

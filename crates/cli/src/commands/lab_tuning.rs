//! `gleaner lab tuning`: every number of the law, with unit, range and reason.

use crate::args::TuningArgs;
use crate::error::CliError;
use crate::lab::{row, tuning};
use crate::terminal::output::{Output, Tone, wrap};
use crate::terminal::table;
use gleaner_lab::{Number, Tuning};
use serde::Serialize;

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    group: &'static str,
    value: serde_json::Value,
    unit: &'static str,
    min: f64,
    max: f64,
    reason: &'static str,
}

pub(crate) fn run(args: &TuningArgs, out: &mut Output) -> Result<(), CliError> {
    let width = out.width().min(table::WIDTH);
    let mut group = "";
    for number in Number::all() {
        let &Number { name, unit, min, max, reason, .. } = number;
        if args.json {
            let value = tuning::json(number, Tuning::SHIPPED);
            out.line(&row::to_line(&Listed { name, group: number.group, value, unit, min, max, reason }))?;
            continue;
        }
        if number.group != group {
            let before = if group.is_empty() { "" } else { "\n" };
            group = number.group;
            out.line(&format!("{before}{}", out.paint(Tone::Strong, group)))?;
        }
        let value = number.text(Tuning::SHIPPED).replace(':', " : ");
        for (index, line) in
            wrap(&format!("{name} = {value} {unit}, allowed {min} to {max}"), width - 4).iter().enumerate()
        {
            out.line(&format!("{}{line}", if index == 0 { "  " } else { "    " }))?;
        }
        for line in wrap(reason, width - 4) {
            out.line(&out.paint(Tone::Quiet, &format!("    {line}")))?;
        }
    }
    Ok(())
}

//! `gleaner export`: records as JSON lines or as a table, all as they were at one moment.

use crate::args::inspect::{ExportArgs, ExportFormat};
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::stop_signals;
use gleaner_app::ExportTo;
use gleaner_store::{ExportForm, Formulas};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &ExportArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let form = match args.format {
        ExportFormat::Jsonl => ExportForm::JsonLines,
        ExportFormat::Csv => ExportForm::Csv(Formulas::Kept),
    };
    let stopped = stop_signals::watch(|| {});
    let to_stdout = args.output == Path::new("-");
    let mut stdout = out.bulk();
    let to = if to_stdout { ExportTo::Stdout(&mut stdout) } else { ExportTo::File(&args.output) };
    let Some(records) = args.home.app()?.export(&args.what, form, args.tombstones, to, || stopped.is_set())? else {
        report_to_stderr("interrupted; the export is not complete");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let place = if to_stdout { String::new() } else { format!(" to {}", args.output.display()) };
    report_to_stderr(&format!("{records} records were written{place}"));
    Ok(ExitCode::SUCCESS)
}

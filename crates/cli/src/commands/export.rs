//! `gleaner export`: records as JSON lines or as a table, all as they were at one moment.

use crate::args::look::{ExportArgs, ExportFormat};
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::stop_signals;
use gleaner_app::one_stream_or_all;
use gleaner_base::atomic::AtomicFile;
use gleaner_store::{ExportForm, ExportOf, ExportStopped, Formulas};
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &ExportArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = args.home.app()?.reader()?;
    let snapshot = reader.snapshot()?;
    let (connection, streams) = one_stream_or_all(&reader, &args.what)?;
    let form = match args.format {
        ExportFormat::Jsonl => ExportForm::JsonLines,
        ExportFormat::Csv => ExportForm::Csv(Formulas::Kept),
    };
    if args.format == ExportFormat::Csv && streams.len() > 1 {
        let hint = format!("name one, for example {connection}.{}", streams[0]);
        return Err(CliError::usage("a table is of one stream, and this connection has several", hint));
    }
    let of = ExportOf { connection, streams, tombstones: args.tombstones };
    let stopped = stop_signals::watch(|| {});
    let to_stdout = args.output == Path::new("-");
    let written = if to_stdout {
        snapshot.export(&of, form, || stopped.is_set(), out.bulk())
    } else {
        AtomicFile::begin_through_links(&args.output).map_err(ExportStopped::Write).and_then(|mut file| {
            let records = snapshot.export(&of, form, || stopped.is_set(), BufWriter::new(file.file()))?;
            file.replace()?;
            Ok(records)
        })
    };
    match written {
        Ok(records) => {
            let place = if to_stdout { String::new() } else { format!(" to {}", args.output.display()) };
            report_to_stderr(&format!("{records} records were written{place}"));
            Ok(ExitCode::SUCCESS)
        }
        Err(ExportStopped::Interrupted) => {
            report_to_stderr("interrupted; the export is not complete");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        Err(ExportStopped::Store(error)) => Err(error.into()),
        Err(ExportStopped::Write(error)) => Err(not_written(&error, &args.output, to_stdout)),
        Err(stopped @ (ExportStopped::Damaged { .. } | ExportStopped::NotOneStream)) => Err(CliError::failed(
            format!("{stopped}: the export is not complete"),
            "`gleaner verify` names what is damaged",
        )),
    }
}

fn not_written(error: &io::Error, output: &Path, to_stdout: bool) -> CliError {
    let (place, outcome) = match to_stdout {
        true => ("standard output".to_owned(), "what was written is not complete"),
        false => (output.display().to_string(), "nothing was replaced, and nothing is left beside it"),
    };
    let why = match error.kind() {
        io::ErrorKind::BrokenPipe => "whoever read it has left".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        _ => error.to_string(),
    };
    let hint = "give a file in a folder that you may write to, with enough space".to_owned();
    CliError::failed(format!("cannot write {place}: {why}; {outcome}"), hint)
}

//! `gleaner export`: records as JSON lines or as a table, all as they were at one moment.

use crate::args::look::{ExportArgs, ExportFormat};
use crate::commands::export_csv::CsvSheet;
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::home::Home;
use crate::output::{Output, report_to_stderr};
use crate::stop_signals::{self, Interrupted};
use crate::stream_name::{self, Streams};
use crate::whole_file::WholeFile;
use gleaner_store::{RecordRow, Snapshot, StoreError};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Why an export ended early.
pub(super) enum Stopped {
    Store(StoreError),
    Write(io::Error),
    /// A record is not what it was when it was stored.
    Damaged {
        stream: String,
        key: String,
    },
    Interrupted,
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// One stream after the other, row by row.
pub(super) struct Export<'a> {
    pub(super) snapshot: Snapshot<'a>,
    pub(super) streams: Streams,
    args: &'a ExportArgs,
    stopped: Interrupted,
}

pub(crate) fn run(args: &ExportArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let snapshot = reader.snapshot()?;
    let streams = stream_name::one_or_all(&reader, &args.what)?;
    if args.format == ExportFormat::Csv && streams.1.len() > 1 {
        let hint = format!("name one, for example {}.{}", streams.0, streams.1[0]);
        return Err(CliError::usage("a table is of one stream, and this connection has several", hint));
    }
    let export = Export { snapshot, streams, args, stopped: stop_signals::watch(|| {}) };
    let to_stdout = args.output == Path::new("-");
    let written = if to_stdout { export.to(out.bulk()) } else { export.to_file(&args.output) };
    match written {
        Ok(records) => {
            let place = if to_stdout { String::new() } else { format!(" to {}", args.output.display()) };
            report_to_stderr(&format!("{records} records were written{place}"));
            Ok(ExitCode::SUCCESS)
        }
        Err(Stopped::Interrupted) => {
            report_to_stderr("interrupted; the export is not complete");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        Err(Stopped::Store(error)) => Err(error.into()),
        Err(Stopped::Write(error)) => Err(not_written(&error, &args.output, to_stdout)),
        Err(Stopped::Damaged { stream, key }) => Err(CliError::Failed {
            message: format!("record {key:?} of {stream:?} cannot be read: the export is not complete"),
            hint: "`gleaner verify` names what is damaged".to_owned(),
        }),
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
    CliError::Failed { message: format!("cannot write {place}: {why}; {outcome}"), hint }
}

impl Export<'_> {
    fn to_file(&self, place: &Path) -> Result<u64, Stopped> {
        let file = WholeFile::begin(place)?;
        let records = self.to(BufWriter::new(file.file()))?;
        file.finish()?;
        Ok(records)
    }

    fn to(&self, mut sink: impl Write) -> Result<u64, Stopped> {
        let records = match self.args.format {
            ExportFormat::Jsonl => self.lines(&mut sink)?,
            ExportFormat::Csv => CsvSheet::begin(self, self.args.tombstones, &mut sink)?.fill(self)?,
        };
        sink.flush()?;
        Ok(records)
    }

    fn lines(&self, sink: &mut impl Write) -> Result<u64, Stopped> {
        let mut records = 0;
        let connection = json(&self.streams.0)?;
        for stream in &self.streams.1 {
            let name = json(stream)?;
            records += self.each(stream, |row| {
                // The body is not parsed: what a number looked like is how it is written.
                let (key, data) = (json(row.key)?, row.body.unwrap_or("null"));
                let (deleted, seq, emitted) = (row.deleted, row.seq, json(&row.emitted_at)?);
                write!(sink, "{{\"connection\":{connection},\"stream\":{name},\"key\":{key},\"data\":{data},")?;
                writeln!(sink, "\"deleted\":{deleted},\"seq\":{seq},\"emitted_at\":{emitted}}}")?;
                Ok(())
            })?;
        }
        Ok(records)
    }

    /// Calls with each record of a stream that was asked for; answers how many there were.
    pub(super) fn each(
        &self,
        stream: &str,
        mut call: impl FnMut(RecordRow<'_>) -> Result<(), Stopped>,
    ) -> Result<u64, Stopped> {
        let mut records = 0;
        self.snapshot.each_record(&self.streams.0, stream, self.args.tombstones, |row| {
            if self.stopped.is_set() {
                return Err(Stopped::Interrupted);
            }
            records += 1;
            call(row)
        })?;
        Ok(records)
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> io::Result<String> {
    Ok(serde_json::to_string(value)?)
}

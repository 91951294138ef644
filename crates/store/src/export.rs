//! Records as text that leaves the store: JSON lines, or a table of one stream. All of it as it was at one moment.
//!
//! Row by row into whatever is written to, so that a million records need no more memory than one. It knows neither
//! files nor sockets, and never changes a value in JSON lines.

mod csv_sheet;

use crate::error::StoreError;
use crate::read::{RecordRow, Snapshot};
use csv_sheet::CsvSheet;
use std::io::{self, Write};

/// What is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOf {
    /// Whose records.
    pub connection: String,
    /// Which streams of it. A table has one.
    pub streams: Vec<String>,
    /// Deleted records, too.
    pub tombstones: bool,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// One object per line, with the record as it came.
    JsonLines,
    /// A column per property of the stream's schema.
    Csv(Formulas),
}

/// What becomes of a text that a spreadsheet would take for a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formulas {
    /// It stays: for programs, which want the value.
    Kept,
    /// An apostrophe before it makes it a text: for files that somebody opens with a click.
    Disarmed,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportStopped {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// A record is not what it was when it was stored.
    #[error("record {key:?} of {stream:?} cannot be read")]
    Damaged {
        /// Whose.
        stream: String,
        /// Which.
        key: String,
    },
    /// Nobody wants it any more.
    #[error("it was stopped")]
    Interrupted,
    /// A table of several streams, or of none.
    #[error("a table is of one stream")]
    NotOneStream,
}

impl Snapshot<'_> {
    /// Writes records, and answers how many. `is_over` is asked before each of them.
    ///
    /// # Errors
    ///
    /// When it could not be done to its end: what was written is not complete then.
    pub fn export(
        &self,
        of: &ExportOf,
        form: ExportForm,
        is_over: impl Fn() -> bool,
        mut sink: impl Write,
    ) -> Result<u64, ExportStopped> {
        let export = Export { snapshot: self, of, is_over: &is_over };
        let records = match form {
            ExportForm::JsonLines => export.lines(&mut sink)?,
            ExportForm::Csv(formulas) => {
                let [stream] = &of.streams[..] else { return Err(ExportStopped::NotOneStream) };
                CsvSheet::begin(&export, stream, formulas, &mut sink)?.fill(&export, stream)?
            }
        };
        sink.flush()?;
        Ok(records)
    }
}

/// One stream after the other, row by row.
struct Export<'a> {
    snapshot: &'a Snapshot<'a>,
    of: &'a ExportOf,
    is_over: &'a dyn Fn() -> bool,
}

impl Export<'_> {
    fn lines(&self, sink: &mut impl Write) -> Result<u64, ExportStopped> {
        let mut records = 0;
        let connection = json(&self.of.connection)?;
        for stream in &self.of.streams {
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
    fn each(
        &self,
        stream: &str,
        mut call: impl FnMut(RecordRow<'_>) -> Result<(), ExportStopped>,
    ) -> Result<u64, ExportStopped> {
        let mut records = 0;
        self.snapshot.each_record(&self.of.connection, stream, self.of.tombstones, |row| {
            if (self.is_over)() {
                return Err(ExportStopped::Interrupted);
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

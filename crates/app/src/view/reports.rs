//! The reports of commands that only read: each is one method, with one reader.

use super::connection_view::{ConnectionView, Look, is_collected};
use super::coverage::CoveredStream;
use crate::app::App;
use crate::error::AppError;
use crate::stream_name::one_stream_or_all;
use gleaner_base::atomic::AtomicFile;
use gleaner_store::{
    ConnectionState, ConnectionSummary, Damage, Doubt, ExportForm, ExportOf, ExportStopped, GapFilter, GapSummary,
    HeldBy, Interrupter, LeftOpen, PAGE_ROWS_MAX, QuarantinedRecord, QuerySink, Reader, RunSummary, StoreError,
    StreamCoverage,
};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How connections stand.
#[derive(Debug)]
pub struct Overview {
    pub views: Vec<ConnectionView>,
    /// Connections that are no longer collected.
    pub gone: Vec<ConnectionSummary>,
    /// The service of this data root, if one runs.
    pub service: Option<HeldBy>,
}

/// Why a connection is as it is.
#[derive(Debug)]
pub struct Explained {
    pub view: ConnectionView,
    pub streams: Vec<StreamCoverage>,
    pub left_open: Vec<LeftOpen>,
    /// The service of this data root, if one runs.
    pub service: Option<HeldBy>,
}

/// A row of the list of gaps.
#[derive(Clone, Copy, Debug)]
pub enum MissingRecord<'a> {
    Gap(&'a GapSummary),
    Quarantined(&'a QuarantinedRecord),
}

/// The missing records of a connection, beside its rows.
#[derive(Debug)]
pub struct MissingSums {
    pub streams: Vec<StreamCoverage>,
    pub left_open: Vec<LeftOpen>,
    /// Why more may be missing.
    pub unfinished: Option<String>,
    /// How many rows were shown.
    pub shown: u64,
}

/// Where an export goes.
pub enum ExportTo<'a> {
    File(&'a Path),
    Stdout(&'a mut dyn Write),
}

impl std::fmt::Debug for ExportTo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.place())
    }
}

impl App {
    /// How every connection stands, or one.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn overview(&self, only: Option<&str>) -> Result<Overview, AppError> {
        let reader = self.reader()?;
        let mut look = Look::new(&reader)?;
        let service = look.serving(&reader)?;
        if let Some(name) = only {
            let views = vec![ConnectionView::load(&reader, &mut look, name)?];
            return Ok(Overview { views, gone: Vec::new(), service });
        }
        let mut gone = reader.connections()?;
        gone.retain(|connection| !is_collected(connection.state));
        Ok(Overview { views: look.views(&reader)?, gone, service })
    }

    /// Why a connection is as it is.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn explain(&self, name: &str) -> Result<Explained, AppError> {
        let reader = self.reader()?;
        let mut look = Look::new(&reader)?;
        Ok(Explained {
            view: ConnectionView::load(&reader, &mut look, name)?,
            streams: reader.coverage(name)?,
            left_open: reader.left_open(name)?,
            service: look.serving(&reader)?,
        })
    }

    /// How complete each stream is, of every connection or of one.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn coverage(&self, only: Option<&str>) -> Result<Vec<(String, Vec<CoveredStream>)>, AppError> {
        let reader = self.reader()?;
        let names = match only {
            Some(name) => vec![name.to_owned()],
            None => {
                let all = reader.connections()?.into_iter();
                all.filter(|one| one.state != ConnectionState::Purging).map(|one| one.name).collect()
            }
        };
        let mut look = Look::new(&reader)?;
        names.into_iter().map(|name| Ok((name.clone(), look.coverage(&reader, &name)?))).collect()
    }

    /// The last runs of a connection, the newest first, and whether one goes on.
    ///
    /// # Errors
    ///
    /// When there is no such connection.
    pub fn runs(&self, name: &str, limit: usize) -> Result<(Vec<RunSummary>, bool), AppError> {
        let reader = self.reader()?;
        let mut runs = reader.runs(name, limit)?;
        reader.add_slice_commits(name, &mut runs)?;
        Ok((runs, Look::new(&reader)?.is_running(&reader, name)?))
    }

    /// Checks the store: what is damaged, and what of a store that is whole an earlier version left in doubt.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn verify(&self, show: impl FnMut(u64, u64)) -> Result<(Vec<Damage>, Vec<Doubt>), AppError> {
        let reader = self.reader()?;
        let damage = reader.verify(show)?;
        let doubts = if damage.is_empty() { reader.doubts()? } else { Vec::new() };
        Ok((damage, doubts))
    }

    /// Asks one question in SQL. `watch` is given what ends it early.
    ///
    /// # Errors
    ///
    /// When it is not one statement that only reads, or fails.
    pub fn query<S>(&self, sql: &str, sink: &mut S, watch: impl FnOnce(Interrupter)) -> Result<(), S::Error>
    where
        S: QuerySink,
        S::Error: From<AppError>,
    {
        let mut reader = self.reader()?;
        watch(reader.interrupter());
        reader.query(sql, sink)
    }

    /// Hands out at most `limit` gaps and records in quarantine, and says what else is missing.
    ///
    /// # Errors
    ///
    /// When there is no such connection or stream.
    pub fn missing<E: From<AppError>>(
        &self,
        name: &str,
        filter: GapFilter<'_>,
        limit: u64,
        mut each: impl FnMut(MissingRecord<'_>) -> Result<(), E>,
    ) -> Result<MissingSums, E> {
        let reader = self.reader()?;
        let read = |last: Option<&GapSummary>, rows| reader.gaps(name, filter, last.map_or(0, |last| last.id), rows);
        let left = each_row(limit, read, |gap| each(MissingRecord::Gap(gap)))?;
        let read = |last: Option<&QuarantinedRecord>, rows| {
            reader.quarantine(name, filter.stream, last.map_or(0, |last| last.id), rows)
        };
        let left = each_row(left, read, |record| each(MissingRecord::Quarantined(record)))?;
        Ok(missing_sums(&reader, name, filter.stream, limit - left)?)
    }

    /// Writes records as they are at one moment, and answers how many; `None` when `is_over` ended it.
    ///
    /// # Errors
    ///
    /// When it is not clear which streams are meant, or the export is not complete.
    pub fn export(
        &self,
        what: &str,
        form: ExportForm,
        tombstones: bool,
        mut to: ExportTo<'_>,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<u64>, AppError> {
        let reader = self.reader()?;
        let snapshot = reader.snapshot()?;
        let (connection, streams) = one_stream_or_all(&reader, what)?;
        if matches!(form, ExportForm::Csv(_)) && streams.len() > 1 {
            let hint = format!("name one, for example {connection}.{}", streams[0]);
            return Err(AppError::usage("a table is of one stream, and this connection has several", hint));
        }
        let of = ExportOf { connection, streams, tombstones };
        let written = match &mut to {
            ExportTo::Stdout(out) => snapshot.export(&of, form, is_over, out),
            ExportTo::File(path) => {
                AtomicFile::begin_through_links(path).map_err(ExportStopped::Write).and_then(|mut file| {
                    let records = snapshot.export(&of, form, is_over, BufWriter::new(file.file()))?;
                    file.replace()?;
                    Ok(records)
                })
            }
        };
        match written {
            Ok(records) => Ok(Some(records)),
            Err(ExportStopped::Interrupted) => Ok(None),
            Err(ExportStopped::Store(error)) => Err(error.into()),
            Err(ExportStopped::Write(error)) => Err(to.not_written(&error)),
            Err(stopped @ (ExportStopped::Damaged { .. } | ExportStopped::NotOneStream)) => Err(AppError::failed(
                format!("{stopped}: the export is not complete"),
                "`gleaner verify` names what is damaged",
            )),
        }
    }
}

impl ExportTo<'_> {
    fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdout(_) => "standard output".to_owned(),
        }
    }

    fn not_written(&self, error: &io::Error) -> AppError {
        let outcome = match self {
            Self::Stdout(_) => "what was written is not complete",
            Self::File(_) => "nothing was replaced, and nothing is left beside it",
        };
        let why = match error.kind() {
            io::ErrorKind::BrokenPipe => "whoever read it has left".to_owned(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
            _ => error.to_string(),
        };
        let hint = "give a file in a folder that you may write to, with enough space";
        AppError::failed(format!("cannot write {}: {why}; {outcome}", self.place()), hint)
    }
}

fn missing_sums(reader: &Reader, name: &str, stream: Option<&str>, shown: u64) -> Result<MissingSums, AppError> {
    let (mut streams, mut left_open) = (reader.coverage(name)?, reader.left_open(name)?);
    streams.retain(|one| stream.is_none_or(|stream| one.summary.name == stream));
    left_open.retain(|one| stream.is_none() || one.stream.as_deref() == stream);
    Ok(MissingSums { streams, left_open, unfinished: reader.evidence(name)?.unfinished(), shown })
}

/// Hands out at most `left` rows, a page of the store at a time. `read` gives those after the last one. Answers how many
/// more may be handed out.
///
/// # Errors
///
/// When the store cannot be read, and what `each` says.
pub fn each_row<R, E: From<AppError>>(
    mut left: u64,
    read: impl Fn(Option<&R>, usize) -> Result<Vec<R>, StoreError>,
    mut each: impl FnMut(&R) -> Result<(), E>,
) -> Result<u64, E> {
    let mut last = None;
    while left > 0 {
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX);
        let rows = read(last.as_ref(), rows).map_err(AppError::from)?;
        if rows.is_empty() {
            break;
        }
        left -= rows.len() as u64;
        rows.iter().try_for_each(&mut each)?;
        last = rows.into_iter().next_back();
    }
    Ok(left)
}

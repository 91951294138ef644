//! Records as a file that a browser or a program downloads: JSON lines, or a table of one stream.
//!
//! A thread reads one moment of the store and writes pieces into a short queue; the answer takes them out as fast as they
//! are read. So a million records need no more memory than a few pieces. Whoever goes away ends it; an export that cannot
//! come to its end is cut off, so that no browser takes it for whole. Nothing is written to disk here.

use crate::problem::Problem;
use crate::server::app_state::{AppState, Shared};
use crate::server::extract::{UrlPath, UrlQuery};
use crate::server::job_queue::Job;
use crate::server::reading::Reading;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use gleaner_store::{ExportForm, ExportOf, ExportStopped, Formulas};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Deserialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Sender, channel};

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that wait to be read.
const PIECES_MAX: usize = 4;
/// How long one may take. Meanwhile the store's log cannot shrink; ten million records take minutes.
const EXPORT_MAX: Duration = Duration::from_secs(3600);
/// Longest part of a file's name.
const NAME_CHARS_MAX: usize = 80;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Jsonl,
    Csv,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportWanted {
    #[serde(default)]
    format: Format,
    /// Deleted records, too.
    #[serde(default)]
    tombstones: bool,
}

/// One stream.
pub(crate) async fn stream(
    State(state): Shared,
    UrlPath((connection, stream)): UrlPath<(String, String)>,
    UrlQuery(wanted): UrlQuery<ExportWanted>,
) -> Result<Response, Problem> {
    let asked = (connection.clone(), stream.clone());
    let is_there = state.reading.ask(move |reader| {
        let streams = reader.streams(&asked.0)?;
        Ok(streams.iter().any(|known| known.name == asked.1))
    });
    if !is_there.await? {
        let message = format!("{connection:?} has no stream {stream:?}");
        return Err(Problem::not_found(message, "the connection's own page lists its streams"));
    }
    let file = format!("{}.{}", plain(&connection), plain(&stream));
    let of = ExportOf { connection, streams: vec![stream], tombstones: wanted.tombstones };
    export(&state, of, wanted.format, &file)
}

/// All streams of a connection.
pub(crate) async fn connection(
    State(state): Shared,
    UrlPath(connection): UrlPath<String>,
    UrlQuery(wanted): UrlQuery<ExportWanted>,
) -> Result<Response, Problem> {
    let asked = connection.clone();
    let streams = state.reading.ask(move |reader| Ok(reader.streams(&asked)?)).await?;
    if wanted.format == Format::Csv && streams.len() != 1 {
        let hint = "download a stream of it as a table, or the whole as JSON lines";
        return Err(Problem::makes_no_sense("a table is of one stream", hint));
    }
    let file = plain(&connection);
    let streams = streams.into_iter().map(|stream| stream.name).collect();
    export(&state, ExportOf { connection, streams, tombstones: wanted.tombstones }, wanted.format, &file)
}

fn export(state: &AppState, of: ExportOf, format: Format, file: &str) -> Result<Response, Problem> {
    let turn = state.jobs.take(Job::Export)?;
    let (sender, receiver) = channel(PIECES_MAX);
    let (form, kind, ending) = match format {
        Format::Jsonl => (ExportForm::JsonLines, "application/x-ndjson", "jsonl"),
        // A file that came out of a browser is opened with a click, by a spreadsheet that computes what it finds.
        Format::Csv => (ExportForm::Csv(Formulas::Disarmed), "text/csv; charset=utf-8", "csv"),
    };
    let reading = state.reading.clone();
    tokio::task::spawn_blocking(move || write_out(&reading, &of, form, &sender, turn));
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async {
        let piece: Result<Bytes, io::Error> = receiver.recv().await?;
        Some((piece, receiver))
    });
    let disposition = format!("attachment; filename=\"{file}.{ending}\"");
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, disposition.as_str())], Body::from_stream(pieces)).into_response())
}

/// On a thread of its own, to its end or to that of whoever reads.
fn write_out(
    reading: &Reading,
    of: &ExportOf,
    form: ExportForm,
    sender: &Sender<Result<Bytes, io::Error>>,
    turn: OwnedSemaphorePermit,
) {
    let until = Instant::now() + EXPORT_MAX;
    let sink = Pieces { sender: sender.clone(), bytes: BytesMut::new() };
    let is_over = || sender.is_closed() || Instant::now() > until;
    let written = reading.open().map_err(ExportStopped::from).and_then(|reader| {
        let snapshot = reader.snapshot()?;
        snapshot.export(of, form, is_over, sink)
    });
    if let Err(stopped) = written {
        if !sender.is_closed() {
            tracing::warn!(%stopped, "a download was cut off");
        }
        // An answer that ends in an error is no whole answer, and says so to whoever reads it.
        let _gone_too = sender.blocking_send(Err(io::Error::other("the export is not complete")));
    }
    drop(turn);
}

/// Bytes in, pieces of one size out; waits while nobody reads.
struct Pieces {
    sender: Sender<Result<Bytes, io::Error>>,
    bytes: BytesMut,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if self.bytes.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let piece = self.bytes.split().freeze();
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// A part of a file's name: letters that are the same on every machine, and no way into another folder.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name = name.chars().take(NAME_CHARS_MAX).map(plain).collect::<String>();
    let rest = name.trim_start_matches('.');
    if rest.is_empty() { "_".to_owned() } else { rest.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder_or_its_header() {
        let names = ["a/../b", "..", ".x", "ü \"\r\n;", "shop.orders-1", ""].map(plain);
        assert_eq!(names, ["a_.._b", "_", "x", "______", "shop.orders-1", "_"]);
        assert_eq!(plain(&"x".repeat(500)).len(), NAME_CHARS_MAX);
    }
}

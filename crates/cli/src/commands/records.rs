//! `gleaner records`: what is stored of a stream, as it came, or the changes of it.

use crate::args::look::RecordsArgs;
use crate::commands::follow::{self, Feed};
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_app::one_stream;
use gleaner_base::outside::one_line;
use gleaner_store::{PAGE_ROWS_MAX, Reader, StoredRecord};
use std::process::ExitCode;

pub(crate) fn run(args: &RecordsArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    let reader = app.reader()?;
    let (connection, stream) = one_stream(&reader, &args.stream)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    // Looked at before the records: a change in between comes twice rather than never.
    let end = reader.last_change_of(&connection, &stream)?;
    if args.time_unreadable {
        without_time(&reader, (&connection, &stream), args.json, left, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.since.is_none() {
        left = present(&reader, (&connection, &stream), args.json, left, out)?;
    }
    if !args.follow && args.since.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let feed = Feed { app, connection, stream, since: args.since.unwrap_or(end), left, json: args.json };
    follow::run(feed, reader, args.follow, out)
}

/// Prints the present records, by key; answers how many more may be printed.
fn present(
    reader: &Reader,
    (connection, stream): (&str, &str),
    json: bool,
    mut left: u64,
    out: &mut Output,
) -> Result<u64, CliError> {
    let mut after = None;
    while left > 0 {
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX);
        let page = reader.records(connection, stream, after.as_deref(), rows)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        left -= page.len() as u64;
        for record in &page {
            out.line(&if json { format!("{{{}}}", json_fields(record)?) } else { as_text(record) })?;
        }
    }
    Ok(left)
}

/// Prints the records whose time could not be read, in the order in which they were stored.
fn without_time(
    reader: &Reader,
    (connection, stream): (&str, &str),
    json: bool,
    mut left: u64,
    out: &mut Output,
) -> Result<(), CliError> {
    let mut after = 0;
    while left > 0 {
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX);
        let page = reader.records_without_time(connection, stream, after, rows)?;
        let Some(last) = page.last() else { break };
        (after, left) = (last.seq, left - page.len() as u64);
        for record in &page {
            out.line(&if json { format!("{{{}}}", json_fields(record)?) } else { as_text(record) })?;
        }
    }
    Ok(())
}

pub(super) fn as_text(record: &StoredRecord) -> String {
    let body = if record.deleted { "(deleted)" } else { record.body.as_deref().unwrap_or("") };
    format!("{}  {}", one_line(&record.key), one_line(body))
}

/// The body is not parsed: what a number looked like is how it is printed.
pub(super) fn json_fields(record: &StoredRecord) -> Result<String, CliError> {
    let key = serde_json::to_string(&record.key).map_err(std::io::Error::from)?;
    let data = record.body.as_deref().unwrap_or("null");
    Ok(format!("\"key\":{key},\"data\":{data},\"deleted\":{}", record.deleted))
}

//! `gleaner records`: what is stored of a stream, as it came, or the changes of it.

use crate::args::inspect::RecordsArgs;
use crate::commands::follow::{self, Feed};
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_app::{each_row, one_stream};
use gleaner_base::outside::one_line;
use gleaner_store::StoredRecord;
use std::process::ExitCode;

pub(crate) fn run(args: &RecordsArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    let reader = app.reader()?;
    let (connection, stream) = one_stream(&reader, &args.stream)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let print = |record: &StoredRecord| {
        let line = if args.json { format!("{{{}}}", json_fields(record)?) } else { as_text(record) };
        Ok::<_, CliError>(out.line(&line)?)
    };
    // Looked at before the records: a change in between comes twice rather than never.
    let end = reader.last_change_of(&connection, &stream)?;
    if args.time_unreadable {
        // In the order in which they were stored.
        let after = |last: Option<&StoredRecord>| last.map_or(0, |last| last.seq);
        let read = |last: Option<&_>, rows| reader.records_without_time(&connection, &stream, after(last), rows);
        each_row(left, read, print)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.since.is_none() {
        let after = |last: Option<&StoredRecord>| last.map(|last| last.key.clone());
        let read = |last: Option<&_>, rows| reader.records(&connection, &stream, after(last).as_deref(), rows);
        left = each_row(left, read, print)?;
    }
    if !args.follow && args.since.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let feed = Feed { app, connection, stream, since: args.since.unwrap_or(end), left, json: args.json };
    follow::run(feed, reader, args.follow, out)
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

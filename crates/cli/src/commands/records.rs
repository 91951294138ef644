//! `gleaner records`: what is stored of a stream, as it came.

use crate::args::collect::RecordsArgs;
use crate::error::{CliError, nearest};
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_store::{PAGE_ROWS_MAX, Reader, StoredRecord};
use std::process::ExitCode;

pub(crate) fn run(args: &RecordsArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let (connection, stream) = find_stream(&reader, &args.stream)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut after = None;
    while left > 0 {
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_ROWS_MAX);
        let page = reader.records(&connection, &stream, after.as_deref(), rows)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        left -= page.len() as u64;
        for record in &page {
            out.line(&if args.json { as_json(record)? } else { as_text(record) })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `CONNECTION.STREAM`, or `STREAM` where it is clear whose. Both names may have dots in them.
fn find_stream(reader: &Reader, typed: &str) -> Result<(String, String), CliError> {
    let mut all = Vec::new();
    for connection in reader.connections()? {
        all.extend(reader.streams(&connection.name)?.into_iter().map(|stream| (connection.name.clone(), stream.name)));
    }
    let is_meant =
        |(connection, stream): &&(String, String)| stream == typed || format!("{connection}.{stream}") == typed;
    let found = all.iter().filter(is_meant).collect::<Vec<_>>();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => {
            let names = all.iter().map(|(connection, stream)| format!("{connection}.{stream}")).collect::<Vec<_>>();
            let near = nearest(typed, names.iter().map(String::as_str));
            let hint = near.map_or_else(
                || "`gleaner status` lists connections".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            Err(CliError::usage(format!("there is no stream {typed:?}"), hint))
        }
        [first, ..] => {
            let hint = format!("say whose, for example {}.{}", first.0, first.1);
            Err(CliError::usage(format!("{} connections have a stream {typed:?}", found.len()), hint))
        }
    }
}

fn as_text(record: &StoredRecord) -> String {
    let body = if record.deleted { "(deleted)" } else { record.body.as_deref().unwrap_or("") };
    format!("{}  {}", visible(&record.key), visible(body))
}

/// The body is not parsed: what a number looked like is how it is printed.
fn as_json(record: &StoredRecord) -> Result<String, CliError> {
    let key = serde_json::to_string(&record.key).map_err(std::io::Error::from)?;
    let data = record.body.as_deref().unwrap_or("null");
    Ok(format!("{{\"key\":{key},\"data\":{data},\"deleted\":{}}}", record.deleted))
}

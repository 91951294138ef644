//! Which stream is meant: `CONNECTION.STREAM`, or `STREAM` where it is clear whose. Both names may have dots.

use crate::error::{AppError, ErrorKind, nearest};
use gleaner_store::{ConnectionState, Reader};

/// One stream.
///
/// # Errors
///
/// When it is not clear which one is meant.
pub fn one_stream(reader: &Reader, typed: &str) -> Result<(String, String), AppError> {
    let all = all(reader)?;
    let is_meant =
        |(connection, stream): &&(String, String)| stream == typed || format!("{connection}.{stream}") == typed;
    let found = all.iter().filter(is_meant).collect::<Vec<_>>();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => {
            let names = all.iter().map(|(connection, stream)| format!("{connection}.{stream}")).collect::<Vec<_>>();
            let near = nearest(typed, names.iter().map(String::as_str));
            let hint = near.map_or_else(
                || "`gleaner coverage` lists the streams".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            Err(AppError::new(ErrorKind::NotFound, format!("there is no stream {typed:?}"), hint))
        }
        [first, ..] => {
            let hint = format!("say whose, for example {}.{}", first.0, first.1);
            Err(AppError::usage(format!("{} connections have a stream {typed:?}", found.len()), hint))
        }
    }
}

/// All streams of a connection, or one. The name of a connection comes first.
pub(crate) fn one_stream_or_all(reader: &Reader, typed: &str) -> Result<(String, Vec<String>), AppError> {
    let of_connection = all(reader)?.into_iter().filter(|(connection, _)| connection == typed);
    let streams = of_connection.map(|(_, stream)| stream).collect::<Vec<_>>();
    if !streams.is_empty() {
        return Ok((typed.to_owned(), streams));
    }
    let (connection, stream) = one_stream(reader, typed)?;
    Ok((connection, vec![stream]))
}

fn all(reader: &Reader) -> Result<Vec<(String, String)>, AppError> {
    let mut all = Vec::new();
    for connection in reader.connections()? {
        if connection.state != ConnectionState::Purging {
            let streams = reader.streams(&connection.name)?.into_iter();
            all.extend(streams.map(|stream| (connection.name.clone(), stream.name)));
        }
    }
    Ok(all)
}

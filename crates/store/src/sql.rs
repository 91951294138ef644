//! Statements in one line each. All are prepared once and kept.

use crate::error::Failure;
use rusqlite::{Connection, OptionalExtension, Params, Row};

/// Changes something.
pub(crate) fn execute(connection: &Connection, sql: &str, values: impl Params) -> Result<(), Failure> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// The first row, if there is one.
pub(crate) fn first<R>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<R>,
) -> Result<Option<R>, Failure> {
    Ok(connection.prepare_cached(sql)?.query_row(values, read).optional()?)
}

/// Whether a row is there.
pub(crate) fn exists(connection: &Connection, sql: &str, values: impl Params) -> Result<bool, Failure> {
    Ok(first(connection, sql, values, |_| Ok(()))?.is_some())
}

/// All rows.
pub(crate) fn rows<R>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<R>,
) -> Result<Vec<R>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
    Ok(rows)
}

//! Questions in SQL, from whoever knows the tables. They read and do nothing else.
//!
//! Three fences, each enough by itself: the connection is opened read-only, SQLite asks us about each thing
//! that a statement would do and we allow a short list, and a statement that is not read-only is not run.
//! Rows are handed on one by one. What one value may have in memory is bounded.

use super::Reader;
use crate::error::StoreError;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, ErrorCode, InterruptHandle};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest value that a query may make. A record is a line of at most 16 MiB; what is much longer was put
/// together by the query.
const VALUE_BYTES_MAX: i32 = 64 * 1024 * 1024;
/// Pragmas that tell something about tables and change nothing, whatever they are given.
const PRAGMAS: [&str; 6] = ["table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"];

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// Bytes; also a text that is not UTF-8.
    Blob(&'a [u8]),
}

/// Who takes the rows.
pub trait QuerySink {
    /// What can go wrong.
    type Error: From<QueryError>;

    /// Called once, before the first row.
    ///
    /// # Errors
    ///
    /// Ends the query.
    fn columns(&mut self, names: &[&str]) -> Result<(), Self::Error>;

    /// Called with each row.
    ///
    /// # Errors
    ///
    /// Ends the query.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Self::Error>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// It would do something else than read.
    #[error("the query was refused: {0}. Queries only read")]
    Refused(String),
    /// SQLite does not understand it, or it failed on the way.
    #[error("the query failed: {0}")]
    Sql(String),
    /// Somebody stopped it.
    #[error("the query was interrupted")]
    Interrupted,
    /// The store cannot be read.
    #[error(transparent)]
    Store(StoreError),
}

/// Stops a query from another thread.
pub struct Interrupter(InterruptHandle);

impl Interrupter {
    /// Stops what goes on. Nothing happens when nothing does.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl std::fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupter")
    }
}

type Refusal = Arc<Mutex<Option<String>>>;

impl Reader {
    /// What stops a query of this reader.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.connection.get_interrupt_handle())
    }

    /// Asks one question in SQL.
    ///
    /// # Errors
    ///
    /// When it is not one statement that only reads, or fails.
    pub fn query<S: QuerySink>(&mut self, sql: &str, sink: &mut S) -> Result<(), S::Error> {
        let refusal = Refusal::default();
        let guarded = self.guard(&refusal);
        let answered = match guarded {
            Ok(()) => answer(&self.connection, sql, sink, |error| understand(error, &refusal, &self.path)),
            Err(error) => Err(QueryError::Store(StoreError::of(error, &self.path)).into()),
        };
        // Taking the guard away cannot fail where putting it there did not.
        let _removed = self.connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>);
        answered
    }

    fn guard(&mut self, refusal: &Refusal) -> rusqlite::Result<()> {
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
        let refusal = Arc::clone(refusal);
        self.connection.authorizer(Some(move |context: AuthContext<'_>| match refused(context.action) {
            None => Authorization::Allow,
            Some(what) => {
                refusal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
                Authorization::Deny
            }
        }))
    }
}

const DEFINES: &str = "it changes tables, indexes or views";

/// What a statement may not do, in words; nothing for what it may.
fn refused(action: AuthAction<'_>) -> Option<String> {
    let what = match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => return None,
        AuthAction::Pragma { pragma_name, .. } if PRAGMAS.iter().any(|name| pragma_name.eq_ignore_ascii_case(name)) => {
            return None;
        }
        AuthAction::Function { function_name } => format!("it calls {function_name}"),
        AuthAction::Pragma { pragma_name, .. } => format!("it uses PRAGMA {pragma_name}"),
        AuthAction::Attach { .. } => "it attaches another file".to_owned(),
        AuthAction::Detach { .. } => "it detaches a file".to_owned(),
        // What SQLite keeps about tables.
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name }
            if table_name.starts_with("sqlite_") =>
        {
            DEFINES.to_owned()
        }
        AuthAction::Insert { table_name } => format!("it inserts into {table_name}"),
        AuthAction::Update { table_name, .. } => format!("it changes {table_name}"),
        AuthAction::Delete { table_name } => format!("it deletes from {table_name}"),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "it begins or ends a transaction".to_owned(),
        _ => DEFINES.to_owned(),
    };
    Some(what)
}

fn answer<S: QuerySink>(
    connection: &Connection,
    sql: &str,
    sink: &mut S,
    understand: impl Fn(rusqlite::Error) -> QueryError,
) -> Result<(), S::Error> {
    let failed = |error: rusqlite::Error| S::Error::from(understand(error));
    let mut batch = Batch::new(connection, sql);
    let statement = batch.next().map_err(failed)?;
    let mut statement = statement.ok_or_else(|| QueryError::Sql("there is nothing to ask".to_owned()))?;
    if batch.next().map_err(failed)?.is_some() {
        return Err(QueryError::Refused("it has more than one statement".to_owned()).into());
    }
    if !statement.readonly() {
        return Err(QueryError::Refused("it writes".to_owned()).into());
    }
    sink.columns(&statement.column_names().collect::<Vec<_>>())?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let cells = (0..columns).map(|at| Ok(cell(row.get_ref(at)?))).collect::<rusqlite::Result<Vec<_>>>();
        sink.row(&cells.map_err(failed)?)?;
    }
    Ok(())
}

fn cell(value: ValueRef<'_>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => std::str::from_utf8(text).map_or(Cell::Blob(text), Cell::Text),
        ValueRef::Blob(bytes) => Cell::Blob(bytes),
    }
}

fn understand(error: rusqlite::Error, refusal: &Refusal, path: &Path) -> QueryError {
    // What we refused comes back under several codes.
    if let Some(what) = refusal.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return QueryError::Refused(what);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => QueryError::Interrupted,
        Some(ErrorCode::ReadOnly) => QueryError::Refused("it writes".to_owned()),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::CannotOpen
            | ErrorCode::NotADatabase,
        ) => QueryError::Store(StoreError::of(error, path)),
        _ => QueryError::Sql(message(error)),
    }
}

/// Without the whole statement, which whoever typed it knows.
fn message(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        other => other.to_string(),
    }
}

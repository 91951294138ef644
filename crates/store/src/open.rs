//! Opening the file: ours, whole, not newer than we are, and with the settings that make "saved" true.
//!
//! Why `synchronous=FULL` with a write-ahead log: with less, a power cut takes commits back that were
//! already reported as saved; the tests cut the power some hundred times and count. Why secure
//! deletion is always on and not only while purging: pages that are rearranged leave copies of what
//! they held, and what is forgotten must be gone from those too. Nothing is changed in a file that
//! is not ours or that a newer Gleaner wrote.

use crate::error::{Failure, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// How long a writer waits for another. A slice takes milliseconds; a copy of the file may take seconds.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(10);
/// Marks the file as ours: "glea".
const APPLICATION_ID: i64 = 0x676c_6561;
/// Pages held in memory per connection, in KiB: the inner pages of a large index, and no more.
const CACHE_KIB: i64 = 8 * 1024;
/// After a slice that made the log longer than this, its file is cut back. In bytes.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Pages in the log before it is moved into the file: some 4 MB, as SQLite has it.
const LOG_PAGES: i32 = 1000;

/// The schema, one step per version. A step is never changed once it was released.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
    include_str!("../migrations/0007.sql"),
];

/// Opens for writing, and brings an older schema up to date.
pub(crate) fn writer(path: &Path) -> Result<(Connection, LogLength), StoreError> {
    let path = resolve(path)?;
    create_for_owner_only(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(&path, flags).map_err(|error| StoreError::of(error, &path))?;
    match prepare(&mut connection, &path).map_err(|failure| failure.at(&path)) {
        Ok(length) => Ok((connection, length)),
        Err(error) => {
            if error.ends_writing() {
                no_sync_on_close(&connection);
            }
            Err(error)
        }
    }
}

/// Opens for reading. The file must be there, and must be ours.
pub(crate) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let (connection, path, version) = read_only(path)?;
    match version {
        Some(version) if version == MIGRATIONS.len() => Ok(connection),
        // Only a writer may change it.
        other => {
            let count = |schema: usize| u32::try_from(schema).unwrap_or(u32::MAX);
            Err(StoreError::OlderSchema { path, found: other.map_or(0, count), known: count(MIGRATIONS.len()) })
        }
    }
}

/// How many steps of the schema a file has; none of an empty file.
type Version = Option<usize>;

/// Opens a file that is to be copied: ours, and not newer than we are. It may be older.
pub(crate) fn source(path: &Path) -> Result<Connection, StoreError> {
    match read_only(path)? {
        (connection, _, Some(_)) => Ok(connection),
        (_, path, None) => Err(StoreError::NotAStore(path)),
    }
}

fn read_only(path: &Path) -> Result<(Connection, PathBuf, Version), StoreError> {
    let path = resolve(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(&path, flags).map_err(|error| StoreError::of(error, &path))?;
    let check = || {
        connection.busy_timeout(BUSY_WAIT)?;
        harden(&connection)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        check_owner_and_version(&connection, &path)
    };
    let version = check().map_err(|failure| failure.at(&path))?;
    Ok((connection, path, version))
}

/// The folder may be reached through links, the file itself may not be one.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let cannot = |detail: String| StoreError::CannotOpen { path: path.to_owned(), detail };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let name = path.file_name().ok_or_else(|| cannot("not a file name".to_owned()))?;
    Ok(parent.canonicalize().map_err(|error| cannot(error.to_string()))?.join(name))
}

/// The file whose name is this one with an ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// SQLite would create it with whatever the process allows; its log files take after it.
fn create_for_owner_only(path: &Path) -> Result<(), StoreError> {
    match gleaner_base::private::create_new(path) {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::AlreadyExists => Ok(()),
            ErrorKind::StorageFull => Err(StoreError::DiskFull(path.to_owned())),
            ErrorKind::ReadOnlyFilesystem => Err(StoreError::ReadOnly(path.to_owned())),
            _ => Err(StoreError::CannotOpen { path: path.to_owned(), detail: error.to_string() }),
        },
    }
}

/// How many pages the log had after the last commit.
pub(crate) type LogLength = Arc<AtomicI32>;

fn prepare(connection: &mut Connection, path: &Path) -> Result<LogLength, Failure> {
    connection.busy_timeout(BUSY_WAIT)?;
    harden(connection)?;
    // Before anything is changed.
    check_owner_and_version(connection, path)?;
    switch_to_log_among_others(connection, path)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.set_prepared_statement_cache_capacity(128);
    let length = LogLength::default();
    let told = Arc::clone(&length);
    // In place of SQLite's own, which moves the log.
    connection.wal_hook(Some(move |_: &mut Wal, pages| {
        told.store(pages, Ordering::Relaxed);
        Ok(())
    }))?;
    migrate(connection, path)?;
    settle_log(connection)?;
    Ok(length)
}

/// Moves the log into the file if it is long. SQLite would do so after a commit by itself, and would not
/// tell when the device fails meanwhile; the next commit would then sync again.
pub(crate) fn move_log(connection: &Connection, length: &LogLength) -> Result<(), Failure> {
    if length.load(Ordering::Relaxed) < LOG_PAGES {
        return Ok(());
    }
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        Err(error) if is_failure_of_device(&error) => Err(error.into()),
        // A reader is in the way, or the disk is full: the log is whole, and is moved after a later commit.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn is_failure_of_device(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt))
}

/// SQLite does not wait where two make the same file at once; waiting for the other's lock does.
fn switch_to_log_among_others(connection: &Connection, path: &Path) -> Result<(), Failure> {
    const TRIES: u32 = 100;
    for _ in 0..TRIES {
        match switch_to_log(connection, path) {
            Err(Failure::Sql(error)) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            }
            other => return other,
        }
    }
    switch_to_log(connection, path)
}

/// The answer comes as a row, before the change is written: only the end says whether it was.
fn switch_to_log(connection: &Connection, path: &Path) -> Result<(), Failure> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    let mut mode = String::new();
    while let Some(row) = rows.next()? {
        mode = row.get(0)?;
    }
    if mode == "wal" {
        return Ok(());
    }
    // A file system that cannot share memory between processes.
    let detail = format!("journal mode {mode}, write-ahead log is not possible there");
    Err(StoreError::CannotOpen { path: path.to_owned(), detail }.into())
}

/// After a failure of the device: closing the file must not try the sync again.
pub(crate) fn no_sync_on_close(connection: &Connection) {
    // If even this fails, closing reports the error of the device once more and nothing else.
    let told = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    debug_assert!(told.is_ok());
}

/// A damaged or hostile file must not run code: no functions from views, no writes to the schema.
fn harden(connection: &Connection) -> Result<(), Failure> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(())
}

fn check_owner_and_version(connection: &Connection, path: &Path) -> Result<Version, Failure> {
    // One question, so that the answers are of one moment: another process may be making the tables.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
               FROM pragma_application_id, pragma_user_version";
    let (owner, version, tables) = connection
        .query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    if owner == 0 && version == 0 && tables == 0 {
        return Ok(None);
    }
    if owner != APPLICATION_ID {
        return Err(StoreError::NotAStore(path.to_owned()).into());
    }
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(Some(version)),
        _ => {
            let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
            let found = u32::try_from(version).unwrap_or(u32::MAX);
            Err(StoreError::NewerSchema { path: path.to_owned(), found, known }.into())
        }
    }
}

/// All steps that are missing, in one transaction: a crash leaves the old schema or the new one.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    if check_owner_and_version(connection, path)? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let done = check_owner_and_version(&transaction, path)?.unwrap_or(0);
    for step in &MIGRATIONS[done..] {
        transaction.execute_batch(step)?;
    }
    if done == 0 {
        let id = "INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(16)))), ('epoch', 0), ('next_seq', 1)";
        transaction.execute(id, [])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))?;
    transaction.commit()?;
    Ok(())
}

/// Moves what an earlier process left in the log into the file, if nobody uses it. After a sync that
/// failed, this writes those pages once more instead of trusting that they reached the disk.
fn settle_log(connection: &Connection) -> Result<(), Failure> {
    connection.busy_timeout(Duration::ZERO)?;
    let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(BUSY_WAIT)?;
    match settled {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        other => Ok(other?),
    }
}

//! What can go wrong with the file, in words that say what to do.
//!
//! Why not SQLite's own errors: "disk I/O error (522)" helps nobody, and what may be done next differs.
//! A full disk may be tried again; a device that failed to sync must never be asked to sync again,
//! because the second try reports success for data that is gone. Never holds a record's content.

use gleaner_engine::WallTime;
use rusqlite::ErrorCode;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "Input/output error": there is no kind for it.
const EIO: i32 = 5;

/// Why the store did not do what it was asked. Nothing was written unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space left.
    #[error(
        "the disk with {} is full: the last slice was not saved, everything before it is safe. Free some space, then run again",
        .0.display()
    )]
    DiskFull(PathBuf),
    /// The device failed.
    #[error(
        "the storage under {} failed ({detail}): stopped to protect the data. What was saved before is safe as far as the device kept it. Check the disk, then run again",
        path.display()
    )]
    DeviceFailed {
        /// The database.
        path: PathBuf,
        /// What SQLite was doing.
        detail: String,
    },
    /// An earlier failure of the device ended all writing.
    #[error(
        "{} is not written any more because its storage failed before; start again after checking the disk", .0.display()
    )]
    Stopped(PathBuf),
    /// Somebody else writes, for too long.
    #[error(
        "{} is locked by {}, waited {} s: close that program, then run again", path.display(),
        holder.map_or_else(|| "another program".to_owned(), |pid| format!("process {pid}")), waited.as_secs()
    )]
    Busy {
        /// The database.
        path: PathBuf,
        /// Who holds the lock, if the system says so.
        holder: Option<u32>,
        /// How long we waited.
        waited: Duration,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged ({detail}): nothing was written to it. Make a copy of it, then restore a backup or let `sqlite3` recover what it can",
        path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        detail: String,
    },
    /// The file that should be restored is damaged.
    #[error("{} is damaged ({detail}): nothing was restored. Take another backup", path.display())]
    DamagedBackup {
        /// The backup.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// There is something where a new file should be.
    #[error("{} exists: nothing was written. Give another name, or move it away", .0.display())]
    FileExists(PathBuf),
    /// A file cannot be written or moved.
    #[error("{} cannot be written ({source}): check that its folder exists and is yours", path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not one of ours.
    #[error("{} is not a Gleaner store; choose another file or data root", .0.display())]
    NotAStore(PathBuf),
    /// Written by a newer version.
    #[error(
        "{} was written by a newer Gleaner (schema {found}, this one knows {known}): nothing was changed. Update Gleaner",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that we know.
        known: u32,
    },
    /// Written by an older version, and only asked to be read.
    #[error(
        "{} was written by an older Gleaner, or is just being made (schema {found}, this one reads {known}): start a run, which brings it up to date",
        path.display()
    )]
    OlderSchema {
        /// The database.
        path: PathBuf,
        /// Its schema; 0 when there is none yet.
        found: u32,
        /// The schema that we read.
        known: u32,
    },
    /// The file, its folder or its file system does not let us write.
    #[error("{} cannot be written: check the permissions of the file and its folder", .0.display())]
    ReadOnly(PathBuf),
    /// The file cannot be opened.
    #[error("{} cannot be opened ({detail}): check that its folder exists, is yours, and is no symbolic link", path.display())]
    CannotOpen {
        /// The database.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// The store is older than what was last seen here.
    #[error(
        "this store was restored from an older copy (epoch {found}, last seen {seen}): collecting would go on from old cursors. Run `gleaner restore --accept` to go on from there"
    )]
    OlderThanSeen {
        /// What the store says.
        found: u64,
        /// What was seen before.
        seen: u64,
    },
    /// The right to do so is missing: a lease on the connection itself.
    #[error("nothing is done with connection {0:?} without the lease on it")]
    NotLeased(String),
    /// Another process has the lease now.
    #[error("another process took {lease} over; this one writes nothing more")]
    Superseded {
        /// The lease.
        lease: String,
    },
    /// What is not one record cannot be done without: what comes later is written into the same gap.
    #[error("the gap {0:?} stands for many records, and only single ones can be ignored")]
    StandsForMany(String),
    /// There is no such connection.
    #[error("there is no connection {0:?}")]
    UnknownConnection(String),
    /// There is no such stream.
    #[error("connection {connection:?} has no stream {stream:?}")]
    UnknownStream {
        /// The connection.
        connection: String,
        /// The stream.
        stream: String,
    },
    /// The name cannot be one.
    #[error("{0:?} cannot be the name of a connection: 1 to 200 bytes, no control characters")]
    BadName(String),
    /// The manifest identifies records by other fields than those that were stored.
    #[error(
        "stream {stream:?} of {connection:?} now identifies records by {new}, and {records} records are stored by {old}: they would be stored twice. Add the connector under another name, or purge this connection first"
    )]
    PrimaryKeyChanged {
        /// The connection.
        connection: String,
        /// The stream.
        stream: String,
        /// What identified a record before.
        old: String,
        /// What would now.
        new: String,
        /// How many records there are.
        records: u64,
    },
    /// The connection is being forgotten.
    #[error(
        "connection {0:?} is being purged and cannot be used; `gleaner remove --purge` again goes on with what was cut short"
    )]
    Purging(String),
    /// A run with this id exists.
    #[error("a run with the id {0:?} exists already: nothing was begun. Choose another id")]
    RunExists(String),
    /// A committed cursor would go back. The store and its caller disagree about what is durable.
    #[error("the cursor of stream {stream:?} would go from commit {from} to {to}: nothing was committed")]
    CommitGoesBack {
        /// The stream.
        stream: String,
        /// Where it is.
        from: u64,
        /// Where it would go.
        to: u64,
    },
    /// Something about the machine could not be read.
    #[error("cannot tell who this process is: {0}")]
    Holder(#[source] std::io::Error),
    /// The note of the last seen epoch could not be written.
    #[error("{} cannot be written ({source}): nothing was begun. Check that the folder is yours and that this is a file", path.display())]
    SeenNote {
        /// The note.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Whoever asked does not wait for the answer any more.
    #[error("the question was stopped before it was answered: nobody waits for it any more")]
    Interrupted,
    /// A statement that should not have failed: a defect of ours.
    #[error(
        "unexpected answer of the database: {0}. Nothing was written; this is a defect of Gleaner, please report it"
    )]
    Unexpected(#[source] rusqlite::Error),
}

impl StoreError {
    /// What an error of SQLite means for this file.
    pub(crate) fn of(error: rusqlite::Error, path: &Path) -> Self {
        let path = path.to_owned();
        let Some(code) = error.sqlite_error_code() else { return Self::Unexpected(error) };
        let detail = error.to_string();
        match code {
            ErrorCode::DiskFull => Self::DiskFull(path),
            ErrorCode::SystemIoFailure => Self::DeviceFailed { path, detail },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                let holder = crate::lease::lock_holder::of(&path);
                Self::Busy { path, holder, waited: crate::open::BUSY_WAIT }
            }
            ErrorCode::DatabaseCorrupt => Self::Corrupt { path, detail },
            ErrorCode::NotADatabase => Self::NotAStore(path),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly(path),
            ErrorCode::CannotOpen => Self::CannotOpen { path, detail },
            ErrorCode::OperationInterrupted => Self::Interrupted,
            _ => Self::Unexpected(error),
        }
    }

    /// What an error of the system means for a file beside the database.
    pub(crate) fn of_file(source: std::io::Error, path: &Path) -> Self {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull(path),
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            _ if source.raw_os_error() == Some(EIO) => Self::DeviceFailed { path, detail: source.to_string() },
            _ => Self::SeenNote { path, source },
        }
    }

    /// What an error of the system means for a copy of the database.
    pub(crate) fn of_copy(source: std::io::Error, path: &Path) -> Self {
        match Self::of_file(source, path) {
            Self::SeenNote { path, source } => Self::Copy { path, source },
            other => other,
        }
    }

    /// Whether the device can no longer be relied upon.
    pub(crate) const fn ends_writing(&self) -> bool {
        matches!(self, Self::DeviceFailed { .. } | Self::Corrupt { .. })
    }
}

/// Inside of a transaction: an error of SQLite's, or one of ours. The path is added outside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Ours(#[from] StoreError),
}

impl Failure {
    /// Somebody else is in the way.
    pub(crate) fn busy() -> Self {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None).into()
    }

    pub(crate) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sql(error) => StoreError::of(error, path),
            Self::Ours(error) => error,
        }
    }
}

/// A count or number of ours as SQLite keeps it. What is larger is not reached: see `CommitSeq::next`.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count or number of ours as it was kept. Never negative.
pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A date as SQLite keeps it.
pub(crate) fn date_to_sql(time: WallTime) -> i64 {
    to_sql(time.as_unix_millis())
}

/// A date as it was kept.
pub(crate) fn date_from_sql(millis: i64) -> WallTime {
    WallTime::from_unix_millis(from_sql(millis))
}

//! Messages' database: whether it changed, and a copy of one moment of it.
//!
//! Why a copy: SQLite locks what it reads, writes beside it, and would hold up Messages. So the two files of the
//! database are copied into a private folder, and again if somebody wrote to them meanwhile; what is opened is the copy,
//! and it has no name any more from then on. Why the database is not even copied when nothing changed: the header and
//! the end of the log say so, and reading them costs nothing.
//!
//! It never writes to the source or beside it, and never opens it with SQLite.

use crate::digest::hash;
use gleaner_sdk::Stop;
use gleaner_sdk::protocol::RecoveryAction;
use rusqlite::{Connection, OpenFlags, limits::Limit};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The largest database that is copied. Thirty years of heavy use are some gigabytes; the files that were sent are not in it.
const BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// How often a copy is tried while somebody writes. Messages writes in bursts of some milliseconds.
const TRIES: usize = 5;
/// What every database of SQLite begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: u64 = 24;
/// Room that is left on the disk besides the copy.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;
/// Folders of ours begin like this, so that those of a run that was killed can be found.
const FOLDER_PREFIX: &str = "gleaner-imessage-";
/// A folder as old as this is no running copy's. A copy has no name for longer than it takes to make it.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// The largest value of a column. A message is at most some kilobytes; a record of more than 16 MiB is refused anyway.
const VALUE_BYTES_MAX: i32 = 64 * 1024 * 1024;

/// The database and its log.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    log: PathBuf,
}

/// What one look at the files says. Two that are equal mean that nothing was written in between.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    header: Vec<u8>,
    modified: Option<SystemTime>,
    bytes: u64,
    log_header: Vec<u8>,
    /// How long the log is, and the last of its frames with a sum over all before it.
    log_bytes: u64,
    log_end: Vec<u8>,
}

impl Look {
    /// The log may grow while it is copied: SQLite reads as far as it is whole. What may not happen is that the
    /// database itself is written, or that the log begins anew.
    fn is_same_moment(&self, later: &Self) -> bool {
        self.header == later.header
            && self.modified == later.modified
            && self.bytes == later.bytes
            && self.log_header == later.log_header
            && self.log_bytes <= later.log_bytes
    }
}

impl Source {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), log: log_of(path) }
    }

    /// One word for everything that is in it now.
    pub(crate) fn fingerprint(&self) -> io::Result<String> {
        let look = self.look()?;
        let since = look.modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
        let mut hash = hash(&[&look.header, &look.log_header, &look.log_end]);
        hash.update(&since.as_nanos().to_le_bytes());
        hash.update(&look.bytes.to_le_bytes());
        hash.update(&look.log_bytes.to_le_bytes());
        Ok(format!("{:016x}", hash.digest()))
    }

    fn look(&self) -> io::Result<Look> {
        let mut file = open_plain(&self.path)?;
        let (metadata, header) = (file.metadata()?, read_at(&mut file, 0, HEADER_BYTES)?);
        if !header.starts_with(MAGIC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a database of SQLite"));
        }
        let mut look = Look {
            header,
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            log_header: Vec::new(),
            log_bytes: 0,
            log_end: Vec::new(),
        };
        let mut log = match open_plain(&self.log) {
            Ok(log) => log,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(look),
            Err(error) => return Err(error),
        };
        look.log_bytes = log.metadata()?.len();
        look.log_header = read_at(&mut log, 0, LOG_HEADER_BYTES)?;
        let page = look.log_header.get(8..12).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        let frame = FRAME_HEADER_BYTES + u64::from(page);
        let frames = look.log_bytes.saturating_sub(LOG_HEADER_BYTES as u64) / frame;
        if page > 0 && frames > 0 {
            look.log_end =
                read_at(&mut log, LOG_HEADER_BYTES as u64 + (frames - 1) * frame, FRAME_HEADER_BYTES as usize)?;
        }
        Ok(look)
    }

    /// A copy of one moment, open for reading.
    pub(crate) fn open_copy(&self) -> Result<Connection, Stop> {
        sweep(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir()?;
        let copy = folder.path().join("chat.db");
        self.copy_to(&copy, &mut || {}).map_err(|error| self.fault(&error))?;
        let database = open(&copy).map_err(|error| damaged(&error))?;
        // From here on the copy is gone with the process, however that ends.
        folder.close()?;
        Ok(database)
    }

    /// Copies both files, again if they were written meanwhile. `between` is called in the middle of each try.
    fn copy_to(&self, copy: &Path, between: &mut dyn FnMut()) -> io::Result<()> {
        let log_copy = log_of(copy);
        for _ in 0..TRIES {
            let before = self.look()?;
            let bytes = before.bytes.saturating_add(before.log_bytes);
            check_room(copy, bytes)?;
            fs::copy(&self.path, copy)?;
            between();
            match fs::copy(&self.log, &log_copy) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && before.log_header.is_empty() => {}
                // The log went away in this moment: its content is in the database now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            if before.is_same_moment(&self.look()?) {
                return Ok(());
            }
            drop(fs::remove_file(&log_copy));
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being written all the time"))
    }

    /// Why it cannot be read, and what to do about it.
    pub(crate) fn fault(&self, error: &io::Error) -> Stop {
        let path = self.path.display();
        let needs_owner = |message: String| Stop::for_good(message, RecoveryAction::ManualActionRequired);
        match error.kind() {
            io::ErrorKind::NotFound => needs_owner(format!(
                "{path} is not there; Messages makes this database on a Mac. If it is elsewhere, set IMESSAGE_DB_PATH to that file"
            )),
            // macOS says either, depending on who is asked.
            io::ErrorKind::PermissionDenied => needs_owner(format!(
                "{path} may not be read. On a Mac, give the program that starts this one Full Disk Access (System Settings, Privacy & Security); elsewhere, allow this user to read it"
            )),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => needs_owner(format!(
                "{path} cannot be read as the database of Messages: {error}; set IMESSAGE_DB_PATH to chat.db"
            )),
            io::ErrorKind::ResourceBusy => {
                Stop::failed(format!("{path} was written during each of {TRIES} copies; run again later"))
            }
            _ => Stop::failed(format!("{path} cannot be copied: {error}")),
        }
    }
}

/// The log of a database, as SQLite names it.
fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Why the copy cannot be read. SQLite's words say what, and quote nothing of the content.
pub(crate) fn damaged(error: &rusqlite::Error) -> Stop {
    let message =
        format!("the database of Messages is damaged or not the one of Messages: {error}; what was read before stays");
    Stop::for_good(message, RecoveryAction::ManualActionRequired)
}

fn open(copy: &Path) -> rusqlite::Result<Connection> {
    let database =
        Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    // Alone with it, SQLite needs no further file for the log. Nothing of a schema that somebody else wrote is run.
    database.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
    )?;
    let _: i64 = database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    database.execute_batch("PRAGMA query_only = ON;")?;
    Ok(database)
}

/// An ordinary file; whoever opens a pipe otherwise waits for its writer.
fn open_plain(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file"));
    }
    File::open(path)
}

/// At most so many bytes from a place on.
fn read_at(file: &mut File, from: u64, count: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::with_capacity(count);
    file.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check_room(copy: &Path, bytes: u64) -> io::Result<()> {
    if bytes > BYTES_MAX {
        return Err(io::Error::other(format!("it has {bytes} bytes, and at most {BYTES_MAX} are copied")));
    }
    let Some(folder) = copy.parent() else { return Ok(()) };
    let disk = rustix::fs::statvfs(folder)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < bytes.saturating_add(ROOM_BYTES) {
        let place = folder.display();
        return Err(io::Error::other(format!(
            "a copy needs {bytes} bytes, and the disk of {place} has {free}; make room, or set TMPDIR to another disk"
        )));
    }
    Ok(())
}

/// Removes copies that a killed run left behind: they hold messages.
fn sweep(place: &Path) {
    let is_old = |path: &Path| {
        let modified = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir)?.modified().ok()?;
        Some(modified.elapsed().ok()? > ABANDONED_AFTER)
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(FOLDER_PREFIX));
        if is_ours && is_old(&entry.path()) == Some(true) {
            // Another user's cannot be removed, and is left to him.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(folder: &Path) -> (Source, Connection) {
        let path = folder.join("chat.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1);").unwrap();
        (Source::new(&path), writer)
    }

    fn rows(database: &Connection) -> i64 {
        database.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn what_is_only_in_the_log_is_in_the_copy_and_nothing_is_written_beside_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let (source, writer) = database(folder.path());
        let names = || {
            let mut names =
                fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
            names.sort();
            names
        };
        let (before, first) = (names(), source.fingerprint().unwrap());
        let copy = source.open_copy().unwrap();
        assert_eq!((rows(&copy), names()), (1, before));
        assert_eq!(source.fingerprint().unwrap(), first, "a look changes nothing");
        // The writer is not held up while the copy is open, and the copy stays what it is.
        writer.execute_batch("INSERT INTO t VALUES (2); PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
        assert_eq!(rows(&copy), 1);
        assert_ne!(source.fingerprint().unwrap(), first);
        assert_eq!(rows(&source.open_copy().unwrap()), 2);
        assert!(copy.execute_batch("INSERT INTO t VALUES (3)").is_err(), "it can only be read");
    }

    #[test]
    fn every_commit_changes_the_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let (source, writer) = database(folder.path());
        let mut seen = std::collections::BTreeSet::from([source.fingerprint().unwrap()]);
        for n in 0..5 {
            writer.execute_batch(&format!("UPDATE t SET n = {n} + 10")).unwrap();
            assert!(seen.insert(source.fingerprint().unwrap()), "commit {n}");
        }
    }

    #[test]
    fn a_database_that_is_written_during_the_copy_is_copied_again() {
        let folder = tempfile::tempdir().unwrap();
        let (source, writer) = database(folder.path());
        let copy = folder.path().join("copy.db");
        let mut times = 0;
        source
            .copy_to(&copy, &mut || {
                times += 1;
                // The first time the log moves into the database in the middle of the copy.
                if times == 1 {
                    writer.execute_batch("INSERT INTO t VALUES (2); PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
                }
            })
            .unwrap();
        assert_eq!((times, rows(&open(&copy).unwrap())), (2, 2));
        let endless = source.copy_to(&copy, &mut || {
            writer.execute_batch("INSERT INTO t VALUES (2); PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
        });
        assert_eq!(endless.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    }

    #[test]
    fn what_is_no_database_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| {
            let source = Source::new(path);
            let error = source.fingerprint().unwrap_err();
            let Stop::Failed(failure) = source.fault(&error) else { panic!("a failure") };
            failure.message
        };
        assert!(said(&folder.path().join("none")).contains("is not there"));
        assert!(said(folder.path()).contains("not an ordinary file"));
        let text = folder.path().join("text");
        fs::write(&text, "hello").unwrap();
        assert!(said(&text).contains("not a database"));
    }

    #[test]
    fn a_copy_that_was_left_behind_is_removed_and_a_fresh_one_is_not() {
        let place = tempfile::tempdir().unwrap();
        let [old, fresh, other] =
            ["gleaner-imessage-a", "gleaner-imessage-b", "other"].map(|name| place.path().join(name));
        for folder in [&old, &fresh, &other] {
            fs::create_dir(folder).unwrap();
        }
        let long_ago = SystemTime::now() - ABANDONED_AFTER * 2;
        for folder in [&old, &other] {
            File::open(folder).unwrap().set_modified(long_ago).unwrap();
        }
        sweep(place.path());
        assert_eq!((old.exists(), fresh.exists(), other.exists()), (false, true, true));
    }
}

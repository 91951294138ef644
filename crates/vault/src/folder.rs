//! The folder of secrets: access checks and atomic replacement of files.
//!
//! All operations use one open folder, so that nobody can swap it between a check and a use. A file is replaced as a
//! whole: written beside, synced, renamed, and the folder synced; it is durable when the call returns, and a crash
//! leaves the old or the new. Writing needs the lock, so only [`Locked`] can do it. Links are never followed, and
//! files that others may read are never used. Why not `gleaner_base::atomic`: it works by path and does not overwrite
//! leftovers of a killed process.

use crate::error::VaultError;
use gleaner_base::atomic::sync_folder_of;
use gleaner_base::private::{self, FILE_MODE, FOLDER_MODE, NotPrivate};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{File, Metadata, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Longest wait for another writer, who needs milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const LOCK: &str = "lock";
/// Suffix of an unfinished file; useless once its process is gone.
const NEW: &str = ".new";
/// Suffix of a file being removed.
const OLD: &str = ".old";

/// The open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    file: File,
    path: PathBuf,
}

/// The folder, locked for writing by this process.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    folder: &'a Folder,
    _lock: File,
}

impl Folder {
    /// Opens the folder, or creates it with its parents.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, VaultError> {
        make_folder(path)?;
        let file = private::open_folder(path)
            .map_err(|error| refusal(error, statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW), path, "a folder"))?;
        let metadata = file.metadata().map_err(VaultError::io("look at", path))?;
        check_private(&metadata, path, FOLDER_MODE)?;
        Ok(Self { file, path: path.to_owned() })
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The content of a file, if it exists. Reads at most `max` + 1 bytes, so that the caller can reject a longer
    /// file.
    pub(crate) fn read(&self, name: &str, max: usize) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        let path = self.path_of(name);
        let Some(file) = self.open(name, OFlags::RDONLY)? else { return Ok(None) };
        let length = file.metadata().map_or(max, |metadata| usize::try_from(metadata.len()).unwrap_or(max));
        // Allocated at once: a growing buffer leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length.min(max) + 1));
        file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(VaultError::io("read", &path))?;
        Ok(Some(bytes))
    }

    /// All names in the folder.
    pub(crate) fn names(&self) -> Result<Vec<String>, VaultError> {
        let cannot = |error: Errno| VaultError::io("list", &self.path)(error.into());
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file).map_err(cannot)? {
            // All our names are text.
            names.extend(entry.map_err(cannot)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> Result<Locked<'_>, VaultError> {
        self.lock_within(LOCK_WAIT)
    }

    fn lock_within(&self, wait: Duration) -> Result<Locked<'_>, VaultError> {
        let path = self.path_of(LOCK);
        let file = match self.open(LOCK, OFlags::RDWR)? {
            Some(file) => file,
            None => self.create(LOCK, OFlags::empty())?,
        };
        let end = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked { folder: self, _lock: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(POLL_INTERVAL),
                Err(TryLockError::WouldBlock) => {
                    return Err(VaultError::Busy { path, waited_seconds: wait.as_secs() });
                }
                Err(TryLockError::Error(error)) => return Err(VaultError::io("lock", &path)(error)),
            }
        }
    }

    /// Opens an existing regular file that is private.
    fn open(&self, name: &str, access: OFlags) -> Result<Option<File>, VaultError> {
        let path = self.path_of(name);
        // Nonblocking, so that a pipe cannot hang us.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.file, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                let found = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW);
                return Err(refusal(error.into(), found, &path, "a file"));
            }
        };
        let metadata = file.metadata().map_err(VaultError::io("look at", &path))?;
        if !metadata.is_file() {
            return Err(VaultError::WrongKind { path, expected: "a file" });
        }
        check_private(&metadata, &path, FILE_MODE)?;
        Ok(Some(file))
    }

    fn create(&self, name: &str, more: OFlags) -> Result<File, VaultError> {
        let path = self.path_of(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        let fd = openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR);
        fd.map(File::from).map_err(|error| VaultError::io("create", &path)(error.into()))
    }

    fn sync(&self) -> Result<(), VaultError> {
        self.file.sync_all().map_err(VaultError::io("sync", &self.path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        renameat(&self.file, from, &self.file, to)
    }
}

impl Locked<'_> {
    /// Replaces a file with `bytes`, durably.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        let folder = self.folder;
        let beside = format!("{name}{NEW}");
        let written = self.write_new(&beside, bytes).and_then(|()| {
            let renamed = folder.rename(&beside, name);
            renamed.map_err(|error| VaultError::io("replace", &folder.path_of(name))(error.into()))
        });
        if written.is_err() {
            self.shred(&beside);
        }
        written?;
        folder.sync()
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        // We hold the lock, so its writer is gone.
        self.shred(name);
        let mut file = self.folder.create(name, OFlags::EXCL)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(VaultError::io("write", &self.folder.path_of(name)))
    }

    /// Removes a file; returns whether it existed. Readers see all of it or nothing.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, VaultError> {
        let folder = self.folder;
        let aside = format!("{name}{OLD}");
        match folder.rename(name, &aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(VaultError::io("remove", &folder.path_of(name))(error.into())),
        }
        folder.sync()?;
        self.shred(&aside);
        folder.sync()?;
        Ok(true)
    }

    /// Removes leftovers of killed processes.
    pub(crate) fn clear_leftovers(&self) -> Result<(), VaultError> {
        for name in self.folder.names()? {
            if name.ends_with(NEW) || name.ends_with(OLD) {
                self.shred(&name);
            }
        }
        Ok(())
    }

    /// Overwrites and unlinks as far as possible: a file system may keep copies, and the content is encrypted anyway.
    fn shred(&self, name: &str) {
        if let Ok(Some(mut file)) = self.folder.open(name, OFlags::WRONLY) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let zeros = std::io::copy(&mut std::io::repeat(0).take(length), &mut file);
            drop(zeros.and_then(|_| file.sync_all()));
        }
        // If it stays, the next open tries again.
        let _left_over = unlinkat(&self.folder.file, name, AtFlags::empty());
    }
}

/// Creates a folder and its parents, each durable before the next: a lost folder loses its secrets.
fn make_folder(path: &Path) -> Result<(), VaultError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
        make_folder(parent)?;
    }
    if private::make_folder(path).map_err(VaultError::io("make the folder", path))? {
        sync_folder_of(path).map_err(VaultError::io("sync the folder of", path))?;
    }
    Ok(())
}

/// Why something could not be opened.
fn refusal(
    error: std::io::Error,
    found: Result<rustix::fs::Stat, Errno>,
    path: &Path,
    expected: &'static str,
) -> VaultError {
    let kind = found.map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    match (Errno::from_io_error(&error), kind) {
        (_, Ok(kind)) if kind.is_symlink() => VaultError::SymbolicLink(path.to_owned()),
        (Some(Errno::NOTDIR | Errno::ISDIR | Errno::NXIO), Ok(_)) => {
            VaultError::WrongKind { path: path.to_owned(), expected }
        }
        _ => VaultError::io("open", path)(error),
    }
}

/// Ours, and not readable by others.
fn check_private(metadata: &Metadata, path: &Path, wanted: u32) -> Result<(), VaultError> {
    private::check(metadata).map_err(|found| match found {
        NotPrivate::OtherOwner { owner, us } => VaultError::WrongOwner { path: path.to_owned(), owner, us },
        NotPrivate::Exposed { mode } => VaultError::Exposed { path: path.to_owned(), mode, wanted },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_who_waits_too_long_is_told_who_is_in_the_way() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open_or_make(&root.path().join("secrets")).unwrap();
        let held = folder.lock().unwrap();
        let error = folder.lock_within(Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("locked by another process"), "{error}");
        drop(held);
        folder.lock_within(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_file_that_is_taken_away_is_overwritten_first() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open_or_make(&root.path().join("secrets")).unwrap();
        let locked = folder.lock().unwrap();
        locked.replace("a", b"sealed bytes").unwrap();
        // Another name for the same bytes, as a snapshot has one.
        let other = root.path().join("other");
        std::fs::hard_link(folder.path_of("a"), &other).unwrap();
        assert!(locked.remove("a").unwrap());
        assert!(!locked.remove("a").unwrap());
        assert_eq!(std::fs::read(&other).unwrap(), [0; 12]);
        assert_eq!(folder.names().unwrap().iter().filter(|name| name.starts_with('a')).count(), 0);
    }

    #[test]
    fn of_a_file_that_is_too_long_only_the_beginning_is_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open_or_make(&root.path().join("secrets")).unwrap();
        folder.lock().unwrap().replace("a", b"0123456789").unwrap();
        assert_eq!(folder.read("a", 10).unwrap().unwrap().as_slice(), b"0123456789");
        assert_eq!(folder.read("a", 4).unwrap().unwrap().as_slice(), b"01234");
        assert!(folder.read("b", 4).unwrap().is_none());
    }
}

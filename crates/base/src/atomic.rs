//! Atomic files: a crash or a power loss leaves the old content or the new one, never a part.
//!
//! The new content is written beside the target as `NAME.PID.NUMBER.new`, synced, and renamed; then the folder is
//! synced. Only the owner can ever read the file.

use crate::private;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Suffix of an unfinished file.
const ENDING: &str = ".new";

/// An unfinished file. Dropping it removes it.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will replace `place`. If `place` is a link, the link is replaced, not its target.
    ///
    /// # Errors
    ///
    /// `place` is not a file name, or the system fails.
    pub fn begin(place: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "not a file name");
        let name = place.file_name().ok_or_else(no_name)?;
        loop {
            let mut new = name.to_owned();
            new.push(format!(".{}.{}{ENDING}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
            let beside = place.with_file_name(new);
            match private::create_new(&beside) {
                Ok(file) => return Ok(Self { file, beside, place: place.to_owned() }),
                // Left by a killed process with our id, or by one in another container.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, but follows a link, so that the link stays: for a path that a user named.
    ///
    /// # Errors
    ///
    /// There is something other than a regular file, `place` is not a file name, or the system fails.
    pub fn begin_through_links(place: &Path) -> io::Result<Self> {
        match fs::canonicalize(place) {
            Ok(place) if place.metadata()?.is_file() => Self::begin(&place),
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::begin(place),
            Err(error) => Err(error),
        }
    }

    /// The file to write the content to.
    pub const fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file and replaces the target.
    ///
    /// # Errors
    ///
    /// The system fails. The target is then unchanged, unless only the last sync failed.
    pub fn replace(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        sync_folder_of(&self.place)
    }

    /// Syncs the file and puts it in place unless the target exists: the first of two processes wins.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, or an error of the system.
    pub fn put_new(self) -> io::Result<()> {
        self.file.sync_all()?;
        rename_new(&self.beside, &self.place)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a rename the name is gone. Before it, the original error matters more than this one.
        let _removed = fs::remove_file(&self.beside);
    }
}

/// Replaces a file with these bytes, durably.
///
/// # Errors
///
/// The system fails. The target is then unchanged, unless only the last sync failed.
pub fn replace(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = AtomicFile::begin(place)?;
    new.file().write_all(bytes)?;
    new.replace()
}

/// Renames durably, but only to a free name.
///
/// # Errors
///
/// `AlreadyExists`, or an error of the system.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_without_replacing(from, to)?;
    sync_folder_of(to)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot check and rename in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if fs::symlink_metadata(to).is_ok() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(from, to),
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Syncs the folder of `path`.
///
/// # Errors
///
/// The system fails.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    // On other systems a folder cannot be opened as a file.
    if cfg!(unix) { File::open(folder_of(path))?.sync_all() } else { Ok(()) }
}

/// Removes unfinished files that killed processes left beside `place`.
pub fn clear_leftovers(place: &Path) {
    let Some(name) = place.file_name().and_then(OsStr::to_str) else { return };
    for entry in fs::read_dir(folder_of(place)).into_iter().flatten().flatten() {
        let left = entry.file_name();
        let writer = left.to_str().and_then(|left| writer_of(left.strip_prefix(name)?));
        if writer.is_some_and(is_dead) {
            // Not worth an error: the file does no harm.
            let _removed = fs::remove_file(entry.path());
        }
    }
}

/// The process that wrote a file with this suffix.
fn writer_of(end: &str) -> Option<u32> {
    let (pid, number) = end.strip_prefix('.')?.strip_suffix(ENDING)?.split_once('.')?;
    number.parse::<u64>().ok()?;
    pid.parse().ok()
}

/// Whether no process has this id. Without `/proc` it returns false.
#[must_use]
pub fn is_dead(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_takes_its_place_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (place, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&place, "before").unwrap();
        symlink(&place, &link).unwrap();
        let mut half = AtomicFile::begin(&place).unwrap();
        half.file().write_all(b"half").unwrap();
        drop(half);
        assert_eq!(fs::read_to_string(&place).unwrap(), "before");
        let mut through = AtomicFile::begin_through_links(&link).unwrap();
        through.file().write_all(b"after").unwrap();
        through.replace().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "after");
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, private::FILE_MODE);
        assert!(link.is_symlink());
        replace(&link, b"own").unwrap();
        assert!(!link.is_symlink());
        assert_eq!((fs::read(&place).unwrap(), fs::read(&link).unwrap()), (b"after".to_vec(), b"own".to_vec()));
        assert_eq!(names(folder.path()), ["link", "out"], "nothing is left beside them");
        for no_file in [folder.path(), Path::new("/dev/null"), Path::new("/")] {
            assert!(AtomicFile::begin_through_links(no_file).is_err(), "{}", no_file.display());
        }
    }

    #[test]
    fn a_new_file_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let (first, second) = (AtomicFile::begin(&place).unwrap(), AtomicFile::begin(&place).unwrap());
        first.put_new().unwrap();
        assert_eq!(second.put_new().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn many_writers_of_one_process_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).for_each(|number| replace(&place, &[number]).unwrap()));
            }
        });
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn only_files_of_dead_processes_are_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let ours = format!("out.{}.4.new", std::process::id());
        let stay = ["out", "out.4194999", "out.4194999.new", "out.text.3.new", "other.4194999.3.new", &ours];
        for name in stay.iter().chain(&["out.4194999.3.new"]) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        clear_leftovers(&folder.path().join("out"));
        let mut stay = stay.map(str::to_owned);
        stay.sort();
        assert_eq!(names(folder.path()), stay);
    }
}

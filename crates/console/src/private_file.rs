//! Files under the data root that nobody but the owner may read: how they are made, read and replaced.
//!
//! A file is there whole or not at all. Links are not followed, and what others may read is not used, because whoever
//! could read it has had the chance.

use crate::error::ConsoleError;
use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What nobody but the owner may have.
const OTHERS: u32 = 0o077;

/// The folder of the console below the data root, made if need be.
pub(crate) fn folder(root: &Path) -> Result<PathBuf, ConsoleError> {
    let folder = root.join("console");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(ConsoleError::file("make", &folder))?;
    let found = folder.symlink_metadata().map_err(ConsoleError::file("look at", &folder))?;
    if !found.is_dir() || found.mode() & OTHERS != 0 || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(ConsoleError::NotPrivate { path: folder, mode: "700" });
    }
    Ok(folder)
}

/// The content of a file, if it is there. Of one that is longer than `max`, one byte more than that.
pub(crate) fn read(path: &Path, max: usize) -> Result<Option<String>, ConsoleError> {
    // Not to be held up by a pipe that somebody put there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(ConsoleError::file("open", path)(error.into())),
    };
    let found = file.metadata().map_err(ConsoleError::file("look at", path))?;
    if !found.is_file() || found.mode() & OTHERS != 0 || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(ConsoleError::NotPrivate { path: path.to_owned(), mode: "600" });
    }
    let mut text = String::new();
    file.take(max as u64 + 1).read_to_string(&mut text).map_err(ConsoleError::file("read", path))?;
    Ok(Some(text))
}

/// Puts a file there unless one is there; of two processes the first one wins.
pub(crate) fn make(path: &Path, text: &str) -> Result<(), ConsoleError> {
    let beside = write_beside(path, text)?;
    let linked = std::fs::hard_link(&beside, path);
    // What lies beside is of no use to anybody.
    let removed = std::fs::remove_file(&beside);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(ConsoleError::file("make", path)(error)),
        Ok(()) | Err(_) => removed.map_err(ConsoleError::file("remove", &beside)),
    }
}

/// Puts a file in the place of what is there.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ConsoleError> {
    let beside = write_beside(path, text)?;
    std::fs::rename(&beside, path).map_err(ConsoleError::file("replace", path))
}

fn write_beside(path: &Path, text: &str) -> Result<PathBuf, ConsoleError> {
    // A name of its own, so that no two write into one file.
    static COUNTED: AtomicU64 = AtomicU64::new(0);
    let nth = COUNTED.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("new-{}-{nth}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&beside, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|error| ConsoleError::file("make", &beside)(error.into()))?);
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(ConsoleError::file("write", &beside))?;
    Ok(beside)
}

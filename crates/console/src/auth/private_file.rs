//! Files under the data root that nobody but the owner may read: how they are made, read and replaced.
//!
//! A file is there whole or not at all. Links are not followed, and a file that others may read is not used: somebody may
//! have read it.

use crate::error::ConsoleError;
use gleaner_base::atomic::{self, AtomicFile};
use gleaner_base::private;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The folder of the console below the data root, made if need be.
pub(crate) fn folder(root: &Path) -> Result<PathBuf, ConsoleError> {
    let folder = root.join("console");
    private::make_folders(&folder).map_err(ConsoleError::file("make", &folder))?;
    let found = folder.symlink_metadata().map_err(ConsoleError::file("look at", &folder))?;
    if !found.is_dir() || private::check(&found).is_err() {
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
    if !found.is_file() || private::check(&found).is_err() {
        return Err(ConsoleError::NotPrivate { path: path.to_owned(), mode: "600" });
    }
    let mut text = String::new();
    file.take(max as u64 + 1).read_to_string(&mut text).map_err(ConsoleError::file("read", path))?;
    Ok(Some(text))
}

/// Puts a file there unless one is there; of two processes the first one wins.
pub(crate) fn make(path: &Path, text: &str) -> Result<(), ConsoleError> {
    let made = AtomicFile::begin(path).and_then(|mut new| {
        new.file().write_all(text.as_bytes())?;
        new.put_new()
    });
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(ConsoleError::file("make", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Puts a file in the place of what is there.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ConsoleError> {
    atomic::replace(path, text.as_bytes()).map_err(ConsoleError::file("replace", path))
}

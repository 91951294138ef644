//! A folder that the owner named, and opening what lies beneath it.
//!
//! Why by hand and not by path: between the look at a folder and the opening of a file in it somebody may put a link in
//! its place, and a path would follow it out of the folder. So every name is opened from the folder above it, and a link
//! is never followed. The named folder itself may be a link; that is the owner's own choice. A file is opened so that a
//! pipe or a device of the same name cannot hold us up, and only if it is an ordinary file.

use super::path::FilePath;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// A folder that files are read beneath.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    /// What the owner called it.
    pub(super) path: PathBuf,
}

impl Root {
    /// Opens the folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { folder, path: path.to_owned() })
    }

    /// Opens a file beneath it, for reading.
    pub(crate) fn open_file(&self, path: &FilePath) -> io::Result<Opened> {
        // Without waiting: whoever opens a pipe otherwise waits for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::from(self.open_names(path.names(), flags)?);
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file"));
        }
        Ok(Opened { file, stamp: Stamp::of(&stat) })
    }

    /// Opens a folder beneath it; the empty path is the root itself.
    pub(super) fn open_folder(&self, path: Option<&FilePath>) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match path {
            None => Ok(openat(&self.folder, c".", flags, Mode::empty())?),
            Some(path) => self.open_names(path.names(), flags),
        }
    }

    /// Opens name after name, each from the folder before it.
    fn open_names<'n>(&self, names: impl Iterator<Item = &'n [u8]>, flags: OFlags) -> io::Result<OwnedFd> {
        let on_the_way = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut names = names.peekable();
        let mut folder: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            let from = folder.as_ref().map_or_else(|| self.folder.as_fd(), AsFd::as_fd);
            let flags = if names.peek().is_some() { on_the_way } else { flags };
            folder = Some(openat(from, name, flags, Mode::empty())?);
        }
        folder.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// What the file system says about a file. Two that are equal mean that nobody wrote to it in between: the time of the
/// last change of a file cannot be set by hand, and a file that was put in another's place has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// How large it is.
    pub(crate) size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub(crate) modified: i128,
    /// All of it as one number, never zero.
    pub(crate) sum: u64,
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let nanoseconds = |seconds: i128, rest: i128| seconds * 1_000_000_000 + rest;
        let modified = nanoseconds(i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec));
        let changed = nanoseconds(i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec));
        let mut hash = Xxh3::new();
        hash.update(&size.to_le_bytes());
        hash.update(&modified.to_le_bytes());
        hash.update(&changed.to_le_bytes());
        hash.update(&stat.st_ino.to_le_bytes());
        Self { size, modified, sum: hash.digest().max(1) }
    }
}

/// An ordinary file, open for reading.
#[derive(Debug)]
pub(crate) struct Opened {
    /// For reading at any place.
    pub(crate) file: File,
    /// What the file system said when it was opened. Whatever is written later makes another stamp.
    pub(crate) stamp: Stamp,
}

impl Opened {
    /// Its first bytes, at most so many.
    pub(crate) fn head(&self, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.window(0, bytes_max)
    }

    /// The bytes from a place on, at most so many.
    pub(super) fn window(&self, from: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let there = usize::try_from(self.file.metadata()?.len().saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; there.min(bytes_max)];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The file itself, for readers that want one, such as those of archives. It is the same open file: a place that is
    /// sought in one is sought in the other.
    pub(crate) fn reader(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn no_link_is_followed_neither_as_the_file_nor_on_the_way() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("in"), place.path().join("out"));
        std::fs::create_dir_all(inside.join("real")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("secret"), "s").unwrap();
        std::fs::write(inside.join("real/ok"), "fine").unwrap();
        symlink(outside.join("secret"), inside.join("file-link")).unwrap();
        symlink(&outside, inside.join("folder-link")).unwrap();
        let root = Root::open(&inside).unwrap();
        assert_eq!(root.open_file(&path("real/ok")).unwrap().head(99).unwrap(), b"fine");
        assert!(root.open_file(&path("file-link")).is_err());
        assert!(root.open_file(&path("folder-link/secret")).is_err());
        // The folder that the owner names may be a link.
        symlink(&inside, place.path().join("named")).unwrap();
        assert!(Root::open(&place.path().join("named")).unwrap().open_file(&path("real/ok")).is_ok());
    }

    #[test]
    fn a_pipe_or_a_folder_of_that_name_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("folder.jsonl")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(place.path().join("pipe.jsonl")).status().unwrap();
        assert!(made.success());
        let root = Root::open(place.path()).unwrap();
        for name in ["pipe.jsonl", "folder.jsonl"] {
            assert_eq!(root.open_file(&path(name)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}

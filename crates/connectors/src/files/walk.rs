//! Every file beneath a root, without following a link and with a bound on everything.
//!
//! What could not be looked into is told beside what was found: a folder that may not be read today is not a folder
//! whose files were deleted.

use super::path::FilePath;
use super::root::{Root, Stamp};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use std::io;
use std::os::fd::OwnedFd;

/// The most files of one source. A busy user of a terminal tool makes some thousands a year; this is what fits on a
/// cursor and into the memory of a connector.
pub const FILES_MAX: usize = 200_000;
/// The most names that are looked at, so that a folder of something else does not take the whole night.
const ENTRIES_MAX: usize = 2_000_000;
/// How deep folders may lie in each other. The deepest known source has five.
const DEPTH_MAX: usize = 32;
/// How many folders that cannot be read are named; more are counted.
const UNREADABLE_MAX: usize = 1000;

/// A file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where.
    pub path: FilePath,
    /// What the file system says about it.
    pub stamp: Stamp,
}

/// What is beneath a root.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files that were wanted, in no order.
    pub files: Vec<Found>,
    /// Folders that could not be read, and why. What lies beneath them is unknown.
    pub unreadable: Vec<(FilePath, io::ErrorKind)>,
    /// Links that were not followed.
    pub links: u64,
    /// There was more than a walk looks at: what was not found may still be there.
    pub is_cut: bool,
}

impl Listing {
    /// Whether a file that was not found is certainly gone.
    #[must_use]
    pub fn is_gone(&self, path: &FilePath) -> bool {
        !self.is_cut && !self.unreadable.iter().any(|(folder, _)| path.is_beneath(folder))
    }
}

impl Root {
    /// Finds every file whose path is wanted.
    ///
    /// # Errors
    ///
    /// When the root itself cannot be read. What cannot be read beneath it is in the listing.
    pub fn walk(&self, is_wanted: impl Fn(&FilePath) -> bool) -> io::Result<Listing> {
        let mut walk = Walk { is_wanted, listing: Listing::default(), folders: Vec::new(), entries: 0 };
        walk.read(self.open_folder(None)?, None)?;
        while let Some(folder) = walk.folders.pop() {
            let read = self.open_folder(Some(&folder)).and_then(|opened| walk.read(opened, Some(&folder)));
            match read {
                Ok(()) => {}
                // It was there a moment ago, and is not any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if walk.listing.unreadable.len() < UNREADABLE_MAX => {
                    walk.listing.unreadable.push((folder, error.kind()));
                }
                Err(_) => walk.listing.is_cut = true,
            }
        }
        Ok(walk.listing)
    }
}

struct Walk<W> {
    is_wanted: W,
    listing: Listing,
    /// Folders that are still to be read.
    folders: Vec<FilePath>,
    entries: usize,
}

impl<W: Fn(&FilePath) -> bool> Walk<W> {
    fn read(&mut self, folder: OwnedFd, path: Option<&FilePath>) -> io::Result<()> {
        let depth = path.map_or(0, |path| path.names().count());
        let mut entries = Dir::new(folder)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX || self.listing.files.len() >= FILES_MAX {
                self.listing.is_cut = true;
                self.folders.clear();
                return Ok(());
            }
            let child = FilePath::of(path.map_or(&[], FilePath::as_bytes), name);
            // Not every file system tells the kind with the name.
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = statat(entries.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                known => known,
            };
            match kind {
                FileType::Symlink => self.listing.links += 1,
                FileType::Directory if depth < DEPTH_MAX => self.folders.push(child),
                FileType::Directory => self.listing.is_cut = true,
                FileType::RegularFile if (self.is_wanted)(&child) => {
                    // One that vanished in this moment is simply not there.
                    if let Ok(stat) = statat(entries.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        self.listing.files.push(Found { path: child, stamp: Stamp::of(&stat) });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn odd_names_are_found_and_links_are_counted_and_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("in"), place.path().join("out"));
        std::fs::create_dir_all(inside.join("deep/er")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("secret.x"), "s").unwrap();
        symlink(&outside, inside.join("out")).unwrap();
        symlink(&inside, inside.join("deep/ring")).unwrap();
        symlink(outside.join("secret.x"), inside.join("link.x")).unwrap();
        for name in [&b"plain.x"[..], b"two\nlines.x", b"\x1b[2J.x", b"\xff\xfe.x", b"other.y"] {
            std::fs::write(inside.join("deep/er").join(OsStr::from_bytes(name)), "a").unwrap();
        }
        let root = Root::open(&inside).unwrap();
        let listing = root.walk(|path| path.has_extension("x")).unwrap();
        let mut names = listing.files.iter().map(|file| file.path.text()).collect::<Vec<_>>();
        names.sort();
        assert_eq!(names, ["deep/er/%1b[2J.x", "deep/er/%ff%fe.x", "deep/er/plain.x", "deep/er/two%0alines.x"]);
        assert_eq!((listing.links, listing.is_cut), (3, false));
        assert!(listing.files.iter().all(|file| root.open_file(&file.path).is_ok()), "each can be opened");
    }

    #[test]
    fn what_lies_too_deep_is_not_taken_for_deleted() {
        let place = tempfile::tempdir().unwrap();
        let deep = (0..=DEPTH_MAX).fold(place.path().to_owned(), |path, _| path.join("d"));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("f.x"), "a").unwrap();
        let listing = Root::open(place.path()).unwrap().walk(|_| true).unwrap();
        assert!(listing.files.is_empty() && listing.is_cut);
        assert!(!listing.is_gone(&FilePath::parse("any").unwrap()));
    }

    #[test]
    fn what_lies_beneath_a_folder_that_cannot_be_read_is_not_gone() {
        let folder = FilePath::parse("a/b").unwrap();
        let unreadable = vec![(folder, io::ErrorKind::PermissionDenied)];
        let listing = Listing { unreadable, ..Listing::default() };
        assert!(!listing.is_gone(&FilePath::parse("a/b/c").unwrap()));
        assert!(listing.is_gone(&FilePath::parse("a/bc").unwrap()));
    }
}

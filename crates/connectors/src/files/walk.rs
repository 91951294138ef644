//! Every file beneath a root, without following a link and with a bound on everything.
//!
//! What could not be looked into is told beside what was found: a folder that may not be read today is not a folder
//! whose files were deleted.

use super::path::FilePath;
use super::root::{Root, Stamp};
use super::trouble::{Spot, Trouble, Troubles};
use gleaner_sdk::{Emitter, Stop};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// The most files of one source. A busy user of a terminal tool makes some thousands a year; this is what fits on a
/// cursor and into the memory of a connector.
pub(crate) const FILES_MAX: usize = 200_000;
/// The most names that are looked at, so that a folder of something else does not take the whole night.
const ENTRIES_MAX: usize = 2_000_000;
/// How deep folders may lie in each other. The deepest known source has five.
const DEPTH_MAX: usize = 32;
/// How many folders that cannot be read, folders that lie too deep, and links are named each. With more, the listing
/// counts as cut.
const NAMED_MAX: usize = 1000;

/// A file that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Where.
    pub(crate) path: FilePath,
    /// What the file system says about it.
    pub(crate) stamp: Stamp,
}

/// Puts into a list what there is room for, and says so where there is none.
fn keep<T>(list: &mut Vec<T>, one: T, is_cut: &mut bool) {
    if list.len() < NAMED_MAX {
        list.push(one);
    } else {
        *is_cut = true;
    }
}

/// What is beneath a root.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The files that were wanted, in no order.
    pub(crate) files: Vec<Found>,
    /// Folders that could not be read, and why. What lies beneath them is unknown.
    pub(crate) unreadable: Vec<(FilePath, io::ErrorKind)>,
    /// Folders that lie too deep. What lies beneath them is unknown.
    pub(crate) too_deep: Vec<FilePath>,
    /// Links that were not followed, as far as they are named.
    pub(crate) links: Vec<FilePath>,
    /// There was more than a walk looks at: what was not found may still be there.
    pub(crate) is_cut: bool,
}

impl Listing {
    /// Whether a file that was not found is certainly gone.
    pub(crate) fn is_gone(&self, path: &FilePath) -> bool {
        let is_beneath = |folder: &FilePath| path.is_beneath(folder);
        !self.is_cut
            && !self.unreadable.iter().any(|(folder, _)| is_beneath(folder))
            && !self.too_deep.iter().any(is_beneath)
            && !self.links.iter().any(is_beneath)
    }

    /// Reports everything that the walk did not look at. A link within the folder leads to what is found anyway, and one
    /// that leads to no file and no folder leads to nothing that is wanted.
    pub(crate) fn tell(
        &self,
        root: &Root,
        is_wanted: impl Fn(&FilePath) -> bool,
        troubles: &mut Troubles,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        for (path, why) in &self.unreadable {
            troubles.unreadable(emitter, path, *why)?;
        }
        for folder in &self.too_deep {
            troubles.tell(emitter, Trouble::TOO_DEEP, &Spot::other("folder", &folder.text()))?;
        }
        if self.is_cut {
            troubles.tell(emitter, Trouble::TOO_MANY_FILES, &Spot::other("folder", ""))?;
        }
        for link in self.links.iter().filter(|link| root.leads_out(link, &is_wanted)) {
            troubles.tell(emitter, Trouble::LINK, &Spot::other("link", &link.text()))?;
        }
        Ok(())
    }
}

impl Root {
    /// Whether a link leads to a folder, or a wanted file, that is not beneath this root.
    fn leads_out(&self, link: &FilePath, is_wanted: impl Fn(&FilePath) -> bool) -> bool {
        let path = self.path.join(OsStr::from_bytes(link.as_bytes()));
        let Ok(home) = self.path.canonicalize() else { return true };
        match path.canonicalize() {
            Ok(target) if target.starts_with(&home) => false,
            Ok(target) => target.is_dir() || (target.is_file() && is_wanted(link)),
            // It leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) => true,
        }
    }

    /// Finds every file whose path is wanted.
    pub(crate) fn walk(&self, is_wanted: impl Fn(&FilePath) -> bool) -> io::Result<Listing> {
        let mut walk = Walk { is_wanted, listing: Listing::default(), folders: Vec::new(), entries: 0 };
        walk.read(self.open_folder(None)?, None)?;
        while let Some(folder) = walk.folders.pop() {
            let read = self.open_folder(Some(&folder)).and_then(|opened| walk.read(opened, Some(&folder)));
            match read {
                Ok(()) => {}
                // It was there a moment ago, and is not any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => keep(&mut walk.listing.unreadable, (folder, error.kind()), &mut walk.listing.is_cut),
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
                FileType::Symlink => keep(&mut self.listing.links, child, &mut self.listing.is_cut),
                FileType::Directory if depth < DEPTH_MAX => self.folders.push(child),
                FileType::Directory => keep(&mut self.listing.too_deep, child, &mut self.listing.is_cut),
                FileType::RegularFile | FileType::Unknown if (self.is_wanted)(&child) => {
                    match statat(entries.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => self.listing.files.push(Found { path: child, stamp: Stamp::of(&stat) }),
                        // One that vanished in this moment is simply not there.
                        Err(error) if error == rustix::io::Errno::NOENT => {}
                        Err(error) => {
                            let why = io::Error::from(error).kind();
                            keep(&mut self.listing.unreadable, (child, why), &mut self.listing.is_cut);
                        }
                    }
                }
                // A pipe, a socket or a device holds no files of the owner's.
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut links = listing.links.iter().map(FilePath::text).collect::<Vec<_>>();
        links.sort();
        assert_eq!((links.join(" ").as_str(), listing.is_cut), ("deep/ring link.x out", false));
        let leads_out = |link: &str| root.leads_out(&FilePath::parse(link).unwrap(), |path| path.has_extension("x"));
        assert_eq!(["deep/ring", "link.x", "out", "none"].map(leads_out), [false, true, true, false]);
        assert!(listing.files.iter().all(|file| root.open_file(&file.path).is_ok()), "each can be opened");
    }

    #[test]
    fn what_lies_too_deep_is_not_taken_for_deleted() {
        let place = tempfile::tempdir().unwrap();
        let deep = (0..=DEPTH_MAX).fold(place.path().to_owned(), |path, _| path.join("d"));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("f.x"), "a").unwrap();
        let listing = Root::open(place.path()).unwrap().walk(|_| true).unwrap();
        assert!(listing.files.is_empty() && listing.too_deep.len() == 1);
        assert!(!listing.is_gone(&FilePath::parse(&format!("{}/f.x", listing.too_deep[0].text())).unwrap()));
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

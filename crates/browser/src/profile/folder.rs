//! Folders that are ours alone. Everything is asked of the open folder, so that nobody can put another one in its place
//! between a look and a use.

use crate::error::BrowserError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fchmod, fstat, openat, statat};
use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

const PRIVATE: u32 = 0o700;
/// What nobody but the owner may have.
const OTHERS: u32 = 0o077;

/// Makes the folder of all profiles, with all that is above it.
pub(super) fn make_root(path: &Path) -> Result<(), BrowserError> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path).map_err(BrowserError::file("make", path))?;
    check(path)
}

/// Makes a folder for the owner alone, or makes one that is there so. Says whether it was not there.
pub(super) fn make_private(path: &Path) -> Result<bool, BrowserError> {
    let is_new = match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(BrowserError::file("make", path)(error)),
    };
    check(path).map(|()| is_new)
}

/// Ours, a folder and no link. One that others could look into is closed to them: other tools make theirs so.
fn check(path: &Path) -> Result<(), BrowserError> {
    let unsafe_for = |why| BrowserError::ProfileUnsafe { path: path.to_owned(), why };
    let cannot = |what| move |error: rustix::io::Errno| BrowserError::file(what, path)(error.into());
    let kind = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(cannot("look at"))?;
    match FileType::from_raw_mode(kind.st_mode) {
        FileType::Directory => {}
        FileType::Symlink => return Err(unsafe_for("is a link, and may lead anywhere")),
        _ => return Err(unsafe_for("is no folder")),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, path, flags, Mode::empty()).map_err(cannot("open"))?;
    let stat = fstat(&folder).map_err(cannot("look at"))?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(unsafe_for("belongs to another user"));
    }
    if stat.st_mode & OTHERS != 0 {
        fchmod(&folder, Mode::from_raw_mode(PRIVATE)).map_err(cannot("close to others"))?;
    }
    Ok(())
}

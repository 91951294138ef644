//! Files and folders with access for their owner only. Systems without Unix modes get ordinary ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Read and write for the owner, nothing for others.
pub const FILE_MODE: u32 = 0o600;
/// The same for a folder.
pub const FOLDER_MODE: u32 = 0o700;
/// All permission bits of group and others.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Options for writing; a created file is accessible by its owner only.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// Creates a new file.
///
/// # Errors
///
/// The name exists, also as a link, or the system fails.
pub fn create_new(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Creates a folder and its parents. Existing ones are unchanged.
///
/// # Errors
///
/// The system fails.
pub fn make_folders(path: &Path) -> io::Result<()> {
    folder_builder().recursive(true).create(path)
}

/// Creates one folder; returns whether it is new. An existing one is unchanged.
///
/// # Errors
///
/// The system fails.
pub fn make_folder(path: &Path) -> io::Result<bool> {
    match folder_builder().create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
fn folder_builder() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder
}

/// Opens a folder without following a link: operations on the open folder cannot be redirected between a check and a
/// use.
///
/// # Errors
///
/// It does not exist, is a link or not a folder, or the system fails.
#[cfg(unix)]
pub fn open_folder(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Why a file or folder is not private.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPrivate {
    /// It belongs to another user.
    OtherOwner {
        /// That user.
        owner: u32,
        /// The current user.
        us: u32,
    },
    /// Other users have access.
    Exposed {
        /// Its mode.
        mode: u32,
    },
}

/// Checks that only the owner has access.
///
/// # Errors
///
/// Another user has access.
#[cfg(unix)]
pub fn check(metadata: &fs::Metadata) -> Result<(), NotPrivate> {
    use std::os::unix::fs::MetadataExt as _;
    let (owner, us) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let mode = metadata.mode() & 0o7777;
    match mode & OTHERS {
        _ if owner != us => Err(NotPrivate::OtherOwner { owner, us }),
        0 => Ok(()),
        _ => Err(NotPrivate::Exposed { mode }),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_is_made_is_private_and_what_is_there_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (deep, file) = (root.path().join("a/b"), root.path().join("a/b/file"));
        make_folders(&deep).unwrap();
        assert!(!make_folder(&deep).unwrap(), "it is there");
        assert!(make_folder(&deep.join("c")).unwrap());
        drop(create_new(&file).unwrap());
        for (path, mode) in [(&deep, FOLDER_MODE), (&file, FILE_MODE)] {
            let metadata = fs::metadata(path).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o7777, mode, "{}", path.display());
            assert_eq!(check(&metadata), Ok(()));
        }
        assert_eq!(create_new(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(check(&fs::metadata(&file).unwrap()), Err(NotPrivate::Exposed { mode: 0o640 }));
    }

    #[test]
    fn a_folder_is_opened_itself_and_not_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        symlink(root.path(), &link).unwrap();
        assert!(open_folder(root.path()).is_ok());
        assert!(open_folder(&link).is_err());
        assert!(create_new(&link).is_err(), "a link is not written through");
    }
}

//! Private folders. All operations use the open folder, so that nobody can swap it between a check and a use.

use crate::error::BrowserError;
use gleaner_base::private::{self, FOLDER_MODE, NotPrivate};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Creates the folder of all profiles, with its parents.
pub(super) fn make_root(path: &Path) -> Result<(), BrowserError> {
    private::make_folders(path).map_err(BrowserError::file("make", path))?;
    check(path)
}

/// Creates a private folder, or makes an existing one private. Returns whether it is new.
pub(super) fn make_private(path: &Path) -> Result<bool, BrowserError> {
    let is_new = private::make_folder(path).map_err(BrowserError::file("make", path))?;
    check(path).map(|()| is_new)
}

/// Checks that it is a folder of ours, not a link. Access of others is removed: other tools create theirs with it.
fn check(path: &Path) -> Result<(), BrowserError> {
    let unsafe_for = |why| BrowserError::ProfileUnsafe { path: path.to_owned(), why };
    let kind = path.symlink_metadata().map_err(BrowserError::file("look at", path))?.file_type();
    if kind.is_symlink() {
        return Err(unsafe_for("is a link, which is not followed"));
    }
    if !kind.is_dir() {
        return Err(unsafe_for("is not a folder"));
    }
    let folder = private::open_folder(path).map_err(BrowserError::file("open", path))?;
    match private::check(&folder.metadata().map_err(BrowserError::file("look at", path))?) {
        Ok(()) => Ok(()),
        Err(NotPrivate::OtherOwner { .. }) => Err(unsafe_for("belongs to another user")),
        Err(NotPrivate::Exposed { .. }) => folder
            .set_permissions(Permissions::from_mode(FOLDER_MODE))
            .map_err(BrowserError::file("close to others", path)),
    }
}

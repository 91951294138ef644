//! A file that is there as a whole or not at all, and that only its owner may read.
//!
//! It is written beside its place under another name, synced, and then takes its place in one step. Whatever
//! ends the writing before that leaves what was there before, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that has not taken its place yet. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct WholeFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    is_done: bool,
}

impl WholeFile {
    /// Begins a file for this place. A link is followed, so that the link itself stays.
    pub(crate) fn begin(place: &Path) -> io::Result<Self> {
        let place = match fs::canonicalize(place) {
            Ok(place) if !place.metadata()?.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no ordinary file"));
            }
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => place.to_owned(),
            Err(error) => return Err(error),
        };
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a file");
        let mut name = std::ffi::OsString::from(".");
        name.push(place.file_name().ok_or_else(no_name)?);
        name.push(format!(".gleaner-{}", std::process::id()));
        let beside = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        Ok(Self { file, beside, place, is_done: false })
    }

    /// Where the content goes.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable and puts it in its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        self.is_done = true;
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_done {
            // Nothing more can be done about it, and what went wrong before is what counts.
            let _removed = fs::remove_file(&self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_takes_its_place_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        fs::write(&place, "before").unwrap();
        std::os::unix::fs::symlink(&place, folder.path().join("link")).unwrap();
        let file = WholeFile::begin(&place).unwrap();
        file.file().write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&place).unwrap(), "before");
        let file = WholeFile::begin(&folder.path().join("link")).unwrap();
        file.file().write_all(b"after").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "after");
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(folder.path().join("link").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
        assert!(WholeFile::begin(folder.path()).is_err(), "a folder");
        assert!(WholeFile::begin(Path::new("/dev/null")).is_err(), "a device");
    }
}

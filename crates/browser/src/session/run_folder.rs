//! Folder of one run for files that a person may look at: screenshots and documents.
//!
//! It is below the data root, private, and created with its first file. Names are limited to letters, digits, `_` and
//! `-`: a run's id is chosen by the runtime.

use gleaner_base::private;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum length of a name: file systems allow 255 bytes.
const NAME_BYTES_MAX: usize = 100;

/// Folder of a run's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder of a run below a data root.
    pub(super) fn new(data_root: &Path, run_id: &str) -> Self {
        Self { path: data_root.join("runs").join(plain(run_id)) }
    }

    /// Writes a private file. An existing one is not overwritten.
    ///
    /// # Errors
    ///
    /// It cannot be written, or it exists.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        private::make_folders(&self.path)?;
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
        let path = self.path.join(format!("{}.{}", plain(stem), plain(ending)));
        private::create_new(&path)?.write_all(bytes)?;
        Ok(path)
    }
}

fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = name.chars().take(NAME_BYTES_MAX).map(keep).collect::<String>();
    if name.is_empty() { "_".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_name_never_leaves_the_folder_and_a_file_is_its_owners() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(root.path(), "../../etc/run 1");
        let path = folder.write("../../x.html", b"text").unwrap();
        assert!(path.starts_with(root.path().join("runs")), "{}", path.display());
        assert_eq!(path.file_name().unwrap(), "______x.html");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&folder.path)), (0o600, 0o700));
        assert!(folder.write("../../x.html", b"other").is_err(), "nothing is written over");
        assert_eq!(fs::read(path).unwrap(), b"text");
    }
}

//! The log of the service: a file under the data root that is cut when it is long, and of which a few old ones are kept.
//!
//! Why not leave it to the system's own: a data root is one folder to look into and to delete, also where there is no
//! journal. It is for its owner only. A disk that is full costs lines of the log and nothing else.

use gleaner_base::private;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a file may be: some fifty thousand lines.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many old ones are kept.
const OLD_MAX: u32 = 4;

/// A log that does not grow. Clones write to the same.
#[derive(Clone, Debug)]
pub struct LogFile(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl LogFile {
    /// Opens the log of this name in a folder, which is made if need be.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        Self::with_bound(folder, name, FILE_BYTES_MAX)
    }

    fn with_bound(folder: &Path, name: &str, bytes_max: u64) -> io::Result<Self> {
        private::make_folders(folder)?;
        let path = folder.join(name);
        let file = open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self(Arc::new(Mutex::new(Inner { path, file, bytes, bytes_max }))))
    }
}

fn open(path: &Path) -> io::Result<File> {
    private::options().create(true).append(true).open(path)
}

impl Inner {
    /// The file becomes the first old one, the last old one goes.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..OLD_MAX).rev() {
            move_away(&old(&self.path, number), &old(&self.path, number + 1))?;
        }
        move_away(&self.path, &old(&self.path, 1))?;
        self.file = open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn old(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn move_away(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Write for LogFile {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = text.len() as u64;
        if inner.bytes > 0 && inner.bytes + length > inner.bytes_max {
            inner.rotate()?;
        }
        inner.file.write_all(text)?;
        inner.bytes += length;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_is_bounded_and_keeps_its_newest_lines() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let mut log = LogFile::with_bound(&logs, "serve.log", 100).unwrap();
        for number in 0..1000 {
            writeln!(log, "line {number:04}").unwrap();
        }
        // And goes on where it was after a restart.
        drop(log);
        let mut log = LogFile::with_bound(&logs, "serve.log", 100).unwrap();
        writeln!(log, "line 1000").unwrap();
        let mut files = fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap()).collect::<Vec<_>>();
        files.sort_by_key(fs::DirEntry::file_name);
        let names = files.iter().map(|file| file.file_name().into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(names, ["serve.log", "serve.log.1", "serve.log.2", "serve.log.3", "serve.log.4"]);
        for file in &files {
            let about = file.metadata().unwrap();
            assert!(about.len() <= 100 && about.permissions().mode() & 0o077 == 0, "{file:?}");
        }
        let text = [4, 3, 2, 1].map(|number| fs::read_to_string(logs.join(format!("serve.log.{number}"))).unwrap());
        let text = text.concat() + &fs::read_to_string(logs.join("serve.log")).unwrap();
        let newest = (1000 - text.lines().count() + 1..=1000).map(|number| format!("line {number:04}\n"));
        assert_eq!(text, newest.collect::<String>());
    }
}

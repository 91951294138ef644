//! Content-addressed bodies: a folder in which a file's name is the hash of its content.
//!
//! A body is written under a temporary name and renamed when complete, so no reader sees half of one, and two URLs
//! with the same content share a file. No part of a URL becomes a file name.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buffer before the first write: most pages are smaller. Times the concurrent requests, it is 16 MiB.
const BUFFER_BYTES: usize = 64 * 1024;
/// Folder of bodies, below the results folder.
const FOLDER: &str = "bodies";

/// The folder.
#[derive(Debug)]
pub(crate) struct Bodies {
    root: PathBuf,
    unfinished: PathBuf,
    next: AtomicU64,
}

/// A stored body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
    pub(crate) path: String,
}

impl Bodies {
    /// Opens the folder, and removes unfinished files of an earlier run.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let unfinished = root.join(FOLDER).join("unfinished");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&unfinished)?,
        }
        Ok(Self { root: root.to_owned(), unfinished, next: AtomicU64::new(0) })
    }

    /// Whether the body with this hash and size exists. After a power loss a file may be empty.
    pub(crate) fn has(&self, sha256: &str, bytes: u64) -> bool {
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        is_hash && fs::metadata(self.root.join(path_of(sha256))).is_ok_and(|file| file.len() == bytes)
    }

    pub(crate) fn writer(self: &Arc<Self>) -> BodyWriter {
        BodyWriter { bodies: Arc::clone(self), hash: Sha256::new(), buffer: Vec::new(), file: None, bytes: 0 }
    }
}

/// Path below the results folder; `sha256` is 64 hexadecimal digits.
fn path_of(sha256: &str) -> String {
    let (folder, name) = sha256.split_at(2);
    format!("{FOLDER}/{folder}/{name}")
}

/// A body being written. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    bodies: Arc<Bodies>,
    hash: Sha256,
    buffer: Vec<u8>,
    file: Option<(File, PathBuf)>,
    bytes: u64,
}

impl BodyWriter {
    /// Adds a piece; true when [`flush`](Self::flush) is due.
    pub(crate) fn add(&mut self, piece: &[u8]) -> bool {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        self.buffer.extend_from_slice(piece);
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Writes the buffer. Blocks.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let (file, _) = match &mut self.file {
            Some(file) => file,
            None => {
                let number = self.bodies.next.fetch_add(1, Ordering::Relaxed);
                let path = self.bodies.unfinished.join(number.to_string());
                self.file.insert((File::create_new(&path)?, path))
            }
        };
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Moves the complete body to its final name. Blocks.
    pub(crate) fn finish(mut self) -> io::Result<Stored> {
        let sha256 = self.hash.finalize_reset().iter().fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let stored = Stored { path: path_of(&sha256), bytes: self.bytes, sha256 };
        if self.bodies.has(&stored.sha256, stored.bytes) {
            return Ok(stored);
        }
        self.flush()?;
        let Some((_, unfinished)) = self.file.take() else { return Ok(stored) };
        let place = self.bodies.root.join(&stored.path);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(unfinished, place)?;
        Ok(stored)
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if let Some((_, path)) = self.file.take() {
            // If it stays, the next run removes it.
            let _left_over = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_body_is_named_by_its_content_and_stored_once() {
        let root = tempfile::tempdir().unwrap();
        let bodies = Arc::new(Bodies::open(root.path()).unwrap());
        let store = |pieces: &[&[u8]]| {
            let mut writer = bodies.writer();
            for piece in pieces {
                if writer.add(piece) {
                    writer.flush().unwrap();
                }
            }
            writer.finish().unwrap()
        };
        let abc = store(&[b"a", b"bc"]);
        assert_eq!(abc.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(abc.path, "bodies/ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(root.path().join(&abc.path)).unwrap(), b"abc");
        assert_eq!(store(&[b"abc"]), abc);
        let large = vec![7; 3 * BUFFER_BYTES];
        let large_stored = store(&[&large[..100], &large[100..BUFFER_BYTES + 1], &large[BUFFER_BYTES + 1..]]);
        assert_eq!(fs::read(root.path().join(&large_stored.path)).unwrap(), large);
        assert_eq!(fs::metadata(root.path().join(store(&[]).path)).unwrap().len(), 0);
        assert_eq!(files(&bodies.unfinished), 0);
    }

    #[test]
    fn half_a_body_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let bodies = Arc::new(Bodies::open(root.path()).unwrap());
        let mut writer = bodies.writer();
        writer.add(b"half");
        writer.flush().unwrap();
        assert_eq!(files(&bodies.unfinished), 1);
        drop(writer);
        assert_eq!(files(&bodies.unfinished), 0);
        fs::write(bodies.unfinished.join("0"), "of a run that was killed").unwrap();
        let bodies = Bodies::open(root.path()).unwrap();
        assert_eq!(files(&bodies.unfinished), 0);
    }

    #[test]
    fn a_body_is_there_only_in_its_size_and_only_under_a_hash() {
        let root = tempfile::tempdir().unwrap();
        let bodies = Arc::new(Bodies::open(root.path()).unwrap());
        let mut writer = bodies.writer();
        writer.add(b"abc");
        let stored = writer.finish().unwrap();
        assert!(bodies.has(&stored.sha256, 3) && !bodies.has(&stored.sha256, 4));
        fs::write(root.path().join(&stored.path), "").unwrap();
        assert!(!bodies.has(&stored.sha256, 3), "a power cut can leave an empty file");
        let mut again = bodies.writer();
        again.add(b"abc");
        assert_eq!(again.finish().unwrap(), stored);
        assert!(bodies.has(&stored.sha256, 3), "and then it is written again");
        fs::write(root.path().join("secret"), "abc").unwrap();
        for name in ["", "x", "../secret", "..", &"é".repeat(32), &format!("../{}", "a".repeat(61))] {
            assert!(!bodies.has(name, 3), "{name}");
        }
    }
}

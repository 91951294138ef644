//! The journal: state that a killed run leaves to the next one, and one pass to the next.
//!
//! `unfinished.jsonl` is the current pass: one line per finished URL, written after its body is stored. A kill loses
//! at most the line being written, which is dropped at the next start. At the end of the pass the file becomes
//! `results.jsonl`; the next pass sends conditional requests with its validators. The index keeps positions in the
//! file, not the lines.
//!
//! Lines are not synced one by one. After a power loss a line may exist without its body, so each is checked against
//! its body at the start.

use crate::bodies::Bodies;
use crate::result_line::ResultLine;
use crate::url_list::{LineFile, ListLine, UrlKey};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const UNFINISHED: &str = "unfinished.jsonl";
const RESULTS: &str = "results.jsonl";
const LOCK: &str = "lock";
/// Maximum line length: twice the size of two escaped URLs of 8 KiB with two validators and a reason.
pub(crate) const LINE_BYTES_MAX: usize = 128 * 1024;

/// The results folder, locked by one process.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    /// Released when the process ends.
    _lock: File,
}

impl Folder {
    /// Opens or creates it. `None` when another process uses it.
    pub(crate) fn open(root: &Path) -> io::Result<Option<Self>> {
        fs::create_dir_all(root)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(root.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { root: root.to_owned(), _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The finished part of this pass.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) keys: HashSet<UrlKey>,
    pub(crate) fetched: u64,
    pub(crate) failed: u64,
}

/// The current pass.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    root: PathBuf,
}

impl Journal {
    /// Opens it, reads finished lines, and cuts off an incomplete line.
    pub(crate) fn open(folder: &Folder, bodies: &Bodies) -> io::Result<(Self, Finished)> {
        let path = folder.root.join(UNFINISHED);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut finished = Finished::default();
        let whole = each_line(&file, |_, line| {
            if !is_believed(&line, bodies) {
                return;
            }
            // A power loss can repeat a line: only one counts.
            if ListLine::parse(line.url.as_bytes()).key().is_some_and(|key| finished.keys.insert(key)) {
                finished.fetched += u64::from(line.is_fetched());
                finished.failed += u64::from(!line.is_fetched());
            }
        })?;
        file.set_len(whole)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file, root: folder.root.clone() }, finished))
    }

    /// Appends a line; `json` has no line feed.
    pub(crate) fn append(&mut self, json: &str) -> io::Result<()> {
        let mut line = String::with_capacity(json.len() + 1);
        line.push_str(json);
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }

    /// Ends the pass.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(self.root.join(UNFINISHED), self.root.join(RESULTS))
    }
}

/// A result with a body counts only if that body exists.
fn is_believed(line: &ResultLine, bodies: &Bodies) -> bool {
    match (&line.sha256, line.bytes) {
        (Some(sha256), Some(bytes)) => bodies.has(sha256, bytes),
        (None, None) => !line.is_fetched(),
        _ => false,
    }
}

/// Index of the previous pass.
#[derive(Debug, Default)]
pub(crate) struct Previous {
    pub(crate) places: HashMap<UrlKey, u64>,
}

impl Previous {
    /// Reads the positions of its lines, and opens the file to read them.
    pub(crate) fn open(folder: &Folder) -> io::Result<(Self, Option<LineFile>)> {
        let file = match File::open(folder.root.join(RESULTS)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Self::default(), None)),
            Err(error) => return Err(error),
        };
        let mut places = HashMap::new();
        each_line(&file, |at, line| {
            let is_useful = line.sha256.is_some() && (line.etag.is_some() || line.last_modified.is_some());
            if let Some(key) = ListLine::parse(line.url.as_bytes()).key().filter(|_| is_useful) {
                places.insert(key, at);
            }
        })?;
        Ok((Self { places }, Some(LineFile(file))))
    }
}

/// Calls `call` for each valid line, with its position. Returns the end of the last complete line.
fn each_line(file: &File, mut call: impl FnMut(u64, ResultLine)) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let (mut at, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") && read < LINE_BYTES_MAX {
            return Ok(at);
        }
        // Invalid lines are ignored.
        if let Ok(result) = serde_json::from_slice::<ResultLine>(&line) {
            call(at, result);
        }
        at += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Place {
        root: tempfile::TempDir,
        bodies: Arc<Bodies>,
    }

    impl Place {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let bodies = Arc::new(Bodies::open(root.path()).unwrap());
            Self { root, bodies }
        }

        fn folder(&self) -> Folder {
            Folder::open(self.root.path()).unwrap().unwrap()
        }

        fn line(&self, url: &str, body: &[u8]) -> ResultLine {
            let mut writer = self.bodies.writer();
            writer.add(body);
            let stored = writer.finish().unwrap();
            ResultLine {
                url: url.to_owned(),
                status: Some(200),
                bytes: Some(stored.bytes),
                sha256: Some(stored.sha256),
                path: Some(stored.path),
                etag: Some("\"1\"".to_owned()),
                ..ResultLine::default()
            }
        }
    }

    #[test]
    fn a_torn_line_is_dropped_and_what_was_whole_is_not_done_again() {
        let place = Place::new();
        let (mut journal, finished) = Journal::open(&place.folder(), &place.bodies).unwrap();
        assert!(finished.keys.is_empty());
        journal.append(&place.line("http://a.example/1", b"one").to_json()).unwrap();
        journal.append(&ResultLine::refused("nonsense", "it is not a URL".to_owned()).to_json()).unwrap();
        journal.append("not a line of ours").unwrap();
        journal.file.write_all(b"{\"url\":\"http://a.exa").unwrap();
        drop(journal);
        let (mut journal, finished) = Journal::open(&place.folder(), &place.bodies).unwrap();
        assert_eq!((finished.keys.len(), finished.fetched, finished.failed), (2, 1, 1));
        assert!(finished.keys.contains(&ListLine::parse(b"HTTP://a.example:80/1").key().unwrap()));
        assert!(finished.keys.contains(&ListLine::parse(b"nonsense").key().unwrap()));
        journal.append(&place.line("http://a.example/2", b"two").to_json()).unwrap();
        journal.finish().unwrap();
        let text = fs::read_to_string(place.root.path().join(RESULTS)).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        let last: ResultLine = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last.url, "http://a.example/2", "the torn line is gone and the next one is whole");
        assert!(!place.root.path().join(UNFINISHED).exists());
    }

    #[test]
    fn a_line_without_its_body_is_done_again() {
        let place = Place::new();
        let (mut journal, _) = Journal::open(&place.folder(), &place.bodies).unwrap();
        let line = place.line("http://a.example/1", b"one");
        journal.append(&line.to_json()).unwrap();
        fs::write(place.root.path().join(line.path.unwrap()), b"").unwrap();
        drop(journal);
        let (_, finished) = Journal::open(&place.folder(), &place.bodies).unwrap();
        assert!(finished.keys.is_empty());
    }

    #[test]
    fn the_pass_before_is_found_by_its_places() {
        let place = Place::new();
        let (mut journal, _) = Journal::open(&place.folder(), &place.bodies).unwrap();
        for url in ["http://a.example/1", "http://a.example/2"] {
            journal.append(&place.line(url, url.as_bytes()).to_json()).unwrap();
        }
        journal.append(&ResultLine::refused("http://a.example/3", "no".to_owned()).to_json()).unwrap();
        journal.finish().unwrap();
        let (previous, file) = Previous::open(&place.folder()).unwrap();
        assert_eq!(previous.places.len(), 2, "a failure is nothing to ask with");
        let at = previous.places[&ListLine::parse(b"http://a.example/2").key().unwrap()];
        let line = file.unwrap().line_at(at, LINE_BYTES_MAX).unwrap();
        assert_eq!(serde_json::from_slice::<ResultLine>(&line).unwrap().url, "http://a.example/2");
    }

    #[test]
    fn a_folder_is_used_by_one_at_a_time() {
        let place = Place::new();
        let first = place.folder();
        assert!(Folder::open(place.root.path()).unwrap().is_none());
        drop(first);
        assert!(Folder::open(place.root.path()).unwrap().is_some());
    }
}

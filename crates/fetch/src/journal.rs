//! What a killed run leaves to the next one, and one pass to the next.
//!
//! `unfinished.jsonl` is the pass under way: a line for each URL that is finished, written after its body is in its
//! place. Whoever is killed loses at most the line that was being written, and that one is dropped at the next start.
//! At the end of the pass the file becomes `results.jsonl`; the pass after it asks with the versions in there. Which
//! line is whose is kept as a place in the file, not as the line.
//!
//! Nothing is synced line by line. After a power cut a line may be there without its body, so at a start each is
//! believed only with its body in its size.

use crate::bodies::Bodies;
use crate::result_line::ResultLine;
use crate::url_list::{LineFile, Said, UrlKey};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const UNFINISHED: &str = "unfinished.jsonl";
const RESULTS: &str = "results.jsonl";
const LOCK: &str = "lock";
/// Longest line that is read: two URLs of 8 KiB, escaped, with two versions and a reason, is half of it.
pub(crate) const LINE_BYTES_MAX: usize = 128 * 1024;

/// The folder of results, for as long as one process uses it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    /// Released with the process, however it ends.
    _lock: File,
}

impl Folder {
    /// Opens or makes it. `None` when another process uses it.
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

/// What of this pass is finished already.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) keys: HashSet<UrlKey>,
    pub(crate) fetched: u64,
    pub(crate) failed: u64,
}

/// The pass under way.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    root: PathBuf,
}

impl Journal {
    /// Opens it, reads what is finished, and cuts off a line that was not written whole.
    pub(crate) fn open(folder: &Folder, bodies: &Bodies) -> io::Result<(Self, Finished)> {
        let path = folder.root.join(UNFINISHED);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut finished = Finished::default();
        let whole = each_line(&file, |_, line| {
            if !is_believed(&line, bodies) {
                return;
            }
            // Told twice after a power cut: the first line of two counts for nobody.
            if Said::of(line.url.as_bytes()).key().is_some_and(|key| finished.keys.insert(key)) {
                finished.fetched += u64::from(line.is_fetched());
                finished.failed += u64::from(!line.is_fetched());
            }
        })?;
        file.set_len(whole)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file, root: folder.root.clone() }, finished))
    }

    /// Writes a line down; `json` has no line feed.
    pub(crate) fn append(&mut self, json: &str) -> io::Result<()> {
        let mut line = String::with_capacity(json.len() + 1);
        line.push_str(json);
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }

    /// The pass is over.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(self.root.join(UNFINISHED), self.root.join(RESULTS))
    }
}

/// A result with a body counts only with that body.
fn is_believed(line: &ResultLine, bodies: &Bodies) -> bool {
    match (&line.sha256, line.bytes) {
        (Some(sha256), Some(bytes)) => bodies.has(sha256, bytes),
        (None, None) => !line.is_fetched(),
        _ => false,
    }
}

/// The pass before: which line is whose.
#[derive(Debug, Default)]
pub(crate) struct Previous {
    pub(crate) places: HashMap<UrlKey, u64>,
}

impl Previous {
    /// Reads where the lines are, and the file to read them from.
    pub(crate) fn open(folder: &Folder) -> io::Result<(Self, Option<LineFile>)> {
        let file = match File::open(folder.root.join(RESULTS)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Self::default(), None)),
            Err(error) => return Err(error),
        };
        let mut places = HashMap::new();
        each_line(&file, |at, line| {
            let is_useful = line.sha256.is_some() && (line.etag.is_some() || line.last_modified.is_some());
            if let Some(key) = Said::of(line.url.as_bytes()).key().filter(|_| is_useful) {
                places.insert(key, at);
            }
        })?;
        Ok((Self { places }, Some(LineFile(file))))
    }
}

/// Calls for each line that can be read, with its place. Answers where the last whole line ends.
fn each_line(file: &File, mut call: impl FnMut(u64, ResultLine)) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let (mut at, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") && read < LINE_BYTES_MAX {
            return Ok(at);
        }
        // What is no line of ours, whoever wrote it, says nothing.
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
        journal.append(&ResultLine::refused("nonsense", "it is no URL".to_owned()).to_json()).unwrap();
        journal.append("not a line of ours").unwrap();
        journal.file.write_all(b"{\"url\":\"http://a.exa").unwrap();
        drop(journal);
        let (mut journal, finished) = Journal::open(&place.folder(), &place.bodies).unwrap();
        assert_eq!((finished.keys.len(), finished.fetched, finished.failed), (2, 1, 1));
        assert!(finished.keys.contains(&Said::of(b"HTTP://a.example:80/1").key().unwrap()));
        assert!(finished.keys.contains(&Said::of(b"nonsense").key().unwrap()));
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
        let at = previous.places[&Said::of(b"http://a.example/2").key().unwrap()];
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

//! Learned state on disk: a folder with one small file per key.
//!
//! A file is replaced as a whole (written beside, synced, renamed), so a crash leaves the old text or the new one.
//! Two processes with the same key write one after the other, and each takes over the gate and the refusals that the
//! other saved. Files are readable by their owner only. They hold rates and times; no credential, not even as an
//! unkeyed hash.

use crate::key::{Key, Secret};
use gleaner_base::atomic::{self, AtomicFile};
use gleaner_base::private;
use gleaner_governor::{Learned, RETRY_AFTER_MAX};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Interval of saves while nothing is refused: losing a second of a climb costs less than a second.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Files older than this are useless: no gate is longer.
const KEEP: Duration = RETRY_AFTER_MAX;
/// A file is unfinished for milliseconds. An older one was left by a killed process.
const KEEP_UNFINISHED: Duration = Duration::from_secs(3600);
/// The file with the secret. It exists as long as the folder, so its lock orders all writers.
const SECRET: &str = "secret";
/// Maximum file size; the governor's own limit on such a text.
const FILE_MAX: u64 = 4096;

/// A folder cannot be used for learned state.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep learned rates in {}", path.display())]
pub struct MemoryError {
    /// The file or folder.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    folder: PathBuf,
}

impl Memory {
    /// Opens or creates the folder, and removes useless files.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Secret), MemoryError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| MemoryError { path, source }
        };
        private::make_folders(folder).map_err(fail(folder))?;
        let secret_file = folder.join(SECRET);
        let secret = load_or_make_secret(&secret_file).map_err(fail(&secret_file))?;
        drop_old_files(folder).map_err(fail(folder))?;
        Ok((Self { folder: folder.to_owned() }, secret))
    }

    pub(crate) fn slot(&self, key: &Key) -> Slot {
        let file = self.folder.join(format!("{}.learned", key.file_stem()));
        Slot { file, lock: self.folder.join(SECRET), state: Mutex::default() }
    }
}

/// The file of one key.
#[derive(Debug)]
pub(crate) struct Slot {
    file: PathBuf,
    /// The file whose lock orders the writers of all processes.
    lock: PathBuf,
    /// Also locked while writing, so that writers follow each other.
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    saved_at: Option<Instant>,
    /// The text that we last wrote or read. Another text in the file is another process's.
    seen: Option<Vec<u8>>,
}

/// State read from a file.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) learned: Option<Learned>,
    /// Why an existing file could not be used, for people.
    pub(crate) trouble: Option<String>,
}

/// State that another process saved for the same key.
#[derive(Debug)]
pub(crate) struct Others {
    pub(crate) learned: Learned,
    /// The state that both started from.
    pub(crate) before: Option<Learned>,
}

impl Slot {
    /// Reads the saved state. A file that cannot be read is ignored.
    pub(crate) fn load(&self) -> Loaded {
        let trouble = |why: &str| {
            let message = format!("the remembered pace in {} {why}; starting without it", self.file.display());
            tracing::warn!("{message}");
            Loaded { learned: None, trouble: Some(message) }
        };
        let text = match self.read() {
            Ok(Some(text)) => text,
            Ok(None) => return Loaded::default(),
            Err(error) => return trouble(&format!("cannot be read ({error})")),
        };
        let Some(learned) = Learned::decode(&text) else { return trouble("is damaged, or not a file of Gleaner") };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).seen = Some(text);
        Loaded { learned: Some(learned), trouble: None }
    }

    /// The text of the file, if there is one.
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        match fs::File::open(&self.file).and_then(|file| file.take(FILE_MAX).read_to_end(&mut text)) {
            Ok(_) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it is time to write again.
    pub(crate) fn is_due(&self) -> bool {
        // Another thread is writing: that is soon enough.
        let Ok(mut state) = self.state.try_lock() else { return false };
        let is_due = state.saved_at.is_none_or(|at| at.elapsed() >= SAVE_EVERY);
        if is_due {
            // Keeps a second caller from writing too.
            state.saved_at = Some(Instant::now());
        }
        is_due
    }

    /// Saves the result of `learned`, after all earlier writers of this process and others. `learned` gets the state
    /// that another process saved since.
    pub(crate) fn save(&self, learned: impl FnOnce(Option<&Others>) -> Option<Learned>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Locked until drop, or until the process dies. Without file locks an update may be lost.
        let _turn = fs::File::open(&self.lock).and_then(|file| file.lock().map(|()| file)).ok();
        let others = self.read().ok().flatten().filter(|text| state.seen.as_ref() != Some(text));
        let before = || state.seen.as_deref().and_then(Learned::decode);
        let others = others.and_then(|text| Some(Others { learned: Learned::decode(&text)?, before: before() }));
        let Some(learned) = learned(others.as_ref()) else { return Ok(()) };
        let text = format!("{learned}\n").into_bytes();
        atomic::replace(&self.file, &text)?;
        *state = SlotState { saved_at: Some(Instant::now()), seen: Some(text) };
        Ok(())
    }
}

/// Removes a useless file. If that fails, the next start removes it.
fn forget(file: &Path) {
    let _left_over = fs::remove_file(file);
}

fn load_or_make_secret(file: &Path) -> io::Result<Secret> {
    match read_secret(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // A full disk or a crash left a part of it. Keys get new file names and lose their saved state.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            tracing::warn!(file = %file.display(), "the secret is damaged; making another one");
            forget(file);
        }
        read => return read,
    }
    let secret = Secret::random();
    // Atomic, and never over the file of another process that was faster.
    let mut new = AtomicFile::begin(file)?;
    new.file().write_all(&secret.0)?;
    match new.put_new() {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_secret(file),
        Err(error) => Err(error),
    }
}

fn read_secret(file: &Path) -> io::Result<Secret> {
    let mut bytes = [0; 32];
    fs::File::open(file)?.read_exact(&mut bytes)?;
    Ok(Secret(bytes))
}

fn drop_old_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let keep = match path.extension().and_then(|extension| extension.to_str()) {
            Some("learned") => KEEP,
            Some("new") => KEEP_UNFINISHED,
            _ => continue,
        };
        let age = entry.metadata().and_then(|file| file.modified()).ok();
        let age = age.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > keep) {
            forget(&path);
        }
    }
    Ok(())
}

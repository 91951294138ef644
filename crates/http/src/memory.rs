//! Where what was learned outlives the process: a folder with one small file per key.
//!
//! A file is replaced whole (written beside, synced, renamed), so a crash leaves the old text or the new
//! one and never half of one. Two processes with the same key write one after the other, and each takes over the gate
//! and the refusals that the other has written down. Files are readable by their owner alone. They hold rates and times; the
//! credential is in none of them, not even hashed without a secret.

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

/// How often what was learned is written down while nothing is refused: losing a second of a climb
/// costs less than a second.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// Files that nobody has written to for this long say nothing any more: no gate is longer.
const KEEP: Duration = RETRY_AFTER_MAX;
/// A file that is being written is there for milliseconds. One that is older was left by a process that was killed.
const KEEP_UNFINISHED: Duration = Duration::from_secs(3600);
/// The file with the secret. It is there for as long as the folder is, so writers take turns by its lock.
const SECRET: &str = "secret";
/// Longest file that is read; the governor's own limit on such a text.
const FILE_MAX: u64 = 4096;

/// Why a folder cannot be used to remember in.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} to remember learned rates in", path.display())]
pub struct MemoryError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    folder: PathBuf,
}

impl Memory {
    /// Opens the folder, makes it if it is not there, and drops files that nobody needs any more.
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
    /// Whose lock writers of all processes take.
    lock: PathBuf,
    /// Also held while writing, so that writers follow each other.
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    saved_at: Option<Instant>,
    /// What we last wrote or read. Another text in the file is somebody else's.
    seen: Option<Vec<u8>>,
}

/// What a slot remembers.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) learned: Option<Learned>,
    /// Why it remembers nothing although there is a file, for people.
    pub(crate) trouble: Option<String>,
}

/// What another process has written about the same key.
#[derive(Debug)]
pub(crate) struct Others {
    pub(crate) learned: Learned,
    /// What both knew before.
    pub(crate) before: Option<Learned>,
}

impl Slot {
    /// What was written down, if it can be read. A file that cannot be is no memory.
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
        let Some(learned) = Learned::decode(&text) else { return trouble("is damaged, or not Gleaner's") };
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
        // Somebody is writing: that is soon enough.
        let Ok(mut state) = self.state.try_lock() else { return false };
        let is_due = state.saved_at.is_none_or(|at| at.elapsed() >= SAVE_EVERY);
        if is_due {
            // Whoever asks next does not write, too.
            state.saved_at = Some(Instant::now());
        }
        is_due
    }

    /// Writes what `learned` gives, after everyone who came before, in this process and in others. `learned` is told
    /// what another process has written since.
    pub(crate) fn save(&self, learned: impl FnOnce(Option<&Others>) -> Option<Learned>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Held until it is dropped, or the process is killed. Where there are no locks, the risk is a lost update.
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

/// Removes what is of no use any more. If it stays, the next start clears it away.
fn forget(file: &Path) {
    let _left_over = fs::remove_file(file);
}

fn load_or_make_secret(file: &Path) -> io::Result<Secret> {
    match read_secret(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // A full disk or a crash left a part of it. Keys get new names, and start without their memory.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            tracing::warn!(file = %file.display(), "the secret is damaged; making another one");
            forget(file);
        }
        read => return read,
    }
    let secret = Secret::random();
    // Whole or not at all, and never over somebody else's who was faster.
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

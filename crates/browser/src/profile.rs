//! Browser profile: a private folder for one run at a time.
//!
//! It is taken in this order: the folder is private, the lock is ours, no browser has it open, nothing in it is
//! damaged, it is not too large. A damaged profile is kept beside, never deleted: it is the owner's session.

mod damage;
mod folder;
mod lock;
mod name;
mod singleton;
mod size;

pub use name::ProfileName;
pub(crate) use size::size;

use crate::error::BrowserError;
use crate::limits::Limits;
use crate::notice::Notice;
use lock::Lock;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of downloads: in the profile, so that it is private and removed with it.
const DOWNLOADS: &str = "Gleaner Downloads";

/// A profile locked by this process. The lock ends with the process.
#[derive(Debug)]
pub(crate) struct HeldProfile {
    pub(crate) path: PathBuf,
    /// No browser has used it yet: then it cannot be the cause of a failure.
    pub(crate) is_new: bool,
    _lock: Lock,
}

impl HeldProfile {
    /// Takes the profile; returns notices.
    pub(crate) fn take(
        profiles: &Path,
        name: &ProfileName,
        limits: &Limits,
    ) -> Result<(Self, Vec<Notice>), BrowserError> {
        let mut notices = Vec::new();
        folder::make_root(profiles)?;
        let path = profiles.join(name.as_str());
        let lock = Lock::take(&profiles.join(format!("{name}.lock")), &path)?;
        let mut is_new = folder::make_private(&path)?;
        notices.extend(singleton::clear(&path, lock.last_host())?);
        if damage::find(&path).is_some() {
            let kept = damage::quarantine(&path)?;
            notices.push(Notice::ProfileQuarantined(kept));
            is_new = folder::make_private(&path)?;
        }
        notices.extend(size::check(&path, limits)?);
        let held = Self { path, is_new, _lock: lock };
        held.clear_downloads()?;
        Ok((held, notices))
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.path.join(DOWNLOADS)
    }

    /// Quarantines the profile, and creates an empty one.
    pub(crate) fn quarantine(&mut self) -> Result<PathBuf, BrowserError> {
        let kept = damage::quarantine(&self.path)?;
        self.is_new = folder::make_private(&self.path)?;
        self.clear_downloads()?;
        Ok(kept)
    }

    /// Puts it back: the profile was not the cause.
    pub(crate) fn put_back(&mut self, kept: &Path) -> Result<(), BrowserError> {
        fs::remove_dir_all(&self.path).map_err(BrowserError::file("remove", &self.path))?;
        fs::rename(kept, &self.path).map_err(BrowserError::file("put back", kept))
    }

    fn clear_downloads(&self) -> Result<(), BrowserError> {
        let path = self.downloads();
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BrowserError::file("empty", &path)(error));
            }
            _ => {}
        }
        folder::make_private(&path).map(drop)
    }
}

impl Drop for HeldProfile {
    fn drop(&mut self) {
        // Best effort: the next run empties it too.
        drop(fs::remove_dir_all(self.downloads()));
    }
}

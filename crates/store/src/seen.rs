//! A note beside the store of the highest epoch that was ever held here.
//!
//! Why outside of the store: a store that was restored from an older copy cannot know that it is old.
//! Its cursors would send the next run back, and records that were deleted meanwhile would be back
//! too. The note remembers what the copy has forgotten, and the next run stops and says so. It is
//! written after the epoch is durable, so a crash between the two never raises a false alarm.

use crate::error::StoreError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many notes this process has written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(crate) struct SeenNote {
    path: PathBuf,
    store_id: String,
}

impl SeenNote {
    pub(crate) fn beside(store: &Path, store_id: String) -> Self {
        let mut path = store.as_os_str().to_owned();
        path.push(".seen");
        Self { path: path.into(), store_id }
    }

    /// The highest epoch seen of this store; 0 when there is no note, or it is about another store.
    pub(crate) fn epoch(&self) -> u64 {
        let note = fs::read_to_string(&self.path).unwrap_or_default();
        match note.trim().split_once(' ') {
            Some((id, epoch)) if id == self.store_id => epoch.parse().unwrap_or(0),
            Some(_) | None => 0,
        }
    }

    /// Remembers an epoch that is durable.
    pub(crate) fn remember(&self, epoch: u64) -> Result<(), StoreError> {
        let written = self.replace(&format!("{} {epoch}\n", self.store_id));
        written.map_err(|source| StoreError::of_file(source, &self.path))
    }

    /// Takes away what a process left that was killed while it wrote a note.
    pub(crate) fn clear_leftovers(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name().and_then(|name| name.to_str()))
        else {
            return;
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.file_name();
            let pid = || file.to_str()?.strip_prefix(name)?.strip_prefix('.')?.split('.').next()?.parse::<u32>().ok();
            if pid().is_some_and(is_dead) {
                // Not worth an error: it is in nobody's way.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// All of the new note or all of the old one, also after a power cut.
    fn replace(&self, text: &str) -> io::Result<()> {
        let mut new = self.path.as_os_str().to_owned();
        // A name of its own for each: two stores of one process may write at the same time.
        new.push(format!(".{}.{}", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

/// Whether nobody has this number. Without `/proc` that cannot be told of anybody, and their files stay.
pub(crate) fn is_dead(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_cleared_and_what_a_live_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let note = SeenNote::beside(&folder.path().join("s.db"), "id".to_owned());
        note.remember(7).unwrap();
        let left = |name: &str| folder.path().join(name);
        let ours = format!("s.db.seen.{}.4", std::process::id());
        for name in ["s.db.seen.4194999", "s.db.seen.4194999.3", &ours, "s.db.seen.text"] {
            fs::write(left(name), "id 9").unwrap();
        }
        note.clear_leftovers();
        assert!(!left("s.db.seen.4194999").exists() && !left("s.db.seen.4194999.3").exists());
        assert!(left(&ours).exists() && left("s.db.seen.text").exists());
        assert_eq!(note.epoch(), 7);
        assert_eq!(SeenNote::beside(&folder.path().join("s.db"), "other".to_owned()).epoch(), 0, "of another store");
    }
    #[test]
    fn two_stores_of_one_process_may_remember_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let note = SeenNote::beside(&folder.path().join("s.db"), "id".to_owned());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).for_each(|epoch| note.remember(epoch).unwrap()));
            }
        });
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "the note alone");
    }
}

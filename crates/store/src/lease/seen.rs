//! A note beside the store of the highest epoch that was ever held here.
//!
//! Why outside of the store: a store that was restored from an older copy cannot know that it is old.
//! Its cursors would send the next run back, and records that were deleted meanwhile would be back
//! too. The note remembers what the copy has forgotten, and the next run stops and says so. It is
//! written after the epoch is durable, so a crash between the two never raises a false alarm.

use crate::error::StoreError;
use crate::open;
use gleaner_base::atomic;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct SeenNote {
    path: PathBuf,
    store_id: String,
}

impl SeenNote {
    pub(crate) fn beside(store: &Path, store_id: String) -> Self {
        Self { path: open::beside(store, ".seen"), store_id }
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
        let written = atomic::replace(&self.path, format!("{} {epoch}\n", self.store_id).as_bytes());
        written.map_err(|source| StoreError::of_file(source, &self.path))
    }

    /// Removes what a process left that was killed while it wrote a note.
    pub(crate) fn clear_leftovers(&self) {
        atomic::clear_leftovers(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_about_one_store() {
        let folder = tempfile::tempdir().unwrap();
        let note = SeenNote::beside(&folder.path().join("s.db"), "id".to_owned());
        assert_eq!(note.epoch(), 0, "none is there");
        note.remember(7).unwrap();
        assert_eq!(note.epoch(), 7);
        assert_eq!(SeenNote::beside(&folder.path().join("s.db"), "other".to_owned()).epoch(), 0, "of another store");
    }

    #[test]
    fn what_a_killed_process_left_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("s.db.seen.4194999.3.new");
        fs::write(&left, "id 9").unwrap();
        SeenNote::beside(&folder.path().join("s.db"), "id".to_owned()).clear_leftovers();
        assert!(!left.exists());
    }
}

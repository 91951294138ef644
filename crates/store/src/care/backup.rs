//! A copy of the store in one file, made while a run goes on, and looked at before it is called one.
//!
//! Why SQLite's own copying and not `cp`: what was saved last is in the log beside the file, and a copy
//! of both is a copy of two moments. Here the pages of one moment are copied, and the writer goes on
//! meanwhile. The copy has no log, is its owner's alone, is synced, verified like any store, and only
//! then gets its name: there is never half a backup under it, and nothing that was there is replaced.

use crate::error::{Failure, StoreError};
use crate::open::beside;
use crate::read::Reader;
use gleaner_base::atomic::{is_dead, rename_new};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Pages between two reports of progress: 4 MB.
const PAGES_PER_STEP: i32 = 1000;

/// What a copy is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// Pages are copied.
    Copying,
    /// Versions are looked at.
    Checking,
}

impl Reader {
    /// Writes a backup to a file that is not there yet, with the owner's settings beside the store if there
    /// are any: a text that only [`restore()`](crate::restore()) looks at. Says how far it is; answers how
    /// many bytes it has.
    ///
    /// # Errors
    ///
    /// When the file exists or cannot be written, or the store is damaged. Then there is no backup.
    pub fn backup(
        &self,
        to: &Path,
        settings: Option<&str>,
        mut progress: impl FnMut(CopyStep, u64, u64),
    ) -> Result<u64, StoreError> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(StoreError::FileExists(to.to_owned()));
        }
        let unfinished = Unfinished::beside(to)?;
        let path = unfinished.path();
        self.ask(|from| {
            copy_to_file(from, path, settings, &mut |done, total| progress(CopyStep::Copying, done, total))
        })?;
        let damage = Self::open(path)?.verify(|done, total| progress(CopyStep::Checking, done, total))?;
        if let Some(first) = damage.first() {
            return Err(StoreError::Corrupt { path: self.path().to_owned(), detail: first.to_string() });
        }
        let cannot = |source: io::Error| StoreError::of_copy(source, to);
        let file = File::open(path).map_err(cannot)?;
        let length = file.metadata().map_err(cannot)?.len();
        file.sync_all().map_err(cannot)?;
        unfinished.give_name(to).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::FileExists(to.to_owned()),
            _ => cannot(error),
        })?;
        Ok(length)
    }
}

/// Where the settings are in a backup. A store that is used has none.
pub(crate) const SETTINGS: &str = "settings";

/// Copies the pages of one moment into an empty file, which then needs no log.
pub(crate) fn copy_to_file(
    from: &Connection,
    to: &Path,
    settings: Option<&str>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let at = |error: rusqlite::Error| Failure::Ours(StoreError::of(error, to));
    let mut copy = Connection::open_with_flags(to, flags).map_err(at)?;
    copy_pages(from, &mut copy, progress)?;
    // The copy says of itself that it has a log. Whoever reads it would have to make one.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(at)?;
    if let Some(settings) = settings {
        copy.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", (SETTINGS, settings)).map_err(at)?;
    }
    copy.close().map_err(|(_, error)| at(error))
}

/// Copies all pages in one transaction of the other side: it has the old ones or the new ones.
pub(crate) fn copy_pages(
    from: &Connection,
    to: &mut Connection,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Failure> {
    // Without it a step would begin anew whenever the writer has saved something, and never end.
    let moment = from.unchecked_transaction()?;
    moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let backup = Backup::new(&moment, to)?;
    loop {
        let step = backup.step(PAGES_PER_STEP)?;
        let (left, all) = (backup.progress().remaining, backup.progress().pagecount);
        let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
        progress(count(all - left), count(all));
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // SQLite has waited already.
            _ => {
                return Err(Failure::busy());
            }
        }
    }
}

/// A file that has no name yet that anybody looks for. Gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// An empty file in the folder of the one that it will be, for its owner alone.
    pub(crate) fn beside(target: &Path) -> Result<Self, StoreError> {
        let target = crate::open::resolve(target)?;
        let path = beside(&target, &format!(".{}{UNFINISHED}", std::process::id()));
        clear_leftovers(&target);
        let made = gleaner_base::private::create_new(&path);
        made.map_err(|error| StoreError::of_copy(error, &target))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, durably, unless something has that name.
    pub(crate) fn give_name(self, to: &Path) -> io::Result<()> {
        rename_new(&self.path, to)
    }
}

/// Takes away what processes left that were killed while they copied, one with our own number included.
fn clear_leftovers(target: &Path) {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let rest = file.to_str().and_then(|file| file.strip_prefix(name)?.strip_prefix('.'));
        let before = rest.and_then(|rest| Some(rest.split_once(UNFINISHED)?.0));
        // Also those of copies that were to be kept beside the store, under longer names.
        let pid = before.and_then(|before| before.rsplit('.').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| pid == std::process::id() || is_dead(pid)) {
            // Not worth an error: whatever is in the way is found out next.
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// How the name of such a file ends.
pub(crate) const UNFINISHED: &str = ".unfinished";

impl Drop for Unfinished {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            // What has its name by now is not there any more.
            drop(fs::remove_file(beside(&self.path, ending)));
        }
    }
}

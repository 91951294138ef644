//! Putting a backup in the place of the store, and accepting a store that somebody put there.
//!
//! The backup is copied beside the store, looked at like any store, and made to know what it has
//! forgotten: epochs and numbers of changes go on from the highest that were ever given out, so nobody
//! who lost a lease can write and no reader of changes is told the same number twice. Then its pages
//! replace those of the store in one transaction of SQLite's. A file is not renamed over the store as
//! long as that can be opened: another program may have it open, and would go on with the log of one
//! file beside another. What was there before is kept under another name.

use crate::care::backup::{CopyStep, SETTINGS, Unfinished, copy_pages, copy_to_file};
use crate::error::{Failure, StoreError};
use crate::lease::holder::Holder;
use crate::lease::seen::SeenNote;
use crate::lease::{HeldBy, Lease, LeaseOn, Standing, judge, take};
use crate::open::beside;
use crate::read::Reader;
use crate::sql::rows;
use crate::store::{Store, meta_number, meta_text, set_meta_number};
use gleaner_engine::{Epoch, WallTime};
use rusqlite::{Connection, OptionalExtension};
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The store is that of the backup now.
    Restored {
        /// Where the one before it is, if there was one.
        kept: Option<PathBuf>,
        /// Whether the backup is older than what was here: later changes are in the kept file only.
        was_older: bool,
        /// The owner's settings, if the backup has any. They are the caller's to put back.
        settings: Option<String>,
    },
    /// Somebody is at work. Nothing was changed.
    Held(HeldBy),
}

/// Puts the backup in `file` in the place of the store at `store`, which need not be there.
///
/// The store that was there is kept beside it under a name that has `stamp` in it.
///
/// # Errors
///
/// When the file is not a store, is damaged or newer than we are, or cannot be copied. Then the store is
/// as it was.
pub fn restore(
    file: &Path,
    store: &Path,
    holder: &Holder,
    now: WallTime,
    stamp: &str,
    mut progress: impl FnMut(CopyStep, u64, u64),
) -> Result<RestoreOutcome, StoreError> {
    let unfinished = Unfinished::beside(store)?;
    let mut fresh = prepare(file, unfinished.path(), &mut progress)?;
    let settings = fresh.take_settings()?;
    let kept = name_to_keep(store, stamp)?;
    let old = if fs::symlink_metadata(store).is_ok() { Old::open(store)? } else { Old::Absent };
    match old {
        Old::Usable(mut old) => {
            let known = Known { id: old.id()?, epoch: old.epoch()?.get(), next_seq: old.next_seq()? };
            let leases = match old.shut_everybody_out(holder, now)? {
                Ok(leases) => leases,
                Err(by) => return Ok(RestoreOutcome::Held(by)),
            };
            let replaced = replace(&mut old, &mut fresh, &known, &kept, &mut progress);
            if replaced.is_err() {
                // What went wrong first is what counts.
                let _given_back = old.release(&leases);
            }
            Ok(RestoreOutcome::Restored { kept: Some(kept), was_older: replaced?, settings })
        }
        Old::Broken | Old::Absent => {
            let was_older = fresh.go_on_from(SeenNote::beside(store, fresh.id()?).epoch(), 0)?;
            let kept = matches!(old, Old::Broken).then_some(kept);
            if let Some(kept) = &kept {
                move_aside(store, kept).map_err(|error| StoreError::of_copy(error, store))?;
            }
            move_in(fresh, unfinished, store)?;
            Ok(RestoreOutcome::Restored { kept, was_older, settings })
        }
    }
}

/// How many stores are kept under one stamp. A stamp is a second, and no second sees more restores.
const KEPT_PER_STAMP: u32 = 100;

/// A name nobody has. One that was killed in this very second may have kept its copy under the first.
fn name_to_keep(store: &Path, stamp: &str) -> Result<PathBuf, StoreError> {
    let first = beside(store, &format!(".before-restore-{stamp}"));
    let others = (2..=KEPT_PER_STAMP).map(|number| beside(&first, &format!("-{number}")));
    let free = iter::once(first.clone()).chain(others).find(|name| fs::symlink_metadata(name).is_err());
    free.ok_or(StoreError::FileExists(first))
}

/// The store that is to be replaced.
enum Old {
    Usable(Box<Store>),
    /// It cannot be opened, so nobody works with it.
    Broken,
    Absent,
}

impl Old {
    fn open(path: &Path) -> Result<Self, StoreError> {
        match Store::open(path) {
            Ok(store) => Ok(Self::Usable(Box::new(store))),
            Err(StoreError::Corrupt { .. } | StoreError::NotAStore(_)) => Ok(Self::Broken),
            Err(other) => Err(other),
        }
    }
}

/// What the old store knew before anything was done to it.
struct Known {
    id: String,
    epoch: u64,
    next_seq: u64,
}

/// Copies the backup and looks at it.
fn prepare(file: &Path, to: &Path, progress: &mut impl FnMut(CopyStep, u64, u64)) -> Result<Store, StoreError> {
    let source = crate::open::source(file).map_err(|error| of_backup(error, file))?;
    copy_to_file(&source, to, None, &mut |done, total| progress(CopyStep::Copying, done, total))
        .map_err(|failure| of_backup(failure.at(file), file))?;
    // As a writer, which brings an older schema up to date.
    let fresh = Store::open(to).map_err(|error| of_backup(error, file))?;
    let checked = Reader::open(to).and_then(|copy| copy.verify(|done, all| progress(CopyStep::Checking, done, all)));
    match checked.map_err(|error| of_backup(error, file))?.first() {
        Some(first) => Err(StoreError::DamagedBackup { path: file.to_owned(), detail: first.to_string() }),
        None => Ok(fresh),
    }
}

/// What is wrong with the copy is wrong with the backup, and is said of it.
fn of_backup(error: StoreError, file: &Path) -> StoreError {
    match error {
        StoreError::Corrupt { detail, .. } => StoreError::DamagedBackup { path: file.to_owned(), detail },
        StoreError::NotAStore(_) => StoreError::NotAStore(file.to_owned()),
        other => other,
    }
}

/// Keeps the old pages, and puts the new ones in their place. Answers whether those are older.
fn replace(
    old: &mut Store,
    fresh: &mut Store,
    known: &Known,
    kept: &Path,
    progress: &mut impl FnMut(CopyStep, u64, u64),
) -> Result<bool, StoreError> {
    let mut copying = |done, total| progress(CopyStep::Copying, done, total);
    let copy = Unfinished::beside(kept)?;
    old.read(|connection| copy_to_file(connection, copy.path(), None, &mut copying))?;
    copy.give_name(kept).map_err(|error| StoreError::of_copy(error, kept))?;
    let seen = SeenNote::beside(old.path(), fresh.id()?).epoch();
    let was_older = if known.id == fresh.id()? {
        let was_older = fresh.go_on_from(known.epoch.max(seen), known.next_seq)?;
        // Shutting everybody out was an epoch, too. It tells nothing about the age of the backup.
        fresh.go_on_from(old.epoch()?.get(), known.next_seq)?;
        was_older
    } else {
        fresh.go_on_from(seen, 0)?
    };
    let done = copy_pages(&fresh.connection, &mut old.connection, &mut copying);
    let done = done.map_err(|failure| failure.at(old.path()));
    old.heed(done)?;
    Ok(was_older)
}

/// Moves a file that cannot be opened away, with the log that belongs to it.
fn move_aside(store: &Path, kept: &Path) -> io::Result<()> {
    for ending in ["-wal", "-shm"] {
        match fs::rename(beside(store, ending), beside(kept, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::rename(store, kept)?;
    gleaner_base::atomic::sync_folder_of(store)
}

/// The copy becomes the store.
fn move_in(fresh: Store, copy: Unfinished, store: &Path) -> Result<(), StoreError> {
    let path = fresh.path().to_owned();
    // Closing moves the log into the file.
    fresh.connection.close().map_err(|(_, error)| StoreError::of(error, &path))?;
    // A log without its file would be taken for that of the new one.
    for ending in ["-wal", "-shm"] {
        drop(fs::remove_file(beside(store, ending)));
    }
    copy.give_name(store).map_err(|error| StoreError::of_copy(error, store))
}

impl Store {
    pub(crate) fn id(&self) -> Result<String, StoreError> {
        self.read(|connection| meta_text(connection, "store_id"))
    }

    fn next_seq(&self) -> Result<u64, StoreError> {
        self.read(|connection| meta_number(connection, "next_seq"))
    }

    fn take_settings(&mut self) -> Result<Option<String>, StoreError> {
        self.write(&[], |transaction| {
            let sql = "DELETE FROM meta WHERE name = ?1 AND typeof(value) = 'text' RETURNING value";
            Ok(transaction.query_row(sql, [SETTINGS], |row| row.get(0)).optional()?)
        })
    }

    /// Takes every right that somebody could have, unless somebody has one.
    fn shut_everybody_out(&mut self, holder: &Holder, now: WallTime) -> Result<Result<Vec<Lease>, HeldBy>, StoreError> {
        self.write(&[], |transaction| {
            for name in texts(transaction, "SELECT name FROM leases WHERE released = 0")? {
                if let Standing::Held(by) = judge(transaction, &name, holder, now)? {
                    return Ok(Err(by));
                }
            }
            let connections = texts(transaction, "SELECT name FROM connections")?;
            let connections = connections.iter().map(|name| LeaseOn::Connection(name).name());
            let epoch = meta_number(transaction, "epoch")?.saturating_add(1);
            set_meta_number(transaction, "epoch", epoch)?;
            let mut leases = Vec::new();
            for name in connections.chain([LeaseOn::Serve.name()]) {
                take(transaction, &name, epoch, holder, now)?;
                leases.push(Lease::new(name, Epoch::new(epoch)));
            }
            Ok(Ok(leases))
        })
    }

    /// Numbers that were given out before are not given out again, and nobody holds anything. Answers
    /// whether the store had forgotten some.
    fn go_on_from(&mut self, epoch: u64, next_seq: u64) -> Result<bool, StoreError> {
        self.write(&[], |transaction| {
            let mut was_older = false;
            for (name, highest) in [("epoch", epoch), ("next_seq", next_seq)] {
                let own = meta_number(transaction, name)?;
                was_older |= own < highest;
                set_meta_number(transaction, name, own.max(highest))?;
            }
            transaction.execute("UPDATE leases SET released = 1", [])?;
            Ok(was_older)
        })
    }
}

fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>, Failure> {
    rows(connection, sql, [], |row| row.get(0))
}

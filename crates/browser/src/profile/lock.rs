//! Lock for one run at a time. It is a kernel lock on a file beside the profile: it ends with its holder, so it is
//! never stale. The file's content is only for messages.

use crate::error::BrowserError;
use gleaner_base::{clock, date, private};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

/// Enough for our content.
const NOTE_BYTES_MAX: u64 = 1024;

/// The lock, held.
#[derive(Debug)]
pub(super) struct Lock {
    /// Closing it releases the lock.
    _file: File,
    before: Option<Note>,
}

/// The holder of the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    pid: u32,
    since: String,
    host: String,
}

impl Lock {
    pub(super) fn take(path: &Path, profile: &Path) -> Result<Self, BrowserError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::from_raw_mode(private::FILE_MODE));
        let mut file = File::from(opened.map_err(|error| BrowserError::file("open", path)(error.into()))?);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let note = read(&mut file);
                let (pid, since) = note.map_or((None, None), |note| (Some(note.pid), Some(note.since)));
                return Err(BrowserError::ProfileHeld { path: profile.to_owned(), pid, since });
            }
            Err(TryLockError::Error(error)) => return Err(BrowserError::file("lock", path)(error)),
        }
        let before = read(&mut file);
        let since = date::rfc3339_millis(clock::unix_millis());
        let ours = Note { pid: std::process::id(), since, host: super::singleton::host() };
        write(&mut file, &ours).map_err(BrowserError::file("write", path))?;
        Ok(Self { _file: file, before })
    }

    /// The machine that last used this profile.
    pub(super) fn last_host(&self) -> Option<&str> {
        self.before.as_ref().map(|note| note.host.as_str())
    }
}

fn read(file: &mut File) -> Option<Note> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn write(file: &mut File, note: &Note) -> std::io::Result<()> {
    let text = serde_json::to_vec(note)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

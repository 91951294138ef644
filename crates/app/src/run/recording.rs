//! A recording that a connector was asked to make: where it goes, and what it is like afterwards.
//!
//! Connectors write it themselves, in any language, and mask what they know. We know the credentials too, so we look
//! once more: a recording with one in it is not left lying around.

use crate::error::AppError;
use gleaner_base::outside::one_line;
use gleaner_runtime::Redactor;
use gleaner_sdk::exchanges::{FILE_BYTES_MAX, Recording};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where it goes: a connector may be started in another folder. Nothing is written over.
///
/// # Errors
///
/// When something is there, or nothing can be written there.
pub fn place_of_recording(file: &Path) -> Result<PathBuf, AppError> {
    let cannot = |error: std::io::Error| {
        AppError::usage(format!("{}: {error}", file.display()), "give a file that can be written: --record FILE")
    };
    let place = std::path::absolute(file).map_err(cannot)?;
    match fs::symlink_metadata(&place) {
        Ok(_) => {
            Err(AppError::usage(format!("{} is there already", file.display()), "give another name, or remove it"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = place.parent().is_some_and(Path::is_dir);
            if folder { Ok(place) } else { Err(cannot(error)) }
        }
        Err(error) => Err(cannot(error)),
    }
}

/// Why a connector records nothing.
pub const NOT_RECORDED: &str = "the connector asked nothing, or not through the SDK";

/// What a connector recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub exchanges: usize,
    /// Whether there was no room for more.
    pub is_full: bool,
}

/// Looks at what was recorded; `None` if nothing was. A file with a credential in it is removed.
pub(super) fn check(file: &Path, secrets: &Redactor) -> Result<Option<Recorded>, AppError> {
    let shown = one_line(&file.display().to_string());
    if !file.exists() {
        return Ok(None);
    }
    if holds_a_secret(file, secrets) {
        // Nobody trusts the file any more, whether it could be removed or not.
        let removed = if fs::remove_file(file).is_ok() { "it was removed" } else { "remove it" };
        return Err(AppError::failed(
            format!("the connector wrote its credential into {shown}; {removed}"),
            "its author should mask what it records; the templates of `gleaner new connector` do",
        ));
    }
    let recording = Recording::read(file).map_err(|fault| {
        let message = format!("what the connector recorded in {shown} cannot be read: {fault}");
        AppError::failed(message, "docs/connectors.md describes the format")
    })?;
    Ok(Some(Recorded { exchanges: recording.exchanges.len(), is_full: recording.is_full }))
}

/// Also among bytes that are no text. What is larger than a recording may be is refused when it is read.
fn holds_a_secret(file: &Path, secrets: &Redactor) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.is_ok() && secrets.reveals(&String::from_utf8_lossy(&bytes))
}

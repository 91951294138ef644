//! A recording that a connector was asked to make: where it goes, and what it is like afterwards.
//!
//! Connectors write it themselves, in any language, and mask what they know. We know the credentials too, so we look
//! once more: a recording with one in it is not left lying around.

use crate::error::CliError;
use crate::output::{report_to_stderr, visible};
use gleaner_runtime::Redactor;
use gleaner_sdk::exchanges::{FILE_BYTES_MAX, Recording};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where it goes: a connector may be started in another folder. Nothing is written over.
pub(crate) fn place(file: &Path) -> Result<PathBuf, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::usage(format!("{}: {error}", file.display()), "give a file that can be written: --record FILE")
    };
    let place = std::path::absolute(file).map_err(cannot)?;
    match fs::symlink_metadata(&place) {
        Ok(_) => {
            Err(CliError::usage(format!("{} is there already", file.display()), "give another name, or remove it"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = place.parent().is_some_and(Path::is_dir);
            if folder { Ok(place) } else { Err(cannot(error)) }
        }
        Err(error) => Err(cannot(error)),
    }
}

/// Looks at what was recorded, and says so. One with a credential in it is removed.
pub(crate) fn check(file: &Path, secrets: &Redactor, quiet: bool) -> Result<(), CliError> {
    let shown = visible(&file.display().to_string());
    if !file.exists() {
        report_to_stderr(&format!("nothing was recorded: {NOT_RECORDED}"));
        return Ok(());
    }
    if holds_a_secret(file, secrets) {
        // Whether it could be removed is said by who looks for it; what matters is that it is not trusted.
        let removed = if fs::remove_file(file).is_ok() { "it was removed" } else { "remove it" };
        return Err(CliError::Failed {
            message: format!("the connector wrote its credential into {shown}; {removed}"),
            hint: "its author should mask what it records; the templates of `gleaner new connector` do".to_owned(),
        });
    }
    let recording = Recording::read(file).map_err(|fault| CliError::Failed {
        message: format!("what the connector recorded in {shown} cannot be read: {fault}"),
        hint: "docs/connectors.md describes the format".to_owned(),
    })?;
    if !quiet {
        let count = recording.exchanges.len();
        let full = if recording.is_full { ", and there was no room for more" } else { "" };
        report_to_stderr(&format!(
            "{count} exchanges are in {shown}{full}\ncredentials are masked in it; what the service said is not: look at \
             it before you give it away"
        ));
    }
    Ok(())
}

/// Why a connector records nothing.
pub(crate) const NOT_RECORDED: &str = "the connector asked nothing, or not through the SDK";

/// Also among bytes that are no text. What is larger than a recording may be is refused when it is read.
fn holds_a_secret(file: &Path, secrets: &Redactor) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.is_ok() && secrets.reveals(&String::from_utf8_lossy(&bytes))
}

//! Errors of the vault: what happened, why, and what to do.
//!
//! An error never holds a secret, nor a rejected name: after a mix-up that would print the secret. No error leads to
//! an empty vault.

use crate::secret::ValueFault;
use std::io;
use std::path::{Path, PathBuf};

/// Why the vault failed. Nothing was changed, except that after a failed sync the old or the new content may be
/// there.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// An error of the system.
    #[error("cannot {doing} {}: {source}. {}", path.display(), hint(source))]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// A symbolic link in place of a file or folder of the vault.
    #[error(
        "{} is a symbolic link, and secrets are not read or written through one: put the file or folder itself there",
        .0.display()
    )]
    SymbolicLink(PathBuf),
    /// Something other than the expected kind.
    #[error("{} is not {expected}: move it away", path.display())]
    WrongKind {
        /// Its path.
        path: PathBuf,
        /// The expected kind.
        expected: &'static str,
    },
    /// It belongs to another user.
    #[error(
        "{} belongs to user {owner}, and this is user {us}: run as user {owner}, or `chown -R {us} {}` if the secrets are yours",
        path.display(), shell_word(path)
    )]
    WrongOwner {
        /// Its path.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The current user.
        us: u32,
    },
    /// Other users have access.
    #[error(
        "{} can be used by other users (mode {mode:03o}): run `chmod {wanted:03o} {}`, and replace the credentials if somebody else may have read them",
        path.display(), shell_word(path)
    )]
    Exposed {
        /// Its path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The required mode.
        wanted: u32,
    },
    /// There are secrets and no key.
    #[error(
        "the key {} is missing, and {secrets} connections have secrets that only it can open: put the key back from a backup. If there is none, delete the folder {} and enter the credentials again",
        path.display(), folder_of(path)
    )]
    KeyMissing {
        /// Path of the key.
        path: PathBuf,
        /// Number of files that need it.
        secrets: usize,
    },
    /// The key file is invalid.
    #[error(
        "the key {} is damaged, or was written by a newer Gleaner: put it back from a backup or update Gleaner. If neither helps, delete the folder {} and enter the credentials again",
        .0.display(), folder_of(.0)
    )]
    KeyDamaged(PathBuf),
    /// The key is in a keyring that is unavailable.
    #[error(
        "the key of {} is in the keyring, which cannot be used now ({detail}): unlock the keyring or run in the session that it belongs to, then try again",
        folder_of(path)
    )]
    KeyringUnavailable {
        /// The file that refers to it.
        path: PathBuf,
        /// The keyring's message.
        detail: String,
    },
    /// The keyring works and does not have the key.
    #[error(
        "the key of {folder} is not in the keyring any more: restore the entry `{id}` of `gleaner` there. If it is gone for good, delete the folder {folder} and enter the credentials again",
        folder = folder_of(path)
    )]
    KeyringLost {
        /// The file that refers to it.
        path: PathBuf,
        /// The name of the entry.
        id: String,
    },
    /// The file was sealed with another key.
    #[error(
        "{} was sealed with another key than the one that is here: put back the key that belongs to it, or remove the connection's secrets and enter them again",
        .0.display()
    )]
    WrongKey(PathBuf),
    /// The file cannot be decrypted.
    #[error(
        "{} cannot be opened: it was damaged or changed, or is the file of another connection. Put it back from a backup, or remove the connection's secrets and enter them again",
        .0.display()
    )]
    Damaged(PathBuf),
    /// A newer version wrote the file.
    #[error("{} was written by a newer Gleaner (format {found}) or is damaged: update Gleaner", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u8,
    },
    /// An invalid variable name. It is not repeated: it may be a secret in the wrong place.
    #[error(
        "that is not the name of a credential: 1 to 255 letters, digits and `_`, not beginning with a digit, as in GITHUB_TOKEN"
    )]
    BadName,
    /// A value that cannot be stored.
    #[error("the value of {name} was not stored: {fault}")]
    BadValue {
        /// Its name.
        name: String,
        /// Why.
        fault: ValueFault,
    },
    /// The secrets of a connection exceed the size limit.
    #[error("the secrets of one connection are longer than {max} bytes together: nothing was stored; remove some")]
    TooMuch {
        /// The limit.
        max: usize,
    },
    /// Another process holds the lock too long.
    #[error(
        "{} is locked by another process, waited {waited_seconds} s: end that process, then try again",
        path.display()
    )]
    Busy {
        /// The lock.
        path: PathBuf,
        /// The wait.
        waited_seconds: u64,
    },
    /// The system gave no random bytes.
    #[error("the operating system gives no random bytes ({0}): nothing can be sealed without them; try again later")]
    NoRandomness(String),
}

impl VaultError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Free some space, then try again",
        io::ErrorKind::PermissionDenied => "Check that the data root is yours",
        io::ErrorKind::ReadOnlyFilesystem => "Choose a data root that can be written",
        _ => "Check the data root and its disk, then try again",
    }
}

fn folder_of(path: &Path) -> String {
    path.parent().unwrap_or(path).display().to_string()
}

/// Quotes a path for a shell.
fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

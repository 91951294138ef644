//! What can go wrong with the vault: what happened, why, and what to do next.
//!
//! An error never holds a secret, nor a name that was refused: whoever mixed the two up would see the
//! secret printed. Nothing here is answered by starting with an empty vault.

use crate::secret::ValueFault;
use std::io;
use std::path::{Path, PathBuf};

/// Why the vault did not do what it was asked. Nothing was changed; only after a sync that failed it is
/// open whether the old or the new content is there.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The system refused.
    #[error("cannot {doing} {}: {source}. {}", path.display(), hint(source))]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A symbolic link stands where a file or folder of the vault should be.
    #[error(
        "{} is a symbolic link, and secrets are not read or written through one: put the file or folder itself there",
        .0.display()
    )]
    SymbolicLink(PathBuf),
    /// Something else stands there.
    #[error("{} is not {expected}: move it away", path.display())]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
    },
    /// It belongs to somebody else.
    #[error(
        "{} belongs to user {owner}, and this is user {us}: run as user {owner}, or `chown -R {us} {}` if the secrets are yours",
        path.display(), shell_word(path)
    )]
    WrongOwner {
        /// What belongs to somebody else.
        path: PathBuf,
        /// To whom.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// Others than the owner may use it.
    #[error(
        "{} can be used by other users (mode {mode:03o}): run `chmod {wanted:03o} {}`, and replace the credentials if somebody else may have read them",
        path.display(), shell_word(path)
    )]
    Exposed {
        /// What is open to others.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode that it must have.
        wanted: u32,
    },
    /// There are secrets and no key.
    #[error(
        "the key {} is missing, and {secrets} connections have secrets that only it can open: put the key back from a backup. If there is none, delete the folder {} and enter the credentials again",
        path.display(), folder_of(path)
    )]
    KeyMissing {
        /// Where the key should be.
        path: PathBuf,
        /// How many files wait for it.
        secrets: usize,
    },
    /// The key file is not one.
    #[error(
        "the key {} is damaged, or was written by a newer Gleaner: put it back from a backup or update Gleaner. If neither helps, delete the folder {} and enter the credentials again",
        .0.display(), folder_of(.0)
    )]
    KeyDamaged(PathBuf),
    /// The key is in a keyring that does not answer.
    #[error(
        "the key of {} is in the keyring, which cannot be used now ({detail}): unlock the keyring or run in the session that it belongs to, then try again",
        folder_of(path)
    )]
    KeyringUnavailable {
        /// The note that says so.
        path: PathBuf,
        /// What the keyring said.
        detail: String,
    },
    /// The keyring answers and does not have the key.
    #[error(
        "the key of {folder} is not in the keyring any more: restore the entry `{id}` of `gleaner` there. If it is gone for good, delete the folder {folder} and enter the credentials again",
        folder = folder_of(path)
    )]
    KeyringLost {
        /// The note that says where it should be.
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
    /// The file does not open.
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
    /// A name that no variable can have. It is not repeated: it may be a secret in the wrong place.
    #[error(
        "that is not the name of a credential: 1 to 255 letters, digits and `_`, not beginning with a digit, as in GITHUB_TOKEN"
    )]
    BadName,
    /// A value that cannot be kept.
    #[error("the value of {name} was not stored: {fault}")]
    BadValue {
        /// Of which name.
        name: String,
        /// Why.
        fault: ValueFault,
    },
    /// A connection with more secrets than anybody needs.
    #[error("the secrets of one connection are longer than {max} bytes together: nothing was stored; remove some")]
    TooMuch {
        /// The limit.
        max: usize,
    },
    /// Another process writes, for too long.
    #[error(
        "{} is locked by another process, waited {waited_seconds} s: end that process, then try again",
        path.display()
    )]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long we waited.
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

/// As it may be pasted behind a command.
fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

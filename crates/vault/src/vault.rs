//! The vault: the secrets of every connection, each in its own encrypted file.
//!
//! A write is durable when the call returns, so a refreshed token may be stored before its first use. An unreadable
//! file is an error, never an empty set: the caller would ask for credentials again, or run without them.

use crate::error::VaultError;
use crate::folder::Folder;
use crate::key::{self, Key, KeyPlace, KeyStore};
use crate::sealed::{self, Secrets};
use crate::secret::{Secret, ValueFault};
use std::path::Path;

/// The folder below the data root.
const FOLDER: &str = "secrets";
const NAME_BYTES_MAX: usize = 255;

/// The secrets under one data root.
#[derive(Debug)]
pub struct Vault {
    folder: Folder,
    key: Key,
    key_place: KeyPlace,
}

impl Vault {
    /// Opens or creates the vault below a data root: with the key in the keyring of the operating system if this
    /// build has one (feature `keyring`) and it works, otherwise in an owner-only file.
    pub fn open(data_root: &Path) -> Result<Self, VaultError> {
        #[cfg(feature = "keyring")]
        return Self::open_with(data_root, Some(&crate::OsKeyring));
        #[cfg(not(feature = "keyring"))]
        Self::open_with(data_root, None)
    }

    /// The same with another keyring, or with none.
    pub fn open_with(data_root: &Path, keyring: Option<&dyn KeyStore>) -> Result<Self, VaultError> {
        let folder = Folder::open_or_make(&data_root.join(FOLDER))?;
        let locked = folder.lock()?;
        locked.clear_leftovers()?;
        let (key, key_place) = key::load_or_make(&folder, &locked, keyring)?;
        drop(locked);
        Ok(Self { folder, key, key_place })
    }

    /// Location of the key, to be shown when credentials are stored.
    #[must_use]
    pub const fn key_place(&self) -> &KeyPlace {
        &self.key_place
    }

    /// Stores one secret of a connection; replaces an existing one.
    pub fn set(&self, connection: &str, name: &str, secret: Secret) -> Result<(), VaultError> {
        check_name(name)?;
        let checked = if secret.is_empty() { Err(ValueFault::Empty) } else { secret.check() };
        checked.map_err(|fault| VaultError::BadValue { name: name.to_owned(), fault })?;
        // Locked from read to write, or two concurrent writers would lose a name.
        let locked = self.folder.lock()?;
        let mut secrets = self.read(connection)?;
        secrets.insert(name.to_owned(), secret);
        let bytes = sealed::seal(&self.key, connection, &secrets)?;
        locked.replace(&sealed::file_name(connection), &bytes)
    }

    /// All secrets of a connection, by name. Empty if none were ever stored.
    pub fn get(&self, connection: &str) -> Result<Vec<(String, Secret)>, VaultError> {
        Ok(self.read(connection)?.into_iter().collect())
    }

    /// The names of a connection's secrets.
    pub fn names(&self, connection: &str) -> Result<Vec<String>, VaultError> {
        Ok(self.read(connection)?.into_keys().collect())
    }

    /// Removes all secrets of a connection, also unreadable ones; returns whether there were any.
    pub fn remove(&self, connection: &str) -> Result<bool, VaultError> {
        self.folder.lock()?.remove(&sealed::file_name(connection))
    }

    /// Identifies an account without its credentials: equal for equal secrets in any order, stable over time,
    /// different in every vault, and useless for guessing.
    pub fn credential_hash<'a>(&self, provider: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
        self.key.credential_hash(provider, secrets.into_iter().collect())
    }

    fn read(&self, connection: &str) -> Result<Secrets, VaultError> {
        let name = sealed::file_name(connection);
        match self.folder.read(&name, sealed::FILE_BYTES_MAX)? {
            Some(bytes) => sealed::unseal(&self.key, connection, &bytes, self.folder.path_of(&name)),
            None => Ok(Secrets::new()),
        }
    }
}

/// Checks for a valid variable name.
fn check_name(name: &str) -> Result<(), VaultError> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain && begins && name.len() <= NAME_BYTES_MAX { Ok(()) } else { Err(VaultError::BadName) }
}

//! Shared by the tests of the vault: looking at its files from outside.

use gleaner_vault::{Secret, Vault, VaultError};
use std::fs;
use std::path::{Path, PathBuf};

/// With the key in a file: tests leave the keyring of whoever runs them alone.
pub(crate) fn open(root: &Path) -> Result<Vault, VaultError> {
    Vault::open_with(root, None)
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

/// The secrets of a connection, for comparison.
pub(crate) fn stored(vault: &Vault, connection: &str) -> Vec<(String, String)> {
    let secrets = vault.get(connection).unwrap();
    secrets.into_iter().map(|(name, secret)| (name, secret.expose().to_owned())).collect()
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// All files of the vault with one of these endings.
pub(crate) fn files(root: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("secrets")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    paths.retain(|path| path.to_str().unwrap().ends_with(ending));
    paths.sort();
    paths
}

/// The file of the only connection there is.
pub(crate) fn sealed_file(root: &Path) -> PathBuf {
    let files = files(root, ".sealed");
    assert_eq!(files.len(), 1);
    files.into_iter().next().unwrap()
}

//! The encryption key and its storage.
//!
//! A file `key` in the folder holds the key itself, or the name of its entry in the keyring. Why a file in the second
//! case: an unavailable keyring (no session, locked) must not look like a vault without a key, or a second key would
//! be created. A key is created once, while nothing is encrypted yet, and never replaced.

use crate::error::VaultError;
use crate::folder::{Folder, Locked};
use crate::sealed;
use crate::secret::Secret;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const FILE: &str = "key";
/// First words of the file. Another number means another format.
const HEADING: &str = "gleaner-key 1";
/// Digits of a hash that are shown: enough to tell all accounts of a person apart.
const HASH_DIGITS: usize = 32;
const NOTE_BYTES_MAX: usize = 256;

/// A store outside the data root for one key per vault: the keyring of the operating system.
pub trait KeyStore {
    /// Its name for people.
    fn name(&self) -> &str;
    /// The key with this id, or `None` if the store works and does not have it.
    fn load(&self, id: &str) -> Result<Option<Secret>, KeyStoreError>;
    /// Stores a key under an id.
    fn store(&self, id: &str, key: &Secret) -> Result<(), KeyStoreError>;
}

/// Why a keyring cannot be used, in its own words. Never holds the key.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyStoreError(pub String);

/// Location of the key, for the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this file beside the secrets. Anyone who can read the folder can read the secrets.
    File(PathBuf),
    /// In the keyring with this name.
    Keyring(String),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(
                f,
                "the key is in the file {}, which only you can read; a copy of the data root holds key and secrets",
                path.display()
            ),
            Self::Keyring(name) => write!(f, "the key is in the keyring ({name}), not under the data root"),
        }
    }
}

/// Public identifier of a key.
pub(crate) type KeyId = [u8; 8];

/// One derived key per purpose, so that purposes are independent.
pub(crate) struct Key {
    pub(crate) id: KeyId,
    pub(crate) sealing: Zeroizing<[u8; KEY_BYTES]>,
    hashing: Zeroizing<[u8; KEY_BYTES]>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub(crate) fn derive(master: &[u8; KEY_BYTES]) -> Self {
        let derive = |context| blake3::derive_key(context, master);
        let mut id = KeyId::default();
        id.copy_from_slice(&derive("gleaner vault 2026 key id")[..size_of::<KeyId>()]);
        Self {
            id,
            sealing: Zeroizing::new(derive("gleaner vault 2026 sealing")),
            hashing: Zeroizing::new(derive("gleaner vault 2026 credential hash")),
        }
    }

    /// A truncated keyed hash of a provider and of secrets in any order.
    pub(crate) fn credential_hash(&self, provider: &str, mut secrets: Vec<&Secret>) -> String {
        secrets.sort_by(|one, other| one.expose().cmp(other.expose()));
        let mut hasher = blake3::Hasher::new_keyed(&self.hashing);
        for text in std::iter::once(provider).chain(secrets.iter().map(|secret| secret.expose())) {
            // With its length, so that no two lists give the same text.
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let mut text = hasher.finalize().to_hex().to_string();
        text.truncate(HASH_DIGITS);
        text
    }
}

/// The key of this folder. Creates one if nothing was ever encrypted here.
pub(crate) fn load_or_make(
    folder: &Folder,
    locked: &Locked<'_>,
    keyring: Option<&dyn KeyStore>,
) -> Result<(Key, KeyPlace), VaultError> {
    let path = folder.path_of(FILE);
    let Some(note) = folder.read(FILE, NOTE_BYTES_MAX)? else {
        let secrets = folder.names()?.iter().filter(|name| sealed::is_file_name(name)).count();
        return if secrets == 0 {
            make(folder, locked, keyring)
        } else {
            Err(VaultError::KeyMissing { path, secrets })
        };
    };
    let words = std::str::from_utf8(&note).ok().and_then(|note| note.strip_prefix(HEADING)?.strip_suffix('\n'));
    match words.map(|words| words.split(' ').collect::<Vec<_>>()).as_deref() {
        Some(["", "file", id, key]) => {
            let key = from_hex(key).map(|key| Key::derive(&key)).filter(|key| hex(&key.id).as_str() == *id);
            Ok((key.ok_or_else(|| VaultError::KeyDamaged(path.clone()))?, KeyPlace::File(path)))
        }
        Some(["", "keyring", id]) => load_from_keyring(id, path, keyring),
        _ => Err(VaultError::KeyDamaged(path)),
    }
}

fn load_from_keyring(id: &str, path: PathBuf, keyring: Option<&dyn KeyStore>) -> Result<(Key, KeyPlace), VaultError> {
    let Some(keyring) = keyring else {
        let detail = "this Gleaner was built without it".to_owned();
        return Err(VaultError::KeyringUnavailable { path, detail });
    };
    let loaded = match keyring.load(id) {
        Ok(loaded) => loaded,
        Err(error) => return Err(VaultError::KeyringUnavailable { path, detail: error.to_string() }),
    };
    let key = loaded.and_then(|key| from_hex(key.expose())).map(|key| Key::derive(&key));
    match key.filter(|key| hex(&key.id).as_str() == id) {
        Some(key) => Ok((key, KeyPlace::Keyring(keyring.name().to_owned()))),
        None => Err(VaultError::KeyringLost { path, id: id.to_owned() }),
    }
}

fn make(folder: &Folder, locked: &Locked<'_>, keyring: Option<&dyn KeyStore>) -> Result<(Key, KeyPlace), VaultError> {
    let mut master = Zeroizing::new([0; KEY_BYTES]);
    fill_random(&mut *master)?;
    let key = Key::derive(&master);
    let (id, text) = (hex(&key.id), hex(&*master));
    if let Some(keyring) = keyring
        && keeps(keyring, &id, &Secret::new(text.as_str().to_owned()))
    {
        locked.replace(FILE, format!("{HEADING} keyring {}\n", id.as_str()).as_bytes())?;
        return Ok((key, KeyPlace::Keyring(keyring.name().to_owned())));
    }
    let note = Zeroizing::new(format!("{HEADING} file {} {}\n", id.as_str(), text.as_str()));
    locked.replace(FILE, note.as_bytes())?;
    Ok((key, KeyPlace::File(folder.path_of(FILE))))
}

/// Whether the keyring returns what it stored. Otherwise it must not hold the only key.
fn keeps(keyring: &dyn KeyStore, id: &str, key: &Secret) -> bool {
    keyring.store(id, key).is_ok()
        && keyring.load(id).is_ok_and(|kept| kept.is_some_and(|kept| kept.expose() == key.expose()))
}

pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|error| VaultError::NoRandomness(error.to_string()))
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    // Allocated at once: a growing text leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        // Writing to a text cannot fail.
        let _written = write!(text, "{byte:02x}");
    }
    text
}

/// Lower case only: a key has one form.
fn from_hex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(key)
}

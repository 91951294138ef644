//! The keyring of the operating system: Secret Service on Linux and BSD, Keychain on macOS.
//!
//! Behind the feature `keyring`, because it adds a hundred crates (D-Bus in Rust, no C library) for 32 bytes. It may
//! ask the owner to unlock the keyring, and waits for that. Its errors may hold stored data, so they are not passed
//! on.

use crate::key::{KeyStore, KeyStoreError};
use crate::secret::Secret;
use keyring::{Entry, Error};

const SERVICE: &str = "gleaner";

/// The keyring of the session.
#[derive(Clone, Copy, Debug)]
pub struct OsKeyring;

impl KeyStore for OsKeyring {
    fn name(&self) -> &str {
        if cfg!(target_os = "macos") { "Keychain" } else { "Secret Service" }
    }

    fn load(&self, id: &str) -> Result<Option<Secret>, KeyStoreError> {
        match Entry::new(SERVICE, id).and_then(|entry| entry.get_password()) {
            Ok(key) => Ok(Some(Secret::new(key))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(refusal(&error)),
        }
    }

    fn store(&self, id: &str, key: &Secret) -> Result<(), KeyStoreError> {
        let stored = Entry::new(SERVICE, id).and_then(|entry| entry.set_password(key.expose()));
        stored.map_err(|error| refusal(&error))
    }
}

fn refusal(error: &Error) -> KeyStoreError {
    KeyStoreError(match error {
        Error::BadEncoding(_) | Error::BadDataFormat(..) | Error::BadStoreFormat(_) => {
            "its entry cannot be read".to_owned()
        }
        Error::NoDefaultStore => "this session has no keyring".to_owned(),
        other => other.to_string(),
    })
}

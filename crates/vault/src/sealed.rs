//! The encrypted file of one connection: its name and format.
//!
//! ```text
//! GLNVAULT  format  key id  nonce  XChaCha20-Poly1305(names and values)  tag
//!    8         1       8      24                                          16
//! ```
//!
//! The bytes before the nonce and the connection's name are authenticated with the rest, so a file that was changed,
//! or belongs to another connection, does not open. Each write takes a new random nonce, long enough to be safe. An
//! older copy does open: nothing outside the file tracks versions.

use crate::error::VaultError;
use crate::key::{Key, KeyId, fill_random};
use crate::secret::Secret;
use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use std::collections::BTreeMap;
use std::path::PathBuf;
use zeroize::Zeroizing;

const MAGIC: [u8; 8] = *b"GLNVAULT";
const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const PREFIX_BYTES: usize = MAGIC.len() + 1 + size_of::<KeyId>();
const SUFFIX: &str = ".sealed";
/// Characters of a connection's name that stay readable in the file name.
const READABLE_MAX: usize = 40;
/// Maximum of all names and values of a connection together.
const PLAIN_BYTES_MAX: usize = 1024 * 1024;
/// Maximum file size.
pub(crate) const FILE_BYTES_MAX: usize = PREFIX_BYTES + NONCE_BYTES + PLAIN_BYTES_MAX + TAG_BYTES;

/// A connection's secrets by name.
pub(crate) type Secrets = BTreeMap<String, Secret>;

/// File name of a connection: a readable part, and a hash of the exact name. The hash separates names; it uses digits
/// and lower-case letters, so no file system confuses two.
pub(crate) fn file_name(connection: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let readable = connection.chars().map(plain).take(READABLE_MAX).collect::<String>();
    format!("{readable}-{}{SUFFIX}", blake3::hash(connection.as_bytes()).to_hex())
}

pub(crate) fn is_file_name(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

/// Encrypts a connection's secrets.
pub(crate) fn seal(key: &Key, connection: &str, secrets: &Secrets) -> Result<Vec<u8>, VaultError> {
    let mut body = encode(secrets)?;
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let prefix = prefix(key);
    let sealed = cipher(key).encrypt_in_place(&XNonce::from(nonce), &associated(&prefix, connection), &mut *body);
    // Fails only for a buffer that cannot grow, or one of 256 GiB.
    sealed.map_err(|_| VaultError::TooMuch { max: PLAIN_BYTES_MAX })?;
    Ok([&prefix[..], &nonce, &body].concat())
}

/// Decrypts a file, if it belongs to this connection and key and is intact.
pub(crate) fn unseal(key: &Key, connection: &str, bytes: &[u8], path: PathBuf) -> Result<Secrets, VaultError> {
    let Some((found, rest)) = bytes.split_at_checked(PREFIX_BYTES) else { return Err(VaultError::Damaged(path)) };
    if !found.starts_with(&MAGIC) {
        return Err(VaultError::Damaged(path));
    }
    if found[MAGIC.len()] != FORMAT {
        return Err(VaultError::NewerFormat { path, found: found[MAGIC.len()] });
    }
    let prefix = prefix(key);
    if found != prefix {
        return Err(VaultError::WrongKey(path));
    }
    let Some((nonce, body)) = rest.split_first_chunk::<NONCE_BYTES>() else { return Err(VaultError::Damaged(path)) };
    let mut body = Zeroizing::new(body.to_vec());
    let opened = cipher(key).decrypt_in_place(&XNonce::from(*nonce), &associated(&prefix, connection), &mut *body);
    opened.ok().and_then(|()| decode(&body)).ok_or(VaultError::Damaged(path))
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new((&*key.sealing).into())
}

fn prefix(key: &Key) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    let (magic, rest) = prefix.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    rest[0] = FORMAT;
    rest[1..].copy_from_slice(&key.id);
    prefix
}

/// The prefix has a fixed length, so the start of the name is unambiguous.
fn associated(prefix: &[u8; PREFIX_BYTES], connection: &str) -> Vec<u8> {
    [prefix, connection.as_bytes()].concat()
}

/// Lengths and texts, allocated at once with room for the tag: a growing buffer leaves copies behind.
fn encode(secrets: &Secrets) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let too_much = VaultError::TooMuch { max: PLAIN_BYTES_MAX };
    let length = secrets.iter().map(|(name, value)| 8 + name.len() + value.expose().len()).sum::<usize>();
    if length > PLAIN_BYTES_MAX {
        return Err(too_much);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + TAG_BYTES));
    for text in secrets.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]) {
        let Ok(length) = u32::try_from(text.len()) else { return Err(too_much) };
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Ok(bytes)
}

fn decode(mut bytes: &[u8]) -> Option<Secrets> {
    let mut secrets = Secrets::new();
    while !bytes.is_empty() {
        let name = take_text(&mut bytes)?.to_owned();
        let value = Secret::new(take_text(&mut bytes)?.to_owned());
        secrets.insert(name, value);
    }
    Some(secrets)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_file_of_its_own_that_every_file_system_takes() {
        let long = ["x".repeat(300), "x".repeat(301)];
        let names = [
            "a", "A", "a/b", "a-b", "../a", "..", ".", "", "con", "NUL", "key", "lock", "ü", "u\u{308}", "a\0", "a.new",
        ];
        let names = names.into_iter().chain(long.iter().map(String::as_str)).collect::<Vec<_>>();
        let files = names.iter().map(|name| file_name(name).to_lowercase()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(files.len(), names.len(), "also where large and small letters are one");
        for file in files {
            let stem = file.strip_suffix(SUFFIX).unwrap();
            assert!(stem.len() >= 65 && file.len() < 128, "{file}");
            assert!(stem.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{file}");
        }
    }

    #[test]
    fn what_is_no_list_of_texts_is_refused() {
        for bytes in [&[1][..], &[1, 0, 0, 0], &[1, 0, 0, 0, b'a'], &[255; 8], &[1, 0, 0, 0, 255, 0, 0, 0, 0]] {
            assert!(decode(bytes).is_none(), "{bytes:?}");
        }
        assert!(decode(&[]).unwrap().is_empty());
    }

    #[test]
    fn more_than_a_connection_needs_is_refused() {
        let value = || Secret::new("x".repeat(crate::secret::VALUE_BYTES_MAX));
        let secrets = (0..16).map(|n| (format!("N{n}"), value())).collect();
        let error = seal(&Key::derive(&[1; 32]), "c", &secrets).unwrap_err();
        assert!(matches!(error, VaultError::TooMuch { .. }));
    }
}

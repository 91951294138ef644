//! Key: a provider, and the credential that it counts requests by.
//!
//! A credential is stored as a keyed hash only, so a key may be printed, logged and used as a file name. The secret
//! of the hash (`governors.rs`) keeps a reader of a key from testing tokens against it.

use std::fmt;

/// A provider, and the credential that it counts requests by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    provider: Box<str>,
    credential: Option<Fingerprint>,
}

/// Eight bytes of a keyed hash: enough to tell the accounts of one machine apart.
type Fingerprint = [u8; 8];

impl Key {
    /// The key for requests to `provider` without a credential, or with the only one.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self { provider: provider.into(), credential: None }
    }

    /// The key of the host of `url`, with its port unless that is the default.
    #[cfg(any(feature = "client", feature = "reqwest-middleware"))]
    pub(crate) fn of_host(url: &reqwest::Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| Self::new(host), |port| Self::new(&format!("{host}:{port}")))
    }

    pub(crate) fn with_credential(provider: &str, credential: &[u8], secret: &Secret) -> Self {
        let hash = blake3::keyed_hash(&secret.0, credential);
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(&hash.as_bytes()[..size_of::<Fingerprint>()]);
        Self { provider: provider.into(), credential: Some(fingerprint) }
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// A file name: the readable part of the provider, and a hash that keeps equal readable parts apart.
    pub(crate) fn file_stem(&self) -> String {
        let readable: String = self.provider.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let hash = blake3::hash(self.to_string().as_bytes()).to_hex();
        format!("{:.40}-{:.16}", readable, hash.as_str())
    }
}

/// `provider`, or `provider#fingerprint`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        let Some(fingerprint) = &self.credential else { return Ok(()) };
        f.write_str("#")?;
        fingerprint.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Secret of the fingerprints.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl Secret {
    /// A secret for this process alone.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 32];
        // Seeded by the operating system once per thread; it separates hashes of different machines, and is no
        // encryption key.
        fastrand::fill(&mut bytes);
        Self(bytes)
    }
}

gleaner_base::debug_only!(Secret);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_told_apart_and_never_shown() {
        let secret = Secret([7; 32]);
        let one = Key::with_credential("github", b"ghp_secret", &secret);
        assert_eq!(one, Key::with_credential("github", b"ghp_secret", &secret));
        assert_ne!(one, Key::with_credential("github", b"ghp_other", &secret));
        assert_ne!(one, Key::with_credential("github", b"ghp_secret", &Secret([8; 32])));
        assert!(one.to_string().starts_with("github#"), "{one}");
        let shown = format!("{one} {one:?} {} {secret:?}", one.file_stem());
        assert!(!shown.contains("ghp"), "{shown}");
    }

    #[test]
    fn a_provider_cannot_name_a_file_outside_of_its_folder() {
        let stem = Key::new("../../etc/passwd\0").file_stem();
        assert!(stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{stem}");
        assert_ne!(Key::new("a/b").file_stem(), Key::new("a-b").file_stem());
        assert!(Key::new(&"x".repeat(1000)).file_stem().len() <= 57);
    }
}

//! A secret in memory: wiped on drop, and never shown.
//!
//! Why a separate type: a derived `Debug` would print a `String`. This one has no `Display`, no `Clone`, no
//! comparison and no serialization; the text needs an explicit `expose`.

use zeroize::{Zeroize as _, Zeroizing};

/// Maximum length. A process cannot take much more in one variable.
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A secret: text without NUL, because it is passed in an environment.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of a text. Earlier copies are not wiped.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, only for a connector or a redactor.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A secret from bytes. Invalid UTF-8 is wiped.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, ValueFault> {
        let text = String::from_utf8(bytes).map_err(|error| {
            error.into_bytes().zeroize();
            ValueFault::NotText
        })?;
        let secret = Self::new(text);
        secret.check()?;
        Ok(secret)
    }

    /// Whether it can be stored and passed on.
    pub(crate) fn check(&self) -> Result<(), ValueFault> {
        let text = self.expose();
        if text.len() > VALUE_BYTES_MAX {
            return Err(ValueFault::TooLong);
        }
        if text.contains('\0') { Err(ValueFault::HoldsNul) } else { Ok(()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn copy(&self) -> Self {
        Self(self.0.clone())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Why a value is not a valid secret. Reveals nothing of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// Empty.
    #[error("it is empty")]
    Empty,
    /// Not UTF-8.
    #[error("it is not text (UTF-8)")]
    NotText,
    /// Contains NUL.
    #[error("it holds a NUL character, which no environment variable can")]
    HoldsNul,
    /// Too long.
    #[error("it is longer than {} KiB", VALUE_BYTES_MAX / 1024)]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_variable_can_hold_is_no_secret() {
        let fault = |bytes: &[u8]| Secret::from_bytes(bytes.to_vec()).err();
        assert_eq!(fault(b"\xff\xfe"), Some(ValueFault::NotText));
        assert_eq!(fault(b"a\0b"), Some(ValueFault::HoldsNul));
        assert_eq!(fault(&[b'x'; VALUE_BYTES_MAX + 1]), Some(ValueFault::TooLong));
        assert_eq!(fault(&[b'x'; VALUE_BYTES_MAX]), None);
    }

    #[test]
    fn a_secret_says_nothing_of_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".to_owned())), "Secret");
    }
}

//! One secret in memory: wiped when it is dropped, and shown by nothing.
//!
//! Why a type of its own: a `String` is printed by whoever derives `Debug` around it. This one has no
//! `Display`, no `Clone`, no comparison and no serialisation; whoever wants the text has to say `expose`.

use zeroize::{Zeroize as _, Zeroizing};

/// The longest value. A process cannot be handed much more in one variable.
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A secret: text without NUL, because it is handed over in an environment.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text over. Copies that were made of it before are not wiped.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, to be handed to a connector or a redactor and to nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What somebody gave as bytes. What is no text is wiped.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, ValueFault> {
        let text = String::from_utf8(bytes).map_err(|error| {
            error.into_bytes().zeroize();
            ValueFault::NotText
        })?;
        let secret = Self::new(text);
        secret.check()?;
        Ok(secret)
    }

    /// Whether it can be kept and handed over.
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

/// Why a value cannot be a secret. Says nothing of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// Nothing at all.
    #[error("it is empty")]
    Empty,
    /// Not UTF-8.
    #[error("it is not text (UTF-8)")]
    NotText,
    /// No variable can hold this.
    #[error("it holds a NUL character, which no environment variable can")]
    HoldsNul,
    /// More than a variable should hold.
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

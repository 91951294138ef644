//! Profile names. A name becomes a folder, so it is strict: it means the same on every file system, case-sensitive or
//! not, and is never a path.

use crate::error::BrowserError;
use std::fmt;

/// Maximum length. File systems allow 255 bytes, and a quarantined profile gets a suffix.
const BYTES_MAX: usize = 128;
/// Between the connector and the connection of a second account.
const SEPARATOR: &str = "--";

/// The name of a profile: lower-case letters, digits, `-` and `_`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileName(String);

impl ProfileName {
    /// A name, unchanged.
    ///
    /// # Errors
    ///
    /// The name is invalid.
    pub fn new(name: &str) -> Result<Self, BrowserError> {
        let refuse = |why| Err(BrowserError::ProfileName { name: name.chars().take(BYTES_MAX).collect(), why });
        if name.is_empty() || name.len() > BYTES_MAX {
            return refuse("it must have 1 to 128 characters");
        }
        if !name.bytes().all(is_plain) {
            return refuse("only a-z, 0-9, - and _ are allowed");
        }
        if !name.as_bytes()[0].is_ascii_alphanumeric() {
            return refuse("it must begin with a letter or a digit");
        }
        if is_reserved(name) {
            return refuse("some systems reserve it for a device");
        }
        Ok(Self(name.to_owned()))
    }

    /// The profile of a connection: the connector's name, and for another account the connection's name after it.
    /// Names are unique per connection: other characters are escaped as `_` and their bytes.
    ///
    /// # Errors
    ///
    /// The name would be too long.
    pub fn of_connection(connector: &str, connection: &str) -> Result<Self, BrowserError> {
        let first = of_connector(connector);
        if connection == connector {
            return Self::new(&first);
        }
        Self::new(&format!("{first}{SEPARATOR}{}", escaped(connection)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
}

/// Device names of Windows, with any suffix.
fn is_reserved(name: &str) -> bool {
    let numbered =
        |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| matches!(rest.as_bytes(), [b'0'..=b'9']));
    matches!(name, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// The connector's part. Ordinary names stay unchanged; no ordinary name looks like an escaped one, and neither
/// contains a separator or joins the following one.
fn of_connector(connector: &str) -> String {
    let is_ordinary = ProfileName::new(connector).is_ok()
        && !connector.contains(SEPARATOR)
        && !connector.ends_with('-')
        && !has_escape(connector);
    if is_ordinary {
        return connector.to_owned();
    }
    let last = connector.len().saturating_sub(1);
    // The last letter is always escaped: a device name has nothing else to escape.
    connector.bytes().enumerate().map(|(at, byte)| letter(byte, at == last || byte == b'-')).collect()
}

/// Whether there is a `_` with two hexadecimal digits after it.
fn has_escape(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.as_bytes().windows(3).any(|part| part[0] == b'_' && is_hex(part[1]) && is_hex(part[2]))
}

/// Escapes any text, uniquely.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| letter(byte, false)).collect()
}

fn letter(byte: u8, always: bool) -> String {
    if is_plain(byte) && byte != b'_' && !always { char::from(byte).to_string() } else { format!("_{byte:02x}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_name_is_plain_and_leads_nowhere_else() {
        let long = "a".repeat(129);
        for name in [
            "", ".", "..", "../x", "a/b", "a\\b", "A", "a.b", "a b", "-a", "_a", "con", "com1", "ü", "a\0", "a\n",
            &long,
        ] {
            assert!(ProfileName::new(name).is_err(), "{name:?}");
        }
        for name in ["chatgpt", "claude_code", "0", "a--b", "com10", "console", &long[..128]] {
            assert_eq!(ProfileName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_first_account_has_the_connectors_name_and_a_second_one_the_connections_too() {
        let name = |connector, connection| ProfileName::of_connection(connector, connection).unwrap().0;
        assert_eq!(name("chatgpt", "chatgpt"), "chatgpt");
        assert_eq!(name("claude_code", "claude_code"), "claude_code");
        assert_eq!(name("chatgpt", "work"), "chatgpt--work");
        assert_eq!(name("chatgpt", "At Work/../x"), "chatgpt--_41t_20_57ork_2f_2e_2e_2fx");
        assert!(ProfileName::of_connection("chatgpt", &"x".repeat(200)).is_err());
    }

    #[test]
    fn two_connections_never_have_one_profile() {
        let texts = [
            "a", "A", "a-", "-a", "a--b", "a-b", "b", "-b", "--b", "a_b", "a_5fb", "a_2d", "a.b", "con", "co_6e", "_",
            "a_", "_a", "a--", "0", "é", "e", "É", "a b", "a_20b", "_5f", "a_2e_62", "a---b",
        ];
        let mut seen = BTreeMap::new();
        for connector in texts {
            for connection in texts {
                // An invalid start of a folder's name is refused.
                let Ok(name) = ProfileName::of_connection(connector, connection) else { continue };
                let before = seen.insert(name.clone(), (connector, connection));
                assert_eq!(before, None, "{name} of {connector:?} and {connection:?}");
            }
        }
        assert!(seen.len() > 400, "{}", seen.len());
    }
}

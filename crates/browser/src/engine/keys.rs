//! Keys by name, as pages see them.

use crate::error::BrowserError;

/// A key: name and code, number, and the text that it types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) text: &'static str,
}

/// The keys that forms need.
const KEYS: [Key; 8] = [
    Key { name: "Enter", number: 13, text: "\r" },
    Key { name: "Tab", number: 9, text: "" },
    Key { name: "Escape", number: 27, text: "" },
    Key { name: "Backspace", number: 8, text: "" },
    Key { name: "Delete", number: 46, text: "" },
    Key { name: "ArrowDown", number: 40, text: "" },
    Key { name: "ArrowUp", number: 38, text: "" },
    Key { name: "Space", number: 32, text: " " },
];

pub(crate) fn find(name: &str) -> Result<Key, BrowserError> {
    KEYS.into_iter()
        .find(|key| key.name == name)
        .ok_or_else(|| BrowserError::protocol("press", format!("unknown key {name:?}")))
}

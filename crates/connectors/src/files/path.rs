//! The path of a file beneath a root, in a form that can be written down anywhere.
//!
//! Names of files are bytes. Some have line feeds, escapes or no valid text in them, and such a name must neither
//! break a line of a cursor nor be mixed up with another. So there is one text form: control characters, `%` and bytes
//! that are no UTF-8 are written as `%XX`, and the way back is exact.

use std::fmt;

/// A path relative to a root: names separated by `/`, none of them empty, `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FilePath(Box<[u8]>);

impl FilePath {
    /// Takes a path whose names come from folders that were read.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into_boxed_slice())
    }

    /// The path that [`text`](Self::text) wrote; `None` for what it never writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = bytes_of(text)?;
        let is_name = |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && !name.contains(&0);
        bytes.split(|&byte| byte == b'/').all(is_name).then(|| Self::new(bytes))
    }

    /// The path of a name in a folder; the root's own is empty.
    pub(super) fn of(folder: &[u8], name: &[u8]) -> Self {
        Self::new(if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() })
    }

    /// The one text form, free of control characters.
    pub(crate) fn text(&self) -> String {
        text(&self.0)
    }

    /// The bytes.
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The last name.
    pub(crate) fn name(&self) -> &[u8] {
        self.split().1
    }

    /// The last name without its extension, as text.
    pub(crate) fn stem(&self) -> String {
        let name = self.name();
        let end = name.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0).unwrap_or(name.len());
        text(&name[..end])
    }

    /// The folders above it, outermost first, as text.
    pub(crate) fn folders(&self) -> Vec<String> {
        let mut names = self.names().map(text).collect::<Vec<_>>();
        names.pop();
        names
    }

    /// The folder it lies in, which is empty for the root, and its name.
    pub(super) fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&[], &self.0),
        }
    }

    /// Whether its name ends like this, whatever the case.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        let name = self.name();
        name.len() > extension.len() + 1
            && name[name.len() - extension.len()..].eq_ignore_ascii_case(extension.as_bytes())
            && name[name.len() - extension.len() - 1] == b'.'
    }

    /// Whether it lies beneath this folder, or is it.
    pub(super) fn is_beneath(&self, folder: &Self) -> bool {
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Its names, outermost first.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }
}

/// The bytes that [`text`] wrote; `None` for what it never writes.
pub(super) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let hex = part.get(..2).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

/// The one text form of any bytes.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |bytes: &[u8], text: &mut String| text.extend(bytes.iter().map(|byte| format!("%{byte:02x}")));
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '%' {
                escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
            } else {
                text.push(character);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_text_without_control_characters_and_comes_back_from_it() {
        let odd: [&[u8]; 7] =
            [b"a/b.jsonl", b"new\nline", b"\x1b[2Jx", b"\xff\xfe", b"100%", "caf\u{e9}\u{85}".as_bytes(), b"a%0a"];
        let mut texts = std::collections::BTreeSet::new();
        for bytes in odd {
            let path = FilePath::new(bytes.to_vec());
            assert!(!path.text().contains(char::is_control), "{path:?}");
            assert_eq!(FilePath::parse(&path.text()), Some(path.clone()));
            texts.insert(path.text());
        }
        assert_eq!(texts.len(), odd.len(), "no two have one text");
        for wrong in ["", "/a", "a//b", "../a", "a/..", "%", "%4", "%zz", "%+1", "a/%2e%2e", "%00"] {
            assert_eq!(FilePath::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn names_stems_and_extensions_are_told_apart() {
        let path = FilePath::parse("p/q/s.x.JSONL").unwrap();
        assert_eq!((path.stem().as_str(), path.folders()), ("s.x", vec!["p".to_owned(), "q".to_owned()]));
        assert!(path.has_extension("jsonl") && !path.has_extension("json"));
        assert!(!FilePath::parse("p/.jsonl").unwrap().has_extension("jsonl"), "a name must have something before it");
        let folder = FilePath::parse("p/q").unwrap();
        assert!(path.is_beneath(&folder) && !FilePath::parse("p/qq").unwrap().is_beneath(&folder));
    }
}

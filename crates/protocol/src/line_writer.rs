//! Writes one message as one line, field by field, in the order of the contract.
//!
//! Why not a derived writer: bodies, cursors and locators go out as the bytes that came in, and a
//! derived writer would wrap or reformat them. It writes what it is given and checks nothing:
//! [`RawJson`] and the message types have done that.

use crate::raw_json::RawJson;

/// An object that is being written.
#[must_use = "the object must be closed"]
pub(crate) struct LineWriter<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> LineWriter<'o> {
    /// Opens a message.
    pub(crate) fn message(out: &'o mut Vec<u8>, kind: &str) -> Self {
        Self::object(out).text("type", kind)
    }

    /// Opens an object.
    pub(crate) fn object(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Closes a message, with the line feed that makes it one.
    pub(crate) fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }

    /// Closes an object.
    pub(crate) fn close(self) {
        self.out.push(b'}');
    }

    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.value(name, |out| write_string(out, value))
    }

    pub(crate) fn optional_text(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    pub(crate) fn number(self, name: &str, value: u64) -> Self {
        self.value(name, |out| out.extend_from_slice(value.to_string().as_bytes()))
    }

    pub(crate) fn optional_number(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    pub(crate) fn flag(self, name: &str, value: bool) -> Self {
        self.value(name, |out| out.extend_from_slice(if value { b"true" } else { b"false" }))
    }

    pub(crate) fn optional_flag(self, name: &str, value: Option<bool>) -> Self {
        match value {
            Some(value) => self.flag(name, value),
            None => self,
        }
    }

    pub(crate) fn null(self, name: &str) -> Self {
        self.value(name, |out| out.extend_from_slice(b"null"))
    }

    /// A value as it was written.
    pub(crate) fn raw(self, name: &str, value: &RawJson<'_>) -> Self {
        self.value(name, |out| out.extend_from_slice(value.as_str().as_bytes()))
    }

    pub(crate) fn optional_raw(self, name: &str, value: Option<&RawJson<'_>>) -> Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    /// A list of strings.
    pub(crate) fn texts(self, name: &str, values: &[String]) -> Self {
        self.list(name, values, |out, value| write_string(out, value))
    }

    /// The same, left out when it is empty.
    pub(crate) fn optional_texts(self, name: &str, values: &[String]) -> Self {
        if values.is_empty() { self } else { self.texts(name, values) }
    }

    /// A list of anything.
    pub(crate) fn list<T>(
        self,
        name: &str,
        values: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) -> Self {
        self.value(name, |out| {
            out.push(b'[');
            for (index, value) in values.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(out, value);
            }
            out.push(b']');
        })
    }

    /// Anything that can be written.
    pub(crate) fn value(mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_string(self.out, name);
        self.out.push(b':');
        write(self.out);
        self
    }
}

/// A JSON string with its quotes. Control characters are escaped, so the line stays one line.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    /// What stands for a control character.
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_one_line() {
        let mut out = Vec::new();
        LineWriter::message(&mut out, "X")
            .text("a", "b\nc")
            .number("n", 7)
            .optional_flag("f", None)
            .texts("l", &["x".to_owned(), "y".to_owned()])
            .raw("r", &RawJson::new("1.0").unwrap())
            .end();
        assert_eq!(out, b"{\"type\":\"X\",\"a\":\"b\\nc\",\"n\":7,\"l\":[\"x\",\"y\"],\"r\":1.0}\n");
    }

    proptest! {
        #[test]
        fn strings_are_written_as_a_library_reads_them(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}

//! Writes one message as one line, in the field order of the contract.
//!
//! It checks nothing: `RawJson` and the message types have done that.

/// An object under construction.
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

    /// Closes a message, with its line feed.
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

    /// A value that is already JSON.
    pub(crate) fn constant(self, name: &str, json: &str) -> Self {
        self.value(name, |out| out.extend_from_slice(json.as_bytes()))
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
    /// Digits of an escaped control character.
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
        let texts = ["x", "y"];
        LineWriter::message(&mut out, "X")
            .text("a", "b\nc")
            .list("l", texts, write_string)
            .value("r", |out| out.extend_from_slice(b"1.0"))
            .end();
        assert_eq!(out, b"{\"type\":\"X\",\"a\":\"b\\nc\",\"l\":[\"x\",\"y\"],\"r\":1.0}\n");
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

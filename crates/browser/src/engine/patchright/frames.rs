//! Framing of the driver: four bytes of length, then a JSON text. Pure.
//!
//! An overlong message is skipped, not collected: its first bytes name the call it answers, and only that call fails.

use crate::engine::message::{self, BEGINNING_BYTES, Frame};

/// Bytes of the length field.
const LENGTH_BYTES: usize = 4;

/// Collects bytes into a message.
#[derive(Debug)]
pub(crate) struct LengthFirst {
    max: usize,
    length: Vec<u8>,
    body: Vec<u8>,
    /// Missing bytes of the message, once its length is known.
    missing: usize,
    is_skipping: bool,
}

impl LengthFirst {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, length: Vec::new(), body: Vec::new(), missing: 0, is_skipping: false }
    }

    /// Reads the length, and returns the rest.
    fn take_length<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (length, rest) = bytes.split_at(bytes.len().min(LENGTH_BYTES - self.length.len()));
        self.length.extend_from_slice(length);
        if let Ok(length) = <[u8; LENGTH_BYTES]>::try_from(self.length.as_slice()) {
            self.missing = u32::from_le_bytes(length) as usize;
            self.is_skipping = self.missing > self.max;
        }
        rest
    }

    fn take_body<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (body, rest) = bytes.split_at(bytes.len().min(self.missing));
        self.missing -= body.len();
        let room = if self.is_skipping { BEGINNING_BYTES - self.body.len() } else { body.len() };
        self.body.extend_from_slice(&body[..body.len().min(room)]);
        rest
    }

    fn finish(&mut self) -> Frame {
        self.length.clear();
        let body = std::mem::take(&mut self.body);
        if self.is_skipping { message::cut(&body) } else { message::read(&body) }
    }
}

impl message::Framer for LengthFirst {
    fn push(&mut self, mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            if self.length.len() < LENGTH_BYTES {
                bytes = self.take_length(bytes);
            }
            if self.length.len() == LENGTH_BYTES {
                bytes = self.take_body(bytes);
                if self.missing == 0 {
                    frames.push(self.finish());
                }
            }
        }
        frames
    }
}

/// A message in the driver's framing.
pub(crate) fn framed(text: &str) -> Vec<u8> {
    // Our messages are at most a script and its text; the driver's maximum is longer.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&text.as_bytes()[..length as usize]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::message::Framer as _;

    fn id(frame: &Frame) -> Option<u64> {
        match frame {
            Frame::Message(message) => message.id,
            Frame::TooLong(_) | Frame::Garbage(_) => None,
        }
    }

    fn collected(bytes: &[u8], size: usize) -> Vec<Frame> {
        let mut framer = LengthFirst::new(100);
        bytes.chunks(size).flat_map(|part| framer.push(part)).collect()
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let texts = [r#"{"id":1,"result":{}}"#, "", r#"{"guid":"page@1","method":"close"}"#, "no JSON", r#"{"id":2}"#];
        let mut bytes = texts.map(framed).concat();
        bytes.extend_from_slice(&[9, 0, 0, 0, b'{']);
        let whole = collected(&bytes, bytes.len());
        assert_eq!(whole.iter().map(id).collect::<Vec<_>>(), [Some(1), None, None, None, Some(2)]);
        assert_eq!((&whole[1], &whole[3]), (&Frame::Garbage(None), &Frame::Garbage(None)));
        for size in 1..bytes.len() {
            assert_eq!(collected(&bytes, size), whole, "in parts of {size}");
        }
    }

    #[test]
    fn what_is_too_long_fails_its_own_call_and_no_other() {
        let long = framed(&format!("{{\"id\":77,\"result\":\"{}\"}}", "x".repeat(1000)));
        let bytes = [long, framed(r#"{"id":78}"#)].concat();
        for size in [1, 7, 5000] {
            let frames = collected(&bytes, size);
            assert_eq!((&frames[0], id(&frames[1])), (&Frame::TooLong(Some(77)), Some(78)));
        }
        // No memory is allocated for a length that is only announced.
        let mut framer = LengthFirst::new(100);
        assert!(framer.push(&[0xff; 5]).is_empty());
        assert!(framer.body.capacity() < 1000);
    }
}

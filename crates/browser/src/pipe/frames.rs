//! Bytes of the pipe to messages: JSON texts, each ended by a zero. Pure.
//!
//! A message that is too long is skipped, not collected: its first bytes tell which call it answers, and that call fails
//! by itself.

use serde::Deserialize;
use serde_json::Value;

/// What is kept of a message that is too long: `{"id":` and a number are in it.
const BEGINNING_BYTES: usize = 64;

/// A message of the browser's.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Message(Message),
    /// One that was longer than allowed, and the call it answers, if it does.
    TooLong(Option<u64>),
    /// Not a message.
    Garbage,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default)]
    pub(crate) result: Value,
    pub(crate) error: Option<Refusal>,
    pub(crate) session_id: Option<String>,
}

/// What the browser says when it does not do something.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct Refusal {
    #[serde(default)]
    pub(crate) message: String,
}

/// Collects bytes until there is a message.
#[derive(Debug)]
pub(crate) struct Framer {
    buffer: Vec<u8>,
    max: usize,
    is_skipping: bool,
}

impl Framer {
    pub(crate) const fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), max, is_skipping: false }
    }

    /// Takes bytes, and gives the messages that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            self.collect(&bytes[..end]);
            frames.push(self.finish());
            bytes = &bytes[end + 1..];
        }
        self.collect(bytes);
        frames
    }

    fn collect(&mut self, bytes: &[u8]) {
        if self.is_skipping {
            return;
        }
        if self.buffer.len() + bytes.len() > self.max {
            self.is_skipping = true;
            self.buffer.extend_from_slice(&bytes[..bytes.len().min(BEGINNING_BYTES)]);
            self.buffer.truncate(BEGINNING_BYTES);
            return;
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn finish(&mut self) -> Frame {
        let text = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.is_skipping) {
            return Frame::TooLong(id_at_beginning(&text));
        }
        serde_json::from_slice(&text).map_or(Frame::Garbage, Frame::Message)
    }
}

fn id_at_beginning(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(b"{\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A number that was cut may be another one.
    if digits == rest.len() {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(frame: &Frame) -> Option<u64> {
        match frame {
            Frame::Message(message) => message.id,
            Frame::TooLong(_) | Frame::Garbage => None,
        }
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let bytes = b"{\"id\":1,\"result\":{}}\0{\"method\":\"A.b\",\"params\":{\"x\":1},\"sessionId\":\"s\"}\0{\"id\":2}\0{\"id\":";
        let whole = Framer::new(100).push(bytes);
        assert_eq!(whole.iter().map(id).collect::<Vec<_>>(), [Some(1), None, Some(2)]);
        for size in 1..bytes.len() {
            let mut framer = Framer::new(100);
            let cut = bytes.chunks(size).flat_map(|part| framer.push(part)).collect::<Vec<_>>();
            assert_eq!(cut, whole, "in parts of {size}");
        }
    }

    #[test]
    fn what_is_too_long_fails_its_own_call_and_no_other() {
        let mut text = format!("{{\"id\":77,\"result\":\"{}\"}}\0", "x".repeat(1000)).into_bytes();
        text.extend_from_slice(b"{\"id\":78}\0garbage\0{\"method\":5}\0");
        for size in [1, 7, 5000] {
            let mut framer = Framer::new(100);
            let frames = text.chunks(size).flat_map(|part| framer.push(part)).collect::<Vec<_>>();
            assert_eq!(frames[0], Frame::TooLong(Some(77)));
            assert_eq!(id(&frames[1]), Some(78));
            assert_eq!(frames[2..], [Frame::Garbage, Frame::Garbage]);
        }
        assert_eq!(id_at_beginning(b"{\"id\":12"), None, "the number may go on");
        assert_eq!(id_at_beginning(b"{\"method\":\"a\"}"), None);
    }
}

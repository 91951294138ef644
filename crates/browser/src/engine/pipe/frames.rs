//! Framing of the pipe: JSON texts, each ended by a zero byte. Pure.
//!
//! An overlong message is skipped, not collected: its first bytes name the call it answers, and only that call fails.

use crate::engine::message::{self, BEGINNING_BYTES, Frame};

/// Collects bytes into a message.
#[derive(Debug)]
pub(crate) struct ZeroEnded {
    buffer: Vec<u8>,
    max: usize,
    is_skipping: bool,
}

impl ZeroEnded {
    pub(crate) const fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), max, is_skipping: false }
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
            return message::cut(&text);
        }
        message::read(&text)
    }
}

impl message::Framer for ZeroEnded {
    fn push(&mut self, mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            self.collect(&bytes[..end]);
            frames.push(self.finish());
            bytes = &bytes[end + 1..];
        }
        self.collect(bytes);
        frames
    }
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

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let bytes = b"{\"id\":1,\"result\":{}}\0{\"method\":\"A.b\",\"params\":{\"x\":1},\"sessionId\":\"s\"}\0{\"id\":2}\0{\"id\":";
        let whole = ZeroEnded::new(100).push(bytes);
        assert_eq!(whole.iter().map(id).collect::<Vec<_>>(), [Some(1), None, Some(2)]);
        for size in 1..bytes.len() {
            let mut framer = ZeroEnded::new(100);
            let cut = bytes.chunks(size).flat_map(|part| framer.push(part)).collect::<Vec<_>>();
            assert_eq!(cut, whole, "in parts of {size}");
        }
    }

    #[test]
    fn what_is_too_long_fails_its_own_call_and_no_other() {
        let mut text = format!("{{\"id\":77,\"result\":\"{}\"}}\0", "x".repeat(1000)).into_bytes();
        text.extend_from_slice(b"{\"id\":78}\0garbage\0{\"method\":5}\0");
        for size in [1, 7, 5000] {
            let mut framer = ZeroEnded::new(100);
            let frames = text.chunks(size).flat_map(|part| framer.push(part)).collect::<Vec<_>>();
            assert_eq!(frames[0], Frame::TooLong(Some(77)));
            assert_eq!(id(&frames[1]), Some(78));
            assert_eq!(frames[2..], [Frame::Garbage(None), Frame::Garbage(None)]);
        }
    }
}

//! Splits a stream of bytes into lines, with a maximum line length.
//!
//! Why not a buffered reader's lines: its buffer is unlimited. Here a line within the fed data is borrowed; any other
//! is gathered in a buffer limited to the maximum. A long line is announced early, so that the caller may take it in
//! pieces. The result depends on the bytes only, never on how they were cut. It knows nothing of JSON.

use crate::json::lex;

/// Bytes of a long line gathered before it is announced. More than ordinary records have, and still little memory.
pub(crate) const ANNOUNCE_BYTES: usize = 64 * 1024;
/// A larger buffer is freed after its line.
const KEEP_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Framer {
    line_bytes_max: usize,
    piece_line_bytes_max: u64,
    gathered: Vec<u8>,
    lent: Lent,
    announced: bool,
    /// The current line is returned in pieces.
    in_pieces: bool,
    line: u64,
    /// Bytes of the current line already returned in pieces.
    piece_bytes: u64,
}

/// The borrow that the last result left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lent {
    Nothing,
    /// A complete line.
    Line,
    /// A piece of a line that continues.
    Piece,
}

/// A result. Holds positions, not bytes, so that the framer can be used meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A complete line.
    Line(LinePlace),
    /// A line that is already long. Its beginning is gathered; the rest is available in pieces.
    Long,
    /// A piece of such a line. It is gathered.
    Piece,
    /// The last part of such a line.
    LastPiece,
    /// The line exceeds the maximum.
    TooLong,
}

/// Location of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinePlace {
    Gathered,
    Fed(usize, usize),
}

impl Framer {
    pub(crate) const fn new(line_bytes_max: usize, piece_line_bytes_max: u64) -> Self {
        Self {
            line_bytes_max,
            piece_line_bytes_max,
            gathered: Vec::new(),
            lent: Lent::Nothing,
            announced: false,
            in_pieces: false,
            line: 1,
            piece_bytes: 0,
        }
    }

    /// The number of the current line; after a complete one, still that one's.
    pub(crate) const fn line(&self) -> u64 {
        match self.lent {
            Lent::Line => self.line - 1,
            Lent::Nothing | Lent::Piece => self.line,
        }
    }

    /// The bytes of a line.
    pub(crate) fn bytes<'a>(&'a self, fed: &'a [u8], place: LinePlace) -> &'a [u8] {
        match place {
            LinePlace::Gathered => &self.gathered,
            LinePlace::Fed(start, end) => &fed[start..end],
        }
    }

    /// The gathered bytes: the beginning of a long line, or a piece of it.
    pub(crate) fn gathered(&self) -> &[u8] {
        &self.gathered
    }

    /// Requests the rest of the current line in pieces.
    pub(crate) fn hand_out_pieces(&mut self) {
        self.piece_bytes = self.gathered.len() as u64;
        self.in_pieces = true;
        self.gathered.clear();
    }

    /// Whether the bytes ended within a nonempty line.
    pub(crate) fn is_inside_a_line(&self) -> bool {
        self.in_pieces || (self.lent == Lent::Nothing && !self.gathered.iter().all(u8::is_ascii_whitespace))
    }

    /// The next result in the fed data from `at` on; `None` when all of it was consumed.
    pub(crate) fn next(&mut self, fed: &[u8], at: &mut usize) -> Option<Frame> {
        self.forget_lent();
        if self.in_pieces {
            return self.next_piece(fed, at);
        }
        loop {
            if self.gathered.len() > self.line_bytes_max && self.announced {
                return Some(Frame::TooLong);
            }
            let target = if self.announced { self.line_bytes_max } else { self.line_bytes_max.min(ANNOUNCE_BYTES) };
            let rest = &fed[*at..];
            // One byte beyond the target distinguishes a line that ends there from one that continues.
            let window = &rest[..rest.len().min(target + 1 - self.gathered.len())];
            if let Some(length) = lex::find_newline(window) {
                return Some(self.complete_line(fed, at, length));
            }
            self.gather(window);
            *at += window.len();
            if self.gathered.len() > target && !self.announced {
                self.announced = true;
                return Some(Frame::Long);
            }
            if *at == fed.len() && self.gathered.len() <= self.line_bytes_max {
                return None;
            }
        }
    }

    fn complete_line(&mut self, fed: &[u8], at: &mut usize, length: usize) -> Frame {
        let (start, end) = (*at, *at + length);
        *at = end + 1;
        self.line += 1;
        self.lent = Lent::Line;
        self.announced = false;
        if self.gathered.is_empty() {
            return Frame::Line(LinePlace::Fed(start, end));
        }
        self.gather(&fed[start..end]);
        Frame::Line(LinePlace::Gathered)
    }

    /// Pieces have one size, wherever the input was cut, so that a reader cannot depend on the cuts.
    fn next_piece(&mut self, fed: &[u8], at: &mut usize) -> Option<Frame> {
        let rest = &fed[*at..];
        let window = &rest[..rest.len().min(ANNOUNCE_BYTES - self.gathered.len())];
        let end = lex::find_newline(window);
        let piece = &window[..end.unwrap_or(window.len())];
        self.gather(piece);
        *at += piece.len() + usize::from(end.is_some());
        if end.is_none() && self.gathered.len() < ANNOUNCE_BYTES {
            return None;
        }
        self.piece_bytes += self.gathered.len() as u64;
        if self.piece_bytes > self.piece_line_bytes_max {
            return Some(Frame::TooLong);
        }
        if end.is_none() {
            self.lent = Lent::Piece;
            return Some(Frame::Piece);
        }
        self.line += 1;
        self.lent = Lent::Line;
        self.in_pieces = false;
        self.announced = false;
        Some(Frame::LastPiece)
    }

    fn forget_lent(&mut self) {
        if self.lent == Lent::Nothing {
            return;
        }
        self.lent = Lent::Nothing;
        self.gathered.clear();
        if self.gathered.capacity() > KEEP_BYTES {
            self.gathered.shrink_to(ANNOUNCE_BYTES);
        }
    }

    /// Adds to the buffer, which doubles up to the limit: old and new together stay below twice the limit during a
    /// move.
    fn gather(&mut self, bytes: &[u8]) {
        let needed = self.gathered.len() + bytes.len();
        if needed > self.gathered.capacity() {
            let doubled = (self.gathered.capacity() * 2).min(self.line_bytes_max + 1);
            self.gathered.reserve_exact(needed.max(doubled) - self.gathered.len());
        }
        self.gathered.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces of this size; what was found, with the bytes.
    fn frames(limit: usize, input: &[u8], piece: usize) -> Vec<(Frame, Vec<u8>)> {
        let mut framer = Framer::new(limit, 1000);
        let mut found = Vec::new();
        for fed in input.chunks(piece) {
            let mut at = 0;
            while let Some(frame) = framer.next(fed, &mut at) {
                let bytes = match frame {
                    Frame::Line(place) => framer.bytes(fed, place).to_vec(),
                    _ => Vec::new(),
                };
                found.push((frame, bytes));
                if frame == Frame::TooLong {
                    return found;
                }
            }
        }
        found
    }

    fn lines(limit: usize, input: &[u8], piece: usize) -> Vec<String> {
        let is_line = |(frame, bytes): (Frame, Vec<u8>)| match frame {
            Frame::Line(_) => Some(String::from_utf8(bytes).unwrap()),
            Frame::TooLong => Some("TOO LONG".to_owned()),
            Frame::Long | Frame::Piece | Frame::LastPiece => None,
        };
        frames(limit, input, piece).into_iter().filter_map(is_line).collect()
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        for piece in [1, 2, 3, 7, 100] {
            assert_eq!(lines(5, b"1234\n12345\n123456\n1\n", piece), ["1234", "12345", "TOO LONG"], "{piece}");
        }
    }

    #[test]
    fn what_has_no_line_feed_is_no_line() {
        let mut framer = Framer::new(100, 100);
        let mut at = 0;
        assert!(matches!(framer.next(b"a\nb", &mut at), Some(Frame::Line(_))));
        assert!(!framer.is_inside_a_line());
        assert_eq!(framer.next(b"a\nb", &mut at), None);
        assert!(framer.is_inside_a_line());
    }

    #[test]
    fn a_line_within_what_was_fed_is_lent_and_not_copied() {
        let found = frames(100, b"abc\ndef\n", 100);
        assert_eq!(found[0].0, Frame::Line(LinePlace::Fed(0, 3)));
        assert_eq!(found[1].0, Frame::Line(LinePlace::Fed(4, 7)));
    }

    #[test]
    fn the_buffer_of_a_long_line_is_given_back() {
        let mut framer = Framer::new(8 * KEEP_BYTES, 0);
        let line = vec![b'x'; 4 * KEEP_BYTES];
        let mut at = 0;
        while framer.next(&line, &mut at).is_some() {}
        assert!(framer.gathered.capacity() >= line.len());
        let mut at = 0;
        assert!(matches!(framer.next(b"\nshort", &mut at), Some(Frame::Line(LinePlace::Gathered))));
        assert_eq!(framer.next(b"\nshort", &mut at), None);
        assert!(framer.gathered.capacity() <= KEEP_BYTES);
    }
}

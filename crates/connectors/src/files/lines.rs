//! The lines of a file from a place on, while somebody else may be writing to it.
//!
//! A line counts when its line feed is there. What comes after the last one waits: half an object today is a whole one
//! tomorrow, and the place to go on from stays before it. A line longer than [`LINE_BYTES_MAX`] is read past and told,
//! not held. Memory is one line and one piece.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The longest line that is held: what a runtime reads of a record. Longer ones have files inside.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is read at once.
const PIECE_BYTES: usize = 256 * 1024;
/// How much of a line that is not held can be asked for.
const BEGINNING_BYTES: usize = 256;
/// What some programs begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What lines are read from: a file, or a part of one that was read before.
pub(crate) trait ReadAt: Debug {
    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, place)
    }
}

impl ReadAt for &[u8] {
    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize> {
        let rest = usize::try_from(place).ok().and_then(|place| self.get(place..)).unwrap_or_default();
        io::Read::read(&mut &*rest, into)
    }
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'b> {
    /// A whole one, without its line feed.
    Whole(&'b [u8]),
    /// What comes after the last line feed. It is not passed unless [`Lines::take_unfinished`] says so.
    Unfinished(&'b [u8]),
    /// A line of so many bytes, which was not held. It is passed if it has an end.
    TooLong {
        /// How long it is, as far as it is there.
        bytes: u64,
        /// Whether its line feed is there.
        has_end: bool,
    },
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct Lines<'f> {
    source: &'f dyn ReadAt,
    buffer: &'f mut Vec<u8>,
    /// The next line begins here, in the buffer and in the file.
    start: usize,
    at: u64,
    /// How far the buffer is filled, and how far it has no line feed.
    end: usize,
    scanned: usize,
    is_ended: bool,
}

impl<'f> Lines<'f> {
    /// Reads from a place that an earlier reader told. The buffer is the caller's, for one file after another.
    pub(crate) const fn new(source: &'f dyn ReadAt, from: u64, buffer: &'f mut Vec<u8>) -> Self {
        Self { source, buffer, start: 0, at: from, end: 0, scanned: 0, is_ended: false }
    }

    /// Where the next line begins.
    pub(crate) const fn offset(&self) -> u64 {
        self.at
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.is_ended {
            return Ok(None);
        }
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let (from, feed) = (self.start, self.scanned + found);
                self.pass(feed + 1);
                return Ok(Some(Line::Whole(self.content(from, feed))));
            }
            self.scanned = self.end;
            if self.end - self.start >= LINE_BYTES_MAX {
                return self.skip_long_line().map(Some);
            }
            if self.fill()? == 0 {
                self.is_ended = true;
                let (from, to) = (self.start, self.end);
                return Ok((from < to).then(|| Line::Unfinished(self.content(from, to))));
            }
        }
    }

    /// The first bytes of a line that begins here: of one that was too long to be held.
    pub(crate) fn beginning(&self, place: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; BEGINNING_BYTES];
        let read = read_at(self.source, &mut bytes, place)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Passes the unfinished line, too: its content showed that it is whole.
    pub(crate) const fn take_unfinished(&mut self) {
        self.pass(self.end);
    }

    const fn pass(&mut self, to: usize) {
        self.at += (to - self.start) as u64;
        self.start = to;
        self.scanned = to;
    }

    /// A line without what some programs put around it.
    fn content(&self, from: usize, to: usize) -> &[u8] {
        let line = &self.buffer[from..to];
        // The place in the file of what is at `from`; `at` may have passed it already.
        let is_first = self.at == (self.start - from) as u64;
        let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Reads a piece more. Zero at the end of the file.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        let wanted = (self.end + PIECE_BYTES).min(LINE_BYTES_MAX + PIECE_BYTES);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.max(self.buffer.len().saturating_mul(2).min(LINE_BYTES_MAX)), 0);
        }
        let place = self.at + self.end as u64;
        let to = (self.end + PIECE_BYTES).min(self.buffer.len());
        let read = read_at(self.source, &mut self.buffer[self.end..to], place)?;
        self.end += read;
        Ok(read)
    }

    /// Reads past a line that is not held.
    fn skip_long_line(&mut self) -> io::Result<Line<'static>> {
        let mut bytes = (self.end - self.start) as u64;
        loop {
            (self.start, self.end, self.scanned) = (0, 0, 0);
            let place = self.at + bytes;
            let read = read_at(self.source, &mut self.buffer[..PIECE_BYTES], place)?;
            if read == 0 {
                self.is_ended = true;
                return Ok(Line::TooLong { bytes, has_end: false });
            }
            if let Some(feed) = memchr::memchr(b'\n', &self.buffer[..read]) {
                bytes += feed as u64;
                self.at += bytes + 1;
                (self.start, self.end, self.scanned) = (feed + 1, read, feed + 1);
                return Ok(Line::TooLong { bytes, has_end: true });
            }
            bytes += read as u64;
        }
    }
}

fn read_at(source: &dyn ReadAt, into: &mut [u8], place: u64) -> io::Result<usize> {
    loop {
        match source.read_at(into, place) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> (tempfile::TempDir, File) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("f"), bytes).unwrap();
        let file = File::open(place.path().join("f")).unwrap();
        (place, file)
    }

    /// Lines with the place after each, as texts.
    fn all(opened: &File, from: u64, buffer: &mut Vec<u8>) -> Vec<(String, u64)> {
        let mut lines = Lines::new(opened, from, buffer);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let text = match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::Unfinished(line) => format!("…{}", String::from_utf8_lossy(line)),
                Line::TooLong { bytes, has_end } => format!("{bytes} {has_end}"),
            };
            all.push((text, lines.offset()));
        }
        all
    }

    #[test]
    fn half_a_line_at_the_end_waits_and_is_read_when_it_is_whole() {
        let (_place, file) = opened(b"\xef\xbb\xbfone\r\n\ntwo\nthr");
        let mut buffer = Vec::new();
        let read = all(&file, 0, &mut buffer);
        let expected = [("one", 8), ("", 9), ("two", 13), ("…thr", 13)];
        assert_eq!(read, expected.map(|(text, at)| (text.to_owned(), at)));
        let (_place, file) = opened(b"\xef\xbb\xbfone\r\n\ntwo\nthree\n");
        assert_eq!(
            all(&file, 13, &mut buffer),
            [("three".to_owned(), 19)],
            "the buffer holds nothing of the other file"
        );
        let mut lines = Lines::new(&file, 9, &mut buffer);
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"two")));
    }

    #[test]
    fn an_unfinished_line_that_is_whole_can_be_passed() {
        let (_place, file) = opened(b"{}\n{\"a\":1}");
        let mut buffer = Vec::new();
        let mut lines = Lines::new(&file, 3, &mut buffer);
        assert_eq!(lines.next().unwrap(), Some(Line::Unfinished(b"{\"a\":1}")));
        lines.take_unfinished();
        assert_eq!((lines.offset(), lines.next().unwrap()), (10, None));
    }

    #[test]
    fn lines_of_any_length_come_out_whole_up_to_the_bound_and_are_told_beyond_it() {
        let lengths = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, LINE_BYTES_MAX - 1, 7];
        let mut bytes = lengths.iter().flat_map(|&n| [vec![b'x'; n], vec![b'\n']].concat()).collect::<Vec<_>>();
        bytes.extend(vec![b'y'; LINE_BYTES_MAX + 3 * PIECE_BYTES + 5]);
        bytes.extend(b"\nlast\n");
        bytes.extend(vec![b'z'; LINE_BYTES_MAX + 9]);
        let (_place, file) = opened(&bytes);
        let mut buffer = Vec::new();
        let read = all(&file, 0, &mut buffer);
        let long = LINE_BYTES_MAX + 3 * PIECE_BYTES + 5;
        let told =
            read.iter().map(|(text, _)| if text.starts_with('x') { text.len().to_string() } else { text.clone() });
        let mut expected = lengths.map(|n| if n == 0 { String::new() } else { n.to_string() }).to_vec();
        expected.extend([format!("{long} true"), "last".to_owned(), format!("{} false", LINE_BYTES_MAX + 9)]);
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(read.last().unwrap().1, read[read.len() - 2].1, "a long line without an end is not passed");
        assert!(buffer.len() <= LINE_BYTES_MAX + PIECE_BYTES, "{}", buffer.len());
    }
}

//! The lines of an iCalendar file: a name, parameters, a value, folded at 75 bytes.
//!
//! Lines come one by one from a file of any size, or from a part of one. A line that is none is counted; it never takes
//! its neighbours with it.

use crate::files::{self, Lines, ReadAt};
use std::io;

/// One line, unfolded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// In capitals.
    pub(crate) name: String,
    /// Names in capitals, values without their quotes.
    pub(crate) parameters: Vec<(String, String)>,
    /// As it is written.
    pub(crate) value: String,
}

impl Line {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it begins or ends a component of this name.
    pub(crate) fn names(&self, component: &str) -> bool {
        self.value.trim().eq_ignore_ascii_case(component)
    }

    /// The value as text: without its escapes.
    pub(crate) fn text(&self) -> String {
        unescaped(&self.value)
    }

    /// Several texts, separated by commas.
    pub(crate) fn texts(&self) -> Vec<String> {
        let (mut parts, mut from, mut is_escaped) = (Vec::new(), 0, false);
        for (at, letter) in self.value.char_indices() {
            if letter == ',' && !is_escaped {
                parts.push(&self.value[from..at]);
                from = at + 1;
            }
            is_escaped = letter == '\\' && !is_escaped;
        }
        parts.push(&self.value[from..]);
        parts.iter().map(|part| unescaped(part.trim())).filter(|part| !part.is_empty()).collect()
    }
}

/// What stands at a place of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Line(Line),
    /// Not a name and a value.
    NotReadable,
    /// Longer than [`files::LINE_BYTES_MAX`], unfolded.
    TooLong,
}

/// Reads lines and unfolds them. Bytes are unfolded before they are decoded: some programs fold within a letter.
#[derive(Debug)]
pub(crate) struct Reader<'f> {
    lines: Lines<'f>,
    /// The next line of the file, and where it begins: it may belong to the one before.
    pending: Option<(Vec<u8>, bool, u64)>,
    /// Where the last line begins, and where it ends.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Lines with bytes that are not UTF-8, which were replaced.
    pub(crate) replaced: usize,
}

impl<'f> Reader<'f> {
    pub(crate) const fn new(source: &'f dyn ReadAt, buffer: &'f mut Vec<u8>) -> Self {
        Self { lines: Lines::new(source, 0, buffer), pending: None, start: 0, end: 0, replaced: 0 }
    }

    /// The next line that is not empty; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Content>> {
        loop {
            let Some((mut whole, mut is_too_long, start)) = self.physical()? else { return Ok(None) };
            loop {
                match self.physical()? {
                    Some((next, is_long, _)) if next.starts_with(b" ") || next.starts_with(b"\t") => {
                        is_too_long |= is_long || whole.len() + next.len() > files::LINE_BYTES_MAX;
                        if !is_too_long {
                            whole.extend_from_slice(&next[1..]);
                        }
                    }
                    next => {
                        self.end = next.as_ref().map_or_else(|| self.lines.offset(), |(_, _, at)| *at);
                        self.pending = next;
                        break;
                    }
                }
            }
            self.start = start;
            if is_too_long {
                return Ok(Some(Content::TooLong));
            }
            let text = String::from_utf8_lossy(&whole);
            self.replaced += usize::from(matches!(text, std::borrow::Cow::Owned(_)));
            if !text.trim().is_empty() {
                return Ok(Some(line(&text).map_or(Content::NotReadable, Content::Line)));
            }
        }
    }

    /// A line of the file with whether it is too long, and then empty; and where it begins.
    fn physical(&mut self) -> io::Result<Option<(Vec<u8>, bool, u64)>> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        let at = self.lines.offset();
        let last = match self.lines.next()? {
            None => return Ok(None),
            Some(files::Line::Whole(bytes)) => return Ok(Some((bytes.to_vec(), false, at))),
            Some(files::Line::TooLong { .. }) => return Ok(Some((Vec::new(), true, at))),
            Some(files::Line::Unfinished(bytes)) => bytes.to_vec(),
        };
        self.lines.take_unfinished();
        Ok(Some((last, false, at)))
    }
}

fn line(text: &str) -> Option<Line> {
    let name_end = text.find([';', ':'])?;
    let name = &text[..name_end];
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.';
    (!name.is_empty() && name.bytes().all(plain)).then_some(())?;
    // A group in front of the name is an old habit of address books.
    let name = name.rsplit('.').next()?.to_ascii_uppercase();
    let mut parameters = Vec::new();
    let mut rest = &text[name_end..];
    while let Some(after) = rest.strip_prefix(';') {
        let equals = after.find(['=', ':', ';'])?;
        if after.as_bytes()[equals] != b'=' {
            // A parameter without a value says nothing.
            rest = &after[equals..];
            continue;
        }
        let (value, behind) = parameter_value(&after[equals + 1..])?;
        parameters.push((after[..equals].trim().to_ascii_uppercase(), value));
        rest = behind;
    }
    Some(Line { name, parameters, value: rest.strip_prefix(':')?.to_owned() })
}

/// A value up to the next `;` or `:` that stands outside of quotes.
fn parameter_value(text: &str) -> Option<(String, &str)> {
    let mut is_quoted = false;
    let end = text.find(|letter| {
        is_quoted ^= letter == '"';
        !is_quoted && matches!(letter, ';' | ':')
    })?;
    Some((text[..end].replace('"', ""), &text[end..]))
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n' | 'N') => plain.push('\n'),
                Some(escaped) => plain.push(escaped),
                None => plain.push('\\'),
            },
            (letter, false) => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn lines(text: &[u8]) -> Vec<Content> {
        let mut buffer = Vec::new();
        let mut reader = Reader::new(&text, &mut buffer);
        let of_part = std::iter::from_fn(|| reader.next().unwrap()).collect::<Vec<_>>();
        // A file says the same as a part.
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("f"), text).unwrap();
        let (file, mut buffer) = (File::open(place.path().join("f")).unwrap(), Vec::new());
        let mut reader = Reader::new(&file, &mut buffer);
        let mut of_file = Vec::new();
        while let Some(content) = reader.next().unwrap() {
            // And each of its lines can be read alone.
            let (from, to) = (reader.start as usize, reader.end as usize);
            let alone = Reader::new(&&text[from..to], &mut Vec::new()).next().unwrap();
            assert_eq!(alone.as_ref(), Some(&content));
            of_file.push(content);
        }
        assert_eq!(of_part, of_file);
        of_part
    }

    fn read(text: &str) -> Vec<Line> {
        let line = |content| match content {
            Content::Line(line) => Some(line),
            Content::NotReadable | Content::TooLong => None,
        };
        lines(text.as_bytes()).into_iter().filter_map(line).collect()
    }

    fn one(text: &str) -> Line {
        read(text).swap_remove(0)
    }

    #[test]
    fn folded_lines_are_put_together_and_escapes_are_taken_out() {
        let text = "SUMMARY;LANGUAGE=en:Long \r\n title\\, with\\n\r\n\t more\\\\\r\nLOCATION:x\n";
        let read = read(text);
        assert_eq!(read[0].text(), "Long title, with\n more\\");
        assert_eq!((read[0].parameter("LANGUAGE"), read[1].text().as_str()), (Some("en"), "x"));
    }

    #[test]
    fn quotes_hide_what_would_end_a_parameter() {
        let line = one("ATTENDEE;CN=\"Doe; John: Jr\";PARTSTAT=ACCEPTED:mailto:j@example.test");
        assert_eq!((line.parameter("CN"), line.parameter("PARTSTAT")), (Some("Doe; John: Jr"), Some("ACCEPTED")));
        assert_eq!(line.value, "mailto:j@example.test");
        assert_eq!(one("CATEGORIES:a\\,b, c,,d").texts(), ["a,b", "c", "d"]);
    }

    #[test]
    fn what_is_no_line_is_counted_and_takes_nothing_with_it() {
        let text = "\u{feff}BEGIN:VCALENDAR\nrubbish\n:value\nA;B\n\u{0}\u{1}:x\nA;B=\"open:x\nEND:VCALENDAR";
        assert_eq!(lines(text.as_bytes()).iter().filter(|line| **line == Content::NotReadable).count(), 5);
        assert_eq!(read(text).iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["BEGIN", "END"]);
    }

    #[test]
    fn a_letter_that_was_folded_in_its_middle_is_whole() {
        let mut folded = b"SUMMARY:Krak\xc3\r\n \xb3w".to_vec();
        assert_eq!(lines(&folded).len(), 1);
        let mut buffer = Vec::new();
        let part = folded.as_slice();
        let mut reader = Reader::new(&part, &mut buffer);
        let Some(Content::Line(line)) = reader.next().unwrap() else { panic!("a line") };
        assert_eq!((line.text().as_str(), reader.replaced), ("Krak\u{f3}w", 0));
        folded[12] = 0xff;
        let part = folded.as_slice();
        let mut reader = Reader::new(&part, &mut buffer);
        assert!(matches!(reader.next().unwrap(), Some(Content::Line(_))));
        assert_eq!(reader.replaced, 1);
    }

    #[test]
    fn a_line_that_is_too_long_is_said_to_be_however_it_is_folded() {
        let long = format!("A:1\nDESCRIPTION:{}\nB:2\n", "x".repeat(files::LINE_BYTES_MAX + (1 << 20)));
        let folded = format!("A:1\nDESCRIPTION:{}\nB:2\n", format!("{}\n ", "x".repeat(1 << 20)).repeat(17));
        for text in [long, folded] {
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join("f"), text).unwrap();
            let (file, mut buffer) = (File::open(place.path().join("f")).unwrap(), Vec::new());
            let mut reader = Reader::new(&file, &mut buffer);
            assert!(matches!(reader.next().unwrap(), Some(Content::Line(_))));
            assert_eq!(reader.next().unwrap(), Some(Content::TooLong));
            assert!(matches!(reader.next().unwrap(), Some(Content::Line(_))));
            assert_eq!(reader.next().unwrap(), None);
        }
    }
}

//! Reads the list and parses each line.
//!
//! The list stays in its file: only the position of each URL is kept, so a million take megabytes. A pipe is copied
//! into the results folder while it is read. An invalid line is a result with an error; it does not end the fetch.

use gleaner_http::governor::keyed::Domain;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use url::Url;

/// Maximum URL length: the limit of servers (nginx: 8 KiB for a request line).
pub(crate) const URL_BYTES_MAX: usize = 8 * 1024;
/// Characters of an invalid line that are shown.
const SHOWN_CHARS_MAX: usize = 500;

/// Identity of a URL, equal for equivalent forms. 128 bits of a hash, so that no two in a list collide.
pub(crate) type UrlKey = u128;

/// A URL that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) domain: Domain,
}

impl Target {
    /// Parses a URL from a line or a `Location`.
    pub(crate) fn from_url(mut url: Url) -> Result<Self, &'static str> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err("it is not an http:// or https:// URL");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains a user name or password, which are not sent");
        }
        if url.as_str().len() > URL_BYTES_MAX {
            return Err("it is longer than 8192 bytes");
        }
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let place = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let domain = Domain::parse(&place).map_err(|_hostile| "its host name is invalid")?;
        Ok(Self { url, domain })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(char::is_control) {
            return Err("it contains control characters");
        }
        Self::from_url(Url::parse(text).map_err(|_| "it is not a URL")?)
    }

    pub(crate) fn key(&self) -> UrlKey {
        key(self.url.as_str())
    }

    /// Scheme, host and port: the scope of one robots.txt.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

fn key(text: &str) -> UrlKey {
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes().first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListLine {
    /// Blank, or a comment.
    Nothing,
    Target(Target),
    /// The shown part of an invalid line, and why it is invalid.
    NoUrl(String, &'static str),
}

impl ListLine {
    pub(crate) fn parse(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line));
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Self::Nothing;
        }
        if line.len() > URL_BYTES_MAX {
            return Self::NoUrl(shown(text), "it is longer than 8192 bytes");
        }
        match Target::parse(text) {
            Ok(target) => Self::Target(target),
            Err(why) => Self::NoUrl(shown(text), why),
        }
    }

    /// The key that finds the result of this line again.
    pub(crate) fn key(&self) -> Option<UrlKey> {
        match self {
            Self::Nothing => None,
            Self::Target(target) => Some(target.key()),
            // A cut line may look like a URL when it is read again.
            Self::NoUrl(shown, _) => Some(Target::parse(shown).map_or_else(|_| key(shown), |target| target.key())),
        }
    }
}

/// The shown form of an invalid line: short, and without a password. Applying it twice changes nothing.
fn shown(text: &str) -> String {
    let text = match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => text,
    }
}

/// Lines of a list with their positions. A line that is too long is cut, and its rest is skipped.
pub(crate) struct Lines<R> {
    reader: R,
    at: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, at: 0, line: Vec::new() }
    }

    /// The next line and its start.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        let start = self.at;
        self.line.clear();
        loop {
            let piece = match self.reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = piece.iter().position(|&byte| byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            let room = (URL_BYTES_MAX + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(part.len(), |end| end + 1);
            self.reader.consume(used);
            self.at += used as u64;
            if end.is_some() || (used == 0 && self.at > start) {
                return Ok(Some((start, &self.line)));
            }
            if used == 0 {
                return Ok(None);
            }
        }
    }
}

/// Passes on what it reads, and copies it to a file.
pub(crate) struct Spool<R> {
    pub(crate) from: R,
    pub(crate) to: File,
}

impl<R: Read> Read for Spool<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        Ok(count)
    }
}

/// Reads single lines of a file by position.
#[derive(Debug)]
pub(crate) struct LineFile(pub(crate) File);

impl LineFile {
    /// The line that begins at `at`, up to `bytes_max` of it.
    pub(crate) fn line_at(&mut self, at: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.0.seek(SeekFrom::Start(at))?;
        let mut line = Vec::new();
        let limit = bytes_max as u64 + 1;
        // Small pieces: most lines are shorter than one.
        BufReader::with_capacity(512, (&mut self.0).take(limit)).read_until(b'\n', &mut line)?;
        line.truncate(line.strip_suffix(b"\n").map_or(line.len(), <[u8]>::len));
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn target(line: &str) -> Target {
        match ListLine::parse(line.as_bytes()) {
            ListLine::Target(target) => target,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn two_spellings_of_one_url_are_the_same() {
        let one = target(" HTTP://Example.COM:80/a/../b#part \r");
        assert_eq!(one.url.as_str(), "http://example.com/b");
        assert_eq!(one.key(), target("http://example.com/b").key());
        assert_ne!(one.key(), target("https://example.com/b").key());
        assert_eq!((one.domain.as_str(), one.origin().as_str()), ("example.com", "http://example.com"));
        assert_eq!(target("http://bücher.example:8080/").origin(), "http://xn--bcher-kva.example:8080");
    }

    #[test]
    fn what_is_no_url_is_told_and_never_with_a_password() {
        let long = format!("http://a.example/{}", "x".repeat(URL_BYTES_MAX));
        let label = format!("http://{}.example/", "a".repeat(64));
        for line in [
            "nonsense",
            "ftp://a.example/",
            "http://",
            "http://a b/",
            "file:///etc/passwd",
            "http://a.example/\u{7}",
            "http://me:secret@a.example/",
            "http://secret@a.example?x@y",
            "http://a..b/",
            &long,
            &label,
        ] {
            let said = ListLine::parse(line.as_bytes());
            let ListLine::NoUrl(shown, _) = &said else { panic!("{line}: {said:?}") };
            assert!(!shown.contains("secret") && shown.chars().count() <= SHOWN_CHARS_MAX + 3, "{shown}");
            assert_eq!(ListLine::parse(shown.as_bytes()).key(), said.key(), "found again by what was shown: {line}");
        }
        for line in ["", "  \r", "# a comment", "\u{feff}"] {
            assert_eq!(ListLine::parse(line.as_bytes()), ListLine::Nothing);
        }
    }

    #[test]
    fn every_line_is_found_again_at_its_place() {
        let text = format!("one\r\n\n{}\nthree\nlast", "x".repeat(3 * URL_BYTES_MAX));
        let mut lines = Lines::new(BufReader::with_capacity(7, Cursor::new(text.as_bytes())));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut file = LineFile(file);
        let mut seen = 0;
        while let Some((at, line)) = lines.next().unwrap() {
            seen += 1;
            assert_eq!(file.line_at(at, URL_BYTES_MAX).unwrap(), line);
            assert!(line.len() <= URL_BYTES_MAX + 1);
        }
        assert_eq!(seen, 5);
    }

    proptest! {
        #[test]
        fn any_bytes_are_said_something_of(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let ListLine::NoUrl(shown, _) = ListLine::parse(&line) {
                prop_assert_eq!(ListLine::parse(shown.as_bytes()).key(), ListLine::parse(&line).key());
            }
        }
    }
}

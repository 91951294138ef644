//! All marks of a source, and how they lie on a cursor.
//!
//! Why one text and not an object per file: a hundred thousand objects take ten times their text in memory, and a cursor is
//! copied on its way. Files of one folder stand together under its name. A cursor that cannot be read is as good as none,
//! and with one that covers something else than is asked for now everything is read again: what is stored already is known
//! by its keys.

use super::mark::Mark;
use super::path::{self, FilePath};
use super::walk::{Found, Listing};
use gleaner_sdk::{Collect, Cursor, Emitter, Stop};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// How long the text may get: a line of the protocol has 16 MiB.
pub(crate) const MARKS_BYTES_MAX: usize = 15 * 1024 * 1024;
/// The form of the text.
const VERSION: u64 = 2;
/// The same form, written by versions that left things out without a gap: its files are read again.
const VERSION_WITHOUT_GAPS: u64 = 1;

/// The name of a file, or the path of a folder.
type Name = Box<[u8]>;

/// How far each file was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// By folder, and in it by name.
    folders: BTreeMap<Name, BTreeMap<Name, Mark>>,
    /// What the text takes as JSON, or a little more.
    pub(crate) bytes: usize,
}

impl Marks {
    /// What a run of this scope left on a cursor.
    pub(crate) fn of_cursor(cursor: Option<&Cursor>, scope: &str) -> Self {
        let read = |cursor: &Cursor| {
            let version = cursor.get("version")?.as_u64()?;
            (version == VERSION || version == VERSION_WITHOUT_GAPS).then_some(())?;
            let mut marks = Self::parse(cursor.get("files")?.as_str()?)?;
            if version == VERSION_WITHOUT_GAPS || cursor.get("scope")?.as_str()? != scope {
                marks.unread_all();
            }
            Some(marks)
        };
        cursor.and_then(read).unwrap_or_default()
    }

    /// Everything is read again. Which files are known stays: those that are gone meanwhile are still noticed.
    fn unread_all(&mut self) {
        self.folders.values_mut().flat_map(BTreeMap::values_mut).for_each(Mark::unread);
        let of_files = |(folder, files): (&Name, &BTreeMap<Name, Mark>)| {
            text_bytes(folder) + 2 + files.iter().map(|(name, mark)| line_bytes(name, mark)).sum::<usize>()
        };
        self.bytes = self.folders.iter().map(of_files).sum();
    }

    /// The cursor that says all of this.
    pub(crate) fn to_cursor(&self, scope: &str) -> Cursor {
        let fields: [(&str, Value); 3] =
            [("version", VERSION.into()), ("scope", scope.into()), ("files", self.text().into())];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The mark of a file.
    pub(crate) fn get(&self, path: &FilePath) -> Option<&Mark> {
        let (folder, name) = path.split();
        self.folders.get(folder)?.get(name)
    }

    /// Sets the mark of a file; `false` when there is no room left for it.
    pub(crate) fn set(&mut self, path: &FilePath, mark: Mark) -> bool {
        let (folder, name) = path.split();
        let of_folder = if self.folders.contains_key(folder) { 0 } else { text_bytes(folder) + 2 };
        let before = self.get(path).map_or(0, |mark| line_bytes(name, mark));
        let bytes = self.bytes - before + line_bytes(name, &mark) + of_folder;
        if bytes > MARKS_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.folders.entry(folder.into()).or_default().insert(name.into(), mark);
        true
    }

    /// Sets the mark of a file. Where there is no room left, the file is read again by every run: nothing is missing.
    pub(crate) fn set_or_say(&mut self, path: &FilePath, mark: Mark, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        if self.set(path, mark) {
            return Ok(());
        }
        let message = format!("there are more files than fit on a cursor; every run reads this one again: {path}");
        emitter.say(message)
    }

    /// Forgets a file.
    pub(crate) fn remove(&mut self, path: &FilePath) -> Option<Mark> {
        let (folder, name) = path.split();
        let files = self.folders.get_mut(folder)?;
        let mark = files.remove(name)?;
        self.bytes -= line_bytes(name, &mark);
        if files.is_empty() {
            self.folders.remove(folder);
            self.bytes -= text_bytes(folder) + 2;
        }
        Some(mark)
    }

    /// The marked files that are certainly gone. The listing is in the order of its paths.
    pub(crate) fn gone(&self, listing: &Listing) -> Vec<FilePath> {
        let is_there = |path: &FilePath| listing.files.binary_search_by(|file| file.path.cmp(path)).is_ok();
        let paths = self.folders.iter().flat_map(|(folder, files)| files.keys().map(|name| FilePath::of(folder, name)));
        paths.filter(|path| !is_there(path) && listing.is_gone(path)).collect()
    }

    /// Whether a file has to be opened at all.
    pub(crate) fn is_same(&self, found: &Found) -> bool {
        self.get(&found.path).is_some_and(|mark| mark.is_same(found.stamp))
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(self.bytes);
        for (folder, files) in &self.folders {
            // A name never begins with a slash.
            text.push('/');
            text.push_str(&path::text(folder));
            text.push('\n');
            for (name, Mark { offset, size, stamp, content, note }) in files {
                let (name, note) = (path::text(name), path::text(note.as_bytes()));
                // Writing to a text does not fail.
                let _: fmt::Result = writeln!(text, "{name}\t{offset:x}\t{size:x}\t{stamp:x}\t{content:x}\t{note}");
            }
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut marks = Self::default();
        let mut folder = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('/') {
                folder = name;
                continue;
            }
            let mut fields = line.split('\t');
            let name = fields.next()?;
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let mut number = || u64::from_str_radix(fields.next()?, 16).ok();
            let (offset, size, stamp, content) = (number()?, number()?, number()?, number()?);
            let note = String::from_utf8(path::bytes_of(fields.next()?)?).ok()?;
            let mark = Mark { offset, size, stamp, content, note };
            marks.set(&FilePath::parse(&path)?, mark).then_some(())?;
        }
        Some(marks)
    }
}

/// What one file takes.
fn line_bytes(name: &[u8], mark: &Mark) -> usize {
    let digits = |number: u64| (67 - number.leading_zeros() as usize) / 4;
    let numbers = [mark.offset, mark.size, mark.stamp, mark.content].map(digits).iter().sum::<usize>();
    // A zero has a digit, too. Five tabs and a line feed are two bytes each in JSON.
    text_bytes(name) + numbers + text_bytes(mark.note.as_bytes()) + 16
}

fn text_bytes(bytes: &[u8]) -> usize {
    path::text(bytes).len()
}

/// What a run was asked for, as one word. A cursor of another scope covers something else.
pub(crate) fn scope_word(run: &Collect<'_>, streams: &[&str]) -> String {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for stream in streams {
        if let Some(asked) = run.scope(stream) {
            // Any text that differs where scopes do; it is compared and never read.
            hash.update(
                format!("{stream:?} {:?} {:?} {:?};", asked.resources, asked.fields, asked.time_range).as_bytes(),
            );
        }
    }
    format!("{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(note: &str) -> Mark {
        Mark { offset: 17, size: 20, stamp: u64::MAX, content: 0, note: note.to_owned() }
    }

    #[test]
    fn marks_come_back_from_a_cursor_as_they_were() {
        let mut marks = Marks::default();
        for (path, note) in [("a", ""), ("p/x", "7"), ("p/two%0alines", "a\tb\n%%"), ("p/q/%ff", "é"), ("z/x", "")] {
            assert!(marks.set(&FilePath::parse(path).unwrap(), mark(note)));
        }
        let cursor = marks.to_cursor("s");
        assert_eq!(Marks::of_cursor(Some(&cursor), "s"), marks);
        let mut old = cursor.clone();
        old["version"] = 1.into();
        assert_eq!(Marks::of_cursor(Some(&old), "s"), Marks::of_cursor(Some(&cursor), "other"), "of an older program");
        let other = Marks::of_cursor(Some(&cursor), "other");
        let unread = other.get(&FilePath::parse("p/x").unwrap()).unwrap();
        assert_eq!((unread.offset, unread.note.as_str()), (0, ""), "of another scope");
        assert_eq!(other.gone(&Listing::default()).len(), 5);
        assert_eq!(Marks::of_cursor(Some(&other.to_cursor("other")), "other"), other);
        assert!(cursor["files"].as_str().unwrap().len() <= marks.bytes);
        assert!(marks.remove(&FilePath::parse("p/x").unwrap()).is_some());
        assert_eq!(Marks::of_cursor(Some(&marks.to_cursor("s")), "s"), marks);
    }

    #[test]
    fn a_cursor_that_cannot_be_read_is_as_good_as_none() {
        for files in ["x", "x\t1\t2\t3\t4", "x\t1\t2\t3\tz\t", "../x\t1\t2\t3\t4\t", "x\t1\t2\t3\t4\t%zz"] {
            let cursor: Cursor =
                serde_json::from_value(serde_json::json!({"version": 1, "scope": "s", "files": files})).unwrap();
            assert_eq!(Marks::of_cursor(Some(&cursor), "s"), Marks::default(), "{files:?}");
        }
    }

    #[test]
    fn a_hundred_thousand_files_fit_and_there_is_an_end() {
        let mut marks = Marks::default();
        let path = |n: usize| {
            FilePath::parse(&format!("-home-owner-project/{n:08x}-0000-4000-8000-000000000000.jsonl")).unwrap()
        };
        let fitting = (0..100_000).take_while(|&n| marks.set(&path(n), mark("12345"))).count();
        let text = marks.text().len();
        assert_eq!(fitting, 100_000);
        assert!(text <= marks.bytes && marks.bytes < text + text / 5, "{text} of {}", marks.bytes);
        let rest = (100_000..200_000).take_while(|&n| marks.set(&path(n), mark("12345"))).count();
        assert!(rest < 100_000 && marks.text().len() <= MARKS_BYTES_MAX, "{rest}");
    }
}

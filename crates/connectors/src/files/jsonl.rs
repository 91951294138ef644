//! A source of many files with one JSON object per line, which only ever grow: the transcripts of terminal tools.
//!
//! What the connector gives is what a line means ([`Transcripts`]). Here is the rest: which files changed, newest first;
//! from where each is read; where a slice ends; what is gone; what could not be read. A slice is some megabytes of source,
//! and longer where the cursor is long, so that writing cursors stays a small part of the work.

use super::lines::{Line, Lines};
use super::mark::{Change, Mark};
use super::marks::{Marks, scope_word};
use super::path::FilePath;
use super::root::{Opened, Root};
use super::setting::Place;
use super::trouble::{Trouble, Troubles};
use super::walk::{Found, Listing};
use gleaner_sdk::protocol::Progress;
use gleaner_sdk::{Collect, Emitter, Left, SliceEnd, Stop};
use std::collections::HashSet;
use std::io;

/// How much of the source a slice reads: what is repeated at most after a kill, and some tenths of a second.
const SLICE_BYTES: u64 = 4 * 1024 * 1024;
/// A slice reads at least this many times what its cursor takes.
const CURSOR_SHARE: u64 = 16;
/// What opening a file counts for, in bytes that could have been read instead.
const FILE_COST: u64 = 4096;
/// How much of the beginning a connector is shown when it goes on with a file. A session says who it is in its first
/// lines, and some put the whole of their instructions there.
pub const HEAD_BYTES: usize = 256 * 1024;

/// What a connector says about its files. Pure: it is handed texts.
pub trait Transcripts {
    /// What is known of a file while it is read.
    type File;

    /// All streams. The first of them that is asked for carries the cursor of all.
    fn streams(&self) -> &'static [&'static str];

    /// Whether a file is one of the source.
    fn is_wanted(&self, path: &FilePath) -> bool;

    /// Begins with a file, or goes on with it: then `note` is what was kept of it. `head` is its beginning.
    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> Self::File;

    /// Sends what a line says; `false` when it cannot be read. It is never empty.
    ///
    /// # Errors
    ///
    /// Whatever sending ends with.
    fn line(&self, file: &mut Self::File, line: &str, emitter: &mut Emitter<'_>) -> Result<bool, Stop>;

    /// The end of the file was reached.
    ///
    /// # Errors
    ///
    /// Whatever sending ends with.
    fn end(&self, file: &mut Self::File, emitter: &mut Emitter<'_>) -> Result<(), Stop>;

    /// What is to be kept of a file until it grows: short.
    fn note(&self, file: &Self::File) -> String;

    /// A file that was read once is gone, and no other has its name.
    ///
    /// # Errors
    ///
    /// Whatever sending ends with.
    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop>;
}

/// Collects everything beneath a place.
///
/// # Errors
///
/// When the place cannot be read, or nobody reads what is sent.
pub fn collect<T: Transcripts>(run: &mut Collect<'_>, place: &Place, transcripts: &T) -> Result<(), Stop> {
    let asked = |stream: &&&str| run.scope(stream).is_some();
    let Some(carrier) = transcripts.streams().iter().find(asked).copied() else { return Ok(()) };
    let root = place.open()?;
    let mut listing = root.walk(|path| transcripts.is_wanted(path)).map_err(|error| place.fault(&error))?;
    listing.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let scope = scope_word(run, transcripts.streams());
    let marks = Marks::of_cursor(run.cursor(carrier), &scope);
    let troubles = Troubles::new(carrier, run.take_gaps(carrier)?);
    let mut work = Work::new(transcripts, &root, marks, listing, troubles);
    work.tell_listing(run.emitter(), &place.path.to_string_lossy())?;
    let left = run.slices(carrier, |emitter| {
        let is_last = work.slice(emitter)?;
        let cursor = work.marks.to_cursor(&scope);
        Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
    })?;
    if left == Left::Finished {
        // The cursor of one stream covers them all.
        transcripts.streams().iter().for_each(|stream| run.finished(stream));
    }
    Ok(())
}

struct Work<'w, T: Transcripts> {
    transcripts: &'w T,
    root: &'w Root,
    marks: Marks,
    troubles: Troubles,
    /// What has to be looked at, the newest last.
    files: Vec<Found>,
    files_total: usize,
    gone: Vec<FilePath>,
    unreadable: Vec<(FilePath, io::ErrorKind)>,
    links: u64,
    is_cut: bool,
    /// The file in the middle of which a slice ended.
    current: Option<Current<T::File>>,
    buffer: Vec<u8>,
}

struct Current<F> {
    path: FilePath,
    opened: Opened,
    offset: u64,
    file: F,
}

impl<'w, T: Transcripts> Work<'w, T> {
    fn new(transcripts: &'w T, root: &'w Root, mut marks: Marks, listing: Listing, troubles: Troubles) -> Self {
        let gone = gone(&mut marks, &listing);
        let Listing { mut files, unreadable, links, is_cut } = listing;
        files.retain(|found| !marks.is_same(found));
        files.sort_by(|one, other| (one.stamp.modified, &one.path).cmp(&(other.stamp.modified, &other.path)));
        let files_total = files.len();
        let (current, buffer) = (None, Vec::new());
        Self {
            transcripts,
            root,
            marks,
            troubles,
            files,
            files_total,
            gone,
            unreadable,
            links,
            is_cut,
            current,
            buffer,
        }
    }

    /// What the walk could not look at.
    fn tell_listing(&mut self, emitter: &mut Emitter<'_>, place: &str) -> Result<(), Stop> {
        for (folder, why) in std::mem::take(&mut self.unreadable) {
            self.troubles.unreadable(emitter, &folder, why)?;
        }
        if self.is_cut {
            self.troubles.tell(emitter, Trouble::TooManyFiles, place, None)?;
        }
        if self.links > 0 {
            let message = format!("{} links beneath {place} are not followed", self.links);
            emitter.progress(Progress { message, ..Progress::default() })?;
        }
        Ok(())
    }

    /// Sends one slice; whether it was the last.
    fn slice(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let budget = SLICE_BYTES.max(self.marks.bytes() as u64 * CURSOR_SHARE);
        let mut spent = 0;
        while spent < budget {
            let Some(mut current) = self.next_file(emitter)? else {
                self.finish(emitter)?;
                return Ok(true);
            };
            spent += FILE_COST;
            match self.read(&mut current, budget, &mut spent, emitter) {
                Ok(true) => self.leave(&current, true, emitter)?,
                Ok(false) => {
                    self.leave(&current, false, emitter)?;
                    self.current = Some(current);
                }
                Err(Failed::Stop(stop)) => return Err(stop),
                Err(Failed::File(error)) => self.troubles.unreadable(emitter, &current.path, error.kind())?,
            }
        }
        let (read, total) = (self.files_total - self.files.len(), self.files_total);
        let (count, of) = (u64::try_from(read).ok(), u64::try_from(total).ok());
        let message = format!("looked at {read} of {total} files that are new or changed");
        emitter.progress(Progress { message, count, total: of, ..Progress::default() })?;
        Ok(false)
    }

    /// The file to go on with, opened.
    fn next_file(&mut self, emitter: &mut Emitter<'_>) -> Result<Option<Current<T::File>>, Stop> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        while let Some(found) = self.files.pop() {
            match self.open(&found.path) {
                Ok(current) => return Ok(Some(current)),
                // It was there when the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.troubles.unreadable(emitter, &found.path, error.kind())?,
            }
        }
        Ok(None)
    }

    fn open(&self, path: &FilePath) -> io::Result<Current<T::File>> {
        let opened = self.root.open_file(path)?;
        let mark = match self.marks.get(path) {
            Some(mark) if mark.change(&opened)? == Change::Grown => Some(mark),
            Some(_) | None => None,
        };
        let head = opened.head(HEAD_BYTES)?;
        let file = self.transcripts.open(path, mark.map(|mark| mark.note.as_str()), &head);
        Ok(Current { path: path.clone(), opened, offset: mark.map_or(0, |mark| mark.offset), file })
    }

    /// Reads on; whether the end of the file was reached.
    fn read(
        &mut self,
        current: &mut Current<T::File>,
        budget: u64,
        spent: &mut u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<bool, Failed> {
        let Current { path, opened, offset, file } = current;
        let mut lines = Lines::new(opened, *offset, &mut self.buffer);
        loop {
            let at = lines.offset();
            let Some(line) = lines.next()? else { break };
            match line {
                Line::Whole(bytes) => match self.transcripts.read_line(file, bytes, emitter)? {
                    Read::Fine => {}
                    Read::Trouble(trouble) => self.troubles.tell(emitter, trouble, &path.text(), Some(at))?,
                },
                Line::Unfinished(bytes) => {
                    // A whole object is one, with a line feed or without; half of one waits. So does half a letter.
                    if self.transcripts.read_line(file, bytes, emitter)? == Read::Fine {
                        lines.take_unfinished();
                    }
                }
                Line::TooLong { .. } => self.troubles.tell(emitter, Trouble::LineTooLong, &path.text(), Some(at))?,
            }
            *spent += lines.offset() - at;
            *offset = lines.offset();
            if *spent >= budget {
                return Ok(false);
            }
        }
        *offset = lines.offset();
        self.transcripts.end(file, emitter)?;
        Ok(true)
    }

    fn leave(&mut self, current: &Current<T::File>, is_finished: bool, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let note = self.transcripts.note(&current.file);
        match Mark::new(&current.opened, current.offset, is_finished, note) {
            Ok(mark) => match self.marks.set(&current.path, mark) {
                true => Ok(()),
                false => self.troubles.tell(emitter, Trouble::NotMarked, &current.path.text(), None),
            },
            Err(error) => self.troubles.unreadable(emitter, &current.path, error.kind()),
        }
    }

    /// Everything was looked at.
    fn finish(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        for path in std::mem::take(&mut self.gone) {
            self.transcripts.gone(&path, emitter)?;
            self.marks.remove(&path);
        }
        self.troubles.close(emitter)
    }
}

/// The files that are gone for good. One that was moved to another folder is forgotten here and found there.
fn gone(marks: &mut Marks, listing: &Listing) -> Vec<FilePath> {
    let mut gone = marks.gone(listing);
    if gone.is_empty() {
        return gone;
    }
    let names = listing.files.iter().map(|found| found.path.name()).collect::<HashSet<_>>();
    let moved = gone.extract_if(.., |path| names.contains(path.name())).collect::<Vec<_>>();
    for path in moved {
        marks.remove(&path);
    }
    gone
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Fine,
    Trouble(Trouble),
}

trait ReadLine: Transcripts {
    /// A line as bytes. Zeroes around it are what a lost block leaves behind in a file.
    fn read_line(&self, file: &mut Self::File, bytes: &[u8], emitter: &mut Emitter<'_>) -> Result<Read, Stop> {
        let is_filling = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
        let Some(from) = bytes.iter().position(|byte| !is_filling(byte)) else { return Ok(Read::Fine) };
        let to = bytes.iter().rposition(|byte| !is_filling(byte)).map_or(from, |last| last + 1);
        let Ok(text) = std::str::from_utf8(&bytes[from..to]) else {
            // Names and meanings are ASCII; what is lost is single letters of a text.
            let text = String::from_utf8_lossy(&bytes[from..to]);
            let is_read = self.line(file, &text, emitter)?;
            return Ok(Read::Trouble(if is_read { Trouble::WrongEncoding } else { Trouble::NotReadable }));
        };
        let is_read = self.line(file, text, emitter)?;
        Ok(if is_read { Read::Fine } else { Read::Trouble(Trouble::NotReadable) })
    }
}

impl<T: Transcripts> ReadLine for T {}

/// Why a file was left: it, or all of it.
enum Failed {
    File(io::Error),
    Stop(Stop),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

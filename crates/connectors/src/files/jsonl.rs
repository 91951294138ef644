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
use super::trouble::{Failed, Spot, Trouble, Troubles};
use super::walk::{Found, Listing};
use gleaner_sdk::protocol::Progress;
use gleaner_sdk::{Collect, Emitter, Left, SliceEnd, Stop};
use std::borrow::Cow;
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
pub(crate) const HEAD_BYTES: usize = 256 * 1024;

/// What a connector says about its files. Pure: it is handed texts.
pub(crate) trait Transcripts {
    /// What is known of a file while it is read.
    type File;

    /// All streams. The first of them that is asked for carries the cursor of all.
    const STREAMS: &'static [&'static str];

    /// Whether a file is one of the source.
    fn is_wanted(&self, path: &FilePath) -> bool;

    /// Begins with a file, or goes on with it: then `note` is what was kept of it. `head` is its beginning.
    fn open(&self, path: &FilePath, note: Option<&str>, head: &[u8]) -> Self::File;

    /// Sends what a line says, and answers what of it was left out. It is never empty.
    fn line(&self, file: &mut Self::File, line: &str, emitter: &mut Emitter<'_>) -> Result<LineRead, Stop>;

    /// The end of the file was reached.
    fn end(&self, file: &mut Self::File, emitter: &mut Emitter<'_>) -> Result<(), Stop>;

    /// What is to be kept of a file until it grows: short.
    fn note(&self, file: &Self::File) -> String;

    /// A file that was read once is gone, and no other has its name.
    fn gone(&self, path: &FilePath, emitter: &mut Emitter<'_>) -> Result<(), Stop>;
}

/// Keeps the later of two times. As text they sort like the times.
pub(crate) fn later(last: &mut Option<String>, time: Option<Cow<'_, str>>) {
    if let Some(time) = time.filter(|time| last.as_deref().is_none_or(|last| last < &**time)) {
        *last = Some(time.into_owned());
    }
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// All of it was sent, or is nothing that is collected.
    Whole,
    /// A part of it has no name, so it could not be sent.
    InPart,
    /// It is not what a line should be.
    NotAtAll,
}

/// Collects everything beneath a place.
pub(crate) fn collect<T: Transcripts>(run: &mut Collect<'_>, place: &Place, transcripts: &T) -> Result<(), Stop> {
    let asked = |stream: &&&str| run.scope(stream).is_some();
    let Some(carrier) = T::STREAMS.iter().find(asked).copied() else { return Ok(()) };
    let root = place.open()?;
    let mut listing = root.walk(|path| transcripts.is_wanted(path)).map_err(|error| place.fault(&error))?;
    listing.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let scope = scope_word(run, T::STREAMS);
    let marks = Marks::of_cursor(run.cursor(carrier), &scope);
    // A line that cannot be read is most likely a message.
    let lost = if run.scope("messages").is_some() { "messages" } else { carrier };
    let troubles = Troubles::take(run, lost, T::STREAMS)?;
    let mut work = Work::new(transcripts, &root, marks, listing, troubles);
    work.listing.tell(&root, |path| transcripts.is_wanted(path), &mut work.troubles, run.emitter())?;
    let left = run.slices(carrier, |emitter| {
        let is_last = work.slice(emitter)?;
        let cursor = work.marks.to_cursor(&scope);
        Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
    })?;
    if left == Left::Finished {
        // The cursor of one stream covers them all.
        T::STREAMS.iter().for_each(|stream| run.finished(stream));
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
    /// What else the walk found; its files are in `files`.
    listing: Listing,
    /// Every path that was found, for gaps of files that are not there any more.
    paths: HashSet<FilePath>,
    /// The file in the middle of which a slice ended.
    current: Option<Current<T::File>>,
    buffer: Vec<u8>,
}

struct Current<F> {
    path: FilePath,
    opened: Opened,
    /// Where reading began in this run.
    from: u64,
    offset: u64,
    file: F,
    /// Something is missing for which there was no room for a gap of its own: the file is read again by the next run.
    is_unmarked: bool,
}

impl<'w, T: Transcripts> Work<'w, T> {
    fn new(transcripts: &'w T, root: &'w Root, mut marks: Marks, mut listing: Listing, troubles: Troubles) -> Self {
        let gone = gone(&mut marks, &listing);
        let mut files = std::mem::take(&mut listing.files);
        let paths =
            if troubles.has_served() { files.iter().map(|found| found.path.clone()).collect() } else { HashSet::new() };
        // What nobody wrote to is read again where something in it was missing, after everything else.
        files.retain(|found| !marks.is_same(found) || troubles.concern(&found.path));
        files.sort_by_cached_key(|found| (!marks.is_same(found), found.stamp.modified, found.path.clone()));
        let files_total = files.len();
        let (current, buffer) = (None, Vec::new());
        Self { transcripts, root, marks, troubles, files, files_total, gone, listing, paths, current, buffer }
    }

    /// Sends one slice; whether it was the last.
    fn slice(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let budget = SLICE_BYTES.max(self.marks.bytes as u64 * CURSOR_SHARE);
        let mut spent = 0;
        while spent < budget {
            let Some(mut current) = self.next_file(emitter)? else {
                self.finish(emitter)?;
                return Ok(true);
            };
            spent += FILE_COST;
            match self.read(&mut current, budget, &mut spent, emitter) {
                Ok(true) => {
                    self.leave(&current, true, emitter)?;
                    self.troubles.settle(emitter, &current.path, current.from)?;
                }
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
            // Something in it is missing, so it is read again from its beginning.
            Some(mark) if mark.is_finished() && self.troubles.concern(path) => None,
            Some(mark) if mark.change(&opened)? == Change::Grown => Some(mark),
            Some(_) | None => None,
        };
        let head = opened.head(HEAD_BYTES)?;
        let file = self.transcripts.open(path, mark.map(|mark| mark.note.as_str()), &head);
        let from = mark.map_or(0, |mark| mark.offset);
        Ok(Current { path: path.clone(), opened, from, offset: from, file, is_unmarked: false })
    }

    /// Reads on; whether the end of the file was reached.
    fn read(
        &mut self,
        current: &mut Current<T::File>,
        budget: u64,
        spent: &mut u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<bool, Failed> {
        let Current { path, opened, offset, file, is_unmarked, .. } = current;
        let mut lines = Lines::new(&opened.file, *offset, &mut self.buffer);
        loop {
            let at = lines.offset();
            let Some(line) = lines.next()? else { break };
            let trouble = match line {
                Line::Whole(bytes) => read_line(self.transcripts, file, bytes, emitter)?,
                Line::Unfinished(bytes) => {
                    // A whole object is one, with a line feed or without; half of one waits.
                    let trouble = read_line(self.transcripts, file, bytes, emitter)?;
                    let is_half = trouble == Some(Trouble::NOT_READABLE);
                    if !is_half {
                        lines.take_unfinished();
                    }
                    trouble.filter(|_| !is_half)
                }
                Line::TooLong { .. } => Some(Trouble::LINE_TOO_LONG),
            };
            if let Some(trouble) = trouble {
                *is_unmarked |= !self.troubles.tell(emitter, trouble, &Spot::line(path, at))?;
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
        if current.is_unmarked {
            self.marks.remove(&current.path);
            return Ok(());
        }
        let note = self.transcripts.note(&current.file);
        match Mark::new(&current.opened, current.offset, is_finished, note) {
            Ok(mark) => self.marks.set_or_say(&current.path, mark, emitter),
            Err(error) => self.troubles.unreadable(emitter, &current.path, error.kind()),
        }
    }

    /// Everything was looked at.
    fn finish(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        for path in std::mem::take(&mut self.gone) {
            self.transcripts.gone(&path, emitter)?;
            self.marks.remove(&path);
        }
        let Self { listing, paths, troubles, .. } = self;
        troubles.close(emitter, |path| !paths.contains(path) && listing.is_gone(path))
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

/// A line as bytes; what is wrong with it. Zeroes around it are what a lost block leaves behind in a file.
fn read_line<T: Transcripts>(
    transcripts: &T,
    file: &mut T::File,
    bytes: &[u8],
    emitter: &mut Emitter<'_>,
) -> Result<Option<Trouble>, Stop> {
    let is_filling = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let Some(from) = bytes.iter().position(|byte| !is_filling(byte)) else { return Ok(None) };
    let to = bytes.iter().rposition(|byte| !is_filling(byte)).map_or(from, |last| last + 1);
    // Names and meanings are ASCII; where bytes are replaced, single letters of a text are lost.
    let text = String::from_utf8_lossy(&bytes[from..to]);
    let is_replaced = matches!(text, Cow::Owned(_));
    let rejected_before = emitter.counts().rejected;
    Ok(match transcripts.line(file, &text, emitter)? {
        LineRead::NotAtAll => Some(Trouble::NOT_READABLE),
        _ if emitter.counts().rejected > rejected_before => Some(Trouble::REJECTED),
        LineRead::InPart => Some(Trouble::PART_LEFT_OUT),
        LineRead::Whole => is_replaced.then_some(Trouble::WRONG_ENCODING),
    })
}

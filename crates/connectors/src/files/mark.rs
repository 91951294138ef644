//! What was read of one file, and what became of the file since.
//!
//! Why by content: a file that has the same size or a newer time may be another one. Why not all of its content: then a
//! grown file would cost all of it, and not its growth. So what is remembered is the end of what was read, and a sum over
//! the first and the last bytes before it. A file that only grew has both unchanged; one that was written anew, cut off or
//! put in another's place has not. A file that changed and did not grow was written over, and is read again. What is
//! missed is a change in the middle, of the same length, in a file that grew in the same interval.

use super::root::{Opened, Stamp};
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// How much of the beginning and of the end goes into the sum. A page of the file system each.
const WINDOW_BYTES: usize = 4096;

/// How far one file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Everything before this place was read.
    pub(crate) offset: u64,
    /// How large the file was.
    pub(super) size: u64,
    /// The file system's view of the file that was read to its end; zero while it is not.
    pub(super) stamp: u64,
    /// The sum over both windows.
    pub(super) content: u64,
    /// What the connector keeps of the file: short, any text.
    pub(crate) note: String,
}

/// What became of a file since it was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There is more behind the mark, or there may be. What lies before it is as it was.
    Grown,
    /// It is another file now, and is read from its beginning.
    Rewritten,
}

impl Mark {
    /// Marks a file that was read up to `offset`. `is_finished` says that there was nothing more for now.
    pub(crate) fn new(opened: &Opened, offset: u64, is_finished: bool, note: String) -> io::Result<Self> {
        let stamp = opened.stamp;
        let content = sum(opened, offset)?;
        Ok(Self { offset, size: stamp.size, stamp: if is_finished { stamp.sum } else { 0 }, content, note })
    }

    /// Whether it was read to its end.
    pub(crate) const fn is_finished(&self) -> bool {
        self.stamp != 0
    }

    /// Forgets how far the file was read, and not that it is known: what of it is asked for has changed.
    pub(super) fn unread(&mut self) {
        *self = Self { offset: 0, size: 0, stamp: 0, content: Xxh3::new().digest(), note: String::new() };
    }

    /// Whether nobody wrote to the file since it was read to its end: it need not even be opened.
    pub(crate) const fn is_same(&self, stamp: Stamp) -> bool {
        self.stamp == stamp.sum
    }

    /// What became of a file that is not the same.
    pub(crate) fn change(&self, opened: &Opened) -> io::Result<Change> {
        let size = opened.stamp.size;
        let was_finished = self.stamp != 0;
        let is_shorter = size < self.offset || (was_finished && size <= self.size);
        let is_grown = !is_shorter && sum(opened, self.offset)? == self.content;
        Ok(if is_grown { Change::Grown } else { Change::Rewritten })
    }
}

fn sum(opened: &Opened, offset: u64) -> io::Result<u64> {
    let window = usize::try_from(offset).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
    let mut hash = Xxh3::new();
    hash.update(&opened.window(0, window)?);
    // A short file has one window.
    if offset > window as u64 {
        hash.update(&opened.window(offset - window as u64, window)?);
    }
    Ok(hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FilePath, Root};
    use std::fs;
    use std::path::Path;

    fn open(folder: &Path) -> Opened {
        Root::open(folder).unwrap().open_file(&FilePath::parse("f").unwrap()).unwrap()
    }

    /// A file of lines, marked at its end; then it is changed.
    fn after(change: impl FnOnce(&Path, Vec<u8>)) -> Option<Change> {
        let place = tempfile::tempdir().unwrap();
        let bytes = (0..2000).flat_map(|n| format!("line {n}\n").into_bytes()).collect::<Vec<_>>();
        fs::write(place.path().join("f"), &bytes).unwrap();
        let mark = Mark::new(&open(place.path()), bytes.len() as u64, true, String::new()).unwrap();
        change(&place.path().join("f"), bytes);
        let opened = open(place.path());
        if mark.is_same(opened.stamp) { None } else { Some(mark.change(&opened).unwrap()) }
    }

    #[test]
    fn growth_is_told_from_everything_else_that_may_happen_to_a_file() {
        assert_eq!(after(|_, _| {}), None);
        assert_eq!(
            after(|path, bytes| fs::write(path, [&bytes[..], b"more\n"].concat()).unwrap()),
            Some(Change::Grown)
        );
        let rewritten: [fn(&Path, Vec<u8>); 5] = [
            // Cut off, begun anew, a line more in front, a line less in the middle and more at the end, as large as before.
            |path, bytes| fs::write(path, &bytes[..500]).unwrap(),
            |path, _| fs::write(path, vec![b'x'; 100_000]).unwrap(),
            |path, bytes| fs::write(path, [b"first\n", &bytes[..]].concat()).unwrap(),
            |path, bytes| fs::write(path, [&bytes[..9000], &bytes[9010..], &bytes[..100]].concat()).unwrap(),
            |path, mut bytes| {
                bytes[9000] ^= 1;
                fs::write(path, bytes).unwrap();
            },
        ];
        for (number, change) in rewritten.into_iter().enumerate() {
            assert_eq!(after(change), Some(Change::Rewritten), "case {number}");
        }
    }

    #[test]
    fn a_rotated_file_is_another_one_even_if_it_begins_alike() {
        let change = after(|path, bytes| {
            fs::rename(path, path.with_extension("1")).unwrap();
            fs::write(path, &bytes[..4096]).unwrap();
        });
        assert_eq!(change, Some(Change::Rewritten));
    }

    #[test]
    fn a_file_whose_mark_was_forgotten_is_read_from_its_beginning() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("f"), vec![b'a'; 10_000]).unwrap();
        let opened = open(place.path());
        let mut mark = Mark::new(&opened, 10_000, true, "7".to_owned()).unwrap();
        mark.unread();
        assert!(!mark.is_same(opened.stamp));
        assert_eq!((mark.change(&opened).unwrap(), mark.offset, mark.note.as_str()), (Change::Grown, 0, ""));
    }

    #[test]
    fn a_file_that_was_left_in_the_middle_goes_on_there() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("f"), vec![b'a'; 10_000]).unwrap();
        let opened = open(place.path());
        let mark = Mark::new(&opened, 5000, false, "7".to_owned()).unwrap();
        assert!(!mark.is_same(opened.stamp));
        assert_eq!(mark.change(&opened).unwrap(), Change::Grown);
    }
}

//! What a disk may hold after a power cut, given what it was asked to do.
//!
//! The model, on the cruel side of what file systems promise. What was synced is there. Of the changes
//! of a file after its last sync, any may be there, in any combination, a write also in part: a sector
//! of 512 bytes is written wholly or not at all, bytes beside the written ones are left alone. A file
//! that has grown may show zeros where nothing arrived. Names: a sync of the folder makes all of them
//! durable, a sync of a file makes its own name durable; without either, each change of a name may have
//! happened or not. Files do not wait for each other. A rename is one change: it happens whole.

use super::recording::Step;
use std::collections::BTreeMap;
use std::ops::Range;

/// What is written wholly or not at all.
const SECTOR: usize = 512;

/// What became of the changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// None of them happened.
    All,
    /// Some of them happened.
    Some,
    /// Those up to some moment happened.
    Later,
    /// Those up to some moment happened, and the next one in part.
    Torn,
    /// Some of them happened, but the size is that of all of them.
    Content,
}

impl Loss {
    pub(crate) const KINDS: [Self; 5] = [Self::All, Self::Some, Self::Later, Self::Torn, Self::Content];
}

/// What is left after a cut: which files under which names, and what of each. Cheap to compare: equal
/// ones make the same image, and others hardly ever do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Left {
    files: BTreeMap<String, (usize, LeftOfFile)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LeftOfFile {
    /// How often it was synced with something to sync.
    syncs: usize,
    /// The changes since, by their index.
    changes: Vec<(usize, Part)>,
    /// How long it is, where that does not follow from the changes.
    len: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Whole,
    /// Only these of its sectors.
    Sectors(Vec<bool>),
}

/// The files of a folder after the cut, by name.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// A folder on a disk: what is durable, and what was asked for since.
#[derive(Debug, Default)]
pub(crate) struct Disk<'r> {
    files: Vec<File<'r>>,
    /// What a process sees.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
}

#[derive(Debug, Default)]
struct File<'r> {
    durable: Vec<u8>,
    syncs: usize,
    changes: Vec<Change<'r>>,
}

#[derive(Clone, Copy, Debug)]
enum Change<'r> {
    Write { offset: usize, bytes: &'r [u8] },
    Append { bytes: &'r [u8] },
    Truncate { len: usize },
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(String, usize),
    Unlink(String),
    Rename(String, String, usize),
}

impl NameChange {
    fn is_about(&self, name: &str) -> bool {
        match self {
            Self::Link(of, _) | Self::Unlink(of) => of == name,
            // Syncing a file does not say under which of its names.
            Self::Rename(..) => false,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Unlink(name) => drop(names.remove(name)),
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

impl<'r> Disk<'r> {
    pub(crate) fn take(&mut self, step: &'r Step) {
        match step {
            Step::Create(name) if self.names.contains_key(name) => {}
            Step::Create(name) => {
                self.files.push(File::default());
                self.change_name(NameChange::Link(name.clone(), self.files.len() - 1));
            }
            Step::Write { file, offset, bytes } => self.change(file, Change::Write { offset: at(*offset), bytes }),
            Step::Append { file, bytes } => self.change(file, Change::Append { bytes }),
            Step::Truncate { file, len } => self.change(file, Change::Truncate { len: at(*len) }),
            Step::Sync(name) => self.sync(name),
            Step::SyncFolder => {
                self.durable_names.clone_from(&self.names);
                self.name_changes.clear();
            }
            Step::Unlink(name) => self.change_name(NameChange::Unlink(name.clone())),
            Step::Rename { from, to } => {
                let file = self.file(from);
                self.change_name(NameChange::Rename(from.clone(), to.clone(), file));
            }
            Step::Start | Step::Fetched | Step::Acknowledged(_) | Step::Done => {}
        }
    }

    fn file(&self, name: &str) -> usize {
        *self.names.get(name).unwrap_or_else(|| panic!("the log does not say where {name} comes from"))
    }

    fn change(&mut self, name: &str, change: Change<'r>) {
        let file = self.file(name);
        self.files[file].changes.push(change);
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn sync(&mut self, name: &str) {
        let index = self.file(name);
        let file = &mut self.files[index];
        file.syncs += usize::from(!file.changes.is_empty());
        for change in std::mem::take(&mut file.changes) {
            change.apply(&mut file.durable, &Part::Whole);
        }
        if self.name_changes.iter().any(|change| change.is_about(name)) {
            self.name_changes.retain(|change| !change.is_about(name));
            self.durable_names.insert(name.to_owned(), index);
        }
    }

    /// Whether every change is durable.
    pub(crate) fn is_quiet(&self) -> bool {
        self.name_changes.is_empty() && self.names.values().all(|&file| self.files[file].changes.is_empty())
    }

    /// One of the ways in which the folder may look after a cut at this moment.
    pub(crate) fn cut(&self, loss: Loss, random: &mut fastrand::Rng) -> Left {
        let mut names = self.durable_names.clone();
        for change in &self.name_changes {
            if loss != Loss::All && random.bool() {
                change.apply(&mut names);
            }
        }
        let files = names.into_iter().map(|(name, file)| (name, (file, self.files[file].cut(loss, random))));
        Left { files: files.collect() }
    }

    pub(crate) fn image(&self, left: &Left) -> Image {
        left.files.iter().map(|(name, (file, left))| (name.clone(), self.files[*file].image(left))).collect()
    }
}

impl File<'_> {
    fn cut(&self, loss: Loss, random: &mut fastrand::Rng) -> LeftOfFile {
        let (until, share) = (random.usize(..=self.changes.len()), random.f64());
        let some = |random: &mut fastrand::Rng| (0..self.changes.len()).filter(|_| random.f64() < share).collect();
        let whole = match loss {
            Loss::All => Vec::new(),
            Loss::Some | Loss::Content => some(random),
            Loss::Later | Loss::Torn => (0..until).collect::<Vec<_>>(),
        };
        let len = whole.iter().fold(self.durable.len(), |len, index| self.changes[*index].len_after(len));
        let mut changes = whole.into_iter().map(|index| (index, Part::Whole)).collect::<Vec<_>>();
        if loss == Loss::Torn
            && let Some(part) = self.changes.get(until).and_then(|torn| torn.tear(len, random))
        {
            changes.push((until, part));
        }
        let shown = (loss == Loss::Content).then(|| self.len()).filter(|&shown| shown != len);
        LeftOfFile { syncs: self.syncs, changes, len: shown }
    }

    fn image(&self, left: &LeftOfFile) -> Vec<u8> {
        let mut content = self.durable.clone();
        for (index, part) in &left.changes {
            self.changes[*index].apply(&mut content, part);
        }
        content.resize(left.len.unwrap_or(content.len()), 0);
        content
    }

    /// How long it is for a process.
    fn len(&self) -> usize {
        self.changes.iter().fold(self.durable.len(), |len, change| change.len_after(len))
    }
}

impl Change<'_> {
    fn apply(&self, content: &mut Vec<u8>, part: &Part) {
        let (offset, bytes) = match self {
            Self::Truncate { len } => return content.resize(*len, 0),
            Self::Write { offset, bytes } => (*offset, *bytes),
            Self::Append { bytes } => (content.len(), *bytes),
        };
        match part {
            Part::Whole => put(content, offset, bytes),
            Part::Sectors(sectors) => {
                let kept = sectors_of(offset, bytes.len()).zip(sectors).filter(|(_, is_kept)| **is_kept);
                kept.for_each(|(range, _)| put(content, offset + range.start, &bytes[range]));
            }
        }
    }

    /// The sectors up to one of them, or any of them, of a file that is so long. `None` if none is left.
    fn tear(&self, len: usize, random: &mut fastrand::Rng) -> Option<Part> {
        let sectors = match self {
            Self::Write { offset, bytes } => sectors_of(*offset, bytes.len()).count(),
            Self::Append { bytes } => sectors_of(len, bytes.len()).count(),
            // The length of a file is no matter of sectors.
            Self::Truncate { .. } => return Some(Part::Whole),
        };
        let (in_order, until) = (random.bool(), random.usize(..=sectors));
        let is_left = |sector| if in_order { sector < until } else { random.bool() };
        let left = (0..sectors).map(is_left).collect::<Vec<_>>();
        match left.iter().filter(|is_left| **is_left).count() {
            0 => None,
            count if count == sectors => Some(Part::Whole),
            _ => Some(Part::Sectors(left)),
        }
    }

    fn len_after(&self, len: usize) -> usize {
        match self {
            Self::Write { offset, bytes } => len.max(offset + bytes.len()),
            Self::Append { bytes } => len + bytes.len(),
            Self::Truncate { len } => *len,
        }
    }
}

/// The parts of a write that lie in one sector each. Sectors lie on the disk, not in the write.
fn sectors_of(offset: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    let sectors = offset / SECTOR..(offset + len).div_ceil(SECTOR);
    sectors.map(move |sector| (sector * SECTOR).saturating_sub(offset)..len.min((sector + 1) * SECTOR - offset))
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

//! What becomes durable together: records, changes of gaps, and the cursor that covers them.
//!
//! Why its own type and not a list of messages: a run has millions of records, and one text per slice
//! with places in it costs a copy of each line and nothing more. Why it cannot be made outside: the
//! one way to a [`Receipt`] is a slice that a run gave out, so nobody can vouch for a cursor without
//! having been handed what it covers. A slice too large to hold is given out in parts; its cursor is
//! in the last of them. It never prints what it holds.

use crate::checkpoint::{Cursor, Receipt, Track};
use crate::ids::{Epoch, GapId, LeaseId, SliceId};
use crate::run::Counts;
use crate::scope::Misfit;
use gleaner_protocol::{DetailGap, Op, Record};
use std::ops::Range;
use std::sync::Arc;

/// Records, gaps and cursors that a store writes in one transaction.
#[must_use = "a slice that is not written is lost"]
pub struct Slice<T: Track> {
    id: SliceId,
    streams: Arc<[String]>,
    text: String,
    records: Vec<Entry>,
    rejected: Vec<(Entry, Misfit)>,
    gap_changes: Vec<GapChange>,
    /// How many records were said before each of them.
    records_before: Vec<usize>,
    staged: Vec<Cursor<T>>,
    committed: Vec<Cursor<T>>,
    /// What gaps and cursors hold besides the text.
    other_bytes: usize,
}

/// A record of a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SliceRecord<'a> {
    /// The stream.
    pub stream: &'a str,
    /// The key as one text; several parts as minified JSON.
    pub key: &'a str,
    /// What happened to it.
    pub op: Op,
    /// The body, byte for byte.
    pub body: Option<&'a str>,
    /// When the connector wrote it.
    pub emitted_at: Option<&'a str>,
    /// Whether there is a time range and its time could not be read.
    pub without_time: bool,
}

/// A record or a change of a gap.
#[derive(Clone, Copy, Debug)]
pub enum SliceStep<'a> {
    /// A record to store.
    Record(SliceRecord<'a>),
    /// What happens to a gap.
    Gap(&'a GapChange),
}

/// What happens to a gap, in the order in which it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapChange {
    /// It is there, or there again. See [`Gap::defer`](crate::Gap::defer).
    Open(Box<DetailGap>),
    /// It was tried. See [`Gap::attempt`](crate::Gap::attempt).
    Attempt {
        /// Which.
        gap_id: GapId,
        /// Under which lease.
        lease: LeaseId,
    },
    /// It is closed, if this lease holds it and the store confirms it. See [`Gap::recover`](crate::Gap::recover).
    Recover {
        /// Which.
        gap_id: GapId,
        /// Of which stream, as the connector says.
        stream: String,
        /// Under which lease.
        lease: LeaseId,
    },
}

impl GapChange {
    /// What it holds, roughly: a locator may be as large as a line, and so may a key or an id.
    fn bytes(&self) -> usize {
        let gap = match self {
            Self::Open(gap) => gap,
            Self::Attempt { gap_id, lease } | Self::Recover { gap_id, lease, stream: _ } => {
                return gap_id.as_str().len() + lease.as_str().len();
            }
        };
        let raws = [&gap.detail_locator, &gap.list_cursor, &gap.detail];
        let raws = raws.into_iter().flatten().map(|raw| raw.as_str().len()).sum::<usize>();
        let error = gap.last_error.as_ref().map_or(0, |error| error.raw.as_str().len() + error.class.len());
        let texts = [&gap.parent_stream, &gap.not_before, &gap.gap_id, &gap.lease_id];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        raws + error + texts + gap.record_key.as_ref().map_or(0, |key| key.as_str().len())
    }
}

struct Entry {
    stream: u16,
    op: Op,
    key: Range<usize>,
    body: Option<Range<usize>>,
    emitted_at: Option<Range<usize>>,
    without_time: bool,
}

impl<T: Track> Slice<T> {
    /// Its place in the order of writing. Slices are written in this order, and none after one that
    /// could not be written.
    #[must_use]
    pub const fn id(&self) -> SliceId {
        self.id
    }

    /// The records to store, in order: of one key the last counts.
    pub fn records(&self) -> impl ExactSizeIterator<Item = SliceRecord<'_>> {
        self.records.iter().map(|entry| self.view(entry))
    }

    /// The records for the quarantine, each with its fault.
    pub fn rejected(&self) -> impl ExactSizeIterator<Item = (SliceRecord<'_>, &Misfit)> {
        self.rejected.iter().map(|(entry, misfit)| (self.view(entry), misfit))
    }

    /// What happens to gaps, in order.
    #[must_use]
    pub fn gap_changes(&self) -> &[GapChange] {
        &self.gap_changes
    }

    /// Records and changes of gaps in the order in which they were said: a gap is settled by what came before.
    pub fn steps(&self) -> impl Iterator<Item = SliceStep<'_>> {
        let mut changes = self.gap_changes.iter().zip(&self.records_before).peekable();
        let mut records = self.records().enumerate().peekable();
        std::iter::from_fn(move || {
            let nth = records.peek().map_or(usize::MAX, |(nth, _)| *nth);
            match changes.next_if(|(_, before)| **before <= nth) {
                Some((change, _)) => Some(SliceStep::Gap(change)),
                None => records.next().map(|(_, record)| SliceStep::Record(record)),
            }
        })
    }

    /// Cursors that are kept with the slice and do not count before a [`CommitPlan`](crate::CommitPlan)
    /// names them.
    #[must_use]
    pub fn staged(&self) -> &[Cursor<T>] {
        &self.staged
    }

    /// Cursors that count as soon as this slice is durable.
    #[must_use]
    pub fn committed(&self) -> &[Cursor<T>] {
        &self.committed
    }

    /// The proof that the slice is durable. For stores, after the transaction was synced, never before.
    pub fn into_receipt(self, epoch: Epoch, written: Counts) -> Receipt<T> {
        Receipt { slice: self.id, epoch, staged: self.staged, committed: self.committed, written }
    }

    fn view(&self, entry: &Entry) -> SliceRecord<'_> {
        let text = |range: &Range<usize>| &self.text[range.clone()];
        SliceRecord {
            stream: &self.streams[usize::from(entry.stream)],
            key: text(&entry.key),
            op: entry.op,
            body: entry.body.as_ref().map(text),
            emitted_at: entry.emitted_at.as_ref().map(text),
            without_time: entry.without_time,
        }
    }
}

/// How much, never what.
impl<T: Track> std::fmt::Debug for Slice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, records, rejected, gap_changes, .. } = self;
        let counts = (records.len(), rejected.len(), gap_changes.len());
        write!(f, "Slice({}: {} records, {} rejected, {} changes of gaps)", id.get(), counts.0, counts.1, counts.2)
    }
}

/// Only how large the record is.
impl std::fmt::Debug for SliceRecord<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SliceRecord({} bytes)", self.body.map_or(0, str::len))
    }
}

/// Fills slices.
#[derive(Debug)]
pub(crate) struct SliceBuilder<T: Track> {
    streams: Arc<[String]>,
    open: Slice<T>,
}

impl<T: Track> SliceBuilder<T> {
    pub(crate) fn new(streams: Arc<[String]>) -> Self {
        let open = Slice::empty(SliceId::new(1), Arc::clone(&streams));
        Self { streams, open }
    }

    /// Of one key the last counts, so an earlier one that did not fit and is not out yet is dropped.
    pub(crate) fn record(&mut self, stream: u16, record: &Record<'_>, without_time: bool) {
        let entry = Entry { without_time, ..self.enter(stream, record) };
        let Slice { text, rejected, records, .. } = &mut self.open;
        let is_same = |other: &Entry| other.stream == stream && text[other.key.clone()] == text[entry.key.clone()];
        rejected.retain(|(other, _)| !is_same(other));
        records.push(entry);
    }

    pub(crate) fn reject(&mut self, stream: u16, record: &Record<'_>, misfit: Misfit) {
        let entry = self.enter(stream, record);
        self.open.rejected.push((entry, misfit));
    }

    pub(crate) fn gap(&mut self, change: GapChange) {
        self.open.other_bytes += change.bytes();
        self.open.gap_changes.push(change);
        self.open.records_before.push(self.open.records.len());
    }

    /// Of one stream the last cursor counts, so an earlier one that is not out yet is dropped.
    pub(crate) fn stage(&mut self, cursor: Cursor<T>) {
        self.open.staged.retain(|other| other.stream() != cursor.stream());
        self.open.other_bytes += cursor.token().as_str().len();
        self.open.staged.push(cursor);
    }

    pub(crate) fn commit(&mut self, cursor: Cursor<T>) {
        self.open.staged.retain(|other| other.stream() != cursor.stream());
        self.open.committed.push(cursor);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let open = &self.open;
        open.items() == 0 && open.staged.is_empty() && open.committed.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.text.len() + self.open.other_bytes >= PART_BYTES_MAX || self.open.items() >= PART_ITEMS_MAX
    }

    /// What was filled so far, unless there is nothing.
    pub(crate) fn take(&mut self) -> Option<Slice<T>> {
        if self.is_empty() {
            return None;
        }
        let next = Slice::empty(self.open.id.next(), Arc::clone(&self.streams));
        Some(std::mem::replace(&mut self.open, next))
    }

    fn enter(&mut self, stream: u16, record: &Record<'_>) -> Entry {
        let text = &mut self.open.text;
        let mut put = |part: &str| {
            let start = text.len();
            text.push_str(part);
            start..text.len()
        };
        Entry {
            stream,
            op: record.op,
            key: put(&record.key.canonical()),
            body: record.data.as_ref().map(|body| put(body.as_str())),
            emitted_at: record.emitted_at.as_deref().map(put),
            without_time: false,
        }
    }
}

/// After this many bytes a part is given out. One line may be larger (16 MiB), so this bounds what is
/// held to the larger of the two; a mebibyte is some 2,000 records, where one sync costs little per record.
const PART_BYTES_MAX: usize = 1024 * 1024;
/// After this many records and gaps a part is given out: small records count too.
const PART_ITEMS_MAX: usize = 1000;

impl<T: Track> Slice<T> {
    const fn empty(id: SliceId, streams: Arc<[String]>) -> Self {
        Self {
            id,
            streams,
            text: String::new(),
            records: Vec::new(),
            rejected: Vec::new(),
            gap_changes: Vec::new(),
            records_before: Vec::new(),
            staged: Vec::new(),
            committed: Vec::new(),
            other_bytes: 0,
        }
    }

    const fn items(&self) -> usize {
        self.records.len() + self.rejected.len() + self.gap_changes.len()
    }
}

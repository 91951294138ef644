//! The short way of an ordinary request past the lock of its key.
//!
//! Most requests of a busy key are alike: they are due, they succeed, the answer is not late. The law need not
//! see each of them; it is enough that it sees sixteen at a time. So whoever holds the key's lock may open
//! this lane: it states the pace, and until when and how often it holds. Then a request is admitted, and its
//! success told, with one compare-and-swap each. Whatever is not ordinary takes the lock, which closes the
//! lane, and what happened in it is told to the law first.
//!
//! Everything that decides is in one word, so there is nothing to be seen half-changed: when the next send is
//! due, how many are in flight, and how many sends and answers the law does not know of yet. Only the holder of
//! the key's lock opens and closes.

use super::stats::{pack, unpack};
use crate::time::Time;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Sends, and answers, after which the law is told.
pub(crate) const BATCH: usize = 16;

const OPEN: u64 = 1;
const SENDS: Field = Field { shift: 1, bits: 5 };
const ANSWERS: Field = Field { shift: 6, bits: 5 };
const IN_FLIGHT: Field = Field { shift: 11, bits: 9 };
const DUE: Field = Field { shift: 20, bits: 44 };

/// Most requests in flight that the word can count.
const IN_FLIGHT_MAX: u64 = (1 << IN_FLIGHT.bits) - 1;

/// A part of the word.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    const fn of(self, word: u64) -> u64 {
        (word >> self.shift) & ((1 << self.bits) - 1)
    }

    const fn one(self) -> u64 {
        1 << self.shift
    }

    /// `None` when the value does not fit.
    const fn put(self, value: u64) -> Option<u64> {
        if value >> self.bits == 0 { Some(value << self.shift) } else { None }
    }
}

/// What the lane promises while it is open. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// When the next send is due.
    pub(crate) due: Time,
    /// Between two sends in the long run, and at least.
    pub(crate) interval: u64,
    pub(crate) gap: u64,
    /// The lane ends.
    pub(crate) until: Time,
    /// Answers to what was sent before do not count.
    pub(crate) since: Time,
    /// An answer is late after.
    pub(crate) late: u64,
    pub(crate) generation: u16,
    /// The number of the last send.
    pub(crate) seq: u32,
    pub(crate) in_flight: u16,
    pub(crate) in_flight_max: u16,
    /// Answers after which the law wants to know.
    pub(crate) answers_max: u8,
}

/// What happened in the lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) sends: u16,
    pub(crate) answers: u16,
    pub(crate) in_flight: u16,
    /// Most others in flight beside a request that was answered.
    pub(crate) others: u16,
    /// When the next send is due.
    pub(crate) due: Time,
    /// Packed latencies, one per answer.
    pub(crate) samples: [u16; BATCH],
}

impl Batch {
    /// Packed latencies of the answers.
    pub(crate) fn latencies(&self) -> &[u16] {
        &self.samples[..usize::from(self.answers).min(BATCH)]
    }

    /// Mean latency in microseconds; zero without answers.
    pub(crate) fn mean_micros(&self) -> u64 {
        let sum: u64 = self.latencies().iter().map(|&sample| unpack(sample)).sum();
        sum.checked_div(u64::from(self.answers)).unwrap_or(0)
    }
}

#[derive(Debug)]
pub(crate) struct Express {
    word: AtomicU64,
    /// Where the word's time begins: nanoseconds since then fit into it for hours.
    origin: AtomicU64,
    /// `gap` and `interval`, 32 bits each.
    pace: AtomicU64,
    /// `until` after the origin and `since` before it, 32 bits each.
    span: AtomicU64,
    /// `late` (32 bits), `generation` (16), answers and requests in flight at most (8 each).
    bounds: AtomicU64,
    seq: AtomicU32,
    others: AtomicU16,
    samples: [AtomicU16; BATCH],
}

/// How a request went through the lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) seq: u32,
    pub(crate) others: u16,
    pub(crate) generation: u16,
}

impl Express {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            origin: AtomicU64::new(0),
            pace: AtomicU64::new(0),
            span: AtomicU64::new(0),
            bounds: AtomicU64::new(0),
            seq: AtomicU32::new(0),
            others: AtomicU16::new(0),
            samples: [const { AtomicU16::new(0) }; BATCH],
        }
    }

    /// Opens the lane, if its terms can be written down. To be called with the key's lock held, and closed.
    pub(crate) fn open(&self, terms: &Terms, now: Time) {
        // Who sends once in four seconds can take the long way.
        let short = |nanos: u64| u32::try_from(nanos).map(u64::from);
        let (Ok(interval), Ok(gap)) = (short(terms.interval), short(terms.gap)) else { return };
        let late = terms.late.min(u64::from(u32::MAX));
        // A due time that is long over buys nothing: the gap after the next send is longer.
        let origin = terms.due.max(now.minus(terms.interval)).min(now);
        let due = terms.due.nanos_since(origin);
        let (Some(due), Some(in_flight)) = (DUE.put(due), IN_FLIGHT.put(u64::from(terms.in_flight))) else { return };
        let in_flight_max = u64::from(terms.in_flight_max).min(IN_FLIGHT_MAX).min(0xff);
        let answers_max = u64::from(terms.answers_max).min(BATCH as u64);
        self.origin.store(origin.as_nanos(), Ordering::Relaxed);
        self.pace.store(gap << 32 | interval, Ordering::Relaxed);
        let until = terms.until.nanos_since(origin).min(u64::from(u32::MAX));
        let since = origin.nanos_since(terms.since).min(u64::from(u32::MAX));
        self.span.store(until << 32 | since, Ordering::Relaxed);
        let counts = answers_max << 8 | in_flight_max;
        self.bounds.store(late << 32 | u64::from(terms.generation) << 16 | counts, Ordering::Relaxed);
        self.seq.store(terms.seq, Ordering::Relaxed);
        self.others.store(0, Ordering::Relaxed);
        // Whoever sees the lane open sees its terms.
        self.word.store(due | in_flight | OPEN, Ordering::Release);
    }

    /// Closes the lane and says what happened in it; `None` when it was not open. To be called with the key's lock
    /// held.
    #[inline]
    pub(crate) fn close(&self) -> Option<Batch> {
        let word = self.word.swap(0, Ordering::AcqRel);
        if word & OPEN == 0 {
            return None;
        }
        let mut samples = [0; BATCH];
        for (sample, kept) in samples.iter_mut().zip(&self.samples) {
            *sample = kept.load(Ordering::Relaxed);
        }
        Some(Batch {
            sends: SENDS.of(word) as u16,
            answers: ANSWERS.of(word) as u16,
            in_flight: IN_FLIGHT.of(word) as u16,
            others: self.others.load(Ordering::Relaxed),
            due: Time::from_nanos(self.origin.load(Ordering::Relaxed)).plus(DUE.of(word)),
            samples,
        })
    }

    /// Admits a request at `now`, if it is ordinary.
    #[inline]
    pub(crate) fn pass(&self, now: Time) -> Option<Passed> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // A clock that went backwards is before everything.
            let at = now.as_nanos().wrapping_sub(self.origin.load(Ordering::Relaxed)).cast_signed();
            let pace = self.pace.load(Ordering::Relaxed);
            let bounds = self.bounds.load(Ordering::Relaxed);
            let seq = self.seq.load(Ordering::Relaxed);
            let others = IN_FLIGHT.of(word);
            let is_full = SENDS.of(word) >= BATCH as u64 || others >= bounds & 0xff;
            let due = DUE.of(word);
            let is_over = at >= (self.span.load(Ordering::Relaxed) >> 32).cast_signed();
            if word & OPEN == 0 || is_full || is_over || at < due.cast_signed() {
                return None;
            }
            let next = (due + (pace & 0xffff_ffff)).max(at.cast_unsigned() + (pace >> 32));
            let counts = word & (DUE.one() - 1);
            let new = DUE.put(next)? | (counts + SENDS.one() + IN_FLIGHT.one());
            match self.word.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    return Some(Passed {
                        seq: seq.wrapping_add(SENDS.of(new) as u32),
                        others: others as u16,
                        generation: (bounds >> 16) as u16,
                    });
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Tells the success of a request that was sent at `sent_at` beside `others`, if it is ordinary; false when it has
    /// to be told to the key.
    #[inline]
    pub(crate) fn tell(&self, sent_at: Time, others: u16, generation: u16, now: Time) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        let latency = now.nanos_since(sent_at);
        loop {
            let bounds = self.bounds.load(Ordering::Relaxed);
            let answers = ANSWERS.of(word);
            let is_ordinary = latency < bounds >> 32
                && (bounds >> 16) as u16 == generation
                && sent_at.as_nanos() + (self.span.load(Ordering::Relaxed) & 0xffff_ffff)
                    >= self.origin.load(Ordering::Relaxed);
            let has_room = answers < (bounds >> 8) & 0xff && IN_FLIGHT.of(word) > 0;
            if word & OPEN == 0 || !is_ordinary || !has_room {
                return false;
            }
            // Before the swap, so that whoever counts the answer finds its latency. Of two who race for one place
            // the later one's may stand twice and the other's not at all: a latency of this key in any case.
            self.samples[answers as usize % BATCH].store(pack(latency / 1000), Ordering::Relaxed);
            if others > self.others.load(Ordering::Relaxed) {
                self.others.store(others, Ordering::Relaxed);
            }
            let new = word + ANSWERS.one() - IN_FLIGHT.one();
            match self.word.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }
}

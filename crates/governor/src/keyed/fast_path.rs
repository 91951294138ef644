//! Lock-free fast path of ordinary requests.
//!
//! Most requests of a busy key are alike: they are due, they succeed, the answer is not late. The law need not see
//! each of them; a batch of twelve is enough. So the holder of the key's lock may open the fast path: it states the
//! pace, until when it holds and for how many requests. Then one compare-and-swap admits a request, and another
//! reports its success. Every other event takes the lock, which closes the fast path and reports its batch to the law
//! first.
//!
//! One atomic word holds everything that decides, so no state can be seen half-changed: the time of the next send,
//! the requests in flight, and the sends and answers that the law has not seen yet. Only the holder of the key's lock
//! opens and closes the fast path.

use super::stats::{pack, unpack};
use crate::time::Time;
#[cfg(gleaner_loom)]
use loom::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
#[cfg(not(gleaner_loom))]
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Sends, and answers, per batch. With twelve latencies the fast path takes 72 bytes of every key.
pub(crate) const BATCH: usize = 12;

const OPEN: u64 = 1;
const SENDS: Field = Field { shift: 1, bits: 5 };
const ANSWERS: Field = Field { shift: 6, bits: 5 };
const IN_FLIGHT: Field = Field { shift: 11, bits: 9 };
const DUE: Field = Field { shift: 20, bits: 44 };

/// Maximum of requests in flight that fits into the word.
const IN_FLIGHT_MAX: u64 = (1 << IN_FLIGHT.bits) - 1;

/// A bit field of the word.
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

/// Terms that hold while the fast path is open. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// When the next send is due.
    pub(crate) due: Time,
    /// Interval between two sends on average, and the shortest one.
    pub(crate) interval: u64,
    pub(crate) gap: u64,
    /// The fast path closes.
    pub(crate) until: Time,
    /// Answers to requests sent before this are not ordinary.
    pub(crate) since: Time,
    /// An answer is late after this time.
    pub(crate) late: u64,
    pub(crate) generation: u16,
    /// Sequence number of the last send.
    pub(crate) seq: u32,
    pub(crate) in_flight: u16,
    pub(crate) in_flight_max: u16,
    /// Answers after which the batch is reported to the law.
    pub(crate) answers_max: u8,
}

/// A batch: what happened on the fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) sends: u16,
    pub(crate) answers: u16,
    pub(crate) in_flight: u16,
    /// Highest number of others in flight beside an answered request.
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
pub(crate) struct FastPath {
    word: AtomicU64,
    /// Origin of the word's time: nanoseconds since then fit into it for hours.
    origin: AtomicU64,
    /// `gap` and `interval`, 32 bits each.
    pace: AtomicU64,
    /// `until` after the origin and `since` before it, 32 bits each.
    span: AtomicU64,
    /// `late` (32 bits), `generation` (16), limits on answers and requests in flight (8 each).
    bounds: AtomicU64,
    seq: AtomicU32,
    others: AtomicU16,
    samples: [AtomicU16; BATCH],
}

/// A request admitted by the fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) seq: u32,
    pub(crate) others: u16,
    pub(crate) generation: u16,
}

impl FastPath {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            origin: AtomicU64::new(0),
            pace: AtomicU64::new(0),
            span: AtomicU64::new(0),
            bounds: AtomicU64::new(0),
            seq: AtomicU32::new(0),
            others: AtomicU16::new(0),
            samples: std::array::from_fn(|_| AtomicU16::new(0)),
        }
    }

    /// Opens the fast path, if the terms fit into its fields. The caller holds the key's lock, and the path is
    /// closed.
    pub(crate) fn open(&self, terms: &Terms, now: Time) {
        // A key with one send in four seconds can take the lock.
        let short = |nanos: u64| u32::try_from(nanos).map(u64::from);
        let (Ok(interval), Ok(gap)) = (short(terms.interval), short(terms.gap)) else { return };
        let late = terms.late.min(u64::from(u32::MAX));
        // A due time long past is worth nothing: the gap after the next send is longer.
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
        // Release: a thread that sees the path open also sees its terms.
        self.word.store(due | in_flight | OPEN, Ordering::Release);
    }

    /// Closes the fast path and returns its batch; `None` when it was not open. The caller holds the key's lock.
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
            // A clock that went backwards is before every time.
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

    /// Reports the success of a request sent at `sent_at` beside `others`, if it is ordinary; false when it must be
    /// reported to the key.
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
            // Stored before the swap, so that a reader of the count finds the latency. If two threads race for one
            // slot, one latency may be stored twice and the other lost: both belong to this key.
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

#[cfg(test)]
mod terms {
    use super::*;

    pub(super) fn at(nanos: u64) -> Time {
        Time::from_nanos(1_000_000_000 + nanos)
    }

    /// A send per microsecond from 0 on, three in flight, for a second.
    pub(super) fn terms() -> Terms {
        Terms {
            due: at(0),
            interval: 1000,
            gap: 800,
            until: at(1_000_000_000),
            since: at(0),
            late: 50_000,
            generation: 7,
            seq: 41,
            in_flight: 0,
            in_flight_max: 3,
            answers_max: 12,
        }
    }
}

/// Every order in which threads can take these steps (`scripts/loom`).
#[cfg(all(test, gleaner_loom))]
mod interleavings {
    use super::terms::{at, terms};
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn opened(terms: &Terms) -> Arc<FastPath> {
        let express = Arc::new(FastPath::new());
        express.open(terms, at(0));
        express
    }

    #[test]
    fn two_who_race_for_one_place_do_not_both_get_it() {
        loom::model(|| {
            let express = opened(&terms());
            let other = Arc::clone(&express);
            let thread = thread::spawn(move || other.pass(at(100)).is_some());
            let own = express.pass(at(100)).is_some();
            let both = [own, thread.join().unwrap()];
            assert_eq!(both.iter().filter(|passed| **passed).count(), 1, "{both:?}");
            let batch = express.close().unwrap();
            assert_eq!((batch.sends, batch.in_flight, batch.due), (1, 1, at(1000)));
        });
    }

    #[test]
    fn whoever_closes_the_lane_learns_of_every_request_that_went_through() {
        loom::model(|| {
            // Two places at once, so that both may pass.
            let express = opened(&Terms { interval: 1, gap: 0, ..terms() });
            let other = Arc::clone(&express);
            let thread = thread::spawn(move || match other.pass(at(2000)) {
                Some(passed) => (1, u16::from(other.tell(at(2000), passed.others, passed.generation, at(5000)))),
                None => (0, 0),
            });
            let mut sends = u16::from(express.pass(at(3000)).is_some());
            let batch = express.close().unwrap();
            let (others_sends, others_answers) = thread.join().unwrap();
            sends += others_sends;
            // A success after closing is refused, not lost.
            assert_eq!(batch.sends, sends);
            assert_eq!(batch.answers, others_answers);
            assert_eq!(batch.in_flight, sends - others_answers);
            if batch.answers == 1 {
                assert_eq!(batch.mean_micros(), 3);
            }
            assert!(express.pass(at(9000)).is_none(), "closed is closed");
        });
    }

    #[test]
    fn no_more_are_in_flight_than_allowed_and_numbers_are_drawn_once() {
        loom::model(|| {
            let express = opened(&Terms { interval: 1, gap: 0, in_flight_max: 1, ..terms() });
            let other = Arc::clone(&express);
            let thread = thread::spawn(move || {
                let passed = other.pass(at(2000))?;
                other.tell(at(2000), passed.others, passed.generation, at(3000)).then_some(passed.seq)
            });
            let own = express.pass(at(2000)).map(|passed| (passed.seq, passed.others));
            let others = thread.join().unwrap();
            if let (Some((own, beside)), Some(others)) = (own, others) {
                assert_ne!(own, others);
                assert_eq!(beside, 0);
            }
            assert!(own.is_some() || others.is_some());
            assert!(express.close().unwrap().in_flight <= 1);
        });
    }

    #[test]
    fn terms_are_seen_by_whoever_sees_the_lane_open() {
        loom::model(|| {
            let express = Arc::new(FastPath::new());
            let other = Arc::clone(&express);
            let thread = thread::spawn(move || other.pass(at(100)).map(|passed| (passed.seq, passed.generation)));
            express.open(&terms(), at(0));
            assert!(thread.join().unwrap().is_none_or(|seen| seen == (42, 7)));
        });
    }
}

#[cfg(all(test, not(gleaner_loom)))]
mod tests {
    use super::terms::{at, terms};
    use super::*;

    fn opened(terms: &Terms) -> FastPath {
        let express = FastPath::new();
        express.open(terms, at(0));
        express
    }

    #[test]
    fn a_lane_that_is_not_open_lets_nobody_through() {
        let express = FastPath::new();
        assert!(express.pass(at(0)).is_none() && express.close().is_none());
        assert!(!express.tell(at(0), 0, 0, at(1)));
    }

    #[test]
    fn sends_keep_their_distance_and_make_up_for_no_more_than_they_may() {
        let express = opened(&terms());
        assert!(express.pass(at(0)).is_some());
        assert!(express.pass(at(999)).is_none());
        assert!(express.pass(at(1300)).is_some(), "late by 300, ...");
        assert!(express.pass(at(2099)).is_none(), "... of which the next makes up for 200");
        assert!(express.pass(at(2100)).is_some());
        assert_eq!(express.close().unwrap().due, at(3100));
    }

    #[test]
    fn a_pause_buys_no_burst() {
        let express = opened(&Terms { due: Time::from_nanos(5), ..terms() });
        assert!(express.pass(at(50_000)).is_some());
        assert!(express.pass(at(50_799)).is_none());
        assert!(express.pass(at(50_800)).is_some());
        assert!(express.pass(at(51_599)).is_none());
    }

    #[test]
    fn sends_have_the_numbers_that_follow_and_know_their_company() {
        let express = opened(&terms());
        let passed = |nanos| express.pass(at(nanos)).map(|passed| (passed.seq, passed.others, passed.generation));
        assert_eq!([passed(0), passed(1000), passed(2000)], [Some((42, 0, 7)), Some((43, 1, 7)), Some((44, 2, 7))]);
        assert_eq!(passed(3000), None, "three are in flight");
        assert!(express.tell(at(0), 0, 7, at(3000)));
        assert_eq!(passed(3000), Some((45, 2, 7)));
    }

    #[test]
    fn an_answer_that_is_not_ordinary_is_not_taken() {
        let express = opened(&terms());
        assert!(!express.tell(at(0), 0, 7, at(100)), "nothing is in flight");
        assert!(express.pass(at(0)).is_some());
        assert!(!express.tell(at(0), 0, 7, at(50_000)), "late");
        assert!(!express.tell(at(0), 0, 6, at(100)), "from before the circuit changed");
        assert!(!express.tell(Time::from_nanos(999_999_999), 0, 7, at(100)), "sent before the present step");
        assert!(express.tell(at(0), 2, 7, at(49_999)));
        let batch = express.close().unwrap();
        assert_eq!((batch.sends, batch.answers, batch.in_flight, batch.others), (1, 1, 0, 2));
        assert_eq!((batch.latencies(), batch.mean_micros()), (&[49][..], 49));
    }

    #[test]
    fn after_twelve_or_after_its_time_the_law_has_to_be_told() {
        let express = opened(&Terms { in_flight_max: 100, ..terms() });
        let passed = (0..100).filter(|n| express.pass(at(n * 1000)).is_some()).count();
        assert_eq!(passed, BATCH);
        let express = opened(&Terms { answers_max: 2, ..terms() });
        let told = (0..5)
            .filter(|n| express.pass(at(n * 1000)).is_some() && express.tell(at(n * 1000), 0, 7, at(n * 1000 + 5)))
            .count();
        assert_eq!(told, 2);
        let express = opened(&terms());
        assert!(express.pass(at(999_999_999)).is_some());
        let express = opened(&terms());
        assert!(express.pass(at(1_000_000_000)).is_none());
    }

    #[test]
    fn a_clock_that_goes_backwards_gets_nothing() {
        let express = opened(&terms());
        assert!(express.pass(Time::from_nanos(10)).is_none());
        assert!(express.pass(at(0)).is_some());
    }

    #[test]
    fn terms_that_do_not_fit_leave_the_lane_closed() {
        for terms in [
            Terms { interval: u64::from(u32::MAX) + 1, ..terms() },
            Terms { gap: u64::MAX, ..terms() },
            Terms { in_flight: 512, ..terms() },
            Terms { due: Time::NEVER, ..terms() },
        ] {
            assert!(opened(&terms).close().is_none(), "{terms:?}");
        }
    }
}

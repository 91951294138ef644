//! How much memory hostile and huge input costs, counted at the allocator.
//!
//! A program of its own, because the count is that of the whole process. Input is made piece by piece,
//! so that what is counted is what the codec holds.

use gleaner_protocol::{CoverageField, Decoder, Event, Limits, Violation, ViolationCode};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// One measurement at a time.
static TURN: Mutex<()> = Mutex::new(());

#[expect(unsafe_code, reason = "an allocator cannot be written without; it only counts and passes on")]
// SAFETY: every call is passed on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Begins a test: the others wait, because what they hold would be counted.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The most that was held at once while this ran, beyond what was held before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), result)
}

const MIB: usize = 1024 * 1024;
const PIECE: usize = 64 * 1024;

/// Feeds a head, then filler until so many bytes are fed; how many were fed when the violation came.
fn feed_one_line(head: &[u8], total: usize) -> Option<(usize, Violation)> {
    let mut decoder = Decoder::new(Limits::default());
    let filler = [b'x'; PIECE];
    let mut fed = 0;
    let mut found = None;
    while fed < total {
        let piece = if fed == 0 { head } else { &filler };
        fed += piece.len();
        let mut feed = decoder.feed(piece);
        while let Some(event) = feed.next() {
            if let Event::Violation(violation) = event {
                found.get_or_insert((fed, violation));
            }
        }
    }
    found
}

#[test]
fn a_gigabyte_in_one_line_is_refused_within_the_limit() {
    let _turn = turn();
    let head = br#"{"type":"RECORD","stream":"photos","key":"k","data":{"x":""#;
    let (peak, found) = peak_of(|| feed_one_line(head, 1024 * MIB));
    let (fed, violation) = found.unwrap();
    assert_eq!((violation.code, violation.stream.as_deref()), (ViolationCode::LineTooLong, Some("photos")));
    assert!(fed <= Limits::LINE_BYTES_MAX + 2 * PIECE, "refused after {fed} bytes");
    assert!(peak < 2 * Limits::LINE_BYTES_MAX, "{peak} bytes held");
}

#[test]
fn a_gigabyte_in_one_key_of_a_coverage_report_is_refused() {
    let _turn = turn();
    let head = br#"{"type":"DETAIL_COVERAGE","stream":"photos","required_keys":[""#;
    let (peak, found) = peak_of(|| feed_one_line(head, 1024 * MIB));
    let (_, violation) = found.unwrap();
    assert_eq!((violation.code, violation.stream.as_deref()), (ViolationCode::LineTooLong, Some("photos")));
    assert!(peak < Limits::LINE_BYTES_MAX, "{peak} bytes held");
}

/// Feeds a report of a million keys of 20 bytes, required and hydrated, to a consumer.
fn feed_a_million_keys(mut take: impl FnMut(&Event<'_>)) {
    let mut decoder = Decoder::new(Limits::default());
    let mut piece = Vec::with_capacity(2 * PIECE);
    let mut feed = |piece: &mut Vec<u8>, more: &[u8], last: bool| {
        piece.extend_from_slice(more);
        if piece.len() >= PIECE || last {
            let mut feed = decoder.feed(piece);
            while let Some(event) = feed.next() {
                take(&event);
            }
            piece.clear();
        }
    };
    feed(&mut piece, br#"{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"s","state_stream":"p""#, false);
    for field in [CoverageField::RequiredKeys, CoverageField::HydratedKeys] {
        feed(&mut piece, format!(",\"{}\":[", field.code()).as_bytes(), false);
        for n in 0..1_000_000 {
            let comma = if n == 0 { "" } else { "," };
            feed(&mut piece, format!("{comma}\"{n:020}\"").as_bytes(), false);
        }
        feed(&mut piece, b"]", false);
    }
    feed(&mut piece, b"}\n", true);
}

#[test]
fn a_million_keys_are_read_holding_one_block() {
    let _turn = turn();
    let (peak, (keys, ended)) = peak_of(|| {
        let (mut seen, mut ended) = (0, false);
        feed_a_million_keys(|event| match event {
            Event::CoverageKeys { keys, .. } => seen += keys.len(),
            Event::CoverageEnd { report, .. } => ended = report.key_counts == [1_000_000, 1_000_000, 0, 0],
            Event::Message { .. } | Event::Violation(_) => panic!("{event:?}"),
        });
        (seen, ended)
    });
    assert_eq!((keys, ended), (2_000_000, true));
    assert!(peak < MIB, "{peak} bytes held");
}

#[test]
fn a_record_of_a_million_keys_costs_less_than_twice_the_limit() {
    let _turn = turn();
    let mut line = br#"{"type":"RECORD","stream":"s","key":"k","emitted_at":"n","data":{"#.to_vec();
    for n in 0..1_000_000 {
        line.extend_from_slice(format!("\"{n:x}\":{n},").as_bytes());
    }
    line.extend_from_slice(b"\"last\":0}}\n");
    assert!(line.len() < Limits::LINE_BYTES_MAX);
    let (peak, records) = peak_of(|| {
        let mut decoder = Decoder::new(Limits::default());
        let mut records = 0;
        for piece in line.chunks(PIECE) {
            let mut feed = decoder.feed(piece);
            while let Some(event) = feed.next() {
                assert!(matches!(event, Event::Message { .. }), "{event:?}");
                records += 1;
            }
        }
        records
    });
    assert_eq!(records, 1);
    assert!(peak < 2 * Limits::LINE_BYTES_MAX, "{peak} bytes held");
}

/// Negative control: a reader that waits for the end of its line is caught by the same measurement.
#[test]
fn the_measurement_sees_a_reader_without_a_bound() {
    let _turn = turn();
    let (peak, _) = peak_of(|| {
        let mut line = Vec::new();
        for _ in 0..48 {
            line.extend_from_slice(&vec![b'x'; MIB]);
        }
        line.len()
    });
    assert!(peak >= 2 * Limits::LINE_BYTES_MAX, "{peak} bytes held");
}

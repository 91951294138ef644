//! The success path allocates nothing. Counted per thread, since other tests run beside this one.

use crate::harness::{Hand, MS};
use gleaner_governor::{Admission, Config, Jitter, Outcome};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more, and nobody reads it.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator is unsafe by nature; this one forwards to the system's and counts")]
// SAFETY: every call is handed to `System` with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn admit_and_outcome_allocate_nothing() {
    let mut hand = Hand::new(Config::default());
    hand.warm_to(Duration::from_millis(20));
    let counted = allocations(|| {
        for _ in 0..10_000 {
            let now = hand.snapshot().next_allowed.max(hand.now);
            let Admission::Send(permit) = hand.governor.poll_admit(now) else { panic!("not due") };
            hand.now = now + Duration::from_nanos(5 * MS);
            hand.governor.on_outcome(permit, &Outcome::success(), 0, Jitter::from_bits(0), hand.now);
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn refusals_waits_and_deferrals_allocate_nothing_either() {
    let mut hand = Hand::new(Config::default());
    hand.warm_to(Duration::from_millis(20));
    let counted = allocations(|| {
        for wait in 0..1000 {
            match hand.governor.poll_admit(hand.now) {
                Admission::Send(permit) => {
                    let outcome = Outcome::throttled(Some(Duration::from_secs(wait)).filter(|_| wait % 2 == 0));
                    hand.governor.on_outcome(permit, &outcome, 0, Jitter::from_bits(wait), hand.now);
                }
                Admission::WaitUntil(until) => hand.now = until,
                Admission::Defer(deferral) => hand.now = deferral.not_before.unwrap_or(hand.now),
                Admission::WaitForOutcome => {}
            }
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(Box::new(1_u8))) <= 1);
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
}

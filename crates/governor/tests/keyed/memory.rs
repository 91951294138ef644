//! How much memory keys take. Counted per thread, since other tests run beside these.

use crate::desk::{Desk, domain};
use gleaner_governor::keyed::{Feedback, Registry, RegistryConfig};
use gleaner_governor::{Admission, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

struct Counting;

thread_local! {
    static BYTES: Cell<i64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Rounding and overhead of the allocator per allocation.
const OVERHEAD: usize = 8;

fn real(size: usize) -> i64 {
    (size + OVERHEAD).next_multiple_of(16).max(32) as i64
}

fn count(bytes: i64, allocations: u64) {
    // A thread that is ending has no counter any more, and nobody reads it.
    let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
    let _ = ALLOCATIONS.try_with(|all| all.set(all.get() + allocations));
}

#[expect(unsafe_code, reason = "an allocator is unsafe by nature; this one forwards to the system's and counts")]
// SAFETY: every call is handed to `System` with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(real(layout.size()), 1);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(real(size) - real(layout.size()), 1);
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-real(layout.size()), 0);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn host(number: u32) -> String {
    format!("host-{number:07}.example")
}

/// Every host is asked once; what a success teaches is more than nothing.
fn use_once(registry: &Registry, hosts: std::ops::Range<u32>, now: Time) {
    for number in hosts {
        let handle = registry.handle(&domain(&host(number)), now).unwrap();
        let Admission::Send(permit) = registry.acquire(&handle, now, now) else { panic!("not new") };
        registry.feedback(&handle, permit, &Feedback::status(200, None), now + Duration::from_millis(20));
    }
}

#[test]
fn an_idle_key_takes_400_bytes_and_an_active_one_a_kibibyte() {
    const KEYS: u32 = 50_000;
    let registry: Registry = Registry::new(RegistryConfig::default(), 1).unwrap();
    let (before, now) = (BYTES.get(), Time::from_nanos(1_000_000_000_000));
    use_once(&registry, 0..KEYS, now);
    let active = (BYTES.get() - before) as f64 / f64::from(KEYS);
    registry.tend(now + Duration::from_secs(31));
    let idle = (BYTES.get() - before) as f64 / f64::from(KEYS);
    println!("active {active:.0} bytes, idle {idle:.0} bytes, everything included");
    assert!(active <= 1024.0, "{active}");
    assert!(idle <= 400.0, "{idle}");
    registry.tend(now + Duration::from_secs(4000));
    assert_eq!(registry.len(), 0);
}

#[test]
fn a_million_keys_of_which_ten_thousand_are_active_fit_into_500_mb() {
    let registry: Registry = Registry::new(RegistryConfig::default(), 1).unwrap();
    let (before, mut now) = (BYTES.get(), Time::from_nanos(1_000_000_000_000));
    // They come over some minutes, and are looked after meanwhile.
    let mut peak = 0;
    for part in 0..100 {
        use_once(&registry, part * 10_000..(part + 1) * 10_000, now);
        now = now + Duration::from_secs(20);
        registry.tend(now);
        peak = peak.max(BYTES.get() - before);
    }
    assert_eq!(registry.len(), 1_000_000);
    let active = registry.snapshot(0, now).keys_active;
    assert!(active >= 10_000, "{active}");
    println!("{} MB, at most {} MB, {active} active", (BYTES.get() - before) / 1_000_000, peak / 1_000_000);
    assert!(peak < 500_000_000, "{peak}");
}

#[test]
fn acquire_and_feedback_allocate_nothing() {
    let mut desk = Desk::new(RegistryConfig::default());
    for _ in 0..100 {
        desk.exchange("a.com", 200, 10);
    }
    let handle = desk.handle("a.com");
    let before = ALLOCATIONS.get();
    for n in 0..2000 {
        let status = if n % 50 == 0 { 500 } else { 200 };
        match desk.registry.acquire(&handle, desk.now, desk.now) {
            Admission::Send(permit) => {
                desk.pass_ms(10);
                desk.registry.feedback(&handle, permit, &Feedback::status(status, None), desk.now);
            }
            Admission::WaitUntil(at) => desk.now = at,
            Admission::Defer(deferral) => desk.now = deferral.not_before.unwrap(),
            Admission::WaitForOutcome => panic!("nothing is in flight"),
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
